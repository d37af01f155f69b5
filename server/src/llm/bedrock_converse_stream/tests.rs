use sampi_protocol::data::{AssistantMessage, StopReason, ThinkingLevel};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::credentials::Environment;
use super::{API, decode, endpoint, post, request};
use crate::llm::event_stream::message;
use crate::llm::testing::{answer, call, model, replay, result, system, user};
use crate::llm::{CacheRetention, Completion, FailureKind, ModelRequest};

const CLAUDE: &str = "anthropic.claude-sonnet-4-v1:0";

fn ask(fields: Value, thinking: ThinkingLevel, messages: Value) -> ModelRequest {
    let mut all = json!({ "id": CLAUDE, "reasoning": true, "contextWindow": 0, "maxTokens": 8192,
        "baseUrl": "https://bedrock-runtime.us-east-1.amazonaws.com" });
    for (name, value) in fields.as_object().unwrap() {
        all[name] = value.clone();
    }
    crate::llm::testing::request(model(API, all), thinking, messages)
}

fn body(fields: Value, thinking: ThinkingLevel) -> Value {
    request::body(&ask(fields, thinking, json!([user("q")])))
}

/// What is sent of a conversation, without marks for the cache.
fn sent(messages: Value) -> Value {
    let mut request = ask(json!({}), ThinkingLevel::Off, messages);
    request.options.cache_retention = CacheRetention::None;
    request::body(&request)["messages"].clone()
}

fn own(content: Value) -> Value {
    let mut own = answer(API, "toolUse", content);
    own["model"] = json!(CLAUDE);
    own
}

#[test]
fn a_plain_request_is_that_of_pi_field_by_field_and_in_order() {
    let request = ask(json!({}), ThinkingLevel::High, json!([system(), user("q")]));
    let point = json!({ "cachePoint": { "type": "default" } });
    let expected = json!({
        "messages": [{ "role": "user", "content": [{ "text": "q" }, point] }],
        "system": [{ "text": "<SYSTEM>" }, point],
        "inferenceConfig": { "maxTokens": 8192 },
        "toolConfig": { "tools": [{ "toolSpec": { "name": "read", "inputSchema": { "json": {
            "type": "object", "required": ["path"], "properties": { "path": { "type": "string" } } } },
            "description": "reads" } }] },
        "additionalModelRequestFields": {
            "thinking": { "type": "enabled", "budget_tokens": 7168, "display": "summarized" },
            "anthropic_beta": ["interleaved-thinking-2025-05-14"] },
    });
    assert_eq!(request::body(&request).to_string(), expected.to_string());
}

#[test]
fn each_vendors_models_are_told_to_think_in_their_own_way() {
    use ThinkingLevel::{High, Minimal, Off, Xhigh};
    let fields = |fields: Value, level| body(fields, level)["additionalModelRequestFields"].clone();
    let adaptive = |effort: &str| json!({ "thinking": { "type": "adaptive", "display": "summarized" }, "output_config": { "effort": effort } });
    let id = |id: &str| json!({ "id": id });
    assert_eq!(fields(id(CLAUDE), Off), Value::Null);
    assert_eq!(fields(id("anthropic.claude-opus-4-6-v1"), Xhigh), adaptive("high"));
    assert_eq!(fields(id("anthropic.claude-opus-4-6-v1"), Minimal), adaptive("low"));
    let mapped = json!({ "id": "anthropic.claude-sonnet-4-6", "thinkingLevelMap": { "xhigh": "max" } });
    assert_eq!(fields(mapped, Xhigh), adaptive("max"));
    assert_eq!(
        fields(id("anthropic.claude-sonnet-5"), High),
        json!({
            "thinking": { "type": "adaptive", "display": "summarized",
                "block_binding": { "prefix_mismatch_behavior": "drop_block" } },
            "output_config": { "effort": "high" },
            "anthropic_beta": ["thinking-binding-controls-2026-08-01"],
        })
    );
    assert_eq!(fields(id("openai.gpt-oss-120b-1:0"), High), json!({ "reasoning_effort": "high" }));
    assert_eq!(fields(id("openai.gpt-5.4"), High), json!({ "reasoning": { "effort": "high" } }));
    assert_eq!(fields(id("amazon.nova-pro-v1:0"), High), Value::Null);
    let mut small = ask(json!({ "maxTokens": 64000 }), High, json!([user("q")]));
    small.options.max_tokens = Some(1000);
    let small = request::body(&small);
    assert_eq!(small["inferenceConfig"]["maxTokens"], 17384);
    assert_eq!(small["additionalModelRequestFields"]["thinking"]["budget_tokens"], 16360);
}

