//! The request in the terms of the Messages API.

use sampi_protocol::data::{AssistantMessage, Model, ThinkingLevel, ToolDefinition};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use super::fallback::fallbacks;
use crate::llm::effort::plain_effort;
use crate::llm::exchange::{Fault, json_post};
use crate::llm::headers::{Headers, bearer, header, json_headers, key_header};
use crate::llm::http::Post;
use crate::llm::strict_schema::strict_parameters;
use crate::llm::transcript::{
    AssistantPart, Crowd, EffortOf, ImageLimits, InPlace, Part, SystemTurn, ToolChanges, ToolTurn,
    Transcript, Turn, tool_results,
};
use crate::llm::{CacheRetention, ModelRequest, budget};

/// The version of the API that this is written for.
const VERSION: &str = "2023-06-01";

/// The header that asks for what is not in the version.
pub(super) const BETA: &str = "anthropic-beta";

/// Lets the model think between tool calls.
pub(crate) const INTERLEAVED_THINKING: &str = "interleaved-thinking-2025-05-14";

/// Streams arguments as they are written, on servers without `eager_input_streaming`.
const FINE_GRAINED_TOOLS: &str = "fine-grained-tool-streaming-2025-05-14";

/// Lets system messages set the effort.
const EFFORT_IN_PLACE: &str = "mid-conversation-output-config-2026-07-01";

/// Lets other models answer what the model refuses.
const FALLBACK: &str = "server-side-fallback-2026-07-01";

/// Lets the server drop thinking that was signed in front of another history, which it refuses otherwise.
const THINKING_BINDING: &str = "thinking-binding-controls-2026-08-01";

/// Lets system messages declare tools.
const TOOLS_IN_PLACE: &str = "inline-tools-2026-09-15";

/// The effort of requests that set it turn by turn: always the same, for the sake of the cache, and one that
/// every account may ask for.
const STEADY_EFFORT: &str = "low";

/// The efforts that a system message may set.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// A tool that is never there. Deferred tools need one at the beginning, or the first one would change the prefix.
const PLACEHOLDER: &str = "deferred_tools_placeholder";

/// Lets OAuth tokens in.
pub(super) const OAUTH: &str = "oauth-2025-04-20";

/// How the keys begin that are OAuth tokens.
const OAUTH_KEY: &str = "sk-ant-oat";

/// Longest id of a tool call.
const MAX_CALL_ID: usize = 64;

/// What the API takes: <https://platform.claude.com/docs/en/build-with-claude/vision#general-limits> and
/// <https://platform.claude.com/docs/en/api/overview#request-size-limits>
const IMAGES: ImageLimits = ImageLimits {
    per_message: None,
    // 100 for models with a context of 200,000 tokens, more for others, of which the catalogue knows.
    per_request: Some(100),
    // 32 MB for the standard endpoints.
    request_bytes: Some(32 * 1024 * 1024),
    // 5 MB an image; the API counts its base64.
    image_bytes: Some(5 * 1024 * 1024),
    // 8000 by 8000 pixels, and 2000 by 2000 with more than 20 images in the request.
    side: Some(8000),
    crowd: Some(Crowd { above: 20, side: 2000 }),
};

/// The request, ready to be sent. `access` is the token of one that has no key.
pub(super) fn post(request: &ModelRequest, access: Option<&SecretString>) -> Result<Post, Fault> {
    let url = format!("{}/v1/messages?beta=true", request.model.base_url.trim_end_matches('/'));
    let body = body(request);
    let headers = headers(request, access, &body);
    json_post(url, headers, &body)
}

fn flag(request: &ModelRequest, name: &str, default: bool) -> bool {
    request.compat_flag(name).unwrap_or(default)
}

