//! The address of GitHub Copilot's API, which the access token of a sign-in names. Facts: what Pi 1.6.0 does with
//! such a token; with a key of another kind the address is the model's.

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
    if let Some(url) = api_url(token) {
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
}
