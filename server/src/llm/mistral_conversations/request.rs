//! The request in the terms of Mistral's API.

use sampi_protocol::data::ThinkingLevel;
use serde_json::{Map, Value, json};

use crate::llm::exchange::{Fault, json_post};
use crate::llm::headers::{Headers, bearer, header, json_headers};
use crate::llm::http::Post;
use crate::llm::strict_schema::hold_to_schema;
use crate::llm::transcript::{
    AssistantPart, ImageLimits, InPlace, Part, ToolTurn, Transcript, Turn, UserTurn, as_base64,
};
use crate::llm::{CacheRetention, ModelRequest, budget};

/// Ids of calls have this many letters and digits, no more and no fewer.
const CALL_ID_LENGTH: usize = 9;

/// The digits of an id that is made from a hash.
const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// What the API takes: <https://docs.mistral.ai/capabilities/vision/#faq>
const IMAGES: ImageLimits = ImageLimits {
    // "The maximum number images per request via API is 8."
    per_request: Some(8),
    // "The current file size limit is 10Mb."
    image_bytes: Some(as_base64(10_000_000)),
    ..ImageLimits::NONE
};

/// The request, ready to be sent.
pub(super) fn post(request: &ModelRequest) -> Result<Post, Fault> {
    let base = request.model.base_url.trim_end_matches('/');
    let version = if base.ends_with("/v1") { "" } else { "/v1" };
    json_post(format!("{base}{version}/chat/completions"), headers(request), &body(request))
}

/// The session, where the prompt may be cached.
fn cached_session(request: &ModelRequest) -> Option<&String> {
    let options = &request.options;
    options.session_id.as_ref().filter(|_| options.cache_retention != CacheRetention::None)
}

pub(super) fn headers(request: &ModelRequest) -> Headers {
    let mut headers = json_headers("text/event-stream");
    headers.extend(request.credentials.api_key.as_ref().map(bearer));
    headers.extend(cached_session(request).map(|session| header("x-affinity", session)));
    headers.extend(request.credentials.headers.iter().cloned());
    headers
}

/// The body, its fields in the order in which Pi has them.
pub(super) fn body(request: &ModelRequest) -> Value {
    let prompt = request.compat_flag("supportsMidConvoSystemMessages").unwrap_or(false);
    let in_place = InPlace { prompt, ..InPlace::default() };
    let transcript = Transcript::with_changes(request, foreign_id, IMAGES, in_place);
    let mut body = Map::new();
    body.insert("model".into(), json!(request.model.id));
    body.insert("stream".into(), json!(true));
    body.insert("messages".into(), Value::Array(messages(&transcript)));
    if !transcript.tools.is_empty() {
        let is_strict = request.compat_flag("supportsStrictMode").unwrap_or(false);
        let tools = transcript.tools.iter().map(|tool| {
            let mut function = json!({ "name": tool.name, "description": tool.description,
                "parameters": tool.parameters, "strict": false });
            if is_strict {
                hold_to_schema(&mut function, tool);
            }
            json!({ "type": "function", "function": function })
        });
        body.insert("tools".into(), tools.collect());
    }
    let limit = budget::output_limit(request, &transcript);
    if limit > 0 {
        body.insert("max_tokens".into(), json!(limit));
    }
    add_thinking(request, &mut body);
    if let Some(session) = cached_session(request) {
        body.insert("prompt_cache_key".into(), json!(session));
    }
    Value::Object(body)
}

/// Models that know levels say so in their map; others are only told to think.
fn add_thinking(request: &ModelRequest, body: &mut Map<String, Value>) {
    if !request.model.reasoning {
        return;
    }
    let level = request.thinking;
    let mapped = request.model.mapped_level(level);
    if let Some(effort) = mapped.and_then(Value::as_str) {
        body.insert("reasoning_effort".into(), json!(effort));
    } else if level != ThinkingLevel::Off {
        body.insert("prompt_mode".into(), json!("reasoning"));
    }
}

