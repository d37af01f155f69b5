//! The request in the terms of Chat Completions.

use sampi_protocol::data::ToolDefinition;
use serde_json::{Map, Value, json};

use super::compat::{Affinity, Compat, PromptCacheKey};
use super::thinking;
use crate::llm::anthropic_messages::cache_mark;
use crate::llm::azure_openai_responses::{self, Endpoint};
use crate::llm::exchange::{Fault, json_post};
use crate::llm::headers::{Headers, bearer, header, json_headers};
use crate::llm::http::Post;
use crate::llm::openai_responses::OPENAI_IMAGES;
use crate::llm::strict_schema::hold_to_schema;
use crate::llm::transcript::{
    AssistantPart, InPlace, Part, ToolChanges, ToolTurn, Transcript, Turn, UserTurn, safe_id,
};
use crate::llm::{CacheRetention, ModelRequest, budget, sampling};

/// Longest id of a tool call that every server takes.
const MAX_CALL_ID: usize = 40;

/// The fields in which servers send thinking, and take it back.
pub(super) const REASONING_FIELDS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_text"];

/// The request, ready to be sent.
pub(super) fn post(request: &ModelRequest, compat: &Compat) -> Result<Post, Fault> {
    let model = &request.model;
    let mut body = body(request, compat);
    let url = if model.provider == azure_openai_responses::PROVIDER {
        let azure = Endpoint::from_env(|name| request.credentials.variable(name));
        body["model"] = json!(azure.deployment(&model.id));
        azure.completions_url(&model.base_url)?
    } else {
        format!("{}/chat/completions", model.base_url.trim_end_matches('/'))
    };
    json_post(url, headers(request, compat), &body)
}

fn headers(request: &ModelRequest, compat: &Compat) -> Headers {
    let mut headers = json_headers("application/json");
    headers.extend(request.credentials.api_key.as_ref().map(bearer));
    let names: &[&str] = match compat.affinity {
        Affinity::None => &[],
        Affinity::OpenAi => &["session_id", "x-client-request-id", "x-session-affinity"],
        Affinity::OpenAiNoSession => &["x-client-request-id", "x-session-affinity"],
        Affinity::OpenRouter => &["x-session-id"],
    };
    if let Some(session) = &request.options.session_id
        && request.options.cache_retention != CacheRetention::None
    {
        headers.extend(names.iter().map(|name| header(name, session)));
    }
    headers.extend(request.credentials.headers.iter().cloned());
    headers
}

/// The body, its fields in the order in which Pi has them.
pub(super) fn body(request: &ModelRequest, compat: &Compat) -> Value {
    let model = &request.model;
    let options = &request.options;
    let changes = if compat.tools_in_place { ToolChanges::Additions } else { ToolChanges::None };
    let in_place = InPlace { prompt: compat.prompt_in_place, tools: changes, effort: None };
    let transcript = Transcript::with_changes(request, foreign_id, OPENAI_IMAGES, in_place);
    let mut body = Map::new();
    body.insert("model".into(), json!(model.id));
    body.insert("messages".into(), Value::Array(messages(request, compat, &transcript)));
    body.insert("stream".into(), json!(true));
    add_cache_key(request, compat, &mut body);
    if compat.supports_usage_in_streaming {
        body.insert("stream_options".into(), json!({ "include_usage": true }));
    }
    if compat.supports_store {
        body.insert("store".into(), json!(false));
    }
    let limit = budget::output_limit(request, &transcript);
    if limit > 0 {
        body.insert(compat.max_tokens_field.clone(), json!(limit));
    }
    if !transcript.tools.is_empty() {
        body.insert("tools".into(), tools(compat, &transcript.tools));
        if compat.zai_tool_stream {
            body.insert("tool_stream".into(), json!(true));
        }
    } else if compat.requires_tools_with_tool_history && transcript.has_tool_history() {
        body.insert("tools".into(), json!([]));
    }
    let keeps_long = compat.supports_long_cache_retention;
    let retention = if keeps_long { options.cache_retention } else { options.cache_retention.without_long() };
    if compat.anthropic_cache_control
        && let Some(mark) = cache_mark(retention)
    {
        mark_for_cache(&mut body, &mark);
    }
    if let Some(priority) = compat.given.get("vllmPriority") {
        body.insert("priority".into(), priority.clone());
    }
    thinking::add(request, compat, &mut body);
    if let Some(routing) = compat.given.get("openRouterRouting") {
        body.insert("provider".into(), routing.clone());
    }
    if let Some(routing) = compat.given.get("vercelGatewayRouting") {
        body.insert("providerOptions".into(), json!({ "gateway": routing }));
    }
    sampling::add(request, &mut body);
    Value::Object(body)
}

