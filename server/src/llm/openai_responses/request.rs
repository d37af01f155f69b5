//! The request in the terms of the Responses API.

use sampi_protocol::data::{AssistantMessage, Model, ThinkingLevel, ToolDefinition};
use serde_json::{Map, Value, json};

use super::compat::{Compat, ToolLoading};
use super::input;
use crate::llm::effort::plain_effort;
use crate::llm::exchange::{Fault, json_post};
use crate::llm::headers::{Headers, bearer, header, json_headers};
use crate::llm::http::Post;
use crate::llm::strict_schema::hold_to_schema;
use crate::llm::transcript::{EffortOf, InPlace, ToolChanges, Transcript};
use crate::llm::{CacheRetention, ModelRequest, budget, sampling};

/// Longest `prompt_cache_key`.
const MAX_CACHE_KEY: usize = 64;

/// Fewest output tokens that the API lets one ask for.
const MIN_OUTPUT: u64 = 16;

/// Lets thinking come in a form in which it can be sent back.
const ENCRYPTED_THINKING: &str = "reasoning.encrypted_content";

/// The level of requests that set the effort item by item.
const STEADY_EFFORT: ThinkingLevel = ThinkingLevel::Medium;

/// The request to OpenAI, ready to be sent.
pub(super) fn post(request: &ModelRequest, compat: &Compat) -> Result<Post, Fault> {
    let url = format!("{}/responses", request.model.base_url.trim_end_matches('/'));
    json_post(url, headers(request, compat), &body(request, compat, &request.model.id))
}

pub(super) fn headers(request: &ModelRequest, compat: &Compat) -> Headers {
    let mut headers = json_headers("application/json");
    headers.extend(request.credentials.api_key.as_ref().map(bearer));
    if let Some(session) = &request.options.session_id
        && request.options.cache_retention != CacheRetention::None
    {
        let names = compat.affinity.headers().iter();
        headers.extend(names.map(|name| header(name, session)));
    }
    headers.extend(request.credentials.headers.iter().cloned());
    headers
}

/// The body, its fields in the order in which Pi has them. `name` is the model's name at the service.
pub(crate) fn body(request: &ModelRequest, compat: &Compat, name: &str) -> Value {
    let foreign_id = if compat.keeps_call_ids { input::call_part } else { input::whole_id };
    let transcript = Transcript::with_changes(request, foreign_id, compat.images, in_place(request, compat));
    let mut body = Map::new();
    body.insert("model".into(), json!(name));
    body.insert("input".into(), Value::Array(input::items(request, compat, &transcript)));
    body.insert("stream".into(), json!(true));
    add_cache(request, compat, &mut body);
    body.insert("store".into(), json!(false));
    let limit = budget::output_limit(request, &transcript);
    if limit > 0 && compat.max_output_tokens {
        body.insert("max_output_tokens".into(), json!(limit.max(MIN_OUTPUT)));
    }
    if !transcript.tools.is_empty() && transcript.tool_changes != ToolChanges::All {
        body.insert("tools".into(), tools(compat, &transcript.tools));
    }
    add_reasoning(request, compat, &mut body);
    sampling::add(request, &mut body);
    Value::Object(body)
}

fn add_cache(request: &ModelRequest, compat: &Compat, body: &mut Map<String, Value>) {
    let retention = request.options.cache_retention;
    if retention == CacheRetention::None {
        if compat.cache_options {
            // Without this the server caches on its own.
            body.insert("prompt_cache_options".into(), json!({ "mode": "explicit" }));
        }
        return;
    }
    if let Some(session) = request.options.session_id.as_ref().filter(|_| compat.cache_key) {
        let key: String = session.chars().take(MAX_CACHE_KEY).collect();
        body.insert("prompt_cache_key".into(), json!(key));
    }
    if retention == CacheRetention::Long && compat.long_retention {
        if compat.cache_options {
            body.insert("prompt_cache_options".into(), json!({ "ttl": "30m" }));
        } else {
            body.insert("prompt_cache_retention".into(), json!("24h"));
        }
    }
}

fn in_place(request: &ModelRequest, compat: &Compat) -> InPlace {
    InPlace {
        prompt: compat.prompt_in_place,
        tools: match compat.tool_loading {
            ToolLoading::None => ToolChanges::None,
            ToolLoading::AdditionalTools => ToolChanges::All,
            ToolLoading::ToolSearch => ToolChanges::Additions,
        },
        effort: effort_in_place(request, compat).map(|_| effort_of as EffortOf),
    }
}

/// The effort that the answer is asked for with an item of its own.
pub(super) fn effort_in_place(request: &ModelRequest, compat: &Compat) -> Option<String> {
    let thinks = request.thinking != ThinkingLevel::Off;
    (thinks && compat.effort_in_place).then(|| effort(request, request.thinking).to_owned())
}

fn effort_of<'a>(model: &Model, answer: &'a AssistantMessage) -> Option<&'a str> {
    let own = answer.provider == model.provider && answer.api == model.api && answer.model == model.id;
    answer.provider_thinking_level.as_deref().filter(|_| own)
}

/// Tools as the API has them.
pub(super) fn tools(compat: &Compat, tools: &[ToolDefinition]) -> Value {
    let tools = tools.iter().map(|tool| {
        let mut function = json!({
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        });
        if compat.strict_field {
            hold_to_schema(&mut function, tool);
        }
        function
    });
    tools.collect()
}

fn add_reasoning(request: &ModelRequest, compat: &Compat, body: &mut Map<String, Value>) {
    if !request.model.reasoning {
        return;
    }
    let level = request.thinking;
    if level == ThinkingLevel::Off {
        if takes_level(request, level) && compat.says_off {
            let effort = request.model.mapped_level(level).and_then(Value::as_str).unwrap_or("none");
            body.insert("reasoning".into(), json!({ "effort": effort }));
        }
        if compat.always_encrypts {
            body.insert("include".into(), json!([ENCRYPTED_THINKING]));
        }
        return;
    }
    // Where items set the effort, it stays the same here, for the sake of the cache.
    let steady = if compat.effort_in_place { STEADY_EFFORT } else { level };
    let effort = effort(request, if takes_level(request, steady) { steady } else { level });
    body.insert("reasoning".into(), json!({ "effort": effort, "summary": "auto" }));
    // Nothing is stored, so the thinking has to come along to be replayed.
    body.insert("include".into(), json!([ENCRYPTED_THINKING]));
}

/// A model that does not have a level says so with `null`.
fn takes_level(request: &ModelRequest, level: ThinkingLevel) -> bool {
    request.model.mapped_level(level) != Some(&Value::Null)
}

fn effort(request: &ModelRequest, level: ThinkingLevel) -> &str {
    request.model.mapped_level(level).and_then(Value::as_str).unwrap_or_else(|| plain_effort(level))
}
