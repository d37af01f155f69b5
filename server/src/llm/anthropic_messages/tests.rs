use sampi_protocol::data::{AssistantMessage, StopReason, ThinkingLevel};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::{API, decode, request};
use crate::llm::testing::{answer, call, model, replay, result, system, user};
use crate::llm::{CacheRetention, Completion, FailureKind, ModelRequest};

fn ask(fields: Value, thinking: ThinkingLevel, messages: Value) -> ModelRequest {
    let mut all = json!({ "baseUrl": "http://h", "reasoning": true, "maxTokens": 8192, "contextWindow": 200_000,
        "cost": { "input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75 } });
    for (name, value) in fields.as_object().unwrap() {
        all[name] = value.clone();
    }
    crate::llm::testing::request(model(API, all), thinking, messages)
}

fn sent(messages: Value) -> Value {
    request::body(&ask(json!({}), ThinkingLevel::High, messages))["messages"].clone()
}

fn mark() -> Value {
    json!({ "type": "ephemeral" })
}

#[test]
fn a_plain_request_is_that_of_pi_field_by_field_and_in_order() {
    let body = request::body(&ask(json!({}), ThinkingLevel::High, json!([system(), user("hi")])));
    let expected = json!({
        "model": "m1",
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "hi", "cache_control": mark() }] },
        ],
        "max_tokens": 8192,
        "stream": true,
        "system": [{ "type": "text", "text": "<SYSTEM>", "cache_control": mark() }],
        "tools": [{
            "name": "read", "description": "reads", "eager_input_streaming": true,
            "input_schema": { "type": "object", "properties": { "path": { "type": "string" } },
                "required": ["path"] },
            "cache_control": mark(),
        }],
        "thinking": { "type": "enabled", "budget_tokens": 7168, "display": "summarized" },
    });
    assert_eq!(serde_json::to_string(&body).unwrap(), serde_json::to_string(&expected).unwrap());
}

fn headers(request: &ModelRequest) -> Vec<(String, String)> {
    let headers = request::headers(request, None, &request::body(request)).into_iter();
    let ours = |name: &str| name == "accept" || name == "content-type" || name == "anthropic-version";
    headers
        .filter(|(name, _)| !ours(name))
        .map(|(name, value)| (name, value.expose_secret().to_owned()))
        .collect()
}

#[test]
fn the_headers_say_who_asks_and_what_is_wanted() {
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    };
    let interleaved = ("anthropic-beta", "interleaved-thinking-2025-05-14");
    let request = ask(json!({}), ThinkingLevel::Low, json!([user("q")]));
    assert_eq!(headers(&request), pairs(&[("x-api-key", "k"), interleaved]));
    assert_eq!(request::post(&request, None).unwrap().url, "http://h/v1/messages?beta=true");

    let mut token = ask(json!({}), ThinkingLevel::Off, json!([user("q")]));
    token.credentials.api_key = Some("sk-ant-oat01-x".to_owned().into());
    assert_eq!(
        headers(&token),
        pairs(&[("authorization", "Bearer sk-ant-oat01-x"), ("anthropic-beta", "oauth-2025-04-20")])
    );

    let mut bearer = ask(json!({}), ThinkingLevel::Off, json!([user("q")]));
    bearer.credentials.bearer = true;
    assert_eq!(headers(&bearer), pairs(&[("authorization", "Bearer k")]));

    let old =
        json!({ "compat": { "supportsEagerToolInputStreaming": false, "sendSessionAffinityHeaders": true } });
    let mut old = ask(old, ThinkingLevel::Low, json!([system(), user("q")]));
    old.options.session_id = Some("sid".into());
    assert_eq!(
        headers(&old),
        pairs(&[
            ("x-api-key", "k"),
            ("anthropic-beta", "fine-grained-tool-streaming-2025-05-14,interleaved-thinking-2025-05-14"),
            ("x-session-affinity", "sid"),
        ])
    );
    assert_eq!(request::body(&old)["tools"][0].get("eager_input_streaming"), None);

    let router = json!({ "provider": "openrouter", "baseUrl": "http://gateway.example" });
    let mut router = ask(router, ThinkingLevel::Off, json!([user("q")]));
    router.options.session_id = Some("sid".into());
    assert_eq!(headers(&router), pairs(&[("x-api-key", "k"), ("x-session-id", "sid")]));
}