#[test]
fn prompts_are_cached_where_the_model_can_and_as_long_as_is_wanted() {
    let last = |id: &str, retention| {
        let mut request = ask(json!({ "id": id }), ThinkingLevel::Off, json!([user("q")]));
        request.options.cache_retention = retention;
        let content = request::body(&request)["messages"][0]["content"].clone();
        content.as_array().unwrap().last().unwrap().clone()
    };
    let text = json!({ "text": "q" });
    assert_eq!(last(CLAUDE, CacheRetention::None), text);
    assert_eq!(last("amazon.nova-pro-v1:0", CacheRetention::Short), text);
    let long = json!({ "cachePoint": { "type": "default", "ttl": "1h" } });
    assert_eq!(last(CLAUDE, CacheRetention::Long), long);
}

#[test]
fn a_turn_with_tools_is_replayed_block_by_block() {
    let image = json!({ "type": "image", "data": "QUJD", "mimeType": "image/jpg" });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let content = json!([
        { "type": "thinking", "thinking": "t", "thinkingSignature": "c2ln" },
        { "type": "thinking", "thinking": "[Reasoning redacted]", "thinkingSignature": "ZW5j", "redacted": true },
        { "type": "thinking", "thinking": "unsigned" },
        text("Reading."), text(" "), call("a", json!({ "path": "p" })), call("b", json!({})),
    ]);
    let mut failed = result("b", json!([text("x"), image]));
    failed["isError"] = json!(true);
    let messages = json!([user("q"), own(content), result("a", json!([text("r1"), text("r2")])), failed]);
    assert_eq!(
        sent(messages),
        json!([
            { "role": "user", "content": [{ "text": "q" }] },
            { "role": "assistant", "content": [
                { "reasoningContent": { "reasoningText": { "text": "t", "signature": "c2ln" } } },
                { "reasoningContent": { "redactedContent": "ZW5j" } },
                { "text": "unsigned" },
                { "text": "Reading." },
                { "toolUse": { "toolUseId": "a", "name": "read", "input": { "path": "p" } } },
                { "toolUse": { "toolUseId": "b", "name": "read", "input": {} } },
            ] },
            { "role": "user", "content": [
                { "toolResult": { "toolUseId": "a", "content": [{ "text": "r1" }, { "text": "r2" }],
                    "status": "success" } },
                { "toolResult": { "toolUseId": "b",
                    "content": [{ "text": "x" }, { "text": "(image attached after the tool results)" }],
                    "status": "error" } },
                { "text": "Images from the error result of tool call b (read):" },
                { "image": { "format": "jpeg", "source": { "bytes": "QUJD" } } },
            ] },
        ])
    );
    let empty = sent(json!([user("q"), own(json!([call("a", json!({}))])), result("a", json!([]))]));
    assert_eq!(empty[2]["content"][0]["toolResult"]["content"], json!([{ "text": "<empty>" }]));
}

