//! The request in the terms of the Converse API.

use sampi_protocol::data::ThinkingLevel;
use serde_json::{Map, Value, json};

use super::claude::{self, Generation};
use crate::llm::anthropic_messages::INTERLEAVED_THINKING;
use crate::llm::effort::plain_effort;
use crate::llm::strict_schema::strict_parameters;
use crate::llm::transcript::{
    AssistantPart, ImageLimits, Part, ToolTurn, Transcript, Turn, as_base64, safe_id, tool_results,
};
use crate::llm::{CacheRetention, ModelRequest, budget};

/// Longest id of a call.
const MAX_CALL_ID: usize = 64;

/// Stands where the API wants text and there is none.
const EMPTY: &str = "<empty>";

/// From this generation on Claude chooses itself how much to think.
const ADAPTIVE: Generation = Generation(4, 6);

/// From this generation on thinking is bound to what stands before it, and dropped where that changed.
const BOUND: Generation = Generation(4, 7);

/// Lets a request say what becomes of thinking whose context changed.
const THINKING_BINDING: &str = "thinking-binding-controls-2026-08-01";

/// What the API takes: <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html>
const IMAGES: ImageLimits = ImageLimits {
    // "You can include up to 20 images" in the content of a message. "Each image's size, height, and width must
    // be no more than 3.75 MB, 8000 px, and 8000 px".
    per_message: Some(20),
    image_bytes: Some(as_base64(3_750_000)),
    side: Some(8000),
    ..ImageLimits::NONE
};

/// The body, its fields in the order in which Pi has them.
pub(super) fn body(request: &ModelRequest) -> Value {
    let transcript = Transcript::new(request, foreign_id, IMAGES);
    let cache = cache_point(request);
    let limit = budget::output_limit(request, &transcript);
    let (limit, fields) = model_fields(request, limit);
    let mut body = Map::new();
    body.insert("messages".into(), messages(request, &transcript, cache.as_ref()));
    if !transcript.system.is_empty() {
        let mut system = vec![json!({ "text": transcript.system })];
        system.extend(cache);
        body.insert("system".into(), Value::Array(system));
    }
    let config = if limit > 0 { json!({ "maxTokens": limit }) } else { json!({}) };
    body.insert("inferenceConfig".into(), config);
    if !transcript.tools.is_empty() {
        let is_strict = request.compat_flag("supportsStrictMode").unwrap_or(false);
        let tools = transcript.tools.iter().map(|tool| {
            let strict = if is_strict { strict_parameters(tool) } else { None };
            let schema = strict.as_ref().unwrap_or(&tool.parameters);
            let mut spec = json!({ "name": tool.name, "inputSchema": { "json": schema },
                "description": tool.description });
            if strict.is_some() {
                spec["strict"] = json!(true);
            }
            json!({ "toolSpec": spec })
        });
        body.insert("toolConfig".into(), json!({ "tools": tools.collect::<Vec<_>>() }));
    }
    if let Some(fields) = fields {
        body.insert("additionalModelRequestFields".into(), fields);
    }
    Value::Object(body)
}

fn cache_point(request: &ModelRequest) -> Option<Value> {
    if !claude::can_cache(&request.model.id) {
        return None;
    }
    match request.options.cache_retention {
        CacheRetention::None => None,
        CacheRetention::Short => Some(json!({ "cachePoint": { "type": "default" } })),
        CacheRetention::Long => Some(json!({ "cachePoint": { "type": "default", "ttl": "1h" } })),
    }
}

/// The output limit, and the fields by which each vendor's models are told to think.
fn model_fields(request: &ModelRequest, limit: u64) -> (u64, Option<Value>) {
    let model = &request.model;
    let level = request.thinking;
    if !model.reasoning || level == ThinkingLevel::Off {
        return (limit, None);
    }
    let mapped = model.mapped_level(level);
    let effort = mapped.and_then(Value::as_str).unwrap_or_else(|| plain_effort(level));
    let Some(generation) = claude::generation(model) else {
        let fields = if model.id.contains("openai.gpt-oss") {
            Some(json!({ "reasoning_effort": effort }))
        } else if model.id.contains("openai.gpt") {
            Some(json!({ "reasoning": { "effort": effort } }))
        } else {
            None
        };
        return (limit, fields);
    };
    let forced = model.compat.as_ref().and_then(|compat| compat.get("forceAdaptiveThinking"));
    if generation >= ADAPTIVE || forced == Some(&Value::Bool(true)) {
        // Claude has no level below `low`.
        let effort = if effort == "minimal" { "low" } else { effort };
        let mut thinking = json!({ "type": "adaptive", "display": "summarized" });
        let mut fields = Map::new();
        if generation >= BOUND {
            thinking["block_binding"] = json!({ "prefix_mismatch_behavior": "drop_block" });
        }
        fields.insert("thinking".into(), thinking);
        fields.insert("output_config".into(), json!({ "effort": effort }));
        if generation >= BOUND {
            fields.insert("anthropic_beta".into(), json!([THINKING_BINDING]));
        }
        return (limit, Some(Value::Object(fields)));
    }
    let wanted = budget::thinking_budget(level, &request.options.thinking_budgets).unwrap_or(0);
    let (limit, tokens) = budget::claude_limits(request, limit, wanted);
    if tokens == 0 {
        return (limit, None);
    }
    let thinking = json!({ "type": "enabled", "budget_tokens": tokens, "display": "summarized" });
    (limit, Some(json!({ "thinking": thinking, "anthropic_beta": [INTERLEAVED_THINKING] })))
}

