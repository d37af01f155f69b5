use sampi_protocol::data::{AssistantMessage, StopReason, ThinkingLevel};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::compat::Compat;
use super::{API, Decoder, Service, request};
use crate::llm::testing::{answer, call, model, replay, result, system, user};
use crate::llm::{CacheRetention, Completion, FailureKind, ModelRequest};

fn ask(fields: Value, thinking: ThinkingLevel, messages: Value) -> ModelRequest {
    let mut all = json!({ "reasoning": true, "maxTokens": 8192, "contextWindow": 200_000 });
    for (name, value) in fields.as_object().unwrap() {
        all[name] = value.clone();
    }
    crate::llm::testing::request(model(API, all), thinking, messages)
}

fn compat(request: &ModelRequest) -> Compat {
    Compat::of(&request.model, Service::OpenAi)
}

fn body(request: &ModelRequest) -> Value {
    request::body(request, &compat(request), &request.model.id)
}

/// What is sent of a conversation.
fn sent(fields: Value, messages: Value) -> Value {
    body(&ask(fields, ThinkingLevel::Low, messages))["input"].clone()
}

fn image() -> Value {
    json!({ "type": "image", "data": "QUJD", "mimeType": "image/png" })
}

fn text(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

#[test]
fn a_plain_request_is_that_of_pi_field_by_field_and_in_order() {
    let mut request = ask(json!({}), ThinkingLevel::Low, json!([system(), user("hi")]));
    request.options.session_id = Some("sid".into());
    let expected = json!({
        "model": "m1",
        "input": [
            { "role": "developer", "content": "<SYSTEM>" },
            { "role": "user", "content": [{ "type": "input_text", "text": "hi" }] },
        ],
        "stream": true,
        "prompt_cache_key": "sid",
        "store": false,
        "max_output_tokens": 8192,
        "tools": [{ "type": "function", "name": "read", "description": "reads", "parameters": {
            "type": "object", "required": ["path"], "properties": { "path": { "type": "string" } } } }],
        "reasoning": { "effort": "low", "summary": "auto" },
        "include": ["reasoning.encrypted_content"],
    });
    assert_eq!(serde_json::to_string(&body(&request)).unwrap(), serde_json::to_string(&expected).unwrap());
    assert_eq!(request::post(&request).unwrap().url, "http://h/v1/responses");
}

#[test]
fn thinking_levels_are_sent_as_the_model_knows_them() {
    use ThinkingLevel::{High, Max, Minimal, Off, Xhigh};
    let reasoning = |fields: Value, level| {
        let body = body(&ask(fields, level, json!([user("q")])));
        (body["reasoning"]["effort"].clone(), body.get("include").is_some())
    };
    for (fields, level, effort, include) in [
        (json!({}), Off, json!("none"), false),
        (json!({ "thinkingLevelMap": { "off": "zero" } }), Off, json!("zero"), false),
        (json!({ "thinkingLevelMap": { "off": null } }), Off, Value::Null, false),
        (json!({}), Minimal, json!("minimal"), true),
        (json!({}), Xhigh, json!("high"), true),
        (json!({}), Max, json!("high"), true),
        (json!({ "thinkingLevelMap": { "xhigh": "xhigh" } }), Xhigh, json!("xhigh"), true),
        (json!({ "reasoning": false }), High, Value::Null, false),
    ] {
        assert_eq!(reasoning(fields.clone(), level), (effort, include), "{fields} {level}");
    }
}

#[test]
fn the_flags_of_compat_change_the_request() {
    let with = |fields: Value, set: fn(&mut ModelRequest)| {
        let mut request = ask(fields, ThinkingLevel::Low, json!([system(), user("q")]));
        request.options.session_id = Some("s".repeat(80));
        set(&mut request);
        body(&request)
    };
    let compat = |compat: Value| json!({ "compat": compat });
    let plain = with(json!({}), |_| {});
    assert_eq!(plain["prompt_cache_key"].as_str().unwrap().len(), 64);
    assert_eq!(plain["tools"][0].get("strict"), None);
    assert_eq!(with(compat(json!({ "supportsStrictMode": true })), |_| {})["tools"][0]["strict"], false);
    let role = |body: Value| body["input"][0]["role"].clone();
    assert_eq!(role(with(compat(json!({ "supportsDeveloperRole": false })), |_| {})), "system");
    assert_eq!(role(with(json!({ "reasoning": false }), |_| {})), "system");
    let no_limit = compat(json!({ "supportsMaxOutputTokens": false }));
    assert_eq!(with(no_limit, |_| {}).get("max_output_tokens"), None);
    let tiny = with(json!({}), |request| request.options.max_tokens = Some(5));
    assert_eq!(tiny["max_output_tokens"], 16);
    let sampled = json!({ "samplingParams": { "top_p": 0.3, "store": true },
        "samplingParamsByThinkingLevel": { "low": { "top_p": 0.1 } } });
    let sampled = with(sampled, |_| {});
    assert_eq!((&sampled["top_p"], &sampled["store"]), (&json!(0.1), &json!(true)));

    let cache = |compat: Value, retention| {
        let mut request = ask(json!({ "compat": compat }), ThinkingLevel::Off, json!([user("q")]));
        request.options.session_id = Some("sid".into());
        request.options.cache_retention = retention;
        let body = body(&request);
        let fields = ["prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"];
        fields.map(|name| body.get(name).cloned().unwrap_or_default())
    };
    use CacheRetention::{Long, Short};
    let (key, nothing) = (json!("sid"), Value::Null);
    let cases = [
        (json!({}), Short, [key.clone(), nothing.clone(), nothing.clone()]),
        (json!({}), Long, [key.clone(), json!("24h"), nothing.clone()]),
        (json!({}), CacheRetention::None, [nothing.clone(), nothing.clone(), nothing.clone()]),
        (
            json!({ "supportsLongCacheRetention": false }),
            Long,
            [key.clone(), nothing.clone(), nothing.clone()],
        ),
        (json!({ "promptCacheKeyMode": "disabled" }), Long, [nothing.clone(), json!("24h"), nothing.clone()]),
        (
            json!({ "supportsExplicitPromptCacheMode": true }),
            Long,
            [key, nothing.clone(), json!({ "ttl": "30m" })],
        ),
        (
            json!({ "supportsExplicitPromptCacheMode": true }),
            CacheRetention::None,
            [nothing.clone(), nothing, json!({ "mode": "explicit" })],
        ),
    ];
    for (compat, retention, expected) in cases {
        assert_eq!(cache(compat.clone(), retention), expected, "{compat} {retention:?}");
    }
}

#[test]
fn the_headers_carry_the_key_and_the_session() {
    let names = |fields: Value| {
        let mut request = ask(fields, ThinkingLevel::Off, json!([user("q")]));
        request.options.session_id = Some("sid".into());
        request.credentials.headers.push(("x-own".into(), "1".to_owned().into()));
        let headers = request::headers(&request, &compat(&request)).into_iter();
        headers
            .map(|(name, value)| format!("{name}={}", value.expose_secret()))
            .filter(|header| !header.starts_with("accept") && !header.starts_with("content-type"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let format = |format: &str| json!({ "compat": { "sessionAffinityFormat": format } });
    assert_eq!(names(json!({})), "authorization=Bearer k session-id=sid x-client-request-id=sid x-own=1");
    assert_eq!(names(format("openai-nosession")), "authorization=Bearer k x-client-request-id=sid x-own=1");
    assert_eq!(names(format("openrouter")), "authorization=Bearer k x-session-id=sid x-own=1");
    assert_eq!(names(json!({ "provider": "openrouter" })), "authorization=Bearer k x-session-id=sid x-own=1");
}

const REASONING: &str = r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"ZW5j"}"#;

#[test]
fn an_answer_of_the_same_model_is_replayed_item_by_item() {
    let content = json!([
        { "type": "thinking", "thinking": "t", "thinkingSignature": REASONING },
        { "type": "text", "text": "Reading.", "textSignature": "{\"v\":1,\"id\":\"msg_1\",\"phase\":\"commentary\"}" },
        call("call_a|fc_0", json!({ "path": "a" })),
        call("call_b|fc_1", json!({})),
    ]);
    let messages = json!([
        user("q"),
        answer(API, "toolUse", content),
        result("call_b|fc_1", json!([{ "type": "text", "text": "x" }, image()])),
        result("call_a|fc_0", json!([{ "type": "text", "text": "r1" }, { "type": "text", "text": "r2" }])),
    ]);
    let image = json!({ "type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,QUJD" });
    assert_eq!(
        sent(json!({}), messages),
        json!([
            { "role": "user", "content": [{ "type": "input_text", "text": "q" }] },
            serde_json::from_str::<Value>(REASONING).unwrap(),
            { "type": "message", "role": "assistant",
                "content": [{ "type": "output_text", "text": "Reading.", "annotations": [] }],
                "status": "completed", "id": "msg_1", "phase": "commentary" },
            { "type": "function_call", "id": "fc_0", "call_id": "call_a", "name": "read",
                "arguments": "{\"path\":\"a\"}" },
            { "type": "function_call", "id": "fc_1", "call_id": "call_b", "name": "read", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "call_b",
                "output": [{ "type": "input_text", "text": "x" }, image] },
            { "type": "function_call_output", "call_id": "call_a", "output": "r1\nr2" },
        ])
    );
}

#[test]
fn thinking_that_the_api_would_refuse_is_left_out() {
    let thinking = |signature: Value, after: Value| {
        let mut content = json!([{ "type": "thinking", "thinking": "t", "thinkingSignature": signature }]);
        content.as_array_mut().unwrap().extend(after.as_array().unwrap().iter().cloned());
        let input = sent(json!({}), json!([user("q"), answer(API, "stop", content), user("n")]));
        let kinds = input.as_array().unwrap().iter().filter_map(|item| item["type"].as_str());
        kinds.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(thinking(json!(REASONING), text("a")), ["reasoning", "message"]);
    let open =
        r#"{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"t"}]}"#;
    assert_eq!(thinking(json!(open), text("a")), ["reasoning", "message"]);
    // Nothing follows it, nothing is in it, it is no item at all, or another model made it.
    assert_eq!(thinking(json!(REASONING), json!([])), Vec::<String>::new());
    assert_eq!(thinking(json!(r#"{"id":"rs_1","type":"reasoning","summary":[]}"#), text("a")), ["message"]);
    assert_eq!(thinking(json!("opaque"), text("a")), ["message"]);
    let content = json!([{ "type": "thinking", "thinking": "t", "thinkingSignature": REASONING },
        { "type": "text", "text": "a", "textSignature": "{\"v\":1,\"id\":\"msg_1\"}" }]);
    let mut foreign = answer(API, "stop", content);
    foreign["model"] = json!("other");
    let input = sent(json!({}), json!([user("q"), foreign, user("n")]));
    assert_eq!(input.as_array().unwrap().len(), 3);
    assert_eq!(input[1]["id"], "msg_pi_1");
}

#[test]
fn texts_without_an_id_get_one_that_stays_the_same() {
    let long = format!("{{\"v\":1,\"id\":\"msg_{}\"}}", "x".repeat(80));
    let content = json!([
        { "type": "text", "text": "a", "textSignature": "msg_bare" },
        { "type": "text", "text": "b" },
        { "type": "text", "text": "c", "textSignature": long },
    ]);
    let input = sent(json!({}), json!([user("q"), answer(API, "stop", content)]));
    assert_eq!((&input[1]["id"], &input[2]["id"]), (&json!("msg_bare"), &json!("msg_pi_1_1")));
    let hashed = input[3]["id"].as_str().unwrap();
    assert!(hashed.starts_with("msg_") && hashed.len() <= 64, "{hashed}");
}

#[test]
fn ids_of_other_models_are_made_valid_and_carry_no_item() {
    let ids = |provider: &str, id: &str| {
        let mut foreign = answer("anthropic-messages", "toolUse", json!([call(id, json!({}))]));
        foreign["model"] = json!("other");
        let messages = json!([user("q"), foreign, result(id, json!([]))]);
        let input = sent(json!({ "provider": provider }), messages);
        assert_eq!(input[1]["call_id"], input[2]["call_id"]);
        assert_eq!(input[1].get("id"), None);
        assert_eq!(input[2]["output"], "(no tool output)");
        input[1]["call_id"].as_str().unwrap().to_owned()
    };
    assert_eq!(ids("mock", "toolu_01:x+y"), "toolu_01_x_y");
    assert_eq!(ids("mock", "call_a|fc_0"), "call_a_fc_0");
    assert_eq!(ids("openai", "call_a|fc_0"), "call_a");
    assert_ne!(ids("mock", &("c".repeat(90) + "a")), ids("mock", &("c".repeat(90) + "b")));
    assert!(ids("mock", &"c".repeat(90)).len() <= 64);
}

#[test]
fn images_and_missing_results_are_sent_as_the_api_wants_them() {
    let messages = json!([
        { "role": "user", "content": [{ "type": "text", "text": "i" }, image(), { "type": "text", "text": "" }] },
        answer(API, "toolUse", json!([call("call_a|fc_0", json!({})), call("call_b|fc_1", json!({}))])),
        result("call_a|fc_0", json!([image()])),
    ]);
    let input = sent(json!({}), messages.clone());
    assert_eq!(input[0]["content"].as_array().unwrap().len(), 2);
    assert_eq!(input[3]["output"][0]["type"], "input_image");
    assert_eq!(input[4]["output"], "No result provided");
    let input = sent(json!({ "input": ["text"] }), messages);
    assert_eq!(input[3]["output"], "(tool image omitted: model does not support images)");
}

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

fn decode_chunks(chunks: &[&[u8]]) -> (Vec<String>, Completion) {
    let request = ask(json!({}), ThinkingLevel::Low, json!([user("q")]));
    replay(&request, Decoder::new("mock".into()), chunks)
}

fn decode(stream: &str) -> (Vec<String>, Completion) {
    decode_chunks(&[stream.as_bytes()])
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
fn comments_line_ends_and_any_cut_of_the_bytes_change_nothing() {
    let (updates, end) = decode(&full_stream());
    let odd = format!(": hello\n\n{}data: [DONE]\n\n", full_stream()).replace('\n', "\r\n");
    for stream in [full_stream(), odd] {
        let bytes = stream.as_bytes();
        for size in [1, 2, 3, 7, 64, 1021] {
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            let (again, other) = decode_chunks(&chunks);
            assert_eq!(again, updates, "{size}");
            assert_eq!(content(&other.message), content(&end.message), "{size}");
        }
    }
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
    assert_eq!(end("incomplete").message.stop_reason, StopReason::Length);
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
