use sampi_protocol::data::{AssistantMessage, StopReason, ThinkingLevel};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::{API, decode, request};
use crate::llm::testing::{answer, call, model, replay, result, system, user};
use crate::llm::{CacheRetention, Completion, FailureKind, ModelRequest};

fn ask(fields: Value, thinking: ThinkingLevel, messages: Value) -> ModelRequest {
    let mut all = json!({ "reasoning": true, "contextWindow": 0, "baseUrl": "http://h" });
    for (name, value) in fields.as_object().unwrap() {
        all[name] = value.clone();
    }
    let mut request = crate::llm::testing::request(model(API, all), thinking, messages);
    request.options.session_id = Some("sid".into());
    request
}

fn sent(messages: Value) -> Value {
    request::body(&ask(json!({}), ThinkingLevel::Off, messages))["messages"].clone()
}

#[test]
fn a_plain_request_is_that_of_pi() {
    let mut request = ask(json!({}), ThinkingLevel::Low, json!([system(), user("hi")]));
    assert_eq!(
        request::body(&request),
        json!({
            "model": "m1",
            "stream": true,
            "messages": [
                { "role": "system", "content": "<SYSTEM>" },
                { "role": "user", "content": [{ "type": "text", "text": "hi" }] },
            ],
            "tools": [{ "type": "function", "function": { "name": "read", "description": "reads",
                "parameters": { "type": "object", "required": ["path"],
                    "properties": { "path": { "type": "string" } } }, "strict": false } }],
            "max_tokens": 4096,
            "prompt_mode": "reasoning",
            "prompt_cache_key": "sid",
        })
    );
    let headers = |request: &ModelRequest| -> Vec<String> {
        let headers = request::headers(request).into_iter().skip(2);
        headers.map(|(name, value)| format!("{name}={}", value.expose_secret())).collect()
    };
    assert_eq!(headers(&request), ["authorization=Bearer k", "x-affinity=sid"]);
    request.options.cache_retention = CacheRetention::None;
    assert_eq!(headers(&request), ["authorization=Bearer k"]);
    assert_eq!(request::body(&request).get("prompt_cache_key"), None);
    let url = |base: &str| {
        request::post(&ask(json!({ "baseUrl": base }), ThinkingLevel::Off, json!([user("q")]))).unwrap().url
    };
    assert_eq!(url("http://h/"), "http://h/v1/chat/completions");
    assert_eq!(url("http://h/v1"), "http://h/v1/chat/completions");
}

#[test]
fn models_that_know_levels_are_told_one_and_others_to_think() {
    use ThinkingLevel::{High, Off};
    let fields = |fields: Value, level| {
        let body = request::body(&ask(fields, level, json!([user("q")])));
        (body["prompt_mode"].clone(), body["reasoning_effort"].clone())
    };
    let map = json!({ "thinkingLevelMap": { "high": "high", "off": "none" } });
    assert_eq!(fields(json!({}), High), (json!("reasoning"), Value::Null));
    assert_eq!(fields(json!({}), Off), (Value::Null, Value::Null));
    assert_eq!(fields(map.clone(), High), (Value::Null, json!("high")));
    assert_eq!(fields(map, Off), (Value::Null, json!("none")));
    assert_eq!(fields(json!({ "reasoning": false }), High), (Value::Null, Value::Null));
}