fn messages(transcript: &Transcript<'_>) -> Vec<Value> {
    let mut messages = Vec::with_capacity(transcript.turns.len() + 1);
    if !transcript.system.is_empty() {
        messages.push(json!({ "role": "system", "content": transcript.system }));
    }
    for turn in &transcript.turns {
        match turn {
            Turn::User(user) => messages.extend(user_message(user)),
            Turn::Assistant(parts) => messages.extend(assistant_message(parts)),
            Turn::ToolResult(result) => messages.push(tool_message(result)),
            Turn::System(change) => messages.push(json!({ "role": "system", "content": change.text })),
            // Not asked for.
            Turn::Effort(_) => {}
        }
    }
    messages
}

fn user_message(user: &UserTurn<'_>) -> Option<Value> {
    if let ([Part::Text(text)], true) = (user.parts.as_slice(), user.plain) {
        return Some(json!({ "role": "user", "content": text }));
    }
    let parts = user.parts.iter().filter(|part| part.as_text() != Some(""));
    let parts: Vec<Value> = parts.map(content_part).collect();
    (!parts.is_empty()).then(|| json!({ "role": "user", "content": parts }))
}

fn content_part(part: &Part<'_>) -> Value {
    match part {
        Part::Text(text) => text_part(text),
        Part::Image { mime_type, data } => {
            json!({ "type": "image_url", "image_url": format!("data:{mime_type};base64,{data}") })
        }
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn assistant_message(parts: &[AssistantPart<'_>]) -> Option<Value> {
    let mut content = Vec::new();
    let mut calls = Vec::new();
    for part in parts {
        match part {
            AssistantPart::Text { text, .. } if text.trim().is_empty() => {}
            AssistantPart::Text { text, .. } => content.push(text_part(text)),
            AssistantPart::Thinking { text, redacted, .. } if *redacted || text.trim().is_empty() => {}
            AssistantPart::Thinking { text, .. } => {
                content.push(json!({ "type": "thinking", "thinking": [text_part(text)] }));
            }
            AssistantPart::ToolCall { id, name, arguments, .. } => {
                let arguments = serde_json::to_string(arguments).unwrap_or_else(|_| "{}".to_owned());
                let function = json!({ "name": name, "arguments": arguments });
                calls.push(json!({ "id": id, "type": "function", "function": function, "index": 0 }));
            }
        }
    }
    if content.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = Map::new();
    message.insert("role".into(), json!("assistant"));
    message.insert("prefix".into(), json!(false));
    if !content.is_empty() {
        message.insert("content".into(), Value::Array(content));
    }
    if !calls.is_empty() {
        message.insert("tool_calls".into(), Value::Array(calls));
    }
    Some(Value::Object(message))
}

fn tool_message(result: &ToolTurn<'_>) -> Value {
    let images: Vec<Value> =
        result.parts.iter().filter(|part| part.as_text().is_none()).map(content_part).collect();
    let text = result.text();
    let text = match (text.trim().is_empty(), images.is_empty()) {
        (false, _) => text.as_str(),
        (true, false) => "(see attached image)",
        (true, true) => "(no tool output)",
    };
    // The API has no field for it.
    let mark = if result.is_error { "[tool error] " } else { "" };
    let mut content = vec![text_part(&format!("{mark}{text}"))];
    content.extend(images);
    json!({ "role": "tool", "name": result.name, "content": content, "tool_call_id": result.id })
}

/// Makes the id of another model's call one that the API takes.
fn foreign_id(id: &str) -> String {
    let plain: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
    if plain.len() == CALL_ID_LENGTH {
        return plain;
    }
    let mut hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut made = String::with_capacity(CALL_ID_LENGTH);
    for _ in 0..CALL_ID_LENGTH {
        let digit = usize::try_from(hash % 36).ok().and_then(|digit| DIGITS.get(digit)).copied();
        made.push(char::from(digit.unwrap_or(b'0')));
        hash /= 36;
    }
    made
}
