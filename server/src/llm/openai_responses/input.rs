//! The conversation as the items of a request's `input`.

use serde_json::{Map, Value, json};

use super::compat::Compat;
use super::request::{effort_in_place, tools};
use crate::llm::ModelRequest;
use crate::llm::transcript::{
    AssistantPart, Part, SystemTurn, ToolChanges, ToolTurn, Transcript, Turn, UserTurn, safe_id,
};

/// Longest id that the API takes.
const MAX_ID: usize = 64;

/// Stands in front of tools that come later.
const NEW_TOOLS: &str = "Further tools follow. The tools declared before them stay as they are, but for those that were withdrawn; a tool of the same name takes the place of the earlier one.";

/// Stands in front of the names of tools that are no more.
const WITHDRAWN_TOOLS: &str = "These tools are withdrawn and cannot be called any more:";

/// The items, the system prompt first.
pub(super) fn items(request: &ModelRequest, compat: &Compat, transcript: &Transcript<'_>) -> Vec<Value> {
    let mut items = Vec::with_capacity(transcript.turns.len() + 2);
    let developer = request.model.reasoning && compat.developer_role;
    let role = if developer { "developer" } else { "system" };
    if transcript.tool_changes == ToolChanges::All {
        items.push(additional_tools(tools(compat, &transcript.tools)));
    }
    if !transcript.system.is_empty() {
        items.push(json!({ "role": role, "content": transcript.system }));
    }
    let mut gone = Vec::new();
    // Ids are made from the place of a turn, which a change of the effort must not move.
    let mut place = 0;
    for turn in &transcript.turns {
        match turn {
            Turn::Effort(effort) => {
                items.push(effort_item(effort));
                continue;
            }
            Turn::User(user) => items.extend(user_item(user)),
            Turn::Assistant(parts) => assistant_items(place, parts, &mut items),
            Turn::ToolResult(result) => items.push(tool_item(result)),
            Turn::System(change) => {
                let added = tools(compat, &change.added);
                match transcript.tool_changes {
                    ToolChanges::All => items.extend(declared_tools(role, change, added, &mut gone)),
                    ToolChanges::Additions => items.extend(found_tools(place, change, added)),
                    ToolChanges::None => {}
                }
                let text = changed_text(change);
                items.extend((!text.is_empty()).then(|| json!({ "role": role, "content": text })));
            }
        }
        place += 1;
    }
    items.extend(effort_in_place(request, compat).as_deref().map(effort_item));
    items
}

fn effort_item(effort: &str) -> Value {
    json!({ "type": "configuration_update", "reasoning": { "effort": effort } })
}

/// The API takes this item from developers alone.
fn additional_tools(tools: Value) -> Value {
    json!({ "type": "additional_tools", "role": "developer", "tools": tools })
}

/// New tools, and what they mean for those before; `gone` are the names that were taken back so far.
fn declared_tools(role: &str, change: &SystemTurn, added: Value, gone: &mut Vec<String>) -> Vec<Value> {
    let is_added = |name: &String| change.added.iter().any(|tool| tool.name == *name);
    gone.retain(|name| !is_added(name));
    let items = if change.added.is_empty() {
        Vec::new()
    } else {
        let mut note = NEW_TOOLS.to_owned();
        if !gone.is_empty() {
            note.push_str(&format!(" These are still withdrawn: {}.", gone.join(", ")));
        }
        vec![json!({ "role": role, "content": note }), additional_tools(added)]
    };
    gone.extend(change.removed.iter().cloned());
    items
}

/// New tools as a search for them that found them.
fn found_tools(place: usize, change: &SystemTurn, mut added: Value) -> Vec<Value> {
    if change.added.is_empty() {
        return Vec::new();
    }
    for tool in added.as_array_mut().into_iter().flatten() {
        tool["defer_loading"] = json!(true);
    }
    let names: Vec<&str> = change.added.iter().map(|tool| tool.name.as_str()).collect();
    let call = format!("tool_load_{place}");
    let step = |kind: &str, field: &str, value: Value| json!({ "type": kind, "call_id": call, "execution": "client", "status": "completed", field: value });
    let arguments = json!({ "query": names.join(" "), "limit": names.len() });
    vec![step("tool_search_call", "arguments", arguments), step("tool_search_output", "tools", added)]
}

/// The API has no item for tools that are taken back.
fn changed_text(change: &SystemTurn) -> String {
    let mut text = change.text.clone();
    if !change.removed.is_empty() {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&format!("{}\n- {}", WITHDRAWN_TOOLS, change.removed.join("\n- ")));
    }
    text
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
