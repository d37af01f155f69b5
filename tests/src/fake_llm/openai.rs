//! The events of the OpenAI completions API.

use serde_json::{Value, json};

use super::answer::{Answer, Part};
use super::exchange::RecordedRequest;
use super::reply::Step;

/// One event of the stream.
pub fn event(payload: &Value) -> String {
    format!("data: {payload}\n\n")
}

/// The last event of the stream.
pub fn done() -> String {
    "data: [DONE]\n\n".to_owned()
}

/// A chunk with one choice.
pub fn chunk(model: &str, delta: Value, finish_reason: Value) -> Value {
    let mut chunk = base(model);
    chunk["choices"] = json!([{ "index": 0, "delta": delta, "finish_reason": finish_reason }]);
    chunk
}

fn base(model: &str) -> Value {
    json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model, "choices": [] })
}

pub(super) fn steps(answer: &Answer, request: &RecordedRequest) -> Vec<Step> {
    let model = request.body["model"].as_str().unwrap_or_default();
    let delta = |delta: Value| Step::Send(event(&chunk(model, delta, Value::Null)));
    let mut steps = vec![delta(json!({ "role": "assistant", "content": "" }))];
    let mut calls = 0;
    for part in &answer.parts {
        match part {
            Part::Text(deltas) => steps.extend(deltas.iter().map(|text| delta(json!({ "content": text })))),
            Part::Thinking(deltas) => {
                steps.extend(deltas.iter().map(|text| delta(json!({ "reasoning_content": text }))));
            }
            Part::RedactedThinking(_) => panic!("the OpenAI API has no redacted thinking"),
            Part::ToolCall { id, name, arguments } => {
                let function = json!({ "name": name, "arguments": "" });
                let call = json!({ "index": calls, "id": id, "type": "function", "function": function });
                steps.push(delta(json!({ "tool_calls": [call] })));
                steps.extend(arguments.iter().map(|text| {
                    delta(json!({ "tool_calls": [{ "index": calls, "function": { "arguments": text } }] }))
                }));
                calls += 1;
            }
            Part::Wait(gate) => steps.push(Step::Wait(gate.clone())),
            Part::Cut => steps.push(Step::Cut),
            Part::End => steps.push(Step::End),
            Part::Hang => steps.push(Step::Hang),
        }
    }
    let usual = if answer.calls_tools() { "tool_calls" } else { "stop" };
    let reason = answer.stop.as_deref().unwrap_or(usual);
    steps.push(Step::Send(event(&chunk(model, json!({}), json!(reason)))));
    let tokens = answer.tokens;
    let mut usage = base(model);
    usage["usage"] = json!({
        "prompt_tokens": tokens.input + tokens.cache_read,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.cache_read + tokens.output,
        "prompt_tokens_details": { "cached_tokens": tokens.cache_read },
    });
    steps.push(Step::Send(event(&usage)));
    steps.push(Step::Send(done()));
    steps
}