#[test]
fn a_turn_with_tools_becomes_calls_and_tool_messages() {
    let image = json!({ "type": "image", "data": "QUJD", "mimeType": "image/png" });
    let content = json!([{ "type": "thinking", "thinking": "t" }, { "type": "text", "text": "a" },
        call("abcdefghi", json!({ "path": "a" })), call("bbbbbbbbb", json!({}))]);
    let mut failed = result("bbbbbbbbb", json!([{ "type": "text", "text": "bad" }]));
    failed["isError"] = json!(true);
    let own = answer(API, "toolUse", content);
    let messages =
        json!([{ "role": "user", "content": "q" }, own, result("abcdefghi", json!([image])), failed]);
    let function = |id: &str, arguments: &str| json!({ "id": id, "type": "function", "function": { "name": "read", "arguments": arguments }, "index": 0 });
    assert_eq!(
        sent(messages),
        json!([
            { "role": "user", "content": "q" },
            { "role": "assistant", "prefix": false,
                "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": "t" }] },
                    { "type": "text", "text": "a" }],
                "tool_calls": [function("abcdefghi", "{\"path\":\"a\"}"), function("bbbbbbbbb", "{}")] },
            { "role": "tool", "name": "read", "content": [{ "type": "text", "text": "(see attached image)" },
                { "type": "image_url", "image_url": "data:image/png;base64,QUJD" }],
                "tool_call_id": "abcdefghi" },
            { "role": "tool", "name": "read", "content": [{ "type": "text", "text": "[tool error] bad" }],
                "tool_call_id": "bbbbbbbbb" },
        ])
    );
}

#[test]
fn ids_of_other_models_have_nine_letters_and_digits() {
    let id = |id: &str| {
        let mut foreign = answer("x", "toolUse", json!([call(id, json!({}))]));
        foreign["model"] = json!("other");
        let messages = sent(json!([user("q"), foreign]));
        assert_eq!(messages[1]["tool_calls"][0]["id"], messages[2]["tool_call_id"]);
        assert_eq!(messages[2]["content"][0]["text"], "[tool error] No result provided");
        messages[2]["tool_call_id"].as_str().unwrap().to_owned()
    };
    assert_eq!(id("toolu_01:x+y"), "toolu01xy");
    for odd in ["call_a|fc_0", "x", "", "call_0123456789"] {
        let made = id(odd);
        assert!(made.len() == 9 && made.chars().all(|c| c.is_ascii_alphanumeric()), "{made}");
    }
    assert_ne!(id("call_1"), id("call_2"));
}

fn chunk(delta: Value, finish: Value) -> String {
    let mut chunk = json!({ "id": "cm_1", "object": "chat.completion.chunk", "model": "m1",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
    if !finish.is_null() {
        chunk["usage"] = json!({ "prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110,
            "num_cached_tokens": 30 });
    }
    format!("data: {chunk}\n\n")
}

fn delta(delta: Value) -> String {
    chunk(delta, Value::Null)
}

fn decode(stream: &str) -> (Vec<String>, Completion) {
    let request = ask(json!({}), ThinkingLevel::Low, json!([user("q")]));
    replay(&request, decode::Decoder::default(), &[stream.as_bytes()])
}

fn content(message: &AssistantMessage) -> Value {
    serde_json::to_value(&message.content).unwrap()
}

fn full_stream() -> String {
    let thinking = |text: &str| json!({ "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": text }] }] });
    let call = |id: &str, index: u64, name: &str, arguments: &str| json!({ "id": id, "index": index, "function": { "name": name, "arguments": arguments } });
    delta(json!({ "role": "assistant", "content": "" }))
        + &delta(thinking("hm"))
        + &delta(thinking(" ö"))
        + &delta(json!({ "content": "A" }))
        + &delta(
            json!({ "content": [{ "type": "text", "text": "B😀" }, { "type": "reference", "reference_ids": [1] }] }),
        )
        + &delta(json!({ "content": "", "tool_calls": [call("abcdefghi", 0, "read", "{\"a\":1}"),
            call("bbbbbbbbb", 1, "bash", "{\"b\"")] }))
        + &delta(json!({ "tool_calls": [call("null", 1, "", ":2}")] }))
        + &chunk(json!({ "content": "" }), json!("tool_calls"))
        + "data: [DONE]\n\n"
}