#[test]
fn the_address_follows_the_region_and_the_request_is_signed_or_bears_a_token() {
    let environment = |pairs: &'static [(&'static str, &'static str)]| {
        let find =
            |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Environment::of(find, "", "")
    };
    let url = |fields: Value, environment: &Environment| {
        let model = ask(fields, ThinkingLevel::Off, json!([user("q")])).model;
        endpoint::url(&model, &endpoint::region(&model, environment))
    };
    let (nothing, west) = (environment(&[]), environment(&[("AWS_REGION", "us-west-2")]));
    let path = "/model/anthropic.claude-sonnet-4-v1%3A0/converse-stream";
    assert_eq!(url(json!({}), &nothing), format!("https://bedrock-runtime.us-east-1.amazonaws.com{path}"));
    assert_eq!(url(json!({}), &west), format!("https://bedrock-runtime.us-west-2.amazonaws.com{path}"));
    assert_eq!(url(json!({ "baseUrl": "http://gw/x/" }), &west), format!("http://gw/x{path}"));
    let arn = "arn:aws:bedrock:eu-west-1:1:application-inference-profile/abc";
    assert!(
        url(json!({ "id": arn }), &west)
            .starts_with("https://bedrock-runtime.eu-west-1.amazonaws.com/model/arn%3Aaws")
    );

    let names = |request: &ModelRequest, environment: &Environment| -> Vec<String> {
        let post = post(request, environment, jiff::Timestamp::UNIX_EPOCH).unwrap();
        post.headers
            .into_iter()
            .skip(2)
            .map(|(name, value)| format!("{name}={}", value.expose_secret()))
            .collect()
    };
    let mut request = ask(json!({}), ThinkingLevel::Off, json!([user("q")]));
    assert_eq!(names(&request, &nothing), ["authorization=Bearer k"]);
    request.credentials.api_key = None;
    let keys = environment(&[
        ("AWS_ACCESS_KEY_ID", "AK"),
        ("AWS_SECRET_ACCESS_KEY", "SK"),
        ("AWS_SESSION_TOKEN", "ST"),
    ]);
    let signed = names(&request, &keys);
    assert!(signed[0].starts_with("x-amz-content-sha256="), "{signed:?}");
    assert_eq!(signed[1..3], ["x-amz-date=19700101T000000Z", "x-amz-security-token=ST"]);
    assert!(signed[3].starts_with("authorization=AWS4-HMAC-SHA256 Credential=AK/19700101/us-east-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature="));
    let fault = post(&request, &nothing, jiff::Timestamp::UNIX_EPOCH).unwrap_err();
    assert_eq!(fault.failure.kind, FailureKind::Auth);
}

fn event(name: &str, data: Value) -> Vec<u8> {
    message(&[(":message-type", "event"), (":event-type", name)], &data.to_string())
}

fn delta(index: u64, delta: Value) -> Vec<u8> {
    event("contentBlockDelta", json!({ "contentBlockIndex": index, "delta": delta }))
}

fn stop(index: u64) -> Vec<u8> {
    event("contentBlockStop", json!({ "contentBlockIndex": index }))
}

fn end(reason: &str) -> Vec<u8> {
    let usage = json!({ "inputTokens": 70, "outputTokens": 10, "totalTokens": 130, "cacheReadInputTokens": 30,
        "cacheWriteInputTokens": 20, "cacheDetails": [{ "inputTokens": 20, "ttl": "1h" }] });
    [event("messageStop", json!({ "stopReason": reason })), event("metadata", json!({ "usage": usage }))]
        .concat()
}

fn start() -> Vec<u8> {
    event("messageStart", json!({ "role": "assistant" }))
}

fn decode(stream: &[u8]) -> (Vec<String>, Completion) {
    let request = ask(json!({}), ThinkingLevel::Low, json!([user("q")]));
    replay(&request, decode::Decoder::default(), &[stream])
}

fn content(message: &AssistantMessage) -> Value {
    serde_json::to_value(&message.content).unwrap()
}

#[test]
fn thinking_text_and_calls_become_blocks() {
    let stream = [
        start(),
        delta(0, json!({ "reasoningContent": { "text": "hm" } })),
        delta(0, json!({ "reasoningContent": { "signature": "c2ln" } })),
        stop(0),
        delta(1, json!({ "text": "A" })),
        stop(1),
        event(
            "contentBlockStart",
            json!({ "contentBlockIndex": 2,
            "start": { "toolUse": { "toolUseId": "t1", "name": "read" } } }),
        ),
        delta(2, json!({ "toolUse": { "input": "{\"a\"" } })),
        delta(2, json!({ "toolUse": { "input": ":1}" } })),
        stop(2),
        delta(3, json!({ "reasoningContent": { "redactedContent": "ZW5j" } })),
        event("novelty", json!({ "x": 1 })),
        stop(3),
        end("tool_use"),
    ]
    .concat();
    let (updates, end) = decode(&stream);
    assert_eq!(
        updates,
        [
            "start 0",
            "thinking_start 0",
            "thinking_delta 0 hm",
            "thinking_end 0 hm",
            "text_start 1",
            "text_delta 1 A",
            "text_end 1 A",
            "toolcall_start 2 t1 read",
            "toolcall_delta 2 {\"a\"",
            "toolcall_delta 2 :1}",
            r#"toolcall_end 2 {"type":"toolCall","id":"t1","name":"read","arguments":{"a":1}}"#,
            "thinking_start 3",
            "thinking_delta 3 [Reasoning redacted]",
            "thinking_end 3 [Reasoning redacted]",
        ]
    );
    let message = end.message;
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    let usage = &message.usage;
    assert_eq!(
        (usage.input, usage.cache_read, usage.cache_write, usage.cache_write1h),
        (70, 30, 20, Some(20))
    );
    assert_eq!(usage.total_tokens, 130);
    let content = content(&message);
    assert_eq!(content[0]["thinkingSignature"], "c2ln");
    assert_eq!((&content[3]["redacted"], &content[3]["thinkingSignature"]), (&json!(true), &json!("ZW5j")));
}