fn add_cache_key(request: &ModelRequest, compat: &Compat, body: &mut Map<String, Value>) {
    let retention = request.options.cache_retention;
    let long = retention == CacheRetention::Long && compat.supports_long_cache_retention;
    let wanted = match compat.prompt_cache_key {
        PromptCacheKey::Enabled => true,
        PromptCacheKey::Auto => long,
        PromptCacheKey::Disabled => false,
    };
    if retention == CacheRetention::None {
        return;
    }
    if let Some(session) = request.options.session_id.as_ref().filter(|_| wanted) {
        body.insert("prompt_cache_key".into(), json!(session));
    }
    if long {
        body.insert("prompt_cache_retention".into(), json!("24h"));
    }
}

fn tools(compat: &Compat, tools: &[ToolDefinition]) -> Value {
    tools
        .iter()
        .map(|tool| {
            let mut function = json!({
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            });
            if compat.supports_strict_mode {
                hold_to_schema(&mut function, tool);
            }
            json!({ "type": "function", "function": function })
        })
        .collect()
}

fn messages(request: &ModelRequest, compat: &Compat, transcript: &Transcript<'_>) -> Vec<Value> {
    let mut messages = Vec::with_capacity(transcript.turns.len() + 1);
    let developer = request.model.reasoning && compat.supports_developer_role;
    let role = if developer { "developer" } else { "system" };
    if !transcript.system.is_empty() {
        messages.push(json!({ "role": role, "content": transcript.system }));
    }
    let mut turns = transcript.turns.as_slice();
    let mut after_results = false;
    while let Some((turn, rest)) = turns.split_first() {
        match turn {
            Turn::User(user) => {
                if std::mem::take(&mut after_results) && compat.requires_assistant_after_tool_result {
                    messages.push(bridge());
                }
                messages.extend(user_message(user));
                turns = rest;
            }
            Turn::Assistant(parts) => {
                after_results = false;
                messages.extend(assistant_message(request, compat, parts));
                turns = rest;
            }
            Turn::System(change) => {
                if !change.added.is_empty() {
                    messages.push(json!({ "role": role, "tools": tools(compat, &change.added) }));
                }
                if !change.text.is_empty() {
                    messages.push(json!({ "role": role, "content": change.text }));
                }
                turns = rest;
            }
            // Not asked for.
            Turn::Effort(_) => turns = rest,
            Turn::ToolResult(_) => {
                turns = tool_messages(compat, turns, &mut messages);
                after_results = !messages.last().is_some_and(|message| message["role"] == "user");
            }
        }
    }
    messages
}

/// Stands between tool results and the user for servers that want an answer there.
fn bridge() -> Value {
    json!({ "role": "assistant", "content": "I have processed the tool results." })
}

fn user_message(user: &UserTurn<'_>) -> Option<Value> {
    if let ([Part::Text(text)], true) = (user.parts.as_slice(), user.plain) {
        return Some(json!({ "role": "user", "content": text }));
    }
    let parts: Vec<Value> =
        user.parts.iter().filter(|part| part.as_text() != Some("")).map(content_part).collect();
    (!parts.is_empty()).then(|| json!({ "role": "user", "content": parts }))
}

fn content_part(part: &Part<'_>) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Image { mime_type, data } => {
            json!({ "type": "image_url", "image_url": { "url": format!("data:{mime_type};base64,{data}") } })
        }
    }
}

