use sampi_protocol::data::{AssistantMessage, StopReason, ThinkingLevel};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::compat::Compat;
use super::{API, decode, request};
use crate::llm::testing::{answer, call, model, replay, result, system, user};
use crate::llm::{CacheRetention, Completion, FailureKind, ModelRequest};

fn ask(fields: Value, thinking: ThinkingLevel, messages: Value) -> ModelRequest {
    crate::llm::testing::request(model(API, fields), thinking, messages)
}

fn body(request: &ModelRequest) -> Value {
    super::request::body(request, &Compat::of(&request.model))
}

fn sent(compat: Value, messages: Value) -> Value {
    body(&ask(json!({ "compat": compat }), ThinkingLevel::Off, messages))["messages"].clone()
}

fn tools_json() -> Value {
    json!([{ "type": "function", "function": { "name": "read", "description": "reads", "parameters": {
        "type": "object", "required": ["path"], "properties": { "path": { "type": "string" } },
    } } }])
}

#[test]
fn a_plain_request_is_that_of_pi_field_by_field_and_in_order() {
    let body = body(&ask(json!({}), ThinkingLevel::Off, json!([system(), user("hi")])));
    let expected = json!({
        "model": "m1",
        "messages": [
            { "role": "system", "content": "<SYSTEM>" },
            { "role": "user", "content": [{ "type": "text", "text": "hi" }] },
        ],
        "stream": true,
        "stream_options": { "include_usage": true },
        "store": false,
        "max_completion_tokens": 4096,
        "tools": tools_json(),
    });
    assert_eq!(serde_json::to_string(&body).unwrap(), serde_json::to_string(&expected).unwrap());
}

#[test]
fn the_key_goes_into_the_authorization_header_and_own_headers_win() {
    let mut request = ask(json!({ "baseUrl": "http://h/v1/" }), ThinkingLevel::Off, json!([user("hi")]));
    request.credentials.headers = vec![("X-A".into(), "1".to_owned().into())];
    let post = request::post(&request, &Compat::of(&request.model)).unwrap();
    assert_eq!(post.url, "http://h/v1/chat/completions");
    let headers: Vec<_> = post.headers.iter().map(|(name, value)| (&**name, value.expose_secret())).collect();
    assert_eq!(
        headers,
        [
            ("accept", "application/json"),
            ("content-type", "application/json"),
            ("authorization", "Bearer k"),
            ("X-A", "1")
        ]
    );
}

#[test]
fn a_turn_with_tools_becomes_calls_and_tool_messages() {
    let messages = json!([
        user("q"),
        answer(
            API,
            "toolUse",
            json!([
                { "type": "text", "text": "Reading." },
                call("call_a", json!({ "path": "a.txt" })),
                { "type": "toolCall", "id": "call_b", "name": "bash", "arguments": { "command": "echo hi" } },
            ])
        ),
        result("call_a", json!([{ "type": "text", "text": "hello\nworld\n" }])),
        result("call_b", json!([{ "type": "text", "text": "hi\n" }])),
    ]);
    assert_eq!(
        sent(json!({}), messages),
        json!([
            { "role": "user", "content": [{ "type": "text", "text": "q" }] },
            { "role": "assistant", "content": "Reading.", "tool_calls": [
                { "id": "call_a", "type": "function",
                    "function": { "name": "read", "arguments": "{\"path\":\"a.txt\"}" } },
                { "id": "call_b", "type": "function",
                    "function": { "name": "bash", "arguments": "{\"command\":\"echo hi\"}" } },
            ] },
            { "role": "tool", "content": "hello\nworld\n", "tool_call_id": "call_a" },
            { "role": "tool", "content": "hi\n", "tool_call_id": "call_b" },
        ])
    );
}

