//! What GitHub Copilot wants beyond the APIs that it speaks: headers that say who began the request, and the
//! address that its access token names. Facts: what Pi 1.6.0 sends to a server of the tests.

use sampi_protocol::data::{AgentMessage, Content, ContentBlock};
use secrecy::ExposeSecret;

use super::ModelRequest;
use super::headers::header;

const PROVIDER: &str = "github-copilot";

/// The field of the access token with the host of the proxy; the API is beside it.
const PROXY_FIELD: &str = "proxy-ep=";

/// Adds what is missing. Requests to other providers stay as they are.
pub(super) fn prepare(request: &mut ModelRequest) {
    if request.model.provider != PROVIDER {
        return;
    }
    let token = request.credentials.api_key.as_ref().map(ExposeSecret::expose_secret).unwrap_or_default();
    if let Some(url) = api_url(token) {
        request.model.base_url = url;
    }
    request.credentials.bearer = true;
    let initiator =
        match request.messages.iter().rev().find(|message| !is_hidden(message)).map(|last| &**last) {
            Some(AgentMessage::ToolResult(_) | AgentMessage::Assistant(_)) => "agent",
            _ => "user",
        };
    let mut headers = vec![header("x-initiator", initiator), header("openai-intent", "conversation-edits")];
    if request.messages.iter().any(|message| has_image(message)) {
        headers.push(header("copilot-vision-request", "true"));
    }
    let own = &mut request.credentials.headers;
    headers.retain(|(name, _)| !own.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)));
    own.extend(headers);
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

fn is_hidden(message: &AgentMessage) -> bool {
    matches!(message, AgentMessage::System(_))
}

fn has_image(message: &AgentMessage) -> bool {
    let blocks = match message {
        AgentMessage::User(message) => blocks_of(&message.content),
        AgentMessage::Custom(message) => blocks_of(&message.content),
        AgentMessage::ToolResult(message) => &message.content,
        _ => &[],
    };
    blocks.iter().any(|block| matches!(block, ContentBlock::Image(_)))
}

fn blocks_of(content: &Content) -> &[ContentBlock] {
    match content {
        Content::Blocks(blocks) => blocks,
        Content::Text(_) => &[],
    }
}

#[cfg(test)]
mod tests {
    use sampi_protocol::data::{Model, ThinkingLevel};
    use serde_json::{Value, json};

    use super::*;
    use crate::llm::{Credentials, testing};

    fn prepared(provider: &str, token: &str, messages: Value) -> (String, Vec<String>, bool) {
        let model = Model {
            id: "m".into(),
            provider: provider.into(),
            base_url: "https://api.individual.githubcopilot.com".into(),
            ..Model::default()
        };
        let mut request = testing::request(model, ThinkingLevel::Off, messages);
        let headers = vec![("Openai-Intent".to_owned(), "own".into())];
        request.authorise(Credentials { api_key: Some(token.into()), headers, ..Credentials::default() });
        let Credentials { headers, bearer, .. } = request.credentials;
        let headers =
            headers.iter().map(|(name, value)| format!("{name}={}", value.expose_secret())).collect();
        (request.model.base_url, headers, bearer)
    }

    #[test]
    fn who_began_and_what_is_in_the_request_is_said_in_headers() {
        let user = json!({ "role": "user", "content": "q", "timestamp": 1 });
        let image = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
        let result = json!({ "role": "toolResult", "toolCallId": "c", "toolName": "t", "content": [image],
            "isError": false, "timestamp": 1 });
        let (url, headers, bearer) = prepared("github-copilot", "plain", json!([user]));
        assert_eq!(headers, ["Openai-Intent=own", "x-initiator=user"]);
        assert!(bearer && url == "https://api.individual.githubcopilot.com");
        let (_, headers, _) = prepared("github-copilot", "plain", json!([user, result]));
        assert_eq!(headers, ["Openai-Intent=own", "x-initiator=agent", "copilot-vision-request=true"]);
        let (_, headers, bearer) = prepared("openai", "k;proxy-ep=proxy.x.com", json!([user]));
        assert_eq!((headers, bearer), (vec!["Openai-Intent=own".to_owned()], false));
    }

    #[test]
    fn the_address_is_that_of_the_token() {
        for (token, url) in [
            (
                "tid=x;proxy-ep=proxy.business.githubcopilot.com;y=z",
                Some("https://api.business.githubcopilot.com"),
            ),
            ("proxy-ep=copilot.corp.example:8443", Some("https://copilot.corp.example:8443")),
            ("tid=x;proxy-ep=", None),
            ("tid=x;proxy-ep=evil.example/path?", None),
            ("tid=x", None),
        ] {
            assert_eq!(api_url(token).as_deref(), url, "{token}");
        }
    }
}
