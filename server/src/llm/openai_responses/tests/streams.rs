use sampi_protocol::data::{AssistantMessage, StopReason, ThinkingLevel};
use serde_json::{Value, json};

use super::super::Decoder;
use super::ask;
use crate::llm::testing::{replay, user};
use crate::llm::{Completion, FailureKind};

fn event(kind: &str, fields: Value) -> String {
    let mut data = json!({ "type": kind });
    for (name, value) in fields.as_object().unwrap() {
        data[name] = value.clone();
    }
    format!("event: {kind}\ndata: {data}\n\n")
}

fn created() -> String {
    event("response.created", json!({ "response": { "id": "resp_1", "status": "in_progress" } }))
}

fn added(index: u64, item: Value) -> String {
    event("response.output_item.added", json!({ "output_index": index, "item": item }))
}

fn done(index: u64, item: Value) -> String {
    event("response.output_item.done", json!({ "output_index": index, "item": item }))
}

fn delta(kind: &str, index: u64, delta: &str) -> String {
    event(&format!("response.{kind}.delta"), json!({ "output_index": index, "delta": delta }))
}

fn completed(status: &str, fields: Value) -> String {
    let mut response = json!({ "id": "resp_1", "status": status, "usage": {
        "input_tokens": 100, "output_tokens": 10, "total_tokens": 110,
        "input_tokens_details": { "cached_tokens": 30 }, "output_tokens_details": { "reasoning_tokens": 4 } } });
    for (name, value) in fields.as_object().unwrap() {
        response[name] = value.clone();
    }
    event("response.completed", json!({ "response": response }))
}

fn message(parts: Value) -> Value {
    json!({ "id": "msg_1", "type": "message", "role": "assistant", "content": parts })
}

fn said(text: &str) -> Value {
    json!([{ "type": "output_text", "text": text, "annotations": [] }])
}

fn function(n: u64, arguments: &str) -> Value {
    json!({ "id": format!("fc_{n}"), "type": "function_call", "call_id": format!("call_{n}"), "name": "read",
        "arguments": arguments })
}

fn decode(stream: &str) -> (Vec<String>, Completion) {
    let request = ask(json!({}), ThinkingLevel::Low, json!([user("q")]));
    replay(&request, Decoder::new("mock".into()), &[stream.as_bytes()])
}

fn content(message: &AssistantMessage) -> Value {
    serde_json::to_value(&message.content).unwrap()
}

fn full_stream() -> String {
    let summary = |index: u64, text: &str| {
        event("response.reasoning_summary_part.added", json!({ "output_index": 0, "summary_index": index }))
            + &delta("reasoning_summary_text", 0, text)
            + &event("response.reasoning_summary_part.done", json!({ "output_index": 0 }))
    };
    created()
        + &added(0, json!({ "id": "rs_1", "type": "reasoning", "summary": [] }))
        + &summary(0, "öne")
        + &summary(1, "two")
        + &done(
            0,
            json!({ "id": "rs_1", "type": "reasoning", "summary": [{ "type": "summary_text", "text": "öne" },
                { "type": "summary_text", "text": "two" }], "encrypted_content": "E" }),
        )
        + &added(1, message(json!([])))
        + &event("response.content_part.added", json!({ "output_index": 1, "part": {} }))
        + &delta("output_text", 1, "Hel")
        + &delta("output_text", 1, "lo 😀")
        + &done(1, message(said("Hello 😀")))
        + &added(2, function(0, ""))
        + &added(3, function(1, ""))
        + &delta("function_call_arguments", 2, "{\"a\"")
        + &delta("function_call_arguments", 3, "{\"b\"")
        + &delta("function_call_arguments", 2, ":1}")
        + &event(
            "response.function_call_arguments.done",
            json!({ "output_index": 3, "arguments": "{\"b\":2}" }),
        )
        + &done(3, function(1, "{\"b\":2}"))
        + &done(2, function(0, "{\"a\":1}"))
        + &completed("completed", json!({}))
}

