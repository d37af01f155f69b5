use sampi_protocol::data::StopReason::{Length, Stop, ToolUse};
use serde_json::{Value, json};

use super::{Cell, Column, Kind, call, failing, huge_arguments, pieces, sse, stream, text};
use crate::llm::FailureKind;
use crate::llm::mistral_conversations::{API, Decoder};
use crate::llm::testing::replay;

fn chunk(delta: Value, finish: Value) -> Value {
    json!({ "id": "cm_1", "object": "chat.completion.chunk", "created": 1, "model": "m1",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] })
}

fn said(text: &str) -> Value {
    chunk(json!({ "content": text }), Value::Null)
}

fn thought(text: &str) -> Value {
    let parts = json!([{ "type": "thinking", "thinking": [{ "type": "text", "text": text }] }]);
    chunk(json!({ "content": parts }), Value::Null)
}

fn tool(index: u64, id: &str, arguments: &str) -> Value {
    let call = json!({ "id": id, "index": index, "function": { "name": "read", "arguments": arguments } });
    chunk(json!({ "tool_calls": [call] }), Value::Null)
}

fn answer(mut chunks: Vec<Value>, finish: &str) -> String {
    chunks.insert(0, chunk(json!({ "role": "assistant", "content": "" }), Value::Null));
    let mut last = chunk(json!({ "content": "" }), json!(finish));
    last["usage"] = json!({ "prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9 });
    chunks.push(last);
    sse(&chunks) + "data: [DONE]\n\n"
}

pub(super) fn column() -> Column {
    let mut huge = vec![tool(0, "abcdefghi", "")];
    huge.extend(pieces(&huge_arguments()).iter().map(|piece| tool(0, "null", piece)));
    let novel = json!([{ "type": "text", "text": "a" }, { "type": "reference", "reference_ids": [1] }]);
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
                answer(vec![thought("hm"), thought(" ö"), said("done")], "stop"),
                json!([{ "type": "thinking", "thinking": "hm ö" }, text("done")]),
                Stop,
            ),
        ),
        (Kind::Redacted, Cell::Impossible("Mistral sends its thinking as text, and has no other form of it")),
        (
            Kind::ParallelTools,
            stream(
                answer(
                    vec![
                        tool(0, "abcdefghi", "{\"a\":\"é\"}"),
                        tool(1, "bbbbbbbbb", "{\"b\""),
                        tool(1, "null", ":2}"),
                    ],
                    "tool_calls",
                ),
                json!([call("abcdefghi", json!({ "a": "é" })), call("bbbbbbbbb", json!({ "b": 2 }))]),
                ToolUse,
            ),
        ),
        (
            Kind::Refusal,
            Cell::Impossible(
                "Mistral's models refuse in words: there is no field and no finish reason for it",
            ),
        ),
        (Kind::Length, stream(answer(vec![said("cut")], "length"), json!([text("cut")]), Length)),
        (
            Kind::ErrorMidStream,
            failing(
                sse(&[
                    said("half é"),
                    json!({ "object": "error", "message": "it broke", "type": "server_error" }),
                ]),
                json!([text("half é")]),
                "it broke",
                FailureKind::Server,
            ),
        ),
        (
            Kind::UnknownEvents,
            stream(
                "event: novelty\ndata: {\"novelty\":1}\n\n".to_owned()
                    + &answer(vec![chunk(json!({ "content": novel, "novelty": 1 }), Value::Null)], "stop"),
                json!([text("a")]),
                Stop,
            ),
        ),
        (Kind::CommentLines, Cell::Reframed),
        (Kind::SplitUtf8, Cell::Reframed),
        (Kind::CrLf, Cell::Reframed),
        (
            Kind::HugeToolInput,
            stream(answer(huge, "tool_calls"), json!([call("abcdefghi", huge_arguments())]), ToolUse),
        ),
    ];
    Column {
        api: API,
        model: json!({ "reasoning": true }),
        cells,
        replay: |request, chunks| replay(request, Decoder::default(), chunks),
    }
}