#[test]
fn the_thinking_budget_leaves_room_for_the_answer() {
    let thinking = |max_tokens: u64, level, wanted: Option<u64>| {
        let mut request = ask(json!({ "maxTokens": max_tokens }), level, json!([user("q")]));
        request.options.max_tokens = wanted;
        let body = request::body(&request);
        (body["max_tokens"].as_u64().unwrap(), body["thinking"]["budget_tokens"].as_u64())
    };
    use ThinkingLevel::{High, Low, Medium, Minimal, Off, Xhigh};
    for (max_tokens, level, wanted, expected) in [
        (8192, Minimal, None, (8192, Some(1024))),
        (8192, Low, None, (8192, Some(2048))),
        (8192, Medium, None, (8192, Some(7168))),
        (8192, High, None, (8192, Some(7168))),
        (64000, Medium, None, (64000, Some(8192))),
        (64000, High, None, (64000, Some(16384))),
        (64000, Xhigh, None, (64000, Some(16384))),
        (1500, High, None, (1500, Some(476))),
        (1000, High, None, (1000, None)),
        (64000, High, Some(1000), (17384, Some(16360))),
        (64000, High, Some(20000), (36384, Some(16384))),
        (64000, Off, Some(1000), (1000, None)),
    ] {
        assert_eq!(thinking(max_tokens, level, wanted), expected, "{max_tokens} {level} {wanted:?}");
    }
    let mut own = ask(json!({ "maxTokens": 64000 }), High, json!([user("q")]));
    own.options.thinking_budgets.high = Some(9999);
    assert_eq!(request::body(&own)["thinking"]["budget_tokens"], 9999);
}

#[test]
fn thinking_can_be_off_adaptive_or_not_there_at_all() {
    let fields = |fields: Value, level| {
        let body = request::body(&ask(fields, level, json!([user("q")])));
        (body.get("thinking").cloned(), body.get("output_config").cloned())
    };
    use ThinkingLevel::{High, Low, Minimal, Off, Xhigh};
    let disabled = Some(json!({ "type": "disabled" }));
    assert_eq!(fields(json!({}), Off), (disabled, None));
    assert_eq!(fields(json!({ "thinkingLevelMap": { "off": null } }), Off), (None, None));
    assert_eq!(fields(json!({ "reasoning": false }), Low), (None, None));
    let adaptive =
        |map: Value| json!({ "compat": { "forceAdaptiveThinking": true }, "thinkingLevelMap": map });
    let thinking = Some(json!({ "type": "adaptive", "display": "summarized" }));
    for (map, level, effort) in [
        (json!({}), Minimal, "low"),
        (json!({}), High, "high"),
        (json!({}), Xhigh, "high"),
        (json!({ "xhigh": "xhigh" }), Xhigh, "xhigh"),
        (json!({ "low": "medium" }), Low, "medium"),
    ] {
        assert_eq!(fields(adaptive(map), level), (thinking.clone(), Some(json!({ "effort": effort }))));
    }
    let adaptive = ask(adaptive(json!({})), High, json!([user("q")]));
    assert!(!headers(&adaptive).iter().any(|(name, _)| name == "anthropic-beta"));
}