#[test]
fn a_call_whose_arguments_could_not_be_read_is_sent_with_empty_ones() {
    let mut broken = call("c1", json!({}));
    broken["argumentsError"] = json!("Unterminated string in JSON at position 28 (line 1 column 29)");
    let text = "Invalid arguments for tool \"bash\": Unterminated string";
    let messages = json!([
        user("q"),
        answer(API, "toolUse", json!([broken])),
        result("c1", json!([{ "type": "text", "text": text }])),
    ]);
    assert_eq!(
        sent(json!({}), messages)[1],
        json!({ "role": "assistant", "content": null, "tool_calls": [
            { "id": "c1", "type": "function", "function": { "name": "read", "arguments": "{}" } },
        ] })
    );
}

#[test]
fn images_become_data_urls_and_those_of_tools_follow_as_the_users() {
    let image = json!({ "type": "image", "data": "QUJD", "mimeType": "image/png" });
    let url = json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,QUJD" } });
    let messages = json!([
        { "role": "user", "content": [{ "type": "text", "text": "see" }, image] },
        answer(API, "toolUse", json!([call("c1", json!({})), call("c2", json!({})), call("c3", json!({}))])),
        result("c1", json!([{ "type": "text", "text": "t" }, image])),
        result("c2", json!([image])),
        result("c3", json!([])),
        user("n"),
    ]);
    let sent = sent(json!({}), messages);
    assert_eq!(sent[0]["content"], json!([{ "type": "text", "text": "see" }, url]));
    assert_eq!(
        sent.as_array().unwrap()[2..],
        [
            json!({ "role": "tool", "content": "t", "tool_call_id": "c1" }),
            json!({ "role": "tool", "content": "(see attached image)", "tool_call_id": "c2" }),
            json!({ "role": "tool", "content": "(no tool output)", "tool_call_id": "c3" }),
            json!({ "role": "user", "content": [
                { "type": "text", "text": "Attached image(s) from tool result:" }, url, url,
            ] }),
            json!({ "role": "user", "content": [{ "type": "text", "text": "n" }] }),
        ]
    );
}

