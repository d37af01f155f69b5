use sampi_protocol::data::StopReason::{Length, Stop, ToolUse};
use serde_json::{Value, json};

use super::{Cell, Column, Kind, call, failing, huge_arguments, pieces, sse, stream, text};
use crate::llm::FailureKind;
use crate::llm::openai_completions::{API, Decoder};
use crate::llm::testing::replay;

fn chunk(delta: Value, finish: Value) -> Value {
    json!({ "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m1",
        "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }] })
}

fn delta(delta: Value) -> Value {
    chunk(delta, Value::Null)
}

fn said(text: &str) -> Value {
    delta(json!({ "content": text }))
}

fn answer(mut deltas: Vec<Value>, finish: &str) -> String {
    deltas.insert(0, delta(json!({ "role": "assistant", "content": "", "refusal": null })));
    deltas.push(chunk(json!({}), json!(finish)));
    deltas.push(
        json!({ "id": "chatcmpl-1", "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 2 } }),
    );
    sse(&deltas) + "data: [DONE]\n\n"
}

fn tool(index: u64, id: Option<&str>, arguments: &str) -> Value {
    let mut call = json!({ "index": index, "function": { "arguments": arguments } });
    if let Some(id) = id {
        call["id"] = json!(id);
        call["type"] = json!("function");
        call["function"]["name"] = json!("read");
    }
    delta(json!({ "tool_calls": [call] }))
}

pub(super) fn column() -> Column {
    let details = json!([{ "type": "reasoning.encrypted", "data": "RU5D", "id": "rs_1", "index": 0 }]);
    let hidden = json!({ "type": "thinking", "thinking": "", "thinkingSignature": details.to_string() });
    let thought = json!({ "type": "thinking", "thinking": "hm ö", "thinkingSignature": "reasoning_content" });
    let mut huge = vec![tool(0, Some("call_a"), "")];
    huge.extend(pieces(&huge_arguments()).iter().map(|piece| tool(0, None, piece)));
    let mut novel = said("a");
    novel["novelty"] = json!({ "x": [1] });
    novel["choices"][0]["delta"]["novelty"] = json!(true);
    let cells = vec![
        (
            Kind::Text,
            stream(
                answer(vec![said("Hel"), said("lo é😀\u{2028}")], "stop"),
                json!([text("Hello é😀\u{2028}")]),
                Stop,
            ),
        ),
        (
            Kind::Thinking,
            stream(
                answer(
                    vec![
                        delta(json!({ "reasoning_content": "hm" })),
                        delta(json!({ "reasoning_content": " ö" })),
                        said("done"),
                    ],
                    "stop",
                ),
                json!([thought, text("done")]),
                Stop,
            ),
        ),
        (
            Kind::Redacted,
            stream(
                answer(vec![delta(json!({ "reasoning_details": details })), said("done")], "stop"),
                json!([hidden, text("done")]),
                Stop,
            ),
        ),
        (
            Kind::ParallelTools,
            stream(
                answer(
                    vec![
                        tool(0, Some("call_a"), ""),
                        tool(1, Some("call_b"), "{\"b\""),
                        tool(0, None, "{\"a\":\"é\"}"),
                        tool(1, None, ":2}"),
                    ],
                    "tool_calls",
                ),
                json!([call("call_a", json!({ "a": "é" })), call("call_b", json!({ "b": 2 }))]),
                ToolUse,
            ),
        ),
        (
            Kind::Refusal,
            stream(
                answer(
                    vec![delta(json!({ "refusal": "I can" })), delta(json!({ "refusal": "not" }))],
                    "stop",
                ),
                json!([text("I cannot")]),
                Stop,
            ),
        ),
        (Kind::Length, stream(answer(vec![said("cut")], "length"), json!([text("cut")]), Length)),
        (
            Kind::ErrorMidStream,
            failing(
                sse(&[said("half é"), json!({ "error": { "message": "slow down", "code": 429 } })]),
                json!([text("half é")]),
                "slow down",
                FailureKind::RateLimit,
            ),
        ),
        (
            Kind::UnknownEvents,
            stream(
                "event: novelty\ndata: {\"x\":1}\n\nretry: 9\nid: 1\n\n".to_owned()
                    + &answer(vec![novel], "stop"),
                json!([text("a")]),
                Stop,
            ),
        ),
        (Kind::CommentLines, Cell::Reframed),
        (Kind::SplitUtf8, Cell::Reframed),
        (Kind::CrLf, Cell::Reframed),
        (
            Kind::HugeToolInput,
            stream(answer(huge, "tool_calls"), json!([call("call_a", huge_arguments())]), ToolUse),
        ),
    ];
    Column {
        api: API,
        model: json!({ "reasoning": true }),
        cells,
        replay: |request, chunks| replay(request, Decoder::new(true), chunks),
    }
}
