use sampi_protocol::data::StopReason::{Length, Stop, ToolUse};
use serde_json::{Value, json};

use super::{Cell, Column, Kind, call, failing, huge_arguments, sse, stream, text};
use crate::llm::FailureKind;
use crate::llm::google_generative_ai::Decoder;
use crate::llm::testing::replay;

fn chunk(parts: Value, finish: Option<&str>) -> Value {
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    json!({ "candidates": [candidate], "modelVersion": "m1-001", "responseId": "r1",
        "usageMetadata": { "promptTokenCount": 7, "candidatesTokenCount": 2 } })
}

fn answer(parts: &[Value], finish: &str) -> String {
    let (last, first) = parts.split_last().unwrap();
    let mut chunks: Vec<Value> = first.iter().map(|parts| chunk(parts.clone(), None)).collect();
    chunks.push(chunk(last.clone(), Some(finish)));
    sse(&chunks)
}

fn said(text: &str) -> Value {
    json!([{ "text": text }])
}

fn function(id: &str, arguments: Value) -> Value {
    json!({ "functionCall": { "name": "read", "args": arguments, "id": id } })
}

pub(super) fn column(api: &'static str) -> Column {
    let error = json!({ "error": { "code": 503, "message": "overloaded", "status": "UNAVAILABLE" } });
    let novel = json!([{ "executableCode": { "code": "x" } }, { "text": "a", "novelty": 1 }, {}]);
    let cells = vec![
        (
            Kind::Text,
            stream(
                answer(&[said("Hel"), said("lo é😀\u{2028}")], "STOP"),
                json!([text("Hello é😀\u{2028}")]),
                Stop,
            ),
        ),
        (
            Kind::Thinking,
            stream(
                answer(
                    &[
                        json!([{ "text": "hm", "thought": true }]),
                        json!([{ "text": " ö", "thought": true, "thoughtSignature": "c2ln" }]),
                        said("done"),
                    ],
                    "STOP",
                ),
                json!([{ "type": "thinking", "thinking": "hm ö", "thinkingSignature": "c2ln" }, text("done")]),
                Stop,
            ),
        ),
        (
            // Thoughts that are not shown leave their signature on the text behind them.
            Kind::Redacted,
            stream(
                answer(&[said("done"), json!([{ "text": "", "thoughtSignature": "RU5D" }])], "STOP"),
                json!([{ "type": "text", "text": "done", "textSignature": "RU5D" }]),
                Stop,
            ),
        ),
        (
            Kind::ParallelTools,
            stream(
                answer(
                    &[json!([function("x1", json!({ "a": "é" })), function("x2", json!({ "b": 2 }))])],
                    "STOP",
                ),
                json!([call("x1", json!({ "a": "é" })), call("x2", json!({ "b": 2 }))]),
                ToolUse,
            ),
        ),
        (
            Kind::Refusal,
            failing(
                answer(&[said("I")], "SAFETY"),
                json!([text("I")]),
                "Provider stopped with: SAFETY",
                FailureKind::ContentFilter,
            ),
        ),
        (Kind::Length, stream(answer(&[said("cut")], "MAX_TOKENS"), json!([text("cut")]), Length)),
        (
            Kind::ErrorMidStream,
            failing(
                sse(&[chunk(said("half é"), None), error.clone()]),
                json!([text("half é")]),
                &format!("got status: UNAVAILABLE. {error}"),
                FailureKind::Overloaded,
            ),
        ),
        (
            Kind::UnknownEvents,
            stream(
                "event: novelty\ndata: {\"novelty\":1}\n\n".to_owned() + &answer(&[novel], "STOP"),
                json!([text("a")]),
                Stop,
            ),
        ),
        (Kind::CommentLines, Cell::Reframed),
        (Kind::SplitUtf8, Cell::Reframed),
        (Kind::CrLf, Cell::Reframed),
        (
            Kind::HugeToolInput,
            stream(
                answer(&[json!([function("x1", huge_arguments())])], "STOP"),
                json!([call("x1", huge_arguments())]),
                ToolUse,
            ),
        ),
    ];
    Column {
        api,
        model: json!({ "id": "gemini-2.5-pro", "reasoning": true }),
        cells,
        replay: |request, chunks| replay(request, Decoder::default(), chunks),
    }
}