#[test]
fn thinking_text_and_calls_become_blocks_in_their_order() {
    let (updates, end) = decode(&full_stream());
    assert_eq!(
        updates,
        [
            "start 0",
            "thinking_start 0",
            "thinking_delta 0 hm",
            "thinking_delta 0  ö",
            "thinking_end 0 hm ö",
            "text_start 1",
            "text_delta 1 A",
            "text_delta 1 B😀",
            "text_end 1 AB😀",
            "toolcall_start 2 abcdefghi read",
            "toolcall_delta 2 {\"a\":1}",
            "toolcall_start 3 bbbbbbbbb bash",
            "toolcall_delta 3 {\"b\"",
            "toolcall_delta 3 :2}",
            r#"toolcall_end 2 {"type":"toolCall","id":"abcdefghi","name":"read","arguments":{"a":1}}"#,
            r#"toolcall_end 3 {"type":"toolCall","id":"bbbbbbbbb","name":"bash","arguments":{"b":2}}"#,
        ]
    );
    assert_eq!(end.message.stop_reason, StopReason::ToolUse);
    assert_eq!(end.message.response_id.as_deref(), Some("cm_1"));
    let usage = end.message.usage;
    assert_eq!((usage.input, usage.output, usage.cache_read, usage.reasoning), (70, 10, 30, None));
}

#[test]
fn odd_calls_are_understood() {
    let calls = |calls: Value| {
        let stream = delta(json!({ "tool_calls": calls })) + &chunk(json!({}), json!("stop"));
        let message = decode(&stream).1.message;
        assert_eq!(message.stop_reason, StopReason::ToolUse);
        content(&message)
    };
    let object =
        calls(json!([{ "id": "aaaaaaaaa", "function": { "name": "read", "arguments": { "a": 1 } } }]));
    assert_eq!(object[0]["arguments"], json!({ "a": 1 }));
    let two = calls(json!([
        { "id": "aaaaaaaaa", "function": { "name": "read", "arguments": "{}" } },
        { "id": "bbbbbbbbb", "function": { "name": "read", "arguments": "{}" } },
    ]));
    assert_eq!((&two[0]["id"], &two[1]["id"]), (&json!("aaaaaaaaa"), &json!("bbbbbbbbb")));
    let nameless =
        calls(json!([{ "id": "null", "index": 0, "function": { "name": "read", "arguments": "{}" } }]));
    assert_eq!(nameless[0]["id"].as_str().unwrap().len(), 9);
}

#[test]
fn endings_become_stop_reasons_or_failures() {
    let finish =
        |reason: &str| decode(&(delta(json!({ "content": "x" })) + &chunk(json!({}), json!(reason)))).1;
    assert_eq!(finish("stop").message.stop_reason, StopReason::Stop);
    assert_eq!(finish("length").message.stop_reason, StopReason::Length);
    assert_eq!(finish("model_length").message.stop_reason, StopReason::Length);
    for (stream, text, kind) in [
        (
            chunk(json!({ "content": "x" }), json!("error")),
            "Provider stopped with: error (server error)",
            FailureKind::Server,
        ),
        (chunk(json!({}), json!("weird")), "Provider stopped with: weird", FailureKind::Other),
        (
            delta(json!({ "content": "x" })) + "data: [DONE]\n\n",
            "Mistral stream ended without a finish reason",
            FailureKind::Network,
        ),
        (String::new(), "Mistral stream ended without a finish reason", FailureKind::Network),
        (
            "data: {\"error\":{\"message\":\"boom\",\"type\":\"server_error\"}}\n\n".to_owned(),
            "boom",
            FailureKind::Server,
        ),
        (
            "data: {\"object\":\"error\",\"message\":\"no\",\"type\":\"invalid_request_error\"}\n\n"
                .to_owned(),
            "no",
            FailureKind::InvalidRequest,
        ),
    ] {
        let end = decode(&stream).1;
        assert_eq!(end.message.error_message.as_deref(), Some(text));
        assert_eq!(end.failure.unwrap().kind, kind, "{text}");
    }
    let end = decode("data: {nope\n\n").1;
    assert!(end.message.error_message.unwrap().contains("malformed server-sent event JSON"));
}

#[test]
fn error_bodies_become_texts() {
    use crate::llm::exchange::Decoder as _;
    let decoder = decode::Decoder::default();
    assert_eq!(
        decoder.error_text(400, "{ \"message\": \"bad\" }"),
        r#"Mistral API error (400): {"message":"bad"}"#
    );
    assert_eq!(decoder.error_text(429, "slow"), "Mistral API error (429): slow");
    assert_eq!(decoder.bare_error_text(500), "Mistral API error (500): Internal Server Error");
}
