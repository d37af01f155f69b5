//! The request in the terms of the Gemini API.

use serde_json::{Map, Value, json};

use super::family::Family;
use super::{schema, thinking};
use crate::llm::exchange::{Fault, json_post};
use crate::llm::headers::{Headers, header, key_header};
use crate::llm::http::Post;
use crate::llm::percent::percent_encoded;
use crate::llm::strict_schema::strict_parameters;
use crate::llm::transcript::{
    AssistantPart, ImageLimits, Part, ToolTurn, Transcript, Turn, safe_id, tool_results,
};
use crate::llm::{ModelRequest, budget};

/// The first generation of Gemini that can be held to a schema.
const FIRST_STRICT: u32 = 3;

/// The header that a key is sent in.
pub(crate) const KEY_HEADER: &str = "x-goog-api-key";

/// Longest id of a call.
const MAX_CALL_ID: usize = 64;

/// What Google documents as the signature of calls that another model made.
const FOREIGN_CALL_SIGNATURE: &str = "skip_thought_signature_validator";

/// What the Gemini API takes: <https://ai.google.dev/gemini-api/docs/image-understanding>
pub(super) const IMAGES: ImageLimits = ImageLimits {
    // "a maximum of 3,600 image files per request".
    per_request: Some(3600),
    // 20 MB for a request with images in it.
    request_bytes: Some(20 * 1024 * 1024),
    ..ImageLimits::NONE
};

/// The request, ready to be sent.
pub(super) fn post(request: &ModelRequest) -> Result<Post, Fault> {
    json_post(url(request), headers(request), &body(request, IMAGES)?)
}

fn url(request: &ModelRequest) -> String {
    let base = request.model.base_url.trim_end_matches('/');
    let id = request.model.id.as_str();
    let folder =
        if ["models/", "tunedModels/"].iter().any(|known| id.starts_with(known)) { "" } else { "models/" };
    format!("{base}/{folder}{}", method(id))
}

/// The path of a model, and what is wanted of it: an answer as server-sent events.
pub(crate) fn method(path: &str) -> String {
    format!("{}:streamGenerateContent?alt=sse", percent_encoded(path, b"/:@"))
}

pub(super) fn headers(request: &ModelRequest) -> Headers {
    let mut headers = vec![header("content-type", "application/json")];
    headers.extend(key_header(&request.credentials, KEY_HEADER));
    headers.extend(request.credentials.headers.iter().cloned());
    headers
}

/// The body, its fields in the order in which Pi has them. `limits` are those of the service.
pub(crate) fn body(request: &ModelRequest, limits: ImageLimits) -> Result<Value, Fault> {
    let transcript = Transcript::new(request, foreign_id, limits);
    let mut body = Map::new();
    body.insert("contents".into(), Value::Array(contents(request, &transcript)));
    if !transcript.system.is_empty() {
        let parts = json!([{ "text": transcript.system }]);
        body.insert("systemInstruction".into(), json!({ "parts": parts, "role": "user" }));
    }
    if !transcript.tools.is_empty() {
        let may_be_strict = matches!(Family::of(&request.model.id), Family::Gemini(FIRST_STRICT..));
        let mut is_strict = false;
        let mut tools: Vec<Value> = Vec::with_capacity(transcript.tools.len());
        for tool in &transcript.tools {
            let strict = if may_be_strict { strict_parameters(tool) } else { None };
            is_strict |= strict.is_some();
            let parameters = strict.unwrap_or_else(|| schema::sanitized(&tool.parameters));
            tools.push(json!({ "name": tool.name, "description": tool.description,
                "parametersJsonSchema": parameters }));
        }
        body.insert("tools".into(), json!([{ "functionDeclarations": tools }]));
        if is_strict {
            // <https://ai.google.dev/gemini-api/docs/function-calling>: the schema is kept to.
            body.insert("toolConfig".into(), json!({ "functionCallingConfig": { "mode": "VALIDATED" } }));
        }
    }
    let mut config = Map::new();
    let limit = budget::output_limit(request, &transcript);
    if limit > 0 {
        config.insert("maxOutputTokens".into(), json!(limit));
    }
    if let Some(thinking) = thinking::config(request)? {
        config.insert("thinkingConfig".into(), thinking);
    }
    body.insert("generationConfig".into(), Value::Object(config));
    Ok(Value::Object(body))
}

