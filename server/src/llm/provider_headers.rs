//! Headers that some providers want with every request, whatever its API.

use reqwest::Url;
use sampi_protocol::data::{AgentMessage, Content, ContentBlock};

use super::ModelRequest;
use super::headers::{Headers, header};

/// GitHub Copilot, which counts what its users start and what agents go on with.
const COPILOT: &str = "github-copilot";

/// OpenCode's providers, which keep the requests of a session together.
const OPENCODE: [&str; 2] = ["opencode", "opencode-go"];

/// The host of OpenCode.
const OPENCODE_HOST: &str = "opencode.ai";

/// What the provider of the model wants. No secrets.
pub(super) fn provider_headers(request: &ModelRequest) -> Headers {
    let provider = request.model.provider.as_str();
    if provider == COPILOT {
        return copilot(request);
    }
    let is_opencode = OPENCODE.contains(&provider) || is_at(&request.model.base_url, OPENCODE_HOST);
    let session = request.options.session_id.iter().filter(|_| is_opencode);
    session.map(|session| header("x-opencode-session", session)).collect()
}

fn copilot(request: &ModelRequest) -> Headers {
    let initiator = if is_of_the_agent(&request.messages) { "agent" } else { "user" };
    let mut headers = vec![header("x-initiator", initiator), header("openai-intent", "conversation-edits")];
    if sends_images(request) {
        headers.push(header("copilot-vision-request", "true"));
    }
    headers
}

/// True when the request goes on with what the agent does, false when the user says something.
fn is_of_the_agent<M: std::ops::Deref<Target = AgentMessage>>(messages: &[M]) -> bool {
    let last = messages.iter().rev().find(|message| !matches!(***message, AgentMessage::System(_)));
    last.is_some_and(|message| matches!(**message, AgentMessage::ToolResult(_) | AgentMessage::Assistant(_)))
}

fn sends_images(request: &ModelRequest) -> bool {
    let takes_images =
        request.model.input.iter().any(|kind| kind == "image") && !request.options.block_images;
    takes_images
        && request.messages.iter().any(|message| match &**message {
            AgentMessage::User(message) => has_image(&message.content),
            AgentMessage::Custom(message) => has_image(&message.content),
            AgentMessage::ToolResult(message) => message.content.iter().any(is_image),
            _ => false,
        })
}

fn has_image(content: &Content) -> bool {
    matches!(content, Content::Blocks(blocks) if blocks.iter().any(is_image))
}

fn is_image(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Image(_))
}

fn is_at(url: &str, name: &str) -> bool {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str);
    host.is_some_and(|host| {
        host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use sampi_protocol::data::ThinkingLevel;
    use secrecy::ExposeSecret;
    use serde_json::{Value, json};

    use super::*;
    use crate::llm::testing::{answer, call, model, request, result, system, user};

    fn shown(request: &ModelRequest) -> String {
        let headers = provider_headers(request);
        let shown = headers.iter().map(|(name, value)| format!("{name}={}", value.expose_secret()));
        shown.collect::<Vec<_>>().join(" ")
    }

    fn ask(fields: Value, messages: Value) -> ModelRequest {
        let mut request = request(model("openai-completions", fields), ThinkingLevel::Off, messages);
        request.options.session_id = Some("sid".into());
        request
    }

    #[test]
    fn copilot_is_told_who_goes_on_and_whether_there_are_images() {
        let image = json!({ "type": "image", "data": "", "mimeType": "image/png" });
        let asks =
            json!({ "role": "user", "content": [{ "type": "text", "text": "q" }, image], "timestamp": 1 });
        let called = answer("openai-completions", "toolUse", json!([call("c", json!({}))]));
        let (got, saw) = (result("c", json!([])), result("c", json!([image])));
        let bash = json!({ "role": "bashExecution", "command": "ls", "output": "", "cancelled": false,
            "truncated": false, "timestamp": 1 });
        for (messages, expected) in [
            (json!([system(), user("q")]), "user"),
            (json!([system(), asks]), "user +"),
            (json!([system(), user("q"), called, got]), "agent"),
            (json!([system(), user("q"), called, saw]), "agent +"),
            (json!([system(), asks, called, got]), "agent +"),
            (json!([system(), user("q"), called, got, system()]), "agent"),
            (json!([system(), user("q"), called, got, user("more")]), "user"),
            (json!([system(), user("q"), called, got, bash]), "user"),
        ] {
            let mut request =
                ask(json!({ "provider": "github-copilot", "input": ["text", "image"] }), messages.clone());
            let vision = if expected.ends_with('+') { " copilot-vision-request=true" } else { "" };
            let plain =
                format!("x-initiator={} openai-intent=conversation-edits", expected.trim_end_matches(" +"));
            assert_eq!(shown(&request), format!("{plain}{vision}"), "{messages}");
            request.options.block_images = true;
            assert_eq!(shown(&request), plain, "{messages}");
            request.options.block_images = false;
            request.model.input = vec!["text".to_owned()];
            assert_eq!(shown(&request), plain, "{messages}");
        }
    }

    #[test]
    fn opencode_is_told_the_session_and_others_nothing() {
        for (provider, base_url, expected) in [
            ("opencode", "http://127.0.0.1:1/own", "x-opencode-session=sid"),
            ("opencode-go", "https://opencode.ai/inference/openai/v1", "x-opencode-session=sid"),
            ("mine", "https://opencode.ai/inference/openai/v1", "x-opencode-session=sid"),
            ("mine", "https://eu.opencode.ai/v1", "x-opencode-session=sid"),
            ("mine", "https://notopencode.ai/v1", ""),
            ("mine", "https://api.individual.githubcopilot.com", ""),
            ("kimi-coding", "https://api.kimi.com/coding/v1", ""),
            ("xai", "https://api.x.ai/v1", ""),
            ("vercel-ai-gateway", "https://ai-gateway.vercel.sh", ""),
            ("cloudflare-ai-gateway", "https://gateway.ai.cloudflare.com/v1/a/g/openai", ""),
        ] {
            let request = ask(json!({ "provider": provider, "baseUrl": base_url }), json!([user("q")]));
            assert_eq!(shown(&request), expected, "{provider} {base_url}");
        }
        let mut request = ask(json!({ "provider": "opencode" }), json!([user("q")]));
        request.options.session_id = None;
        assert_eq!(shown(&request), "");
    }
}