#[test]
fn the_results_of_one_turn_are_one_message_and_the_last_block_is_marked() {
    let messages = json!([
        user("q"),
        answer(
            API,
            "toolUse",
            json!([
                { "type": "text", "text": "Reading." },
                call("call_a", json!({ "path": "a.txt" })),
                call("call_b", json!({})),
            ])
        ),
        result("call_a", json!([{ "type": "text", "text": "hello\nworld\n" }])),
        result("call_b", json!([{ "type": "text", "text": "hi\n" }])),
    ]);
    assert_eq!(
        sent(messages),
        json!([
            { "role": "user", "content": [{ "type": "text", "text": "q" }] },
            { "role": "assistant", "content": [
                { "type": "text", "text": "Reading." },
                { "type": "tool_use", "id": "call_a", "name": "read", "input": { "path": "a.txt" } },
                { "type": "tool_use", "id": "call_b", "name": "read", "input": {} },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "call_a", "content": "hello\nworld\n",
                    "is_error": false },
                { "type": "tool_result", "tool_use_id": "call_b", "content": "hi\n", "is_error": false,
                    "cache_control": mark() },
            ] },
        ])
    );
}

#[test]
fn images_of_tools_stay_in_the_result_and_those_of_failed_tools_stand_behind_all_results() {
    let image = json!({ "type": "image", "data": "QUJD", "mimeType": "image/png" });
    let block =
        json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "QUJD" } });
    let mut failed = result("c1", json!([{ "type": "text", "text": "t" }, image]));
    failed["isError"] = json!(true);
    let messages = json!([
        user("q"),
        answer(API, "toolUse", json!([call("c1", json!({})), call("c2", json!({}))])),
        failed,
        result("c2", json!([image])),
        user("n"),
    ]);
    assert_eq!(
        sent(messages)[2]["content"],
        json!([
            { "type": "tool_result", "tool_use_id": "c1",
                "content": "t\n(image attached after the tool results)", "is_error": true },
            { "type": "tool_result", "tool_use_id": "c2",
                "content": [{ "type": "text", "text": "(see attached image)" }, block], "is_error": false },
            { "type": "text", "text": "Images from the error result of tool call c1 (read):" },
            block,
        ])
    );
}

#[test]
fn thinking_goes_back_with_its_signature_or_as_text() {
    let thinking = |fields: Value| {
        let mut block = json!({ "type": "thinking", "thinking": "t" });
        for (name, value) in fields.as_object().unwrap() {
            block[name] = value.clone();
        }
        let content = json!([block, { "type": "text", "text": "a" }]);
        sent(json!([user("q"), answer(API, "stop", content)]))[1]["content"][0].clone()
    };
    assert_eq!(
        thinking(json!({ "thinkingSignature": "sig" })),
        json!({ "type": "thinking", "thinking": "t", "signature": "sig" })
    );
    assert_eq!(
        thinking(json!({ "thinkingSignature": "ENC", "redacted": true })),
        json!({ "type": "redacted_thinking", "data": "ENC" })
    );
    assert_eq!(thinking(json!({})), json!({ "type": "text", "text": "t" }));
    assert_eq!(
        thinking(json!({ "thinking": "", "thinkingSignature": "" })),
        json!({ "type": "text", "text": "a" })
    );
}

#[test]
fn the_cache_is_kept_as_long_as_wanted() {
    let mut request = ask(json!({}), ThinkingLevel::Off, json!([system(), user("q")]));
    request.options.cache_retention = CacheRetention::Long;
    assert_eq!(
        request::body(&request)["system"][0]["cache_control"],
        json!({ "type": "ephemeral", "ttl": "1h" })
    );
    request.options.cache_retention = CacheRetention::None;
    assert!(!request::body(&request).to_string().contains("cache_control"));
}

fn event(kind: &str, mut fields: Value) -> String {
    fields["type"] = json!(kind);
    format!("event: {kind}\ndata: {fields}\n\n")
}

fn message_start(usage: Value) -> String {
    event(
        "message_start",
        json!({ "message": { "id": "msg_1", "type": "message", "role": "assistant",
        "model": "m1", "content": [], "stop_reason": null, "usage": usage } }),
    )
}

fn plain_start() -> String {
    message_start(json!({ "input_tokens": 100, "output_tokens": 1 }))
}