fn contents(request: &ModelRequest, transcript: &Transcript<'_>) -> Vec<Value> {
    let family = Family::of(&request.model.id);
    let mut contents = Vec::with_capacity(transcript.turns.len());
    let mut turns = transcript.turns.as_slice();
    while let Some((turn, rest)) = turns.split_first() {
        let (role, parts) = match turn {
            Turn::User(user) => {
                turns = rest;
                let parts = user.parts.iter().filter(|part| part.as_text() != Some(""));
                ("user", parts.map(content_part).collect())
            }
            Turn::Assistant(parts) => {
                turns = rest;
                ("model", model_parts(family, parts))
            }
            // Not asked for.
            Turn::System(_) | Turn::Effort(_) => {
                turns = rest;
                continue;
            }
            Turn::ToolResult(_) => {
                let (responses, images, after) =
                    tool_results(turns, |result, behind| tool_response(family, result, behind));
                turns = after;
                contents.push(json!({ "parts": responses, "role": "user" }));
                ("user", images)
            }
        };
        if !parts.is_empty() {
            contents.push(json!({ "parts": parts, "role": role }));
        }
    }
    contents
}

fn content_part(part: &Part<'_>) -> Value {
    match part {
        Part::Text(text) => json!({ "text": text }),
        Part::Image { mime_type, data } => json!({ "inlineData": { "mimeType": mime_type, "data": data } }),
    }
}

fn model_parts(family: Family, parts: &[AssistantPart<'_>]) -> Vec<Value> {
    let mut written = Vec::with_capacity(parts.len());
    let mut is_first_call = true;
    for part in parts {
        let (mut value, signature) = match part {
            AssistantPart::Text { text, signature } => {
                let signature = signature.filter(|signature| is_base64(signature));
                if text.is_empty() && signature.is_none() {
                    continue;
                }
                (json!({ "text": text }), signature)
            }
            AssistantPart::Thinking { text, signature, .. } => {
                let signature = signature.filter(|signature| is_base64(signature));
                if text.is_empty() && signature.is_none() {
                    continue;
                }
                (json!({ "text": text, "thought": true }), signature)
            }
            AssistantPart::ToolCall { id, name, arguments, signature, .. } => {
                let mut call = Map::new();
                call.insert("args".into(), json!(arguments));
                if family.has_call_ids() {
                    call.insert("id".into(), json!(id));
                }
                call.insert("name".into(), json!(name));
                let signature = signature.filter(|signature| is_base64(signature));
                let needed = std::mem::take(&mut is_first_call) && family.wants_signed_calls();
                let stand_in = needed.then_some(FOREIGN_CALL_SIGNATURE);
                (json!({ "functionCall": call }), signature.or(stand_in))
            }
        };
        if let Some(signature) = signature {
            value["thoughtSignature"] = json!(signature);
        }
        written.push(value);
    }
    written
}

/// Images that models cannot take inside of a response go `behind`.
fn tool_response(family: Family, result: &ToolTurn<'_>, behind: &mut Vec<Value>) -> Value {
    let images: Vec<Value> =
        result.parts.iter().filter(|part| part.as_text().is_none()).map(content_part).collect();
    let text = match result.text() {
        text if text.is_empty() && !images.is_empty() => "(see attached image)".to_owned(),
        text => text,
    };
    let field = if result.is_error { "error" } else { "output" };
    let mut response = Map::new();
    response.insert("name".into(), json!(result.name));
    response.insert("response".into(), json!({ field: text }));
    if !images.is_empty() {
        if family.takes_images_in_results() {
            response.insert("parts".into(), Value::Array(images));
        } else {
            behind.push(json!({ "text": "Tool result image:" }));
            behind.extend(images);
        }
    }
    if family.has_call_ids() {
        response.insert("id".into(), json!(result.id));
    }
    json!({ "functionResponse": response })
}

/// The API takes base64 for a signature, and refuses the whole request for anything else.
fn is_base64(signature: &str) -> bool {
    let body = signature.trim_end_matches('=');
    let padding = signature.len() - body.len();
    signature.len().is_multiple_of(4)
        && padding <= 2
        && !body.is_empty()
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// Makes the id of another model's call one that the API takes.
fn foreign_id(id: &str) -> String {
    safe_id(id, MAX_CALL_ID)
}
