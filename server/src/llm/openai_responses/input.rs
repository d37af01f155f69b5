//! The conversation as the items of a request's `input`.

use serde_json::{Map, Value, json};

use super::compat::Compat;
use crate::llm::ModelRequest;
use crate::llm::transcript::{AssistantPart, Part, ToolTurn, Transcript, Turn, UserTurn, safe_id};

/// Longest id that the API takes.
const MAX_ID: usize = 64;

/// The items, the system prompt first.
pub(super) fn items(request: &ModelRequest, compat: &Compat, transcript: &Transcript<'_>) -> Vec<Value> {
    let mut items = Vec::with_capacity(transcript.turns.len() + 1);
    if !transcript.system.is_empty() {
        let developer = request.model.reasoning && compat.developer_role;
        let role = if developer { "developer" } else { "system" };
        items.push(json!({ "role": role, "content": transcript.system }));
    }
    for (index, turn) in transcript.turns.iter().enumerate() {
        match turn {
            Turn::User(user) => items.extend(user_item(user)),
            Turn::Assistant(parts) => assistant_items(index, parts, &mut items),
            Turn::ToolResult(result) => items.push(tool_item(result)),
        }
    }
    items
}

/// The id of another model's call, for a service whose ids are of the form `call|item` themselves.
pub(super) fn call_part(id: &str) -> String {
    safe_id(split_id(id).0, MAX_ID)
}

/// The id of another model's call as one name.
pub(super) fn whole_id(id: &str) -> String {
    safe_id(id, MAX_ID)
}

/// The id of a call and of the item that it came in.
fn split_id(id: &str) -> (&str, Option<&str>) {
    match id.split_once('|') {
        Some((call, item)) => (call, Some(item)),
        None => (id, None),
    }
}

fn user_item(user: &UserTurn<'_>) -> Option<Value> {
    let parts = user.parts.iter().filter(|part| part.as_text() != Some(""));
    let parts: Vec<Value> = parts.map(content_part).collect();
    (!parts.is_empty()).then(|| json!({ "role": "user", "content": parts }))
}

fn content_part(part: &Part<'_>) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "input_text", "text": text }),
        Part::Image { mime_type, data } => {
            let url = format!("data:{mime_type};base64,{data}");
            json!({ "type": "input_image", "detail": "auto", "image_url": url })
        }
    }
}

fn assistant_items(turn: usize, parts: &[AssistantPart<'_>], items: &mut Vec<Value>) {
    let first = items.len();
    let mut texts = 0_usize;
    for part in parts {
        match part {
            AssistantPart::Text { text, signature } => {
                if !text.trim().is_empty() {
                    items.push(message_item(text, *signature, turn, texts));
                }
                texts += 1;
            }
            AssistantPart::Thinking { signature: Some(item), .. } => items.extend(reasoning_item(item)),
            AssistantPart::Thinking { signature: None, .. } => {}
            AssistantPart::ToolCall { id, name, arguments, namespace, .. } => {
                items.push(call_item(id, name, arguments, *namespace));
            }
        }
    }
    // The API refuses thinking that nothing of the same answer follows.
    while items.len() > first && items.last().is_some_and(|item| item["type"] == "reasoning") {
        items.pop();
    }
}

fn call_item(id: &str, name: &str, arguments: &Map<String, Value>, namespace: Option<&str>) -> Value {
    let (call, item) = split_id(id);
    let mut fields = Map::new();
    fields.insert("type".into(), json!("function_call"));
    if let Some(item) = item.filter(|item| item.starts_with("fc_")) {
        fields.insert("id".into(), json!(item));
    }
    fields.insert("call_id".into(), json!(call));
    fields.insert("name".into(), json!(name));
    let arguments = serde_json::to_string(arguments).unwrap_or_else(|_| "{}".to_owned());
    fields.insert("arguments".into(), json!(arguments));
    if let Some(namespace) = namespace {
        fields.insert("namespace".into(), json!(namespace));
    }
    Value::Object(fields)
}

fn message_item(text: &str, signature: Option<&str>, turn: usize, texts: usize) -> Value {
    let meta: Option<Value> = signature.and_then(|signature| serde_json::from_str(signature).ok());
    let field = |name: &str| meta.as_ref().and_then(|meta| meta.get(name)).and_then(Value::as_str);
    // Sessions of old Pi versions hold the bare id.
    let bare = signature.filter(|_| !meta.as_ref().is_some_and(Value::is_object));
    let id = match field("id").or(bare) {
        Some(id) if id.len() <= MAX_ID => id.to_owned(),
        Some(id) => safe_id(id, MAX_ID).replacen("call_", "msg_", 1),
        None if texts == 0 => format!("msg_pi_{turn}"),
        None => format!("msg_pi_{turn}_{texts}"),
    };
    let mut item = json!({
        "type": "message",
        "role": "assistant",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }],
        "status": "completed",
        "id": id,
    });
    if let Some(phase) = field("phase") {
        item["phase"] = json!(phase);
    }
    item
}

/// Thinking has its whole item as its signature. One that holds neither the thinking nor its encrypted
/// form refers to what the server stored, and it stores nothing.
fn reasoning_item(signature: &str) -> Option<Value> {
    let item: Value = serde_json::from_str(signature).ok()?;
    let holds = |name: &str| item.get(name).is_some_and(|value| !value.is_null());
    (item["type"] == "reasoning" && (holds("encrypted_content") || holds("content"))).then_some(item)
}

fn tool_item(result: &ToolTurn<'_>) -> Value {
    let (call, _) = split_id(&result.id);
    let text = result.text();
    let images: Vec<Value> =
        result.parts.iter().filter(|part| part.as_text().is_none()).map(content_part).collect();
    let output = match (text.is_empty(), images.is_empty()) {
        (false, true) => json!(text),
        (true, true) => json!("(no tool output)"),
        (true, false) => Value::Array(images),
        (false, false) => {
            let mut parts = vec![json!({ "type": "input_text", "text": text })];
            parts.extend(images);
            Value::Array(parts)
        }
    };
    json!({ "type": "function_call_output", "call_id": call, "output": output })
}
