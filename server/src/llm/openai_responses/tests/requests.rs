use sampi_protocol::data::ThinkingLevel;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::super::{API, Compat, Service, request};
use super::ask;
use crate::llm::testing::{answer, call, result, system, user};
use crate::llm::{CacheRetention, ModelRequest};

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
    assert_eq!(request::post(&request, &compat(&request)).unwrap().url, "http://h/v1/responses");
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
        (json!({ "provider": "github-copilot" }), Off, Value::Null, false),
        (json!({ "provider": "github-copilot" }), High, json!("high"), true),
        (json!({ "provider": "xai" }), Off, json!("none"), true),
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