pub(super) fn headers(request: &ModelRequest, access: Option<&SecretString>, body: &Value) -> Headers {
    let mut headers = json_headers("application/json");
    headers.push(header("anthropic-version", VERSION));

    let mut betas = Vec::new();
    let key = request.credentials.api_key.as_ref();
    match access.or_else(|| key.filter(|key| key.expose_secret().starts_with(OAUTH_KEY))) {
        Some(token) => {
            betas.push(OAUTH);
            headers.push(bearer(token));
        }
        None => headers.extend(key_header(&request.credentials, "x-api-key")),
    }
    if body.get("tools").is_some() && !flag(request, "supportsEagerToolInputStreaming", true) {
        betas.push(FINE_GRAINED_TOOLS);
    }
    if body["thinking"]["type"] == "enabled" {
        betas.push(INTERLEAVED_THINKING);
    }
    if body.get("fallbacks").is_some() {
        betas.push(FALLBACK);
    }
    if sets_effort_in_place(request) {
        betas.extend([EFFORT_IN_PLACE, THINKING_BINDING]);
    }
    if body["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == PLACEHOLDER)) {
        betas.push(TOOLS_IN_PLACE);
    }
    if !betas.is_empty() {
        headers.push(header(BETA, &betas.join(",")));
    }

    let openrouter =
        request.model.provider == "openrouter" || request.model.base_url.contains("openrouter.ai");
    if let Some(session) = &request.options.session_id
        && request.options.cache_retention != CacheRetention::None
        && flag(request, "sendSessionAffinityHeaders", openrouter)
    {
        let format = request.model.compat.as_ref().and_then(|compat| compat.get("sessionAffinityFormat"));
        let by_session = openrouter || format.and_then(Value::as_str) == Some("openrouter");
        let name = if by_session { "x-session-id" } else { "x-session-affinity" };
        headers.push(header(name, session));
    }
    for (name, value) in &request.credentials.headers {
        // What a header of the user asks for goes along with what the token needs.
        let is_replaced = access.is_some() && name.eq_ignore_ascii_case(BETA);
        let both = is_replaced.then(|| format!("{},{OAUTH}", value.expose_secret()).into());
        headers.push((name.clone(), both.unwrap_or_else(|| value.clone())));
    }
    headers
}

fn sets_effort_in_place(request: &ModelRequest) -> bool {
    request.model.reasoning && flag(request, "supportsMidConvoEffort", false)
}

/// The effort that the answer is asked for with a message of its own.
pub(super) fn effort_in_place(request: &ModelRequest) -> Option<String> {
    let thinks = request.thinking != ThinkingLevel::Off;
    (thinks && sets_effort_in_place(request)).then(|| effort(request))
}

/// Efforts mean the same to all models of a provider.
fn effort_of<'a>(model: &Model, answer: &'a AssistantMessage) -> Option<&'a str> {
    let own = answer.provider == model.provider && answer.api == model.api;
    answer.provider_thinking_level.as_deref().filter(|effort| own && EFFORTS.contains(effort))
}

fn in_place(request: &ModelRequest) -> InPlace {
    let takes_tools = flag(request, "supportsMidConvoToolChanges", false);
    InPlace {
        prompt: flag(request, "supportsMidConvoSystemMessages", false),
        tools: if takes_tools { ToolChanges::All } else { ToolChanges::None },
        effort: effort_in_place(request).map(|_| effort_of as EffortOf),
    }
}

/// The body, its fields in the order in which Pi has them.
pub(super) fn body(request: &ModelRequest) -> Value {
    let transcript = Transcript::with_changes(request, foreign_id, IMAGES, in_place(request));
    let retention = request.options.cache_retention;
    let keeps_long = flag(request, "supportsLongCacheRetention", true);
    let mark = cache_mark(if keeps_long { retention } else { retention.without_long() });
    let (max_tokens, thinking, effort) = limits(request, &transcript);
    let mut body = Map::new();
    body.insert("model".into(), json!(request.model.id));
    body.insert("messages".into(), messages(request, &transcript, mark.as_ref()));
    body.insert("max_tokens".into(), json!(max_tokens));
    body.insert("stream".into(), json!(true));
    if !transcript.system.is_empty() {
        let mut block = json!({ "type": "text", "text": transcript.system });
        put_mark(&mut block, mark.as_ref());
        body.insert("system".into(), json!([block]));
    }
    if !transcript.tools.is_empty() {
        let mut tools = tools(request, &transcript.tools, mark.as_ref());
        if transcript.tool_changes == ToolChanges::All {
            tools.push(placeholder());
        }
        body.insert("tools".into(), Value::Array(tools));
    }
    if let Some(thinking) = thinking {
        body.insert("thinking".into(), thinking);
    }
    if let Some(effort) = effort {
        body.insert("output_config".into(), json!({ "effort": effort }));
    }
    let fallbacks = fallbacks(&request.model);
    if !fallbacks.is_empty() {
        let models = fallbacks.iter().map(|fallback| json!({ "model": fallback.model }));
        body.insert("fallbacks".into(), models.collect());
    }
    Value::Object(body)
}

