use sampi_protocol::data::StopReason::{Length, Stop, ToolUse};
use serde_json::{Value, json};

use super::{Cell, Column, Kind, call, failing, huge_arguments, named_sse, pieces, stream, text};
use crate::llm::FailureKind;
use crate::llm::anthropic_messages::{API, Decoder};
use crate::llm::testing::replay;

fn start() -> Value {
    json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message", "role": "assistant",
        "model": "m1", "content": [], "stop_reason": null, "usage": { "input_tokens": 7, "output_tokens": 1 } } })
}

fn block(index: u64, start: Value, deltas: &[Value]) -> Vec<Value> {
    let mut events = vec![json!({ "type": "content_block_start", "index": index, "content_block": start })];
    let delta = |delta: &Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    events.extend(deltas.iter().map(delta));
    events.push(json!({ "type": "content_block_stop", "index": index }));
    events
}

fn said(index: u64, texts: &[&str]) -> Vec<Value> {
    let delta = |text: &&str| json!({ "type": "text_delta", "text": text });
    block(index, json!({ "type": "text", "text": "" }), &texts.iter().map(delta).collect::<Vec<_>>())
}

fn tool(index: u64, id: &str, pieces: &[String]) -> Vec<Value> {
    let delta = |piece: &String| json!({ "type": "input_json_delta", "partial_json": piece });
    let start = json!({ "type": "tool_use", "id": id, "name": "read", "input": {} });
    block(index, start, &pieces.iter().map(delta).collect::<Vec<_>>())
}

fn answer(blocks: &[Vec<Value>], ending: Value) -> String {
    let mut events = vec![start(), json!({ "type": "ping" })];
    events.extend(blocks.concat());
    events.push(json!({ "type": "message_delta", "delta": ending, "usage": { "output_tokens": 2 } }));
    events.push(json!({ "type": "message_stop" }));
    named_sse(&events)
}

fn ended(reason: &str) -> Value {
    json!({ "stop_reason": reason, "stop_sequence": null })
}

pub(super) fn column() -> Column {
    let thinking = block(
        0,
        json!({ "type": "thinking", "thinking": "", "signature": "" }),
        &[
            json!({ "type": "thinking_delta", "thinking": "hm" }),
            json!({ "type": "thinking_delta", "thinking": " ö" }),
            json!({ "type": "signature_delta", "signature": "c2ln" }),
        ],
    );
    let refusal = json!({ "stop_reason": "refusal",
        "stop_details": { "type": "refusal", "explanation": "This is not allowed." } });
    let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    let half = [vec![start()], said(0, &["half é"]), vec![error.clone()]].concat();
    let novel = [
        vec![json!({ "type": "novelty", "x": [1] })],
        block(0, json!({ "type": "server_tool_use", "id": "s", "name": "web", "input": {} }), &[]),
        block(
            1,
            json!({ "type": "text", "text": "" }),
            &[json!({ "type": "text_delta", "text": "a" }), json!({ "type": "novelty_delta", "novelty": 1 })],
        ),
    ];
    let cells = vec![
        (
            Kind::Text,
            stream(
                answer(&[said(0, &["Hel", "lo é😀\u{2028}"])], ended("end_turn")),
                json!([text("Hello é😀\u{2028}")]),
                Stop,
            ),
        ),
        (
            Kind::Thinking,
            stream(
                answer(&[thinking, said(1, &["done"])], ended("end_turn")),
                json!([{ "type": "thinking", "thinking": "hm ö", "thinkingSignature": "c2ln" }, text("done")]),
                Stop,
            ),
        ),
        (
            Kind::Redacted,
            stream(
                answer(
                    &[
                        block(0, json!({ "type": "redacted_thinking", "data": "RU5D" }), &[]),
                        said(1, &["done"]),
                    ],
                    ended("end_turn"),
                ),
                json!([
                    { "type": "thinking", "thinking": "[Reasoning redacted]", "thinkingSignature": "RU5D",
                        "redacted": true },
                    text("done"),
                ]),
                Stop,
            ),
        ),
        (
            Kind::ParallelTools,
            stream(
                answer(
                    &[
                        tool(0, "toolu_a", &["{\"a\"".to_owned(), ":\"é\"}".to_owned()]),
                        tool(1, "toolu_b", &["{\"b\":2}".to_owned()]),
                    ],
                    ended("tool_use"),
                ),
                json!([call("toolu_a", json!({ "a": "é" })), call("toolu_b", json!({ "b": 2 }))]),
                ToolUse,
            ),
        ),
        (
            Kind::Refusal,
            failing(
                answer(&[said(0, &["I"])], refusal),
                json!([text("I")]),
                "This is not allowed.",
                FailureKind::ContentFilter,
            ),
        ),
        (
            Kind::Length,
            stream(answer(&[said(0, &["cut"])], ended("max_tokens")), json!([text("cut")]), Length),
        ),
        (
            Kind::ErrorMidStream,
            failing(named_sse(&half), json!([text("half é")]), &error.to_string(), FailureKind::Overloaded),
        ),
        (Kind::UnknownEvents, stream(answer(&novel, ended("end_turn")), json!([text("a")]), Stop)),
        (Kind::CommentLines, Cell::Reframed),
        (Kind::SplitUtf8, Cell::Reframed),
        (Kind::CrLf, Cell::Reframed),
        (
            Kind::HugeToolInput,
            stream(
                answer(&[tool(0, "toolu_a", &pieces(&huge_arguments()))], ended("tool_use")),
                json!([call("toolu_a", huge_arguments())]),
                ToolUse,
            ),
        ),
    ];
    Column {
        api: API,
        model: json!({ "reasoning": true }),
        cells,
        replay: |request, chunks| replay(request, Decoder::default(), chunks),
    }
}
