//! The address of GitHub Copilot's API, which the access token of a sign-in names, or else the company that it is
//! for. Facts: what Pi 1.6.0 does with such a token; with a key of another kind the address is the model's.

use secrecy::ExposeSecret;

use super::ModelRequest;

const PROVIDER: &str = "github-copilot";

/// The field of the access token with the host of the proxy; the API is beside it.
const PROXY_FIELD: &str = "proxy-ep=";

/// Sends the request to where its token belongs. Requests to other providers stay as they are.
pub(super) fn follow_token(request: &mut ModelRequest) {
    if request.model.provider != PROVIDER || !request.credentials.signed_in {
        return;
    }
    let token = request.credentials.api_key.as_ref().map(ExposeSecret::expose_secret).unwrap_or_default();
    let enterprise = request.credentials.enterprise_url.as_deref();
    if let Some(url) = api_url(token).or_else(|| enterprise_api_url(enterprise?)) {
        request.model.base_url = url;
    }
}

/// The address of the API that a token is for.
fn api_url(token: &str) -> Option<String> {
    let host = token.split(';').find_map(|field| field.trim().strip_prefix(PROXY_FIELD))?;
    let is_host = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:".contains(&byte))
    };
    let host = host.strip_prefix("proxy.").map_or_else(|| host.to_owned(), |rest| format!("api.{rest}"));
    is_host(&host).then(|| format!("https://{host}"))
}

/// The address of the API of a company, of which the domain or the address was saved. Anything beside them is no
/// such thing.
fn enterprise_api_url(saved: &str) -> Option<String> {
    let saved = saved.trim();
    let url = if saved.contains("://") { saved.to_owned() } else { format!("https://{saved}") };
    let url = reqwest::Url::parse(&url).ok()?;
    let is_bare = url.username().is_empty()
        && url.password().is_none()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none();
    let is_web = matches!(url.scheme(), "https" | "http");
    let host = url.domain().filter(|host| host.contains('.'))?;
    (is_web && is_bare).then(|| format!("https://copilot-api.{host}"))
}

#[cfg(test)]
mod tests {
    use sampi_protocol::data::{Model, ThinkingLevel};
    use serde_json::json;

    use super::*;
    use crate::llm::{Credentials, testing};

    #[test]
    fn the_address_is_that_of_the_token() {
        let own = "https://own.example";
        for (provider, token, url) in [
            (
                PROVIDER,
                "tid=x;proxy-ep=proxy.business.githubcopilot.com;y=z",
                "https://api.business.githubcopilot.com",
            ),
            (PROVIDER, "proxy-ep=copilot.corp.example:8443", "https://copilot.corp.example:8443"),
            (PROVIDER, "tid=x;proxy-ep=", own),
            (PROVIDER, "tid=x;proxy-ep=evil.example/path?", own),
            (PROVIDER, "tid=x", own),
            ("openai", "tid=x;proxy-ep=proxy.x.com", own),
        ] {
            let model = Model { provider: provider.into(), base_url: own.into(), ..Model::default() };
            let mut request = testing::request(model, ThinkingLevel::Off, json!([]));
            let credentials = Credentials { api_key: Some(token.into()), ..Credentials::default() };
            request.authorise(credentials.clone());
            assert_eq!(request.model.base_url, own, "{provider} {token}");
            request.authorise(Credentials { signed_in: true, ..credentials });
            assert_eq!(request.model.base_url, url, "{provider} {token}");
        }
    }

    #[test]
    fn a_token_that_names_no_address_is_for_the_company_of_its_sign_in() {
        let (own, company) = ("https://own.example", "https://copilot-api.company.ghe.com");
        for (token, enterprise, url) in [
            ("tid=x", "company.ghe.com", company),
            ("tid=x", " https://Company.ghe.com/ ", company),
            ("tid=x", "http://company.ghe.com:8443", company),
            ("tid=x;proxy-ep=proxy.x.com", "company.ghe.com", "https://api.x.com"),
            ("tid=x;proxy-ep=evil.example/path?", "company.ghe.com", company),
            ("tid=x", "", own),
            ("tid=x", "evil.example/path", own),
            ("tid=x", "evil.example?company.ghe.com", own),
            ("tid=x", "evil.example#company.ghe.com", own),
            ("tid=x", "company.ghe.com@evil.example", own),
            ("tid=x", "https://a:b@evil.example", own),
            ("tid=x", "company.ghe.com:nonsense", own),
            ("tid=x", "company.ghe.com:99999", own),
            ("tid=x", "file:///company.ghe.com", own),
            ("tid=x", "127.0.0.1", own),
            ("tid=x", "company", own),
            ("tid=x", "a b.ghe.com", own),
        ] {
            let model = Model { provider: PROVIDER.into(), base_url: own.into(), ..Model::default() };
            let mut request = testing::request(model, ThinkingLevel::Off, json!([]));
            let enterprise_url = Some(enterprise.to_owned());
            let credentials =
                Credentials { api_key: Some(token.into()), enterprise_url, ..Credentials::default() };
            request.authorise(credentials.clone());
            assert_eq!(request.model.base_url, own, "{token} {enterprise}");
            request.authorise(Credentials { signed_in: true, ..credentials });
            assert_eq!(request.model.base_url, url, "{token} {enterprise}");
        }
    }
}