/// The output limit, the thinking, and the effort of adaptive thinking.
fn limits(request: &ModelRequest, transcript: &Transcript<'_>) -> (u64, Option<Value>, Option<String>) {
    let model = &request.model;
    let limit = budget::output_limit(request, transcript);
    if !model.reasoning {
        return (limit, None, None);
    }
    let level = request.thinking;
    let mapped = model.mapped_level(level);
    let Some(tokens) = budget::thinking_budget(level, &request.options.thinking_budgets) else {
        // A model that cannot stop thinking says so with `null`.
        let thinking = (mapped != Some(&Value::Null)).then(|| json!({ "type": "disabled" }));
        return (limit, thinking, None);
    };
    let mut thinking = json!({ "type": "adaptive", "display": "summarized" });
    if sets_effort_in_place(request) {
        thinking["block_binding"] = json!({ "prefix_mismatch_behavior": "drop_block" });
        return (limit, Some(thinking), Some(STEADY_EFFORT.to_owned()));
    }
    if flag(request, "forceAdaptiveThinking", false) {
        return (limit, Some(thinking), Some(effort(request)));
    }
    let (max_tokens, tokens) = budget::claude_limits(request, limit, tokens);
    if tokens == 0 {
        return (max_tokens, Some(json!({ "type": "disabled" })), None);
    }
    let thinking = json!({ "type": "enabled", "budget_tokens": tokens, "display": "summarized" });
    (max_tokens, Some(thinking), None)
}

/// The effort of the level that is asked for. Claude has none below `low`.
fn effort(request: &ModelRequest) -> String {
    let level = request.thinking;
    let mapped = request.model.mapped_level(level);
    mapped.and_then(Value::as_str).unwrap_or_else(|| plain_effort(level.max(ThinkingLevel::Low))).to_owned()
}

fn tools(request: &ModelRequest, tools: &[ToolDefinition], mark: Option<&Value>) -> Vec<Value> {
    let mut list: Vec<Value> = tools.iter().map(|tool| self::tool(request, tool)).collect();
    if flag(request, "supportsCacheControlOnTools", true)
        && let Some(last) = list.last_mut()
    {
        put_mark(last, mark);
    }
    list
}

fn placeholder() -> Value {
    json!({
        "name": PLACEHOLDER,
        "description": "Holds a place in the list. It cannot be called.",
        "input_schema": { "type": "object", "properties": {}, "required": [] },
        "defer_loading": true,
    })
}

fn tool(request: &ModelRequest, tool: &ToolDefinition) -> Value {
    let eager = flag(request, "supportsEagerToolInputStreaming", true);
    let may_be_strict = flag(request, "supportsStrictTools", false);
    let strict = if may_be_strict { strict_parameters(tool) } else { None };
    let mut schema = Map::new();
    let given = tool.parameters.as_object();
    let field = |name: &str, default: Value| given.and_then(|map| map.get(name)).cloned().unwrap_or(default);
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), field("properties", json!({})));
    schema.insert("required".into(), field("required", json!([])));
    for (name, value) in given.into_iter().flatten() {
        if !schema.contains_key(name) {
            schema.insert(name.clone(), value.clone());
        }
    }
    let mut tool_json = Map::new();
    tool_json.insert("name".into(), json!(tool.name));
    tool_json.insert("description".into(), json!(tool.description));
    if eager {
        tool_json.insert("eager_input_streaming".into(), json!(true));
    }
    if strict.is_some() {
        tool_json.insert("strict".into(), json!(true));
    }
    tool_json.insert("input_schema".into(), strict.unwrap_or(Value::Object(schema)));
    Value::Object(tool_json)
}

