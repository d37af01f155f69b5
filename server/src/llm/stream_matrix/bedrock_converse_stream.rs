use sampi_protocol::data::StopReason::{Length, Stop, ToolUse};
use serde_json::{Value, json};

use super::{Cell, Column, Kind, call, failing, huge_arguments, pieces, stream, text};
use crate::llm::FailureKind;
use crate::llm::bedrock_converse_stream::{API, Decoder};
use crate::llm::event_stream::message;
use crate::llm::testing::replay;

type Event = (&'static str, Value);

fn frames(events: &[Event]) -> Vec<u8> {
    let frame = |(name, data): &Event| match name.ends_with("Exception") {
        true => message(&[(":message-type", "exception"), (":exception-type", name)], &data.to_string()),
        false => message(&[(":message-type", "event"), (":event-type", name)], &data.to_string()),
    };
    events.iter().flat_map(frame).collect()
}

fn delta(index: u64, delta: Value) -> Event {
    ("contentBlockDelta", json!({ "contentBlockIndex": index, "delta": delta, "p": "abc" }))
}

fn stop(index: u64) -> Event {
    ("contentBlockStop", json!({ "contentBlockIndex": index }))
}

fn start() -> Event {
    ("messageStart", json!({ "role": "assistant" }))
}

fn said(index: u64, texts: &[&str]) -> Vec<Event> {
    let mut events: Vec<Event> = texts.iter().map(|text| delta(index, json!({ "text": text }))).collect();
    events.push(stop(index));
    events
}

fn tool(index: u64, id: &str, pieces: &[String]) -> Vec<Event> {
    let start = json!({ "toolUse": { "toolUseId": id, "name": "read" } });
    let mut events = vec![("contentBlockStart", json!({ "contentBlockIndex": index, "start": start }))];
    events.extend(pieces.iter().map(|piece| delta(index, json!({ "toolUse": { "input": piece } }))));
    events.push(stop(index));
    events
}

fn answer(blocks: &[Vec<Event>], reason: &str) -> Vec<u8> {
    let mut events = vec![start()];
    events.extend(blocks.concat());
    events.push(("messageStop", json!({ "stopReason": reason })));
    events.push(("metadata", json!({ "usage": { "inputTokens": 7, "outputTokens": 2, "totalTokens": 9 } })));
    frames(&events)
}

pub(super) fn column() -> Column {
    let thinking = vec![
        delta(0, json!({ "reasoningContent": { "text": "hm" } })),
        delta(0, json!({ "reasoningContent": { "text": " ö" } })),
        delta(0, json!({ "reasoningContent": { "signature": "c2ln" } })),
        stop(0),
    ];
    let hidden = vec![delta(0, json!({ "reasoningContent": { "redactedContent": "RU5D" } })), stop(0)];
    let half = [
        vec![start()],
        said(0, &["half é"]),
        vec![("modelStreamErrorException", json!({ "message": "it broke" }))],
    ]
    .concat();
    let novel = vec![
        ("novelty", json!({ "x": [1] })),
        delta(0, json!({ "novelty": 1 })),
        delta(0, json!({ "text": "a" })),
        stop(0),
    ];
    let binary = "Bedrock's events are binary frames, which have no lines";
    let cells = vec![
        (
            Kind::Text,
            stream(
                answer(&[said(0, &["Hel", "lo é😀\u{2028}"])], "end_turn"),
                json!([text("Hello é😀\u{2028}")]),
                Stop,
            ),
        ),
        (
            Kind::Thinking,
            stream(
                answer(&[thinking, said(1, &["done"])], "end_turn"),
                json!([{ "type": "thinking", "thinking": "hm ö", "thinkingSignature": "c2ln" }, text("done")]),
                Stop,
            ),
        ),
        (
            Kind::Redacted,
            stream(
                answer(&[hidden, said(1, &["done"])], "end_turn"),
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
                        tool(0, "tooluse_a", &["{\"a\"".to_owned(), ":\"é\"}".to_owned()]),
                        tool(1, "tooluse_b", &["{\"b\":2}".to_owned()]),
                    ],
                    "tool_use",
                ),
                json!([call("tooluse_a", json!({ "a": "é" })), call("tooluse_b", json!({ "b": 2 }))]),
                ToolUse,
            ),
        ),
        (
            Kind::Refusal,
            failing(
                answer(&[said(0, &["I"])], "guardrail_intervened"),
                json!([text("I")]),
                "Provider stopped with: guardrail_intervened",
                FailureKind::ContentFilter,
            ),
        ),
        (Kind::Length, stream(answer(&[said(0, &["cut"])], "max_tokens"), json!([text("cut")]), Length)),
        (
            Kind::ErrorMidStream,
            failing(
                frames(&half),
                json!([text("half é")]),
                "Model stream error: it broke",
                FailureKind::Server,
            ),
        ),
        (Kind::UnknownEvents, stream(answer(&[novel], "end_turn"), json!([text("a")]), Stop)),
        (Kind::CommentLines, Cell::Impossible(binary)),
        (Kind::SplitUtf8, Cell::Reframed),
        (Kind::CrLf, Cell::Impossible(binary)),
        (
            Kind::HugeToolInput,
            stream(
                answer(&[tool(0, "tooluse_a", &pieces(&huge_arguments()))], "tool_use"),
                json!([call("tooluse_a", huge_arguments())]),
                ToolUse,
            ),
        ),
    ];
    Column {
        api: API,
        model: json!({ "id": "anthropic.claude-sonnet-4-v1:0", "reasoning": true }),
        cells,
        replay: |request, chunks| replay(request, Decoder::default(), chunks),
    }
}
