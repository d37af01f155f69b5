//! What a request to a model must be like. The vendors refuse what is found here, or silently do worse.

use std::collections::HashSet;

use serde_json::Value;

use super::exchange::{Api, RecordedRequest};

/// What is wrong with a request.
pub(super) fn violations(request: &RecordedRequest) -> Vec<String> {
    let mut found = Vec::new();
    let Some(api) = request.api() else {
        return vec![format!("no API has the path {}", request.path)];
    };
    if !request.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
        found.push("the content type is not application/json".to_owned());
    }
    if !request.body.is_object() {
        found.push("the body is not a JSON object".to_owned());
        return found;
    }
    if api == Api::TokenExchange {
        token_exchange(request, &mut found);
        return found;
    }
    if request.body["model"].as_str().is_none_or(str::is_empty) {
        found.push("`model` is missing".to_owned());
    }
    if request.body["stream"] != true {
        found.push("`stream` is not true".to_owned());
    }
    if request.messages().is_empty() {
        found.push("`messages` is empty or no array".to_owned());
    }
    match api {
        Api::OpenAi => openai(request, &mut found),
        Api::Anthropic => anthropic(request, &mut found),
        Api::TokenExchange => {}
    }
    found
}

/// Tool calls that were made and wait for their results.
#[derive(Default)]
struct Calls {
    open: HashSet<String>,
    ever: HashSet<String>,
}

impl Calls {
    fn made(&mut self, at: usize, id: &Value, found: &mut Vec<String>) {
        match id.as_str() {
            Some(id) if !id.is_empty() => {
                if !self.ever.insert(id.to_owned()) {
                    found.push(format!("message {at}: the tool call id {id} is used twice"));
                }
                self.open.insert(id.to_owned());
            }
            _ => found.push(format!("message {at}: a tool call without id")),
        }
    }

    fn answered(&mut self, at: usize, id: &Value, found: &mut Vec<String>) {
        let id = id.as_str().unwrap_or_default();
        if !self.open.remove(id) {
            found.push(format!("message {at}: a tool result for {id:?}, which no open call has"));
        }
    }

    fn none_open(&mut self, at: usize, found: &mut Vec<String>) {
        for id in self.open.drain() {
            found.push(format!("message {at}: the tool call {id} was not answered before it"));
        }
    }
}

fn openai(request: &RecordedRequest, found: &mut Vec<String>) {
    if request.header("authorization").is_none_or(|value| !value.starts_with("Bearer ")) {
        found.push("no bearer token".to_owned());
    }
    let mut names = HashSet::new();
    for tool in request.body["tools"].as_array().into_iter().flatten() {
        tool_declaration(&tool["function"]["name"], &tool["function"]["parameters"], &mut names, found);
    }
    let mut calls = Calls::default();
    let messages = request.messages();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" {
            calls.none_open(at, found);
        }
        match role {
            "system" | "developer" => {}
            "user" => {
                if !message["content"].is_string() && !message["content"].is_array() {
                    found.push(format!("message {at}: the user's content is neither text nor blocks"));
                }
            }
            "assistant" => {
                let made = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
                if made.is_empty() && RecordedRequest::text_of(message).is_empty() {
                    found.push(format!("message {at}: an assistant message with nothing in it"));
                }
                for call in made {
                    calls.made(at, &call["id"], found);
                    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                    if !serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) {
                        found.push(format!("message {at}: arguments that are no JSON object: {arguments}"));
                    }
                }
            }
            "tool" => calls.answered(at, &message["tool_call_id"], found),
            other => found.push(format!("message {at}: unknown role {other:?}")),
        }
    }
    calls.none_open(messages.len(), found);
    if messages.last().is_some_and(|message| message["role"] == "assistant") {
        found.push("the last message is the assistant's".to_owned());
    }
}

/// <https://platform.claude.com/docs/en/manage-claude/wif-reference>
fn token_exchange(request: &RecordedRequest, found: &mut Vec<String>) {
    if request.body["grant_type"] != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
        found.push("`grant_type` is not that of RFC 7523".to_owned());
    }
    for name in ["assertion", "federation_rule_id", "organization_id"] {
        if request.body[name].as_str().is_none_or(str::is_empty) {
            found.push(format!("`{name}` is missing"));
        }
    }
    if request.header("anthropic-beta").is_none_or(|betas| !betas.contains("oidc-federation-2026-04-01")) {
        found.push("the header anthropic-beta does not let federation in".to_owned());
    }
}