fn messages(request: &ModelRequest, transcript: &Transcript<'_>, mark: Option<&Value>) -> Value {
    let mut messages: Vec<Value> = Vec::with_capacity(transcript.turns.len());
    // The API wants system messages behind what the user said.
    let mut changes: Vec<Value> = Vec::new();
    let mut turns = transcript.turns.as_slice();
    while let Some((turn, rest)) = turns.split_first() {
        let (role, content) = match turn {
            Turn::User(user) => {
                turns = rest;
                let said = |part: &&Part<'_>| part.as_text().is_none_or(|text| !text.trim().is_empty());
                ("user", user.parts.iter().filter(said).map(content_part).collect())
            }
            Turn::System(change) => {
                turns = rest;
                changes.push(json!({ "role": "system", "content": change_content(request, change) }));
                continue;
            }
            Turn::Effort(effort) => {
                turns = rest;
                if ends_with_user(&messages) {
                    messages.append(&mut changes);
                    messages.push(effort_message(effort));
                }
                continue;
            }
            Turn::Assistant(parts) => {
                turns = rest;
                if ends_with_user(&messages) {
                    messages.append(&mut changes);
                }
                ("assistant", assistant_content(request, parts))
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
    messages.append(&mut changes);
    if let Some(last) = messages.last_mut().filter(|message| message["role"] != "assistant")
        && let Some(block) = last["content"].as_array_mut().and_then(|blocks| blocks.last_mut())
    {
        put_mark(block, mark);
    }
    if messages.last().is_some_and(|message| message["role"] != "assistant") {
        messages.extend(effort_in_place(request).as_deref().map(effort_message));
    }
    Value::Array(messages)
}

fn ends_with_user(messages: &[Value]) -> bool {
    messages.last().is_some_and(|message| message["role"] == "user")
}

fn effort_message(effort: &str) -> Value {
    json!({ "role": "system", "content": [], "output_config": { "effort": effort } })
}

fn change_content(request: &ModelRequest, change: &SystemTurn) -> Vec<Value> {
    let text = (!change.text.is_empty()).then(|| json!({ "type": "text", "text": change.text }));
    let removed = change
        .removed
        .iter()
        .map(|name| json!({ "type": "tool_removal", "tool": { "type": "tool_reference", "name": name } }));
    let added = change.added.iter().map(|added| {
        let definition = tool(request, added);
        json!({ "type": "tool_addition", "tool": { "type": "tool_definition", "definition": definition } })
    });
    text.into_iter().chain(removed).chain(added).collect()
}

fn content_part(part: &Part<'_>) -> Value {
    match part {
        Part::Text(text) => json!({ "type": "text", "text": text }),
        Part::Image { mime_type, data } => {
            json!({ "type": "image", "source": { "type": "base64", "media_type": mime_type, "data": data } })
        }
    }
}

fn assistant_content(request: &ModelRequest, parts: &[AssistantPart<'_>]) -> Vec<Value> {
    let unsigned = flag(request, "allowEmptySignature", false);
    parts
        .iter()
        .filter_map(|part| match part {
            AssistantPart::Text { text, .. } if text.trim().is_empty() => None,
            AssistantPart::Text { text, .. } => Some(json!({ "type": "text", "text": text })),
            AssistantPart::ToolCall { id, name, arguments, .. } => {
                Some(json!({ "type": "tool_use", "id": id, "name": name, "input": arguments }))
            }
            AssistantPart::Thinking { signature: Some(data), redacted: true, .. } => {
                Some(json!({ "type": "redacted_thinking", "data": data }))
            }
            AssistantPart::Thinking { redacted: true, .. } => None,
            AssistantPart::Thinking { text, signature: Some(signature), .. } => {
                Some(json!({ "type": "thinking", "thinking": text, "signature": signature }))
            }
            AssistantPart::Thinking { text, .. } if text.trim().is_empty() => None,
            AssistantPart::Thinking { text, .. } if unsigned => {
                Some(json!({ "type": "thinking", "thinking": text, "signature": "" }))
            }
            // The API refuses thinking that it did not sign.
            AssistantPart::Thinking { text, .. } => Some(json!({ "type": "text", "text": text })),
        })
        .collect()
}

/// The API wants no images in the results of failed calls: they go `behind`.
fn tool_result(result: &ToolTurn<'_>, behind: &mut Vec<Value>) -> Value {
    let has_images = result.parts.iter().any(|part| part.as_text().is_none());
    let content = if !has_images {
        json!(result.text())
    } else if result.is_error {
        let caption = format!("Images from the error result of tool call {} ({}):", result.id, result.name);
        behind.push(json!({ "type": "text", "text": caption }));
        behind.extend(result.parts.iter().filter(|part| part.as_text().is_none()).map(content_part));
        json!(text_with_notes(result))
    } else {
        let mut parts: Vec<Value> = result.parts.iter().map(content_part).collect();
        if result.parts.iter().all(|part| part.as_text().is_none()) {
            parts.insert(0, json!({ "type": "text", "text": "(see attached image)" }));
        }
        Value::Array(parts)
    };
    json!({
        "type": "tool_result",
        "tool_use_id": result.id,
        "content": content,
        "is_error": result.is_error,
    })
}

/// The text of a failed call's result, with a note for each run of images.
fn text_with_notes(result: &ToolTurn<'_>) -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut in_run = false;
    for part in &result.parts {
        match part.as_text() {
            Some(text) => lines.push(text),
            None if !in_run => lines.push("(image attached after the tool results)"),
            None => {}
        }
        in_run = part.as_text().is_none();
    }
    lines.join("\n")
}

/// The mark behind what is to be cached.
pub(crate) fn cache_mark(retention: CacheRetention) -> Option<Value> {
    match retention {
        CacheRetention::None => None,
        CacheRetention::Short => Some(json!({ "type": "ephemeral" })),
        CacheRetention::Long => Some(json!({ "type": "ephemeral", "ttl": "1h" })),
    }
}

fn put_mark(block: &mut Value, mark: Option<&Value>) {
    if let Some(mark) = mark {
        block["cache_control"] = mark.clone();
    }
}

/// Makes the id of another API's call one that this API takes.
fn foreign_id(id: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    id.chars().map(safe).take(MAX_CALL_ID).collect()
}
