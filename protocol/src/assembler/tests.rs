use serde_json::{Value, json};

use super::*;

fn event(value: Value) -> SessionEvent {
    SessionEvent::read(&value.to_string()).unwrap()
}

fn update(inner: Value) -> SessionEvent {
    event(json!({ "type": "message_update", "usage": { "output": 1 }, "assistantMessageEvent": inner }))
}

fn assistant(content: Value, stop_reason: &str) -> Value {
    json!({
        "role": "assistant", "content": content, "api": "a", "provider": "p", "model": "m",
        "stopReason": stop_reason, "timestamp": 1,
    })
}

fn apply_all(assembler: &mut MessageAssembler, events: &[Value]) {
    for inner in events {
        assembler.apply(&update(inner.clone()));
    }
}

fn content(assembler: &MessageAssembler) -> Value {
    serde_json::to_value(&assembler.message().unwrap().content).unwrap()
}

#[test]
fn deltas_grow_the_message_and_the_end_of_a_block_replaces_them() {
    let mut assembler = MessageAssembler::new();
    let start = event(json!({ "type": "message_start", "message": assistant(json!([]), "pending") }));
    assert_eq!(assembler.apply(&start), Assembled::Started);
    apply_all(
        &mut assembler,
        &[
            json!({ "type": "thinking_start", "contentIndex": 0 }),
            json!({ "type": "thinking_delta", "contentIndex": 0, "delta": "hm" }),
            json!({ "type": "text_start", "contentIndex": 1 }),
            json!({ "type": "text_delta", "contentIndex": 1, "delta": "Hel" }),
            json!({ "type": "text_delta", "contentIndex": 1, "delta": "lo" }),
        ],
    );
    let live = json!([{ "type": "thinking", "thinking": "hm" }, { "type": "text", "text": "Hello" }]);
    assert_eq!(content(&assembler), live);
    assert!(assembler.is_streaming());
    let end = update(json!({ "type": "text_end", "contentIndex": 1, "content": "Hello!" }));
    assert_eq!(assembler.apply(&end), Assembled::Block(1));
    assert_eq!(assembler.message().unwrap().text(), "Hello!");
    assert_eq!(assembler.message().unwrap().usage.output, 1);
}

#[test]
fn the_arguments_of_a_tool_call_are_text_until_it_ends() {
    let mut assembler = MessageAssembler::new();
    apply_all(
        &mut assembler,
        &[
            json!({ "type": "toolcall_start", "contentIndex": 0, "id": "c", "toolName": "read" }),
            json!({ "type": "toolcall_delta", "contentIndex": 0, "delta": "{\"path\":" }),
        ],
    );
    assert_eq!(assembler.arguments_text(0), Some("{\"path\":"));
    let call = json!({ "type": "toolCall", "id": "c", "name": "read", "arguments": { "path": "x" } });
    apply_all(&mut assembler, &[json!({ "type": "toolcall_end", "contentIndex": 0, "toolCall": call })]);
    assert_eq!(assembler.arguments_text(0), None);
    assert_eq!(content(&assembler), json!([call]));
}

#[test]
fn the_end_of_the_message_replaces_everything_and_the_next_one_starts_anew() {
    let mut assembler = MessageAssembler::new();
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    apply_all(&mut assembler, &[json!({ "type": "text_delta", "contentIndex": 2, "delta": "x" })]);
    assert_eq!(assembler.message().unwrap().content.len(), 3, "blocks that were missed are empty");
    let end = event(json!({ "type": "message_end", "message": assistant(text("whole"), "stop") }));
    assert_eq!(assembler.apply(&end), Assembled::Ended);
    assert_eq!(content(&assembler), text("whole"));
    assert!(!assembler.is_streaming());
    apply_all(&mut assembler, &[json!({ "type": "text_delta", "contentIndex": 0, "delta": "next" })]);
    assert_eq!(content(&assembler), text("next"));
}

#[test]
fn messages_of_others_and_absurd_indexes_change_nothing() {
    let mut assembler = MessageAssembler::new();
    let user = json!({ "role": "user", "content": "x", "timestamp": 1 });
    assert_eq!(
        assembler.apply(&event(json!({ "type": "message_end", "message": user }))),
        Assembled::Unchanged
    );
    let far = update(json!({ "type": "text_delta", "contentIndex": u64::MAX, "delta": "x" }));
    assert_eq!(assembler.apply(&far), Assembled::Unchanged);
}