fn anthropic(request: &RecordedRequest, found: &mut Vec<String>) {
    if request.header("x-api-key").is_none() && request.header("authorization").is_none() {
        found.push("no key".to_owned());
    }
    if request.header("anthropic-version") != Some("2023-06-01") {
        found.push("the header anthropic-version is missing".to_owned());
    }
    let most = request.body["max_tokens"].as_u64().unwrap_or_default();
    if most == 0 {
        found.push("`max_tokens` is missing".to_owned());
    }
    if let Some(budget) = request.body["thinking"]["budget_tokens"].as_u64()
        && (budget < 1024 || budget >= most)
    {
        found.push(format!("a thinking budget of {budget} with max_tokens {most}"));
    }
    let mut names = HashSet::new();
    for tool in request.body["tools"].as_array().into_iter().flatten() {
        tool_declaration(&tool["name"], &tool["input_schema"], &mut names, found);
    }
    let mut calls = Calls::default();
    let messages = request.messages();
    for (at, message) in messages.iter().enumerate() {
        // The API takes several messages of the user in a row as one; an answer always follows one of them, and
        // so does a change of the system prompt.
        match message["role"].as_str().unwrap_or_default() {
            "user" => {}
            "assistant" | "system" if at > 0 && messages[at - 1]["role"] != "assistant" => {}
            other => found.push(format!("message {at}: the role {other:?} cannot stand here")),
        }
        if message["role"] == "system" {
            calls.none_open(at, found);
            anthropic_change(at, message, request, found);
        } else {
            anthropic_message(at, message, &mut calls, found);
        }
    }
    calls.none_open(messages.len(), found);
    if messages.last().is_some_and(|message| message["role"] == "assistant") {
        found.push("the last message is the assistant's".to_owned());
    }
}

/// <https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages>
fn anthropic_change(at: usize, message: &Value, request: &RecordedRequest, found: &mut Vec<String>) {
    let has_beta = |name: &str| {
        request.header("anthropic-beta").is_some_and(|betas| betas.split(',').any(|beta| beta == name))
    };
    let sets_effort = message["output_config"]["effort"].is_string();
    if sets_effort && !has_beta("mid-conversation-output-config-2026-07-01") {
        found.push(format!("message {at}: an effort without its beta header"));
    }
    let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    if blocks.is_empty() && !sets_effort {
        found.push(format!("message {at}: a system message that changes nothing"));
    }
    for block in blocks {
        match block["type"].as_str().unwrap_or_default() {
            "text" if block["text"].as_str().is_some_and(|text| !text.trim().is_empty()) => {}
            "tool_addition" | "tool_removal" if has_beta("inline-tools-2026-09-15") => {}
            other => found.push(format!("message {at}: the block {other:?} cannot stand here")),
        }
    }
}

fn anthropic_message(at: usize, message: &Value, calls: &mut Calls, found: &mut Vec<String>) {
    let blocks = match &message["content"] {
        Value::String(text) if !text.is_empty() => return calls.none_open(at, found),
        Value::Array(blocks) if !blocks.is_empty() => blocks,
        _ => return found.push(format!("message {at}: no content")),
    };
    for block in blocks {
        let kind = block["type"].as_str().unwrap_or_default();
        if kind == "tool_result" {
            calls.answered(at, &block["tool_use_id"], found);
            continue;
        }
        if message["role"] == "user" {
            calls.none_open(at, found);
        }
        match kind {
            "text" if block["text"].as_str().is_none_or(|text| text.trim().is_empty()) => {
                found.push(format!("message {at}: a text block with nothing in it"));
            }
            "tool_use" => {
                calls.made(at, &block["id"], found);
                if !block["input"].is_object() {
                    found.push(format!("message {at}: a tool call whose input is no object"));
                }
            }
            "thinking" if block["signature"].as_str().is_none_or(str::is_empty) => {
                found.push(format!("message {at}: a thinking block without signature"));
            }
            "text" | "image" | "thinking" | "redacted_thinking" => {}
            other => found.push(format!("message {at}: unknown block {other:?}")),
        }
    }
}

fn tool_declaration(name: &Value, schema: &Value, names: &mut HashSet<String>, found: &mut Vec<String>) {
    let name = name.as_str().unwrap_or_default();
    if name.is_empty() || !names.insert(name.to_owned()) {
        found.push(format!("a tool without name or declared twice: {name:?}"));
    }
    if schema["type"] != "object" {
        found.push(format!("the schema of the tool {name:?} is not an object's"));
    }
}