#[test]
fn endings_become_stop_reasons_or_failures() {
    let text = || [start(), delta(0, json!({ "text": "x" })), stop(0)].concat();
    for (reason, stop) in [
        ("end_turn", StopReason::Stop),
        ("stop_sequence", StopReason::Stop),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::Length),
    ] {
        assert_eq!(decode(&[text(), end(reason)].concat()).1.message.stop_reason, stop, "{reason}");
    }
    let exception = |name: &str| [text(), event(name, json!({ "message": "boom" }))].concat();
    for (stream, said, kind) in [
        (
            [text(), end("guardrail_intervened")].concat(),
            "Provider stopped with: guardrail_intervened",
            FailureKind::ContentFilter,
        ),
        (
            [text(), end("malformed_tool_use")].concat(),
            "Provider stopped with: malformed_tool_use",
            FailureKind::Other,
        ),
        (text(), "Bedrock stream ended without a stop reason", FailureKind::Network),
        (exception("throttlingException"), "Throttling error: boom", FailureKind::RateLimit),
        (exception("validationException"), "Validation error: boom", FailureKind::InvalidRequest),
        (exception("internalServerException"), "Internal server error: boom", FailureKind::Server),
        (exception("modelStreamErrorException"), "Model stream error: boom", FailureKind::Server),
        (exception("serviceUnavailableException"), "Service unavailable: boom", FailureKind::Overloaded),
        (exception("oddException"), "oddException: boom", FailureKind::Other),
    ] {
        let end = decode(&stream).1;
        assert_eq!(end.message.error_message.as_deref(), Some(said));
        assert_eq!(end.failure.unwrap().kind, kind, "{said}");
    }
}

#[test]
fn error_bodies_become_texts() {
    use crate::llm::exchange::Decoder as _;
    let decoder = decode::Decoder::default();
    for (status, body, text) in [
        (
            400,
            r#"{"message":"Input is too long for requested model."}"#,
            "Validation error: Input is too long for requested model.",
        ),
        (403, r#"{"Message":"denied"}"#, "AccessDeniedException: denied"),
        (429, r#"{"message":"slow"}"#, "Throttling error: slow"),
        (500, "oops", "Internal server error: oops"),
        (400, r#"{"__type":"com.amazon#ThrottlingException","message":"slow"}"#, "Throttling error: slow"),
    ] {
        assert_eq!(decoder.error_text(status, body), text);
    }
}

/// The whole way: binary frames over a connection.
#[tokio::test]
async fn binary_frames_are_read_from_a_connection() {
    let frame = |name: &str, data: Value| {
        message(&[(":message-type", "event"), (":event-type", name)], &data.to_string())
    };
    let mut bytes = frame("messageStart", json!({ "role": "assistant" }));
    bytes.extend(frame("contentBlockDelta", json!({ "contentBlockIndex": 0, "delta": { "text": "hé" } })));
    bytes.extend(frame("contentBlockStop", json!({ "contentBlockIndex": 0 })));
    bytes.extend(frame("messageStop", json!({ "stopReason": "end_turn" })));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).ends_with("}}") {
            let mut buffer = [0; 4096];
            let read = socket.read(&mut buffer).await.unwrap();
            seen.extend_from_slice(&buffer[..read]);
        }
        socket.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await.unwrap();
        socket.write_all(&bytes).await.unwrap();
    });
    let request = ask(json!({ "baseUrl": url }), ThinkingLevel::Off, json!([user("q")]));
    let (updates, _reader) = tokio::sync::mpsc::channel(64);
    let provider = crate::llm::Providers::new().get(API).unwrap();
    let end = provider.stream(&request, &updates, &tokio_util::sync::CancellationToken::new()).await;
    server.await.unwrap();
    assert_eq!(end.message.error_message, None);
    assert_eq!(content(&end.message), json!([{ "type": "text", "text": "hé" }]));
}
