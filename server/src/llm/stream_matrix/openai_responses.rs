use sampi_protocol::data::StopReason::{Length, Stop, ToolUse};
use serde_json::{Value, json};

use super::{Cell, Column, Kind, failing, huge_arguments, named_sse, pieces, stream};
use crate::llm::FailureKind;
use crate::llm::openai_responses::Decoder;
use crate::llm::testing::replay;

fn created() -> Value {
    json!({ "type": "response.created", "response": { "id": "resp_1", "status": "in_progress" } })
}

fn added(index: u64, item: &Value) -> Value {
    json!({ "type": "response.output_item.added", "output_index": index, "item": item })
}

fn done(index: u64, item: &Value) -> Value {
    json!({ "type": "response.output_item.done", "output_index": index, "item": item })
}

fn delta(kind: &str, index: u64, delta: &str) -> Value {
    json!({ "type": format!("response.{kind}.delta"), "output_index": index, "delta": delta })
}

fn message(parts: Value) -> Value {
    json!({ "id": "msg_1", "type": "message", "role": "assistant", "content": parts })
}

fn output(text: &str) -> Value {
    json!([{ "type": "output_text", "text": text, "annotations": [] }])
}

fn said(index: u64, texts: &[&str]) -> Vec<Value> {
    let mut events = vec![added(index, &message(json!([])))];
    events.extend(texts.iter().map(|text| delta("output_text", index, text)));
    events.push(done(index, &message(output(&texts.concat()))));
    events
}

fn function(n: u64, arguments: &str) -> Value {
    json!({ "id": format!("fc_{n}"), "type": "function_call", "call_id": format!("call_{n}"), "name": "read",
        "arguments": arguments })
}

fn reasoning(texts: &[&str]) -> Value {
    let part = |text: &&str| json!({ "type": "summary_text", "text": text });
    json!({ "id": "rs_1", "type": "reasoning", "summary": texts.iter().map(part).collect::<Vec<_>>(),
        "encrypted_content": "RU5D" })
}

fn ending(kind: &str, fields: Value) -> Value {
    let mut response = json!({ "id": "resp_1", "usage": { "input_tokens": 7, "output_tokens": 2 } });
    for (name, value) in fields.as_object().unwrap() {
        response[name] = value.clone();
    }
    json!({ "type": format!("response.{kind}"), "response": response })
}

fn answer(items: &[Vec<Value>]) -> String {
    let completed = ending("completed", json!({ "status": "completed" }));
    named_sse(&[vec![created()], items.concat(), vec![completed]].concat())
}

/// Text as a block, with the id of its item.
fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text, "textSignature": r#"{"v":1,"id":"msg_1"}"# })
}

fn thought(text: &str, item: &Value) -> Value {
    json!({ "type": "thinking", "thinking": text, "thinkingSignature": item.to_string() })
}

fn call(n: u64, arguments: Value) -> Value {
    json!({ "type": "toolCall", "id": format!("call_{n}|fc_{n}"), "name": "read", "arguments": arguments })
}

pub(super) fn column(api: &'static str) -> Column {
    let thinking = [
        added(0, &json!({ "id": "rs_1", "type": "reasoning", "summary": [] })),
        delta("reasoning_summary_text", 0, "hm"),
        delta("reasoning_summary_text", 0, " ö"),
        done(0, &reasoning(&["hm ö"])),
    ];
    let hidden = [added(0, &reasoning(&[])), done(0, &reasoning(&[]))];
    let tools = [
        added(0, &function(0, "")),
        added(1, &function(1, "")),
        delta("function_call_arguments", 0, "{\"a\""),
        delta("function_call_arguments", 1, "{\"b\":2}"),
        delta("function_call_arguments", 0, ":\"é\"}"),
        done(1, &function(1, "{\"b\":2}")),
        done(0, &function(0, "{\"a\":\"é\"}")),
    ];
    let refusal = [
        added(0, &message(json!([]))),
        delta("refusal", 0, "I can"),
        delta("refusal", 0, "not"),
        done(0, &message(json!([{ "type": "refusal", "refusal": "I cannot" }]))),
    ];
    let cut = [
        created(),
        added(0, &message(json!([]))),
        delta("output_text", 0, "cut"),
        ending(
            "incomplete",
            json!({ "status": "incomplete", "incomplete_details": { "reason": "max_output_tokens" } }),
        ),
    ];
    let failed = [
        created(),
        added(0, &message(json!([]))),
        delta("output_text", 0, "half é"),
        ending(
            "failed",
            json!({ "status": "failed", "error": { "code": "server_error", "message": "it broke" } }),
        ),
    ];
    let novel = [
        json!({ "type": "response.novelty", "x": [1] }),
        added(0, &json!({ "type": "web_search_call", "id": "ws_1" })),
        json!({ "type": "response.web_search_call.searching", "output_index": 0 }),
        done(0, &json!({ "type": "web_search_call", "id": "ws_1" })),
    ];
    let huge = huge_arguments();
    let mut huge_events = vec![added(0, &function(0, ""))];
    huge_events.extend(pieces(&huge).iter().map(|piece| delta("function_call_arguments", 0, piece)));
    huge_events.push(done(0, &function(0, &huge.to_string())));
    let cells = vec![
        (
            Kind::Text,
            stream(answer(&[said(0, &["Hel", "lo é😀\u{2028}"])]), json!([text("Hello é😀\u{2028}")]), Stop),
        ),
        (
            Kind::Thinking,
            stream(
                answer(&[thinking.to_vec(), said(1, &["done"])]),
                json!([thought("hm ö", &reasoning(&["hm ö"])), text("done")]),
                Stop,
            ),
        ),
        (
            Kind::Redacted,
            stream(
                answer(&[hidden.to_vec(), said(1, &["done"])]),
                json!([thought("", &reasoning(&[])), text("done")]),
                Stop,
            ),
        ),
        (
            Kind::ParallelTools,
            stream(
                answer(&[tools.to_vec()]),
                json!([call(0, json!({ "a": "é" })), call(1, json!({ "b": 2 }))]),
                ToolUse,
            ),
        ),
        (Kind::Refusal, stream(answer(&[refusal.to_vec()]), json!([text("I cannot")]), Stop)),
        (Kind::Length, stream(named_sse(&cut), json!([{ "type": "text", "text": "cut" }]), Length)),
        (
            Kind::ErrorMidStream,
            failing(
                named_sse(&failed),
                json!([{ "type": "text", "text": "half é" }]),
                "server_error: it broke",
                FailureKind::Server,
            ),
        ),
        (Kind::UnknownEvents, stream(answer(&[novel.to_vec(), said(1, &["a"])]), json!([text("a")]), Stop)),
        (Kind::CommentLines, Cell::Reframed),
        (Kind::SplitUtf8, Cell::Reframed),
        (Kind::CrLf, Cell::Reframed),
        (Kind::HugeToolInput, stream(answer(&[huge_events]), json!([call(0, huge)]), ToolUse)),
    ];
    Column {
        api,
        model: json!({ "reasoning": true }),
        cells,
        replay: |request, chunks| replay(request, Decoder::new("mock".into()), chunks),
    }
}