#[test]
fn thinking_goes_back_in_the_field_in_which_it_came() {
    let thought = |signature: &str| {
        let thinking = json!({ "type": "thinking", "thinking": "t", "thinkingSignature": signature });
        let content = json!([thinking, { "type": "text", "text": "a" }]);
        sent(json!({}), json!([user("q"), answer(API, "stop", content)]))[1].clone()
    };
    assert_eq!(
        thought("reasoning_content"),
        json!({ "role": "assistant", "content": "a", "reasoning_content": "t" })
    );
    assert_eq!(thought("reasoning"), json!({ "role": "assistant", "content": "a", "reasoning": "t" }));
    assert_eq!(thought("elsewhere"), json!({ "role": "assistant", "content": "a" }));
    assert_eq!(
        thought(r#"[{"type":"reasoning.text","text":"t"}]"#),
        json!({ "role": "assistant", "content": "a",
            "reasoning_details": [{ "type": "reasoning.text", "text": "t" }] })
    );
}

#[test]
fn the_flags_of_compat_change_the_messages() {
    let thinking = json!({ "type": "thinking", "thinking": "tt", "thinkingSignature": "reasoning_content" });
    let talk = json!([
        user("q"),
        answer(API, "toolUse", json!([thinking, { "type": "text", "text": "x" }, call("c1", json!({}))])),
        result("c1", json!([{ "type": "text", "text": "r" }])),
        user("n"),
    ]);
    let with = |flag: &str| sent(json!({ flag: true }), talk.clone());
    assert_eq!(with("requiresToolResultName")[2]["name"], "read");
    assert_eq!(
        with("requiresAssistantAfterToolResult")[3],
        json!({ "role": "assistant", "content": "I have processed the tool results." })
    );
    assert_eq!(
        with("requiresThinkingAsText")[1]["content"],
        json!([{ "type": "text", "text": "tt" }, { "type": "text", "text": "x" }])
    );
    let only_call = json!([user("q"), answer(API, "toolUse", json!([call("c1", json!({}))]))]);
    assert_eq!(sent(json!({}), only_call.clone())[1]["content"], Value::Null);
    assert_eq!(sent(json!({ "requiresNonNullAssistantContent": true }), only_call)[1]["content"], "");
    let role = |reasoning: bool| {
        let fields = json!({ "reasoning": reasoning, "compat": { "supportsDeveloperRole": true } });
        body(&ask(fields, ThinkingLevel::Off, json!([system(), user("q")])))["messages"][0]["role"].clone()
    };
    assert_eq!((role(true), role(false)), (json!("developer"), json!("system")));
}

/// The fields of a request beside those that every request has.
fn extras(fields: Value, thinking: ThinkingLevel) -> Value {
    let mut body = body(&ask(fields, thinking, json!([user("q")])));
    for name in ["model", "messages", "stream", "stream_options", "store", "max_completion_tokens"] {
        body.as_object_mut().unwrap().shift_remove(name);
    }
    body
}

#[test]
fn each_thinking_format_has_its_own_fields() {
    use ThinkingLevel::{Low, Off};
    for (format, low, off) in [
        ("openai", json!({ "reasoning_effort": "low" }), json!({})),
        (
            "openrouter",
            json!({ "reasoning": { "effort": "low" } }),
            json!({ "reasoning": { "effort": "none" } }),
        ),
        (
            "deepseek",
            json!({ "thinking": { "type": "enabled" }, "reasoning_effort": "low" }),
            json!({ "thinking": { "type": "disabled" } }),
        ),
        (
            "together",
            json!({ "reasoning": { "enabled": true }, "reasoning_effort": "low" }),
            json!({ "reasoning": { "enabled": false } }),
        ),
        (
            "zai",
            json!({ "thinking": { "type": "enabled", "clear_thinking": false }, "reasoning_effort": "low" }),
            json!({ "thinking": { "type": "disabled" } }),
        ),
        (
            "qwen",
            json!({ "enable_thinking": true, "reasoning_effort": "low" }),
            json!({ "enable_thinking": false }),
        ),
        (
            "qwen-chat-template",
            json!({ "chat_template_kwargs": { "enable_thinking": true, "preserve_thinking": true } }),
            json!({ "chat_template_kwargs": { "enable_thinking": false, "preserve_thinking": true } }),
        ),
        ("string-thinking", json!({ "thinking": "low" }), json!({ "thinking": "none" })),
        ("ant-ling", json!({}), json!({})),
        ("chat-template", json!({}), json!({})),
    ] {
        let fields = json!({ "reasoning": true, "compat": { "thinkingFormat": format } });
        assert_eq!(extras(fields.clone(), Low), low, "{format} low");
        assert_eq!(extras(fields, Off), off, "{format} off");
    }
}

#[test]
fn levels_are_mapped_budgets_sent_and_templates_filled() {
    use ThinkingLevel::{Low, Off, Xhigh};
    let mapped = json!({ "reasoning": true, "thinkingLevelMap": { "low": "LOW", "off": "none" } });
    assert_eq!(extras(mapped.clone(), Low), json!({ "reasoning_effort": "LOW" }));
    assert_eq!(extras(mapped, Off), json!({ "reasoning_effort": "none" }));
    assert_eq!(extras(json!({ "reasoning": true }), Xhigh), json!({ "reasoning_effort": "high" }));
    assert_eq!(extras(json!({ "reasoning": false }), Low), json!({}));
    let silent = json!({ "reasoning": true, "compat": { "supportsReasoningEffort": false } });
    assert_eq!(extras(silent, Low), json!({}));
    let budget = json!({ "reasoning": true, "compat": { "thinkingTokenBudgetField": "thinking_budget" } });
    assert_eq!(extras(budget, Low), json!({ "reasoning_effort": "low", "thinking_budget": 2048 }));
    let variable = |name: &str| json!({ "$var": name });
    let template = json!({ "reasoning": true, "compat": { "thinkingFormat": "chat-template", "chatTemplateKwargs": {
        "a": variable("thinking.enabled"), "e": variable("thinking.effort"), "b": variable("thinking.budget"),
        "c": 5, "d": { "$var": "thinking.enabled", "omitWhenOff": true },
    } } });
    assert_eq!(
        extras(template.clone(), Low),
        json!({ "chat_template_kwargs": { "a": true, "e": "low", "b": 2048, "c": 5, "d": true } })
    );
    assert_eq!(extras(template, Off), json!({ "chat_template_kwargs": { "a": false, "c": 5 } }));
    let sampling = json!({ "samplingParams": { "top_p": 0.5, "seed": 1 },
        "samplingParamsByThinkingLevel": { "off": { "seed": 3 } } });
    assert_eq!(extras(sampling, Off), json!({ "top_p": 0.5, "seed": 3 }));
}

#[test]
fn known_servers_are_told_by_their_url() {
    let fields = |url: &str| {
        let fields = json!({ "baseUrl": url, "reasoning": true });
        let mut request = ask(fields, ThinkingLevel::Low, json!([system(), user("q")]));
        request.options.session_id = Some("sid".into());
        body(&request)
    };
    let openai = fields("https://api.openai.com/v1");
    assert_eq!(openai["messages"][0]["role"], "developer");
    assert_eq!(openai["prompt_cache_key"], "sid");
    let zai = fields("https://api.z.ai/api/paas/v4");
    assert_eq!(
        (&zai["max_tokens"], zai.get("store"), zai.get("reasoning_effort")),
        (&json!(4096), None, None)
    );
    assert_eq!(zai["thinking"], json!({ "type": "enabled", "clear_thinking": false }));
    assert_eq!(fields("https://openrouter.ai/api/v1")["reasoning"], json!({ "effort": "low" }));
    assert_eq!(fields("https://api.x.ai/v1").get("store"), None);
    assert_eq!(fields("http://localhost:11434/v1").get("prompt_cache_key"), None);
}

#[test]
fn cache_marks_in_anthropics_form_stand_on_system_tools_and_the_last_text() {
    let mut request = ask(
        json!({ "compat": { "cacheControlFormat": "anthropic" } }),
        ThinkingLevel::Off,
        json!([
            system(),
            user("q"),
            answer(API, "stop", json!([{ "type": "text", "text": "a" }])),
            user("n")
        ]),
    );
    let mark = json!({ "type": "ephemeral" });
    let marked = body(&request);
    assert_eq!(marked["messages"][0]["content"][0]["cache_control"], mark);
    assert_eq!(marked["messages"][3]["content"][0]["cache_control"], mark);
    assert_eq!(marked["tools"][0]["cache_control"], mark);
    request.options.cache_retention = CacheRetention::None;
    assert!(!body(&request).to_string().contains("cache_control"));
}

fn decode(chunks: &[&[u8]]) -> (Vec<String>, Completion) {
    let request = ask(json!({}), ThinkingLevel::Off, json!([user("q")]));
    replay(&request, decode::Decoder::new(true), chunks)
}

fn events(chunks: &[Value]) -> String {
    let text: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    text + "data: [DONE]\n\n"
}

fn delta(delta: Value) -> Value {
    json!({ "id": "c1", "object": "chat.completion.chunk", "model": "m1",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

fn finish(reason: &str) -> Value {
    json!({ "id": "c1", "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

fn content(message: &AssistantMessage) -> Value {
    serde_json::to_value(&message.content).unwrap()
}

#[test]
fn text_and_parallel_calls_end_together_in_order_with_usage() {
    let text = events(&[
        delta(json!({ "role": "assistant", "content": "" })),
        delta(json!({ "content": "Reading." })),
        delta(json!({ "tool_calls": [{ "index": 0, "id": "call_a", "type": "function",
            "function": { "name": "read", "arguments": "" } }] })),
        delta(json!({ "tool_calls": [{ "index": 1, "id": "call_b", "function": { "name": "bash" } }] })),
        delta(json!({ "tool_calls": [{ "index": 1, "function": { "arguments": "{\"command\":" } }] })),
        delta(json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "{\"path\":\"a.txt\"}" } }] })),
        delta(json!({ "tool_calls": [{ "index": 1, "function": { "arguments": "\"ls\"}" } }] })),
        finish("tool_calls"),
        json!({ "id": "c1", "choices": [], "usage": { "prompt_tokens": 1000, "completion_tokens": 50,
            "prompt_tokens_details": { "cached_tokens": 300, "cache_write_tokens": 100 },
            "completion_tokens_details": { "reasoning_tokens": 20 } } }),
    ]);
    let (updates, end) = decode(&[text.as_bytes()]);
    assert_eq!(
        updates,
        [
            "start 0",
            "text_start 0",
            "text_delta 0 Reading.",
            "toolcall_start 1 call_a read",
            "toolcall_start 2 call_b bash",
            "toolcall_delta 2 {\"command\":",
            "toolcall_delta 1 {\"path\":\"a.txt\"}",
            "toolcall_delta 2 \"ls\"}",
            "text_end 0 Reading.",
            r#"toolcall_end 1 {"type":"toolCall","id":"call_a","name":"read","arguments":{"path":"a.txt"}}"#,
            r#"toolcall_end 2 {"type":"toolCall","id":"call_b","name":"bash","arguments":{"command":"ls"}}"#,
        ]
    );
    let message = end.message;
    assert_eq!(end.failure, None);
    assert_eq!(message.stop_reason, StopReason::ToolUse);
    assert_eq!(message.raw_stop_reason.as_deref(), Some("tool_calls"));
    assert_eq!(message.response_id.as_deref(), Some("c1"));
    assert_eq!(message.response_model, None);
    assert_eq!(message.thinking_level.as_deref(), Some("off"));
    let usage = &message.usage;
    assert_eq!(
        (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning, usage.total_tokens),
        (600, 50, 300, 100, Some(20), 1050)
    );
    assert_eq!(usage.cost.total, 0.0007299999999999999);
}

#[test]
fn thinking_of_every_field_is_one_block_and_keeps_the_fields_name() {
    for field in ["reasoning_content", "reasoning", "reasoning_text"] {
        let text = events(&[
            delta(json!({ field: "let me " })),
            delta(json!({ "content": "done", field: "think" })),
            finish("stop"),
        ]);
        let (updates, end) = decode(&[text.as_bytes()]);
        assert_eq!(updates[1..4], ["thinking_start 0", "thinking_delta 0 let me ", "text_start 1"]);
        assert_eq!(updates[updates.len() - 2..], ["thinking_end 0 let me think", "text_end 1 done"]);
        assert_eq!(
            content(&end.message),
            json!([
                { "type": "thinking", "thinking": "let me think", "thinkingSignature": field },
                { "type": "text", "text": "done" },
            ])
        );
    }
    let twice = events(&[delta(json!({ "reasoning_content": "t", "reasoning": "t" })), finish("stop")]);
    assert_eq!(content(&decode(&[twice.as_bytes()]).1.message)[0]["thinking"], "t");
}

#[test]
fn reasoning_details_are_put_together_and_become_the_signature() {
    let part = |text: &str| json!({ "type": "reasoning.text", "text": text, "index": 0 });
    let text = events(&[
        delta(json!({ "reasoning": "ab", "reasoning_details": [part("a")] })),
        delta(json!({ "reasoning": "b", "reasoning_details": [part("b"),
            { "type": "reasoning.encrypted", "data": "E", "index": 1 }] })),
        finish("stop"),
    ]);
    let (_, end) = decode(&[text.as_bytes()]);
    assert_eq!(
        content(&end.message)[0],
        json!({ "type": "thinking", "thinking": "abb", "thinkingSignature":
            r#"[{"type":"reasoning.text","text":"ab","index":0},{"type":"reasoning.encrypted","data":"E","index":1}]"# })
    );
}

#[test]
fn finish_reasons_become_stop_reasons() {
    let finished = |reason: &str| {
        let text = events(&[delta(json!({ "content": "a" })), finish(reason)]);
        decode(&[text.as_bytes()]).1
    };
    for (reason, stop) in [
        ("stop", StopReason::Stop),
        ("end", StopReason::Stop),
        ("length", StopReason::Length),
        ("function_call", StopReason::ToolUse),
    ] {
        let end = finished(reason);
        assert_eq!((end.message.stop_reason, end.failure), (stop, None), "{reason}");
    }
    let end = finished("content_filter");
    assert_eq!(end.message.error_message.as_deref(), Some("Provider finish_reason: content_filter"));
    assert_eq!(end.failure.unwrap().kind, FailureKind::ContentFilter);
    assert_eq!(finished("network_error").failure.unwrap().kind, FailureKind::Network);
    assert_eq!(finished("weird").failure.unwrap().kind, FailureKind::Other);
}

#[test]
fn a_stream_without_a_finish_reason_is_cut_unless_the_server_never_sends_one() {
    let text = events(&[delta(json!({ "content": "a" }))]);
    let (updates, end) = decode(&[text.as_bytes()]);
    assert_eq!(updates.last().unwrap(), "text_end 0 a");
    assert_eq!(end.message.error_message.as_deref(), Some("Stream ended without finish_reason"));
    assert_eq!(end.failure.unwrap().kind, FailureKind::Network);
    let request = ask(json!({}), ThinkingLevel::Off, json!([user("q")]));
    let (_, end) = replay(&request, decode::Decoder::new(false), &[text.as_bytes()]);
    assert_eq!(end.message.stop_reason, StopReason::Stop);
}

#[test]
fn an_error_in_the_stream_ends_it_with_the_providers_words() {
    for (error, text, kind) in [
        (json!({ "message": "bad thing", "code": 500, "type": "x" }), "bad thing", FailureKind::Server),
        (json!({ "message": "slow", "code": 429 }), "slow", FailureKind::RateLimit),
        (json!("plain"), "\"plain\"", FailureKind::Other),
        (
            json!({ "message": "maximum context length is 8 tokens" }),
            "maximum context length is 8 tokens",
            FailureKind::Overflow,
        ),
    ] {
        let stream = events(&[delta(json!({ "content": "a" })), json!({ "error": error })]);
        let (updates, end) = decode(&[stream.as_bytes()]);
        assert_eq!(updates.last().unwrap(), "text_delta 0 a");
        assert_eq!(end.message.error_message.as_deref(), Some(text));
        assert_eq!(end.failure.unwrap().kind, kind, "{text}");
        assert_eq!(content(&end.message), json!([{ "type": "text", "text": "a" }]));
    }
    let (_, end) = decode(&[b"data: {nope\n\n"]);
    assert!(end.message.error_message.unwrap().contains("malformed"));
}

#[test]
fn odd_servers_are_understood() {
    let stream = |chunks: &[Value]| decode(&[events(chunks).as_bytes()]).1.message;
    let calls = stream(&[
        delta(json!({ "tool_calls": [{ "id": "a", "function": { "name": "read", "arguments": "{}" } }] })),
        delta(
            json!({ "tool_calls": [{ "id": "b", "function": { "name": "read", "arguments": { "x": 1 } } }] }),
        ),
        finish("stop"),
    ]);
    assert_eq!(
        content(&calls),
        json!([
            { "type": "toolCall", "id": "a", "name": "read", "arguments": {} },
            { "type": "toolCall", "id": "b", "name": "read", "arguments": { "x": 1 } },
        ])
    );
    assert_eq!(calls.stop_reason, StopReason::ToolUse);

    let nameless = stream(&[
        delta(json!({ "tool_calls": [{ "index": 0, "function": { "name": "read", "arguments": "" } }] })),
        finish("tool_calls"),
    ]);
    assert!(content(&nameless)[0]["id"].as_str().unwrap().starts_with("call_"));

    let parts = json!([{ "type": "text", "text": "zz" }]);
    let odd = stream(&[
        json!({ "id": "c1", "choices": null }),
        json!({ "id": "c1", "choices": [{ "index": 0, "delta": null }] }),
        delta(json!({ "content": null })),
        delta(json!({ "content": parts })),
        delta(json!({ "refusal": " no" })),
        json!({ "id": "c1", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop",
            "usage": { "prompt_tokens": 7.0, "completion_tokens": 3 } }] }),
    ]);
    assert_eq!(content(&odd), json!([{ "type": "text", "text": "zz no" }]));
    assert_eq!((odd.usage.input, odd.usage.output), (7, 3));
}

#[test]
fn broken_arguments_are_kept_as_an_error_of_the_call() {
    let text = events(&[
        delta(json!({ "tool_calls": [{ "index": 0, "id": "c1",
            "function": { "name": "bash", "arguments": "{\"command\": \"echo unfinished" } }] })),
        finish("tool_calls"),
    ]);
    let (_, end) = decode(&[text.as_bytes()]);
    assert_eq!(
        content(&end.message),
        json!([{ "type": "toolCall", "id": "c1", "name": "bash", "arguments": {}, "argumentsError":
            "Unterminated string in JSON at position 28 (line 1 column 29)\n\nReceived arguments:\n{\"command\": \"echo unfinished" }])
    );
}

#[test]
fn error_bodies_become_texts() {
    use crate::llm::exchange::Decoder as _;
    let decoder = decode::Decoder::new(true);
    for (status, body, text) in [
        (
            503,
            r#"{"type":"error","error":{"type":"api_error","message":"down"}}"#,
            r#"503: {"type":"api_error","message":"down"}"#,
        ),
        (429, r#"{"message":"slow"}"#, r#"429: {"message":"slow"}"#),
        (404, r#"{"error":"model not found"}"#, r#"404 "model not found""#),
        (400, "plain", "400 plain"),
    ] {
        assert_eq!(decoder.error_text(status, body), text);
    }
}

#[test]
fn twenty_thousand_deltas_are_decoded_in_time_that_grows_with_their_number_only() {
    let mut chunks = vec![delta(json!({ "content": "some text" })); 20_000];
    chunks.push(finish("stop"));
    let (updates, end) = decode(&[events(&chunks).as_bytes()]);
    assert_eq!(updates.len(), 20_003);
    assert_eq!(end.message.text().len(), 180_000);
}

#[test]
fn a_model_at_azure_has_the_users_address_and_the_name_of_its_deployment() {
    let fields = json!({ "provider": "azure", "id": "deepseek-v4-pro", "baseUrl": "" });
    let mut request = ask(fields, ThinkingLevel::Off, json!([user("q")]));
    request.credentials.variables = [
        ("AZURE_OPENAI_BASE_URL", "https://r.ai.azure.com"),
        ("AZURE_OPENAI_DEPLOYMENT_NAME_MAP", "deepseek-v4-pro=dep"),
        ("AZURE_OPENAI_API_VERSION", "2025-01-01-preview"),
    ]
    .map(|(name, value)| (name.to_owned(), value.into()))
    .to_vec();
    let post = request::post(&request, &Compat::of(&request.model)).unwrap();
    assert_eq!(post.url, "https://r.ai.azure.com/openai/v1/chat/completions");
    let body: Value = serde_json::from_slice(&post.body).unwrap();
    assert_eq!(body["model"], "dep");
    let key = post.headers.iter().find(|(name, _)| name == "authorization").unwrap();
    assert_eq!(key.1.expose_secret(), "Bearer k");
    assert!(post.headers.iter().all(|(name, _)| name != "api-key"));
}