fn block(index: u64, start: Value, deltas: &[Value]) -> String {
    let mut text = event("content_block_start", json!({ "index": index, "content_block": start }));
    for delta in deltas {
        text += &event("content_block_delta", json!({ "index": index, "delta": delta }));
    }
    text + &event("content_block_stop", json!({ "index": index }))
}

fn text_block(index: u64, text: &str) -> String {
    block(index, json!({ "type": "text", "text": "" }), &[json!({ "type": "text_delta", "text": text })])
}

fn message_end(reason: Value) -> String {
    event("message_delta", json!({ "delta": { "stop_reason": reason }, "usage": { "output_tokens": 10 } }))
        + &event("message_stop", json!({}))
}

fn decode(stream: &str) -> (Vec<String>, Completion) {
    let request = ask(json!({}), ThinkingLevel::Off, json!([user("q")]));
    replay(&request, decode::Decoder::default(), &[stream.as_bytes()])
}

fn content(message: &AssistantMessage) -> Value {
    serde_json::to_value(&message.content).unwrap()
}

#[test]
fn thinking_text_and_calls_are_streamed_block_by_block() {
    let thinking = block(
        0,
        json!({ "type": "thinking", "thinking": "", "signature": "" }),
        &[
            json!({ "type": "thinking_delta", "thinking": "let me think" }),
            json!({ "type": "signature_delta", "signature": "c2ln" }),
            json!({ "type": "signature_delta", "signature": "bmF0dXJl" }),
        ],
    );
    let tool = block(
        2,
        json!({ "type": "tool_use", "id": "call_a", "name": "read", "input": {} }),
        &[
            json!({ "type": "input_json_delta", "partial_json": "" }),
            json!({ "type": "input_json_delta", "partial_json": "{\"path\":" }),
            json!({ "type": "input_json_delta", "partial_json": "\"a.txt\"}" }),
        ],
    );
    let stream = plain_start()
        + &event("ping", json!({}))
        + &thinking
        + &text_block(1, "Reading.")
        + &tool
        + &message_end(json!("tool_use"));
    let (updates, end) = decode(&stream);
    assert_eq!(
        updates,
        [
            "start 101",
            "thinking_start 0",
            "thinking_delta 0 let me think",
            "thinking_end 0 let me think",
            "text_start 1",
            "text_delta 1 Reading.",
            "text_end 1 Reading.",
            "toolcall_start 2 call_a read",
            "toolcall_delta 2 {\"path\":",
            "toolcall_delta 2 \"a.txt\"}",
            r#"toolcall_end 2 {"type":"toolCall","id":"call_a","name":"read","arguments":{"path":"a.txt"}}"#,
        ]
    );
    let message = end.message;
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    assert_eq!(message.raw_stop_reason.as_deref(), Some("tool_use"));
    assert_eq!(message.response_id.as_deref(), Some("msg_1"));
    assert_eq!(content(&message)[0]["thinkingSignature"], "c2lnbmF0dXJl");
    assert_eq!((message.usage.total_tokens, message.usage.cache_write1h), (110, Some(0)));
    assert_eq!(message.usage.cost.total, 0.00045000000000000004);
}