fn assistant_message(request: &ModelRequest, compat: &Compat, parts: &[AssistantPart<'_>]) -> Option<Value> {
    let mut message = Map::new();
    message.insert("role".into(), json!("assistant"));
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::Text { text, .. } => Some(*text),
            _ => None,
        })
        .collect();
    let thoughts: Vec<(&str, Option<&str>)> = parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::Thinking { text, signature, redacted: false } => Some((*text, *signature)),
            _ => None,
        })
        .collect();
    let calls: Vec<Value> = parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::ToolCall { id, name, arguments, .. } => {
                let arguments = serde_json::to_string(arguments).unwrap_or_else(|_| "{}".to_owned());
                let function = json!({ "name": name, "arguments": arguments });
                Some(json!({ "id": id, "type": "function", "function": function }))
            }
            _ => None,
        })
        .collect();

    let thinking_text = joined(thoughts.iter().map(|(text, _)| *text), "\n\n");
    let content = if compat.requires_thinking_as_text && !thinking_text.is_empty() {
        let all = std::iter::once(thinking_text.as_str()).chain(texts.iter().copied());
        all.map(|text| json!({ "type": "text", "text": text })).collect()
    } else if !texts.is_empty() {
        json!(texts.concat())
    } else if compat.requires_non_null_assistant_content || compat.requires_assistant_after_tool_result {
        json!("")
    } else {
        Value::Null
    };
    let is_empty = content.as_str().is_none_or(str::is_empty) && !content.is_array();
    if is_empty && calls.is_empty() {
        return None;
    }
    message.insert("content".into(), content);
    let mut details = None;
    if !compat.requires_thinking_as_text {
        let signed: Vec<(&str, &str)> =
            thoughts.iter().filter_map(|(text, signature)| Some((*text, (*signature)?))).collect();
        for (text, signature) in &signed {
            if !REASONING_FIELDS.contains(signature) {
                details = details.or_else(|| reasoning_details(signature));
            } else if !text.is_empty() {
                let text = joined(thoughts.iter().map(|(text, _)| *text), "\n");
                message.insert((*signature).to_owned(), json!(text));
                break;
            }
        }
    }
    if compat.requires_reasoning_content
        && request.model.reasoning
        && !message.contains_key("reasoning_content")
    {
        message.insert("reasoning_content".into(), json!(""));
    }
    if !calls.is_empty() {
        message.insert("tool_calls".into(), Value::Array(calls));
    }
    if let Some(details) = details {
        message.insert("reasoning_details".into(), details);
    }
    Some(Value::Object(message))
}

/// Thinking that came as `reasoning_details` has them as its signature.
fn reasoning_details(signature: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(signature).ok()?;
    value.is_array().then_some(value)
}

fn joined<'a>(texts: impl Iterator<Item = &'a str>, between: &str) -> String {
    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(between)
}

/// Writes a run of tool results, their images behind them, and gives the turns that follow.
fn tool_messages<'t, 'a>(
    compat: &Compat,
    mut turns: &'t [Turn<'a>],
    messages: &mut Vec<Value>,
) -> &'t [Turn<'a>] {
    let mut images = Vec::new();
    while let Some((Turn::ToolResult(result), rest)) = turns.split_first() {
        messages.push(tool_message(compat, result));
        images.extend(result.parts.iter().filter(|part| part.as_text().is_none()).map(content_part));
        turns = rest;
    }
    if !images.is_empty() {
        if compat.requires_assistant_after_tool_result {
            messages.push(bridge());
        }
        let mut parts = vec![json!({ "type": "text", "text": "Attached image(s) from tool result:" })];
        parts.extend(images);
        messages.push(json!({ "role": "user", "content": parts }));
    }
    turns
}

fn tool_message(compat: &Compat, result: &ToolTurn<'_>) -> Value {
    let text = result.text();
    let has_images = result.parts.iter().any(|part| part.as_text().is_none());
    let content = match (text.trim().is_empty(), has_images) {
        (false, _) => text.as_str(),
        (true, true) => "(see attached image)",
        (true, false) => "(no tool output)",
    };
    let mut message = json!({ "role": "tool", "content": content, "tool_call_id": result.id });
    if compat.requires_tool_result_name {
        message["name"] = json!(result.name);
    }
    message
}

/// Marks the system prompt, the last tool and the last text of the conversation.
fn mark_for_cache(body: &mut Map<String, Value>, mark: &Value) {
    if let Some(tool) = body.get_mut("tools").and_then(Value::as_array_mut).and_then(|tools| tools.last_mut())
    {
        tool["cache_control"] = mark.clone();
    }
    let Some(messages) = body.get_mut("messages").and_then(Value::as_array_mut) else { return };
    if let Some(system) = messages.first_mut()
        && (system["role"] == "system" || system["role"] == "developer")
    {
        mark_message(system, mark);
    }
    for message in messages.iter_mut().rev() {
        if message["role"] != "system" && message["role"] != "developer" && mark_message(message, mark) {
            break;
        }
    }
}

fn mark_message(message: &mut Value, mark: &Value) -> bool {
    match message.get_mut("content") {
        Some(Value::String(text)) if !text.is_empty() => {
            let text = std::mem::take(text);
            message["content"] = json!([{ "type": "text", "text": text, "cache_control": mark }]);
            true
        }
        Some(Value::Array(parts)) => match parts.iter_mut().rev().find(|part| part["type"] == "text") {
            Some(part) => {
                part["cache_control"] = mark.clone();
                true
            }
            None => false,
        },
        _ => false,
    }
}

/// Makes the id of another API's call one that every server takes.
fn foreign_id(id: &str) -> String {
    safe_id(id, MAX_CALL_ID)
}
