use sampi_protocol::data::{AssistantMessage, StopReason, ThinkingLevel};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::{API, decode, request};
use crate::llm::testing::{answer, call, model, replay, result, system, user};
use crate::llm::{Completion, FailureKind, ModelRequest};

/// A signature.
const SIGNED: &str = "dHM=";

fn ask(fields: Value, thinking: ThinkingLevel, messages: Value) -> ModelRequest {
    let mut all = json!({ "reasoning": true, "maxTokens": 8192, "contextWindow": 200_000,
        "baseUrl": "http://h/v1beta" });
    for (name, value) in fields.as_object().unwrap() {
        all[name] = value.clone();
    }
    crate::llm::testing::request(model(API, all), thinking, messages)
}

fn body(request: &ModelRequest) -> Value {
    request::body(request, request::IMAGES).unwrap()
}

/// What is sent of a conversation to a model of this name.
fn sent(id: &str, messages: Value) -> Value {
    body(&ask(json!({ "id": id }), ThinkingLevel::Low, messages))["contents"].clone()
}

fn image() -> Value {
    json!({ "type": "image", "data": "QUJD", "mimeType": "image/png" })
}

fn text(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

fn signed_call(id: &str) -> Value {
    let mut call = call(id, json!({ "path": "a" }));
    call["thoughtSignature"] = json!(SIGNED);
    call
}

/// An answer of the model that is asked.
fn own(id: &str, content: Value) -> Value {
    let mut own = answer(API, "toolUse", content);
    own["model"] = json!(id);
    own
}

#[test]
fn a_plain_request_is_that_of_pi_field_by_field_and_in_order() {
    let request = ask(json!({}), ThinkingLevel::Low, json!([system(), user("hi")]));
    let expected = json!({
        "contents": [{ "parts": [{ "text": "hi" }], "role": "user" }],
        "systemInstruction": { "parts": [{ "text": "<SYSTEM>" }], "role": "user" },
        "tools": [{ "functionDeclarations": [{ "name": "read", "description": "reads",
            "parametersJsonSchema": { "type": "object", "required": ["path"],
                "properties": { "path": { "type": "string" } } } }] }],
        "generationConfig": { "maxOutputTokens": 8192,
            "thinkingConfig": { "includeThoughts": true, "thinkingBudget": -1 } },
    });
    assert_eq!(serde_json::to_string(&body(&request)).unwrap(), serde_json::to_string(&expected).unwrap());
}

#[test]
fn the_address_names_the_model_and_the_headers_carry_the_key() {
    let url = |id: &str| {
        let fields = json!({ "id": id, "reasoning": false, "baseUrl": "http://h/v1beta/" });
        request::post(&ask(fields, ThinkingLevel::Off, json!([user("q")]))).unwrap().url
    };
    for (id, path) in [
        ("g1", "models/g1"),
        ("models/x y?", "models/x%20y%3F"),
        ("tunedModels/a", "tunedModels/a"),
        ("a/b", "models/a/b"),
    ] {
        assert_eq!(url(id), format!("http://h/v1beta/{path}:streamGenerateContent?alt=sse"));
    }
    let mut request = ask(json!({}), ThinkingLevel::Off, json!([user("q")]));
    request.credentials.headers.push(("x-own".into(), "1".to_owned().into()));
    let headers = |request: &ModelRequest| -> Vec<String> {
        let headers = request::headers(request).into_iter().skip(1);
        headers.map(|(name, value)| format!("{name}={}", value.expose_secret())).collect()
    };
    assert_eq!(headers(&request), ["x-goog-api-key=k", "x-own=1"]);
    request.credentials.bearer = true;
    assert_eq!(headers(&request), ["authorization=Bearer k", "x-own=1"]);
}

#[test]
fn each_family_is_told_to_think_in_its_own_way() {
    use ThinkingLevel::{High, Low, Medium, Minimal, Off, Xhigh};
    let config = |fields: Value, level| {
        body(&ask(fields, level, json!([user("q")])))["generationConfig"]["thinkingConfig"].clone()
    };
    let tokens = |tokens: i64| json!({ "includeThoughts": true, "thinkingBudget": tokens });
    let named = |level: &str| json!({ "includeThoughts": true, "thinkingLevel": level });
    for (id, level, expected) in [
        ("g1", Minimal, tokens(-1)),
        ("g1", Off, json!({ "thinkingBudget": 0 })),
        ("gemini-2.0-flash", High, tokens(-1)),
        ("gemini-2.5-pro", Minimal, tokens(128)),
        ("gemini-2.5-pro", Low, tokens(2048)),
        ("gemini-2.5-pro", Medium, tokens(8192)),
        ("gemini-2.5-pro", Xhigh, tokens(32_768)),
        ("gemini-2.5-flash", Minimal, tokens(128)),
        ("gemini-2.5-flash", High, tokens(24_576)),
        ("gemini-2.5-flash-lite", Minimal, tokens(512)),
        ("gemini-3-pro-preview", Off, json!({ "thinkingBudget": 0 })),
        ("gemini-3-pro-preview", Minimal, named("MINIMAL")),
        ("gemini-3.1-pro-preview", Xhigh, named("HIGH")),
        ("gemini-flash-latest", Low, named("LOW")),
        ("gemini-pro-latest", Low, tokens(-1)),
        ("gemma-3-27b", Low, tokens(-1)),
        ("gemma-4-31b", Low, named("LOW")),
    ] {
        assert_eq!(config(json!({ "id": id }), level), expected, "{id} {level}");
    }
    let mapped = |id: &str, map: Value, level| config(json!({ "id": id, "thinkingLevelMap": map }), level);
    assert_eq!(mapped("gemini-3-pro", json!({ "high": "low" }), High), named("LOW"));
    assert_eq!(mapped("gemini-2.5-pro", json!({ "high": "low" }), High), tokens(2048));
    assert_eq!(mapped("gemini-3-pro", json!({ "off": null }), Off), json!({ "thinkingLevel": "MINIMAL" }));
    let none = json!({ "off": null, "minimal": null, "low": null });
    assert_eq!(mapped("gemini-3-pro", none, Off), json!({ "thinkingLevel": "MEDIUM" }));
    assert_eq!(mapped("g1", json!({ "off": null }), Off), json!({ "thinkingBudget": 0 }));
    assert_eq!(config(json!({ "id": "gemini-2.5-pro", "reasoning": false }), High), Value::Null);

    let mut own = ask(json!({ "id": "gemini-2.5-pro" }), High, json!([user("q")]));
    own.options.thinking_budgets.high = Some(777);
    assert_eq!(body(&own)["generationConfig"]["thinkingConfig"], tokens(777));
    let map = json!({ "id": "gemini-3-pro", "thinkingLevelMap": { "xhigh": "weird" } });
    let fault = request::body(&ask(map, Xhigh, json!([user("q")])), request::IMAGES).unwrap_err();
    assert_eq!(fault.text, "Unsupported Google thinking level mapping for mock/gemini-3-pro: xhigh -> weird");
}

#[test]
fn an_answer_of_the_same_model_is_replayed_part_by_part_with_its_signatures() {
    let content = json!([
        { "type": "thinking", "thinking": "t", "thinkingSignature": SIGNED },
        { "type": "text", "text": "Reading." },
        signed_call("read_1_1"),
        call("read_1_2", json!({})),
        { "type": "text", "text": "", "textSignature": SIGNED },
        { "type": "text", "text": "" },
    ]);
    let messages = json!([
        user("q"),
        own("g1", content),
        result("read_1_1", json!([{ "type": "text", "text": "r1" }, { "type": "text", "text": "r2" }])),
        result("read_1_2", json!([{ "type": "text", "text": "x" }, image()])),
    ]);
    assert_eq!(
        sent("g1", messages),
        json!([
            { "parts": [{ "text": "q" }], "role": "user" },
            { "parts": [
                { "text": "t", "thought": true, "thoughtSignature": SIGNED },
                { "text": "Reading." },
                { "functionCall": { "args": { "path": "a" }, "name": "read" }, "thoughtSignature": SIGNED },
                { "functionCall": { "args": {}, "name": "read" } },
                { "text": "", "thoughtSignature": SIGNED },
            ], "role": "model" },
            { "parts": [
                { "functionResponse": { "name": "read", "response": { "output": "r1\nr2" } } },
                { "functionResponse": { "name": "read", "response": { "output": "x" },
                    "parts": [{ "inlineData": { "mimeType": "image/png", "data": "QUJD" } }] } },
            ], "role": "user" },
        ])
    );
}

#[test]
fn signatures_that_are_not_base64_are_left_out() {
    let content = json!([
        { "type": "thinking", "thinking": "t", "thinkingSignature": "no b64!" },
        { "type": "text", "text": "a", "textSignature": "abc" },
        { "type": "text", "text": "b", "textSignature": "====" },
    ]);
    assert_eq!(
        sent("g1", json!([user("q"), own("g1", content)]))[1]["parts"],
        json!([{ "text": "t", "thought": true }, { "text": "a" }, { "text": "b" }])
    );
}

#[test]
fn answers_of_other_models_lose_thinking_and_signatures_but_keep_text_and_calls() {
    let content = json!([
        { "type": "thinking", "thinking": "t", "thinkingSignature": SIGNED },
        { "type": "text", "text": "a", "textSignature": SIGNED },
        signed_call("toolu:1"),
        signed_call("toolu:2"),
    ]);
    let messages = json!([user("q"), own("other", content), result("toolu:2", text("r"))]);
    let contents = sent("gemini-2.5-pro", messages.clone());
    assert_eq!(
        contents[1]["parts"],
        json!([
            { "text": "a" },
            { "functionCall": { "args": { "path": "a" }, "name": "read" } },
            { "functionCall": { "args": { "path": "a" }, "name": "read" } },
        ])
    );
    // From the third generation on, calls have ids and the first one must be signed.
    let contents = sent("gemini-3-pro-preview", messages);
    assert_eq!(
        contents[1]["parts"][1],
        json!({ "functionCall": { "args": { "path": "a" }, "id": "toolu_1", "name": "read" },
            "thoughtSignature": "skip_thought_signature_validator" })
    );
    assert_eq!(contents[1]["parts"][2].get("thoughtSignature"), None);
    assert_eq!(
        contents[2]["parts"],
        json!([
            { "functionResponse": { "name": "read", "response": { "output": "r" }, "id": "toolu_2" } },
            { "functionResponse": { "name": "read", "response": { "error": "No result provided" },
                "id": "toolu_1" } },
        ])
    );
}

#[test]
fn results_stand_together_and_images_that_do_not_fit_in_stand_behind_them() {
    let id = "gemini-2.5-pro";
    let failed = |mut result: Value| {
        result["isError"] = json!(true);
        result
    };
    let messages = json!([
        user("q"),
        own(id, json!([call("a", json!({})), call("b", json!({})), call("c", json!({}))])),
        result("a", json!([image()])),
        failed(result("b", text("bad"))),
        result("c", json!([])),
        user("z"),
    ]);
    let contents = sent(id, messages.clone());
    assert_eq!(
        contents[2]["parts"],
        json!([
            { "functionResponse": { "name": "read", "response": { "output": "(see attached image)" } } },
            { "functionResponse": { "name": "read", "response": { "error": "bad" } } },
            { "functionResponse": { "name": "read", "response": { "output": "" } } },
        ])
    );
    assert_eq!(
        contents[3]["parts"],
        json!([{ "text": "Tool result image:" }, { "inlineData": { "mimeType": "image/png", "data": "QUJD" } }])
    );
    assert_eq!(contents[4]["parts"], json!([{ "text": "z" }]));

    let mut blind = ask(json!({ "id": id, "input": ["text"] }), ThinkingLevel::Off, messages);
    let note = "(tool image omitted: model does not support images)";
    let output = |request: &ModelRequest| {
        body(request)["contents"][2]["parts"][0]["functionResponse"]["response"]["output"].clone()
    };
    assert_eq!(output(&blind), note);
    blind.options.block_images = true;
    assert!(output(&blind).as_str().unwrap().contains("turned off"));
}

fn chunk(parts: Value, fields: Value) -> String {
    let mut candidate = json!({ "content": { "role": "model", "parts": parts }, "index": 0 });
    for (name, value) in fields.as_object().unwrap() {
        candidate[name] = value.clone();
    }
    raw(&json!({ "candidates": [candidate], "modelVersion": "m1-001", "responseId": "gr_1",
        "usageMetadata": { "promptTokenCount": 100, "candidatesTokenCount": 10, "thoughtsTokenCount": 4,
            "cachedContentTokenCount": 30, "totalTokenCount": 114 } }))
}

fn raw(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn parts(parts: Value) -> String {
    chunk(parts, json!({}))
}

fn end(reason: &str) -> String {
    chunk(json!([{ "text": "" }]), json!({ "finishReason": reason }))
}

fn decode(stream: &str) -> (Vec<String>, Completion) {
    let request = ask(json!({}), ThinkingLevel::Low, json!([user("q")]));
    replay(&request, decode::Decoder::default(), &[stream.as_bytes()])
}

fn content(message: &AssistantMessage) -> Value {
    serde_json::to_value(&message.content).unwrap()
}

fn full_stream() -> String {
    parts(json!([{ "text": "hm", "thought": true }]))
        + &parts(json!([{ "text": " ö", "thought": true, "thoughtSignature": "c2ln" }]))
        + &parts(json!([{ "text": "Hel" }]))
        + &parts(json!([{ "text": "lo 😀", "thoughtSignature": "bGFzdA==" }]))
        + &parts(json!([
            { "functionCall": { "name": "read", "args": { "a": 1 }, "id": "x1" }, "thoughtSignature": SIGNED },
            { "functionCall": { "name": "bash", "args": { "b": "é" }, "id": "x2" } },
        ]))
        + &end("STOP")
}

#[test]
fn thinking_text_and_calls_become_blocks_in_their_order() {
    let (updates, end) = decode(&full_stream());
    assert_eq!(
        updates,
        [
            "start 114",
            "thinking_start 0",
            "thinking_delta 0 hm",
            "thinking_delta 0  ö",
            "thinking_end 0 hm ö",
            "text_start 1",
            "text_delta 1 Hel",
            "text_delta 1 lo 😀",
            "text_end 1 Hello 😀",
            "toolcall_start 2 x1 read",
            "toolcall_delta 2 {\"a\":1}",
            r#"toolcall_end 2 {"type":"toolCall","id":"x1","name":"read","arguments":{"a":1},"thoughtSignature":"dHM="}"#,
            "toolcall_start 3 x2 bash",
            "toolcall_delta 3 {\"b\":\"é\"}",
            r#"toolcall_end 3 {"type":"toolCall","id":"x2","name":"bash","arguments":{"b":"é"}}"#,
            "text_start 4",
            "text_delta 4 ",
            "text_end 4 ",
        ]
    );
    let message = end.message;
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    assert_eq!(message.raw_stop_reason.as_deref(), Some("STOP"));
    assert_eq!(message.response_id.as_deref(), Some("gr_1"));
    let usage = &message.usage;
    assert_eq!((usage.input, usage.output, usage.cache_read, usage.reasoning), (70, 14, 30, Some(4)));
    assert_eq!(usage.total_tokens, 114);
    let content = content(&message);
    assert_eq!(content[0]["thinkingSignature"], "c2ln");
    assert_eq!(content[1]["textSignature"], "bGFzdA==");
}

#[test]
fn calls_without_an_id_of_their_own_get_one() {
    let stream = parts(json!([
        { "functionCall": { "name": "read", "id": "x1" } },
        { "functionCall": { "name": "read", "args": null, "id": "x1" } },
        { "functionCall": { "name": "read", "args": {} } },
    ])) + &end("STOP");
    let message = decode(&stream).1.message;
    let content = content(&message);
    let ids: Vec<&str> = (0..3).map(|n| content[n]["id"].as_str().unwrap()).collect();
    assert_eq!(ids[0], "x1");
    for id in &ids[1..] {
        let numbers: Vec<&str> = id.strip_prefix("read_").unwrap().split('_').collect();
        assert!(numbers.len() == 2 && numbers.iter().all(|number| number.parse::<u64>().is_ok()), "{id}");
    }
    assert_ne!(ids[1], ids[2]);
    assert_eq!(content[1]["arguments"], json!({}));
}

#[test]
fn finish_reasons_become_stop_reasons() {
    let finish = |reason: &str| decode(&(parts(json!([{ "text": "a" }])) + &end(reason))).1;
    assert_eq!(finish("STOP").message.stop_reason, StopReason::Stop);
    assert_eq!(finish("MAX_TOKENS").message.stop_reason, StopReason::Length);
    for (reason, kind) in [
        ("SAFETY", FailureKind::ContentFilter),
        ("RECITATION", FailureKind::ContentFilter),
        ("PROHIBITED_CONTENT", FailureKind::ContentFilter),
        ("SPII", FailureKind::ContentFilter),
        ("MALFORMED_FUNCTION_CALL", FailureKind::Other),
        ("OTHER", FailureKind::Other),
    ] {
        let end = finish(reason);
        assert_eq!(end.message.raw_stop_reason.as_deref(), Some(reason));
        assert_eq!(end.message.error_message.unwrap(), format!("Provider stopped with: {reason}"));
        assert_eq!(end.failure.unwrap().kind, kind);
    }
    assert_eq!(finish("NOVELTY").message.error_message.as_deref(), Some("Unhandled stop reason: NOVELTY"));
    let long =
        parts(json!([{ "functionCall": { "name": "read", "args": { "a": 1 } } }])) + &end("MAX_TOKENS");
    assert_eq!(decode(&long).1.message.stop_reason, StopReason::Length);
}

#[test]
fn a_stream_that_is_cut_or_blocked_is_an_error() {
    for stream in [String::new(), parts(json!([{ "text": "a" }]))] {
        let end = decode(&stream).1;
        let text = "Google stream ended without a finish reason";
        assert_eq!(end.message.error_message.as_deref(), Some(text));
        assert!(end.failure.unwrap().kind.is_retryable());
    }
    let blocked = raw(&json!({ "promptFeedback": { "blockReason": "SAFETY", "blockReasonMessage": "no" } }));
    let end = decode(&blocked).1;
    assert_eq!(end.message.error_message.as_deref(), Some("Google blocked the prompt: SAFETY: no"));
    assert_eq!(end.failure.unwrap().kind, FailureKind::ContentFilter);
    let end = decode("data: {nope\n\n").1;
    assert!(end.message.error_message.unwrap().contains("malformed server-sent event JSON"));
}

#[test]
fn an_error_in_the_stream_ends_it_with_the_providers_words() {
    let error = json!({ "error": { "code": 503, "message": "overloaded", "status": "UNAVAILABLE" } });
    let (updates, end) = decode(&(parts(json!([{ "text": "a" }])) + &raw(&error)));
    assert_eq!(updates.last().unwrap(), "text_delta 0 a");
    assert_eq!(end.message.error_message.unwrap(), format!("got status: UNAVAILABLE. {error}"));
    assert_eq!(end.failure.unwrap().kind, FailureKind::Overloaded);
    let limited = json!({ "error": { "code": 429, "message": "You exceeded your current quota", "status": "X",
        "details": [{ "@type": "t" }, { "retryDelay": "17.5s" }] } });
    let failure = decode(&raw(&limited)).1.failure.unwrap();
    assert_eq!(failure.kind, FailureKind::RateLimit);
    assert_eq!(failure.retry_after.unwrap().as_millis(), 17_500);
}

#[test]
fn parts_and_chunks_that_are_not_known_are_skipped() {
    let stream = raw(&json!({ "novelty": 1 }))
        + &parts(json!([{ "executableCode": { "code": "x" } }, { "text": "a" },
            { "inlineData": { "mimeType": "image/png", "data": "QUJD" } }, {}]))
        + &raw(
            &json!({ "candidates": [{ "finishReason": "STOP" }, { "content": { "parts": [{ "text": "b" }] } }] }),
        )
        + &raw(&json!({ "usageMetadata": { "promptTokenCount": 7, "toolUsePromptTokenCount": 5,
            "candidatesTokenCount": 2 } }));
    let message = decode(&stream).1.message;
    assert_eq!(content(&message), text("a"));
    assert_eq!((message.usage.input, message.usage.output, message.usage.total_tokens), (12, 2, 14));
}

#[test]
fn error_bodies_become_texts_and_tell_how_long_to_wait() {
    use crate::llm::exchange::Decoder as _;
    let decoder = decode::Decoder::default();
    assert_eq!(decoder.error_text(400, "{ \"error\": {} }"), r#"{"error":{}}"#);
    assert_eq!(decoder.error_text(502, "oops"), "502 oops");
    let body = r#"{"error":{"code":429,"details":[{"retryDelay":"3s"}]}}"#;
    assert_eq!(decoder.retry_after(body).unwrap().as_secs(), 3);
    assert_eq!(decoder.retry_after(&format!("[{body}]")).unwrap().as_secs(), 3);
    assert_eq!(decoder.retry_after("oops"), None);
}

#[test]
fn arguments_of_any_size_and_depth_are_read() {
    let deep = "[".repeat(5000) + &"]".repeat(5000);
    let stream = format!(
        "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"functionCall\":{{\"name\":\"read\",\
         \"args\":{{\"a\":{deep}}}}}}}]}},\"finishReason\":\"STOP\"}}]}}\n\n"
    );
    assert_eq!(content(&decode(&stream).1.message)[0]["type"], "toolCall");
    let huge = parts(json!([{ "functionCall": { "name": "w", "args": { "a": "x".repeat(2_000_000) } } }]));
    let message = decode(&(huge + &end("STOP"))).1.message;
    assert_eq!(content(&message)[0]["arguments"]["a"].as_str().unwrap().len(), 2_000_000);
}