#[test]
fn usage_is_taken_from_both_ends_of_the_stream() {
    let stream =
        message_start(json!({ "input_tokens": 100, "output_tokens": 1, "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 30,
        "cache_creation": { "ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20 } }))
            + &event(
                "message_delta",
                json!({ "delta": { "stop_reason": "end_turn" }, "usage": {
            "input_tokens": 101, "output_tokens": 10, "cache_read_input_tokens": 21,
            "cache_creation_input_tokens": null, "output_tokens_details": { "thinking_tokens": 4 } } }),
            )
            + &event("message_stop", json!({}));
    let usage = decode(&stream).1.message.usage;
    assert_eq!((usage.input, usage.output, usage.cache_read, usage.cache_write), (101, 10, 21, 30));
    assert_eq!((usage.cache_write1h, usage.reasoning, usage.total_tokens), (Some(20), Some(4), 162));
    assert_eq!(usage.cost.total, 0.0006168);
}

#[test]
fn hidden_thinking_is_kept_and_unknown_blocks_and_events_are_skipped() {
    let stream = plain_start()
        + &block(0, json!({ "type": "redacted_thinking", "data": "ENC" }), &[])
        + &block(
            1,
            json!({ "type": "server_tool_use", "id": "s", "name": "web", "input": {} }),
            &[json!({ "type": "input_json_delta", "partial_json": "{}" })],
        )
        + &event("novelty", json!({ "a": 1 }))
        + &block(
            2,
            json!({ "type": "text", "text": "pre" }),
            &[
                json!({ "type": "text_delta", "text": "x" }),
                json!({ "type": "citations_delta", "citation": {} }),
            ],
        )
        + &message_end(json!("end_turn"));
    let (updates, end) = decode(&stream);
    assert_eq!(updates[1..3], ["thinking_start 0", "thinking_end 0 [Reasoning redacted]"]);
    assert_eq!(updates.last().unwrap(), "text_end 1 prex");
    assert_eq!(
        content(&end.message),
        json!([
            { "type": "thinking", "thinking": "[Reasoning redacted]", "thinkingSignature": "ENC",
                "redacted": true },
            { "type": "text", "text": "prex" },
        ])
    );
}

#[test]
fn stop_reasons_become_ours() {
    let end = |reason: Value| decode(&(plain_start() + &text_block(0, "x") + &message_end(reason))).1;
    for (reason, stop) in [
        ("end_turn", StopReason::Stop),
        ("stop_sequence", StopReason::Stop),
        ("pause_turn", StopReason::Stop),
        ("max_tokens", StopReason::Length),
        ("tool_use", StopReason::ToolUse),
    ] {
        assert_eq!(end(json!(reason)).message.stop_reason, stop, "{reason}");
    }
    for (reason, text, kind) in [
        (json!("refusal"), "The model refused to complete the request", FailureKind::ContentFilter),
        (json!("sensitive"), "Provider stopped with: sensitive", FailureKind::ContentFilter),
        (
            json!("model_context_window_exceeded"),
            "Unhandled stop reason: model_context_window_exceeded",
            FailureKind::Overflow,
        ),
        (json!("weird"), "Unhandled stop reason: weird", FailureKind::Other),
        (json!(null), "Anthropic stream ended without a stop reason", FailureKind::Network),
    ] {
        let end = end(reason);
        assert_eq!(end.message.stop_reason, StopReason::Error);
        assert_eq!(end.message.error_message.as_deref(), Some(text));
        assert_eq!(end.failure.unwrap().kind, kind, "{text}");
    }
    let stream = plain_start()
        + &event(
            "message_delta",
            json!({ "delta": { "stop_reason": "refusal",
            "stop_details": { "type": "refusal", "explanation": "because" } } }),
        )
        + &event("message_stop", json!({}));
    assert_eq!(decode(&stream).1.message.error_message.as_deref(), Some("because"));
}

#[test]
fn an_error_event_ends_the_stream_with_the_providers_words() {
    let error = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let start =
        event("content_block_start", json!({ "index": 0, "content_block": { "type": "text", "text": "" } }));
    let stream = plain_start() + &start + &format!("event: error\ndata: {error}\n\n");
    let (updates, end) = decode(&stream);
    assert_eq!(updates.last().unwrap(), "text_start 0");
    assert_eq!(end.message.error_message.as_deref(), Some(error));
    assert_eq!(end.failure.unwrap().kind, FailureKind::Overloaded);
}

#[test]
fn a_stream_that_is_cut_is_an_error_that_is_worth_another_try() {
    for stream in [String::new(), plain_start(), plain_start() + &text_block(0, "x")] {
        let end = decode(&stream).1;
        let text = "Anthropic stream ended before message_stop";
        assert_eq!(end.message.error_message.as_deref(), Some(text));
        assert!(end.failure.unwrap().kind.is_retryable());
    }
    let (_, end) = decode(&(plain_start() + "event: content_block_start\ndata: {nope\n\n"));
    assert!(end.message.error_message.unwrap().starts_with("Could not parse Anthropic SSE event"));
}

#[test]
fn half_of_a_call_is_kept_without_arguments_when_the_stream_is_cut() {
    let stream = plain_start()
        + &event(
            "content_block_start",
            json!({ "index": 0,
            "content_block": { "type": "tool_use", "id": "t", "name": "read", "input": {} } }),
        )
        + &event(
            "content_block_delta",
            json!({ "index": 0,
            "delta": { "type": "input_json_delta", "partial_json": "{\"a" } }),
        );
    let end = decode(&stream).1;
    assert_eq!(
        content(&end.message),
        json!([{ "type": "toolCall", "id": "t", "name": "read", "arguments": {} }])
    );
}

#[test]
fn error_bodies_become_texts() {
    use crate::llm::exchange::Decoder as _;
    let decoder = decode::Decoder::default();
    let body = r#"{"type":"error","error":{"type":"authentication_error","message":"bad key"}}"#;
    assert_eq!(decoder.error_text(401, body), format!("401 {body}"));
    assert_eq!(decoder.error_text(529, "plain"), "529 plain");
}

/// A model that others may stand in for, one of them with a price.
fn ask_with_fallbacks() -> ModelRequest {
    let others = json!([{ "provider": "anthropic", "model": "m2",
        "cost": { "input": 5, "output": 25, "cacheRead": 0.5, "cacheWrite": 6.25 } }, { "model": "m3" }, { "no": 1 }]);
    ask(json!({ "compat": { "allowedFallbackModels": others } }), ThinkingLevel::Off, json!([user("q")]))
}

#[test]
fn models_that_may_stand_in_are_named_and_paid_when_they_answer() {
    let request = ask_with_fallbacks();
    let body = request::body(&request);
    assert_eq!(body["fallbacks"], json!([{ "model": "m2" }, { "model": "m3" }]));
    let betas = headers(&request).into_iter().find(|(name, _)| name == "anthropic-beta");
    assert_eq!(betas.unwrap().1, "server-side-fallback-2026-07-01");

    let usage = json!({ "input_tokens": 1_000_000, "output_tokens": 1 });
    let start = |model: &str| {
        event("message_start", json!({ "message": { "id": "r", "model": model, "usage": usage } }))
    };
    let hop = event(
        "content_block_start",
        json!({ "index": 9, "content_block": { "type": "fallback", "from": { "model": "m1" },
            "to": { "model": "m2" } } }),
    );
    let run = |stream: String| {
        let stream = stream + &text_block(1, "ok") + &message_end(json!("end_turn"));
        replay(&request, decode::Decoder::of(&request), &[stream.as_bytes()]).1.message
    };
    // It refused before it said anything.
    let message = run(start("m2") + &hop);
    assert_eq!((message.response_model.as_deref(), message.usage.cost.input), (Some("m2"), 5.0));
    assert_eq!(message.model, "m1");
    // A model without a price is paid as the one that was asked.
    let message = run(start("m3"));
    assert_eq!((message.response_model.as_deref(), message.usage.cost.input), (Some("m3"), 3.0));
    // It refused in the middle: what it thought would not be taken again.
    let thinking = block(
        0,
        json!({ "type": "thinking", "thinking": "", "signature": "" }),
        &[
            json!({ "type": "thinking_delta", "thinking": "so" }),
            json!({ "type": "signature_delta", "signature": "c2ln" }),
        ],
    );
    let message = run(start("m1") + &thinking + &hop);
    assert_eq!((message.response_model.as_deref(), message.usage.cost.input), (Some("m2"), 5.0));
    assert_eq!(
        content(&message),
        json!([{ "type": "thinking", "thinking": "so" }, { "type": "text", "text": "ok" }])
    );
    assert_eq!(message.stop_reason, StopReason::Stop);
}