fn messages(request: &ModelRequest, transcript: &Transcript<'_>, cache: Option<&Value>) -> Value {
    let is_claude = claude::generation(&request.model).is_some();
    let mut messages: Vec<Value> = Vec::with_capacity(transcript.turns.len());
    let mut turns = transcript.turns.as_slice();
    while let Some((turn, rest)) = turns.split_first() {
        let (role, content) = match turn {
            Turn::User(user) => {
                turns = rest;
                ("user", filled(content_parts(&user.parts)))
            }
            Turn::Assistant(parts) => {
                turns = rest;
                ("assistant", assistant_content(parts, is_claude))
            }
            // Not asked for.
            Turn::System(_) | Turn::Effort(_) => {
                turns = rest;
                continue;
            }
            Turn::ToolResult(_) => {
                let (mut content, mut behind, after) = tool_results(turns, tool_result);
                content.append(&mut behind);
                turns = after;
                ("user", content)
            }
        };
        if !content.is_empty() {
            messages.push(json!({ "role": role, "content": content }));
        }
    }
    if let (Some(last), Some(cache)) = (messages.last_mut(), cache)
        && last["role"] == "user"
        && let Some(content) = last["content"].as_array_mut()
    {
        content.push(cache.clone());
    }
    Value::Array(messages)
}

fn content_parts(parts: &[Part<'_>]) -> Vec<Value> {
    parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) if text.trim().is_empty() => None,
            Part::Text(text) => Some(json!({ "text": text })),
            Part::Image { mime_type, data } => {
                let format = match mime_type.strip_prefix("image/").unwrap_or(mime_type) {
                    "jpg" => "jpeg",
                    format => format,
                };
                Some(json!({ "image": { "format": format, "source": { "bytes": data } } }))
            }
        })
        .collect()
}

/// The API wants something in every list of content.
fn filled(mut content: Vec<Value>) -> Vec<Value> {
    if content.is_empty() {
        content.push(json!({ "text": EMPTY }));
    }
    content
}

fn assistant_content(parts: &[AssistantPart<'_>], is_claude: bool) -> Vec<Value> {
    let reasoning = |value: Value| json!({ "reasoningContent": value });
    parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::Text { text, .. } if text.trim().is_empty() => None,
            AssistantPart::Text { text, .. } => Some(json!({ "text": text })),
            AssistantPart::ToolCall { id, name, arguments, .. } => {
                Some(json!({ "toolUse": { "toolUseId": id, "name": name, "input": arguments } }))
            }
            AssistantPart::Thinking { signature, redacted: true, .. } => {
                signature.map(|data| reasoning(json!({ "redactedContent": data })))
            }
            AssistantPart::Thinking { text, .. } if text.trim().is_empty() => None,
            // Claude alone signs its thinking, and refuses thinking that it did not sign.
            AssistantPart::Thinking { text, .. } if !is_claude => {
                Some(reasoning(json!({ "reasoningText": { "text": text } })))
            }
            AssistantPart::Thinking { text, signature: Some(signature), .. } => {
                Some(reasoning(json!({ "reasoningText": { "text": text, "signature": signature } })))
            }
            AssistantPart::Thinking { text, .. } => Some(json!({ "text": text })),
        })
        .collect()
}

/// Claude wants no images in the results of failed calls: they go `behind`.
fn tool_result(result: &ToolTurn<'_>, behind: &mut Vec<Value>) -> Value {
    let has_images = result.parts.iter().any(|part| part.as_text().is_none());
    let content = if result.is_error && has_images {
        let caption = format!("Images from the error result of tool call {} ({}):", result.id, result.name);
        behind.push(json!({ "text": caption }));
        let images: Vec<Part<'_>> =
            result.parts.iter().filter(|part| part.as_text().is_none()).cloned().collect();
        behind.extend(content_parts(&images));
        parts_with_notes(result)
    } else {
        content_parts(&result.parts)
    };
    let status = if result.is_error { "error" } else { "success" };
    json!({ "toolResult": { "toolUseId": result.id, "content": filled(content), "status": status } })
}

/// The texts of a failed call's result, with a note for each run of images.
fn parts_with_notes(result: &ToolTurn<'_>) -> Vec<Value> {
    let mut content = Vec::new();
    let mut in_run = false;
    for part in &result.parts {
        match part.as_text() {
            Some(text) if text.trim().is_empty() => {}
            Some(text) => content.push(json!({ "text": text })),
            None if !in_run => content.push(json!({ "text": "(image attached after the tool results)" })),
            None => {}
        }
        in_run = part.as_text().is_none();
    }
    content
}

/// Makes the id of another model's call one that the API takes.
fn foreign_id(id: &str) -> String {
    safe_id(id, MAX_CALL_ID)
}