#[test]
fn thinking_text_and_parallel_calls_stream_side_by_side() {
    let (updates, end) = decode(&full_stream());
    let call = |n: u64, arguments: &str| {
        format!(r#"{{"type":"toolCall","id":"call_{n}|fc_{n}","name":"read","arguments":{arguments}}}"#)
    };
    assert_eq!(
        updates,
        [
            "start 0",
            "thinking_start 0",
            "thinking_delta 0 öne",
            "thinking_delta 0 \n\n",
            "thinking_delta 0 two",
            "thinking_delta 0 \n\n",
            "thinking_end 0 öne\n\ntwo",
            "text_start 1",
            "text_delta 1 Hel",
            "text_delta 1 lo 😀",
            "text_end 1 Hello 😀",
            "toolcall_start 2 call_0|fc_0 read",
            "toolcall_start 3 call_1|fc_1 read",
            "toolcall_delta 2 {\"a\"",
            "toolcall_delta 3 {\"b\"",
            "toolcall_delta 2 :1}",
            "toolcall_delta 3 :2}",
            &format!("toolcall_end 3 {}", call(1, "{\"b\":2}")),
            &format!("toolcall_end 2 {}", call(0, "{\"a\":1}")),
        ]
    );
    let message = end.message;
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    assert_eq!(message.raw_stop_reason.as_deref(), Some("completed"));
    assert_eq!(message.response_id.as_deref(), Some("resp_1"));
    let usage = &message.usage;
    assert_eq!((usage.input, usage.output, usage.cache_read, usage.reasoning), (70, 10, 30, Some(4)));
    assert_eq!(usage.total_tokens, 110);
    let content = content(&message);
    assert_eq!(
        content[0]["thinkingSignature"],
        r#"{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"öne"},{"type":"summary_text","text":"two"}],"encrypted_content":"E"}"#
    );
    assert_eq!(content[1]["textSignature"], r#"{"v":1,"id":"msg_1"}"#);
}

#[test]
fn what_comes_only_with_the_end_of_an_item_is_kept() {
    let end = |items: String| decode(&(created() + &items + &completed("completed", json!({})))).1.message;
    for (items, expected) in [
        (
            done(0, message(said("Hello"))),
            json!([{ "type": "text", "text": "Hello",
            "textSignature": "{\"v\":1,\"id\":\"msg_1\"}" }]),
        ),
        (
            added(0, message(json!([]))) + &delta("output_text", 0, "Hel") + &done(0, message(said("Hello"))),
            json!([{ "type": "text", "text": "Hello", "textSignature": "{\"v\":1,\"id\":\"msg_1\"}" }]),
        ),
        (
            added(0, message(json!([]))) + &delta("output_text", 0, "Hel") + &done(0, message(json!([]))),
            json!([{ "type": "text", "text": "Hel", "textSignature": "{\"v\":1,\"id\":\"msg_1\"}" }]),
        ),
        (
            done(0, function(0, "{\"a\":1}")),
            json!([{ "type": "toolCall", "id": "call_0|fc_0", "name": "read", "arguments": { "a": 1 } }]),
        ),
        (
            added(0, function(0, "{\"a\":1}")) + &done(0, function(0, "")),
            json!([{ "type": "toolCall", "id": "call_0|fc_0", "name": "read", "arguments": { "a": 1 } }]),
        ),
        (
            event(
                "response.output_item.done",
                json!({ "item": { "type": "function_call", "call_id": "c",
            "name": "read", "arguments": "{}", "namespace": "ns" } }),
            ),
            json!([{ "type": "toolCall", "id": "c", "name": "read", "arguments": {}, "namespace": "ns" }]),
        ),
        (
            added(0, json!({ "type": "reasoning", "id": "rs_1", "summary": [] }))
                + &delta("reasoning_text", 0, "raw")
                + &done(
                    0,
                    json!({ "id": "rs_1", "type": "reasoning", "content": [{ "type": "reasoning_text", "text": "raw" }] }),
                ),
            json!([{ "type": "thinking", "thinking": "raw", "thinkingSignature":
                "{\"id\":\"rs_1\",\"type\":\"reasoning\",\"content\":[{\"type\":\"reasoning_text\",\"text\":\"raw\"}]}" }]),
        ),
        (
            added(0, json!({ "type": "web_search_call", "id": "ws_1" }))
                + &delta("web_search", 0, "x")
                + &event("response.novelty", json!({ "a": [1] }))
                + &done(0, json!({ "type": "web_search_call", "id": "ws_1" })),
            json!([]),
        ),
    ] {
        assert_eq!(content(&end(items.clone())), expected, "{items}");
    }
}

#[test]
fn a_refusal_is_the_models_text() {
    let stream = created()
        + &added(0, message(json!([])))
        + &delta("refusal", 0, "I can")
        + &delta("refusal", 0, "not")
        + &done(0, message(json!([{ "type": "refusal", "refusal": "I cannot" }])))
        + &completed("completed", json!({}));
    let (updates, end) = decode(&stream);
    assert_eq!(updates.last().unwrap(), "text_end 0 I cannot");
    assert_eq!(end.message.stop_reason, StopReason::Stop);
}

#[test]
fn endings_become_stop_reasons() {
    let open = created() + &added(0, message(json!([]))) + &delta("output_text", 0, "Hel");
    let incomplete = |reason: &str| {
        let response = json!({ "response": { "id": "resp_1", "status": "incomplete",
            "incomplete_details": { "reason": reason } } });
        decode(&(open.clone() + &event("response.incomplete", response)))
    };
    let (updates, end) = incomplete("max_output_tokens");
    assert_eq!(updates.last().unwrap(), "text_end 0 Hel");
    assert_eq!(end.message.stop_reason, StopReason::Length);
    assert_eq!(end.message.raw_stop_reason.as_deref(), Some("incomplete.max_output_tokens"));
    let end = incomplete("content_filter").1;
    assert_eq!(end.message.error_message.as_deref(), Some("Response incomplete: content_filter"));
    assert_eq!(end.failure.unwrap().kind, FailureKind::ContentFilter);

    let end = |status: &str| decode(&(open.clone() + &completed(status, json!({})))).1;
    assert_eq!(end("completed").message.stop_reason, StopReason::Stop);
    let text = "Response incomplete without a provider reason";
    assert_eq!(end("incomplete").message.error_message.as_deref(), Some(text));
    assert_eq!(end("cancelled").message.error_message.as_deref(), Some("An unknown error occurred"));
}

#[test]
fn failures_end_the_stream_with_the_providers_words() {
    let failed = |fields: Value| {
        let mut response = json!({ "id": "resp_1", "status": "failed" });
        for (name, value) in fields.as_object().unwrap() {
            response[name] = value.clone();
        }
        created() + &event("response.failed", json!({ "response": response }))
    };
    for (stream, text, kind) in [
        (
            failed(json!({ "error": { "code": "server_error", "message": "it broke" } })),
            "server_error: it broke",
            FailureKind::Server,
        ),
        (
            failed(json!({ "error": { "code": "rate_limit_exceeded", "message": "slow" } })),
            "rate_limit_exceeded: slow",
            FailureKind::RateLimit,
        ),
        (failed(json!({})), "Unknown error (no error details in response)", FailureKind::Other),
        (
            failed(json!({ "error": null, "incomplete_details": { "reason": "content_filter" } })),
            "incomplete: content_filter",
            FailureKind::ContentFilter,
        ),
        (
            created() + &event("error", json!({ "code": "rate_limit_exceeded", "message": "slow" })),
            "slow",
            FailureKind::RateLimit,
        ),
        (
            event("error", json!({ "error": { "type": "server_error", "message": "nested" } })),
            "nested",
            FailureKind::Server,
        ),
        (
            event("error", json!({ "error": { "code": "context_length_exceeded", "message": "long" } })),
            "long",
            FailureKind::Overflow,
        ),
    ] {
        let end = decode(&stream).1;
        assert_eq!(end.message.stop_reason, StopReason::Error);
        assert_eq!(end.message.error_message.as_deref(), Some(text));
        assert_eq!(end.failure.unwrap().kind, kind, "{text}");
    }
}

#[test]
fn a_stream_that_is_cut_is_an_error_that_is_worth_another_try() {
    let call = added(0, function(0, "")) + &delta("function_call_arguments", 0, "{\"a");
    for stream in [String::new(), created(), created() + &call] {
        let end = decode(&stream).1;
        let text = "OpenAI Responses stream ended before a terminal response event";
        assert_eq!(end.message.error_message.as_deref(), Some(text));
        assert!(end.failure.unwrap().kind.is_retryable());
    }
    let end = decode(&(created() + &call)).1;
    assert_eq!(
        content(&end.message),
        json!([{ "type": "toolCall", "id": "call_0|fc_0", "name": "read", "arguments": {} }])
    );
    let end = decode("data: {nope\n\n").1;
    assert!(end.message.error_message.unwrap().contains("malformed server-sent event JSON"));
}

#[test]
fn a_surrogate_that_stands_alone_does_not_end_the_answer() {
    let stream = created()
        + "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"id\":\"r\"}}\n\n"
        + "data: {\"type\":\"response.reasoning_text.delta\",\"output_index\":0,\"delta\":\"\\ud83d!\"}\n\n"
        + "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"id\":\"r\",\"content\":[{\"text\":\"\\ud83d!\"}]}}\n\n"
        + &completed("completed", json!({}));
    let end = decode(&stream).1;
    assert_eq!(end.message.stop_reason, StopReason::Stop);
    assert_eq!(content(&end.message)[0]["thinking"], "\u{fffd}!");
}

#[test]
fn error_bodies_become_texts() {
    use crate::llm::exchange::Decoder as _;
    let decoder = Decoder::new("OpenAI".into());
    for (status, body, text) in [
        (400, r#"{"error":{"message":"bad"}}"#, r#"OpenAI API error (400): {"message":"bad"}"#),
        (400, r#"{"error":"flat"}"#, r#"OpenAI API error (400): 400 "flat""#),
        (400, r#"{"detail":"no"}"#, r#"OpenAI API error (400): 400 {"detail":"no"}"#),
        (502, "<html>", "OpenAI API error (502): 502 <html>"),
    ] {
        assert_eq!(decoder.error_text(status, body), text);
    }
    assert_eq!(decoder.bare_error_text(500), "OpenAI API error (500): 500 status code (no body)");
}

#[test]
fn twenty_thousand_deltas_are_decoded() {
    let mut stream = created() + &added(0, message(json!([])));
    for _ in 0..20_000 {
        stream.push_str(&delta("output_text", 0, "xxxxxxxx"));
    }
    stream += &completed("completed", json!({}));
    let (updates, end) = decode(&stream);
    assert_eq!(updates.len(), 20_003);
    assert_eq!(content(&end.message)[0]["text"].as_str().unwrap().len(), 160_000);
}
