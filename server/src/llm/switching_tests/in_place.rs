//! Changes of the prompt, the tools and the effort, for models that take them where they happened.

use sampi_protocol::data::ThinkingLevel;
use serde_json::{Value, json};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::super::socket_tests::{After, serve};
use super::super::testing::{answer, call, model, request, result, user};
use super::super::{Providers, StreamUpdate};
use super::head_and_body;

fn declared(name: &str) -> Value {
    json!({ "name": name, "description": "d", "parameters": { "type": "object", "properties": {} } })
}

fn opening() -> Value {
    json!({ "role": "system", "content": "", "sections": { "a": "A", "b": "B" }, "toolsAdded": [declared("read")] })
}

/// The section `a` is another, `b` is gone, and there is one tool more.
fn addition() -> Value {
    json!({ "role": "system", "content": "", "sections": { "a": "A2", "b": null }, "toolsAdded": [declared("grep")] })
}

fn removal() -> Value {
    json!({ "role": "system", "content": "", "toolsRemoved": [{ "name": "read" }] })
}

/// The change of `addition` in words.
const SAID: &str = "From here on the section \"a\" of the system prompt reads:\n\nA2\n\nFrom here on the section \"b\" of the system prompt does not apply.";

fn said(api: &str, text: &str, effort: &str) -> Value {
    let mut answer = answer(api, "stop", json!([{ "type": "text", "text": text }]));
    answer["providerThinkingLevel"] = json!(effort);
    answer
}

/// Three turns; the second one has a tool call, and the tools change before the second and the third.
fn conversation(api: &str) -> Value {
    let mut work = answer(api, "toolUse", json!([call("call_1|fc_1", json!({}))]));
    work["providerThinkingLevel"] = json!("medium");
    json!([
        opening(),
        user("u1"),
        said(api, "a1", "high"),
        addition(),
        user("u2"),
        work,
        result("call_1|fc_1", json!([{ "type": "text", "text": "r" }])),
        said(api, "a2", "nonsense"),
        removal(),
        user("u3"),
    ])
}

/// Without what was removed.
fn growing_conversation(api: &str) -> Value {
    let mut all = conversation(api);
    all.as_array_mut().unwrap().remove(8);
    all
}

async fn sent(api: &str, compat: Value, thinking: ThinkingLevel, messages: Value) -> (String, Value) {
    let model = model(api, json!({ "reasoning": true, "contextWindow": 200_000, "compat": compat }));
    head_and_body(request(model, thinking, messages)).await
}

fn names(tools: &Value) -> Vec<&str> {
    tools
        .as_array()
        .into_iter()
        .flatten()
        .map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str()).unwrap())
        .collect()
}

fn claude_tool(name: &str) -> Value {
    json!({ "name": name, "description": "d", "eager_input_streaming": true,
        "input_schema": { "type": "object", "properties": {}, "required": [] } })
}

#[tokio::test]
async fn claude_gets_changes_behind_what_the_user_said_and_the_effort_before_each_answer() {
    let api = "anthropic-messages";
    let compat = json!({ "supportsMidConvoSystemMessages": true, "supportsMidConvoToolChanges": true,
        "supportsMidConvoEffort": true });
    let (head, body) = sent(api, compat.clone(), ThinkingLevel::Medium, conversation(api)).await;
    let effort =
        |effort: &str| json!({ "role": "system", "content": [], "output_config": { "effort": effort } });
    let user = |content: Value| json!({ "role": "user", "content": content });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let mark = json!({ "type": "ephemeral" });
    assert_eq!(
        body["messages"],
        json!([
            user(json!([text("u1")])),
            effort("high"),
            { "role": "assistant", "content": [text("a1")] },
            user(json!([text("u2")])),
            { "role": "system", "content": [text(SAID), { "type": "tool_addition",
                "tool": { "type": "tool_definition", "definition": claude_tool("grep") } }] },
            effort("medium"),
            { "role": "assistant",
                "content": [{ "type": "tool_use", "id": "call_1|fc_1", "name": "read", "input": {} }] },
            user(json!([{ "type": "tool_result", "tool_use_id": "call_1|fc_1", "content": "r", "is_error": false }])),
            // No effort that the API would refuse.
            { "role": "assistant", "content": [text("a2")] },
            user(json!([text("u3")])),
            { "role": "system", "content": [{ "type": "tool_removal", "cache_control": mark,
                "tool": { "type": "tool_reference", "name": "read" } }] },
            effort("medium"),
        ])
    );
    assert_eq!(body["system"][0]["text"], "A\n\nB");
    assert_eq!(names(&body["tools"]), ["read", "deferred_tools_placeholder"]);
    assert_eq!(
        (&body["tools"][0]["cache_control"], &body["tools"][1]["defer_loading"]),
        (&mark, &json!(true))
    );
    assert_eq!(body["output_config"], json!({ "effort": "low" }));
    let adaptive = json!({ "type": "adaptive", "display": "summarized",
        "block_binding": { "prefix_mismatch_behavior": "drop_block" } });
    assert_eq!(body["thinking"], adaptive);
    let betas = "anthropic-beta: mid-conversation-output-config-2026-07-01,thinking-binding-controls-2026-08-01,inline-tools-2026-09-15\r\n";
    assert!(head.contains(betas), "{head}");

    // Without thinking there is no effort to speak of.
    let (head, body) = sent(api, compat, ThinkingLevel::Off, conversation(api)).await;
    assert!(head.contains(betas), "{head}");
    assert!(!body.to_string().contains("effort"), "{body}");
    assert_eq!(body["thinking"], json!({ "type": "disabled" }));
}

#[tokio::test]
async fn claude_without_changes_of_tools_has_the_tools_of_now_at_the_beginning() {
    let api = "anthropic-messages";
    let compat = json!({ "supportsMidConvoSystemMessages": true });
    let (head, body) = sent(api, compat, ThinkingLevel::Off, conversation(api)).await;
    assert_eq!(names(&body["tools"]), ["grep"]);
    assert_eq!(
        body["messages"][3],
        json!({ "role": "system", "content": [{ "type": "text", "text": SAID }] })
    );
    // A change of tools alone leaves no message.
    assert_eq!(body["messages"].as_array().unwrap().last().unwrap()["content"][0]["text"], "u3");
    assert!(!head.contains("anthropic-beta"), "{head}");

    let compat = json!({ "supportsMidConvoToolChanges": true });
    let (_, body) = sent(api, compat, ThinkingLevel::Off, conversation(api)).await;
    assert_eq!(body["system"][0]["text"], "A2", "tools are not changed in place without the prompt");
    assert!(!body["messages"].to_string().contains("system"), "{body}");
}

fn openai_tool(name: &str) -> Value {
    json!({ "type": "function", "name": name, "description": "d",
        "parameters": { "type": "object", "properties": {} } })
}

#[tokio::test]
async fn gpt_gets_its_tools_as_items_and_the_effort_before_each_answer() {
    for api in ["openai-responses", "azure-openai-responses"] {
        let compat = json!({ "supportsMidConvoSystemMessages": true, "supportsAdditionalTools": true,
            "supportsToolSearch": true, "supportsMidConvoEffort": true, "supportsStrictMode": false });
        let mut messages = conversation(api);
        // What was taken back may come again.
        let more = json!([said(api, "a3", "low"), addition(), user("u4")]);
        messages.as_array_mut().unwrap().extend(more.as_array().unwrap().iter().cloned());
        let (_, body) = sent(api, compat, ThinkingLevel::High, messages).await;
        let developer = |text: &str| json!({ "role": "developer", "content": text });
        let tools = |name: &str| json!({ "type": "additional_tools", "role": "developer", "tools": [openai_tool(name)] });
        let user =
            |text: &str| json!({ "role": "user", "content": [{ "type": "input_text", "text": text }] });
        let effort =
            |effort: &str| json!({ "type": "configuration_update", "reasoning": { "effort": effort } });
        let answer = |place: usize, text: &str| {
            json!({ "type": "message", "role": "assistant", "status": "completed", "id": format!("msg_pi_{place}"),
                "content": [{ "type": "output_text", "text": text, "annotations": [] }] })
        };
        let further = "Further tools follow. The tools declared before them stay as they are, but for those that were withdrawn; a tool of the same name takes the place of the earlier one.";
        let mut expected = vec![
            tools("read"),
            developer("A\n\nB"),
            user("u1"),
            effort("high"),
            answer(1, "a1"),
            developer(further),
            tools("grep"),
            developer(SAID),
            user("u2"),
            effort("medium"),
            json!({ "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": "{}" }),
            json!({ "type": "function_call_output", "call_id": "call_1", "output": "r" }),
            effort("nonsense"),
            answer(6, "a2"),
            developer("These tools are withdrawn and cannot be called any more:\n- read"),
            user("u3"),
            effort("low"),
            answer(9, "a3"),
            developer(&format!("{further} These are still withdrawn: read.")),
            tools("grep"),
            developer(SAID),
            user("u4"),
            effort("high"),
        ];
        let steady = if api == "openai-responses" {
            "medium"
        } else {
            expected.retain(|item| item["type"] != "configuration_update");
            "high"
        };
        assert_eq!(body["input"], Value::Array(expected), "{api}");
        assert_eq!(body.get("tools"), None, "{api}");
        assert_eq!(body["reasoning"]["effort"], steady, "{api}");
    }
}

#[tokio::test]
async fn gpt_with_a_search_for_tools_finds_those_that_come_later() {
    let api = "openai-responses";
    let compat = json!({ "supportsMidConvoSystemMessages": true, "supportsToolSearch": true });
    let (_, body) = sent(api, compat.clone(), ThinkingLevel::Off, growing_conversation(api)).await;
    assert_eq!(names(&body["tools"]), ["read"]);
    let mut found = openai_tool("grep");
    found["defer_loading"] = json!(true);
    let step = |kind: &str| json!({ "type": kind, "call_id": "tool_load_2", "execution": "client", "status": "completed" });
    let (mut searched, mut output) = (step("tool_search_call"), step("tool_search_output"));
    searched["arguments"] = json!({ "query": "grep", "limit": 1 });
    output["tools"] = json!([found]);
    assert_eq!(body["input"][3], searched);
    assert_eq!(body["input"][4], output);
    assert_eq!(body["input"][5]["content"], SAID);

    // A search cannot take anything back.
    let (_, body) = sent(api, compat, ThinkingLevel::Off, conversation(api)).await;
    assert_eq!(names(&body["tools"]), ["grep"]);
    assert!(!body.to_string().contains("tool_search"), "{body}");
}

#[tokio::test]
async fn chat_models_get_new_tools_and_words_in_messages() {
    let api = "openai-completions";
    let compat = json!({ "supportsMidConvoSystemMessages": true, "supportsMidConvoToolAdditions": true });
    let (_, body) = sent(api, compat.clone(), ThinkingLevel::Off, growing_conversation(api)).await;
    assert_eq!(names(&body["tools"]), ["read"]);
    assert_eq!(body["messages"][0]["content"], "A\n\nB");
    let added = json!({ "type": "function", "function": declared("grep") });
    assert_eq!(body["messages"][3], json!({ "role": "system", "tools": [added] }));
    assert_eq!(body["messages"][4], json!({ "role": "system", "content": SAID }));

    let (_, body) = sent(api, compat, ThinkingLevel::Off, conversation(api)).await;
    assert_eq!(names(&body["tools"]), ["grep"]);
    assert_eq!(body["messages"][3], json!({ "role": "system", "content": SAID }));
}

#[tokio::test]
async fn mistral_gets_words_in_messages_and_the_tools_of_now() {
    let api = "mistral-conversations";
    let compat = json!({ "supportsMidConvoSystemMessages": true });
    let (_, body) = sent(api, compat, ThinkingLevel::Off, conversation(api)).await;
    assert_eq!(names(&body["tools"]), ["grep"]);
    assert_eq!(body["messages"][3], json!({ "role": "system", "content": SAID }));
    assert_eq!(body["messages"].to_string().matches("\"system\"").count(), 2);
}

#[tokio::test]
async fn an_answer_says_with_which_effort_it_was_asked_for() {
    let stream = |events: &[Value]| {
        let body: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let claude = stream(&[
        json!({ "type": "message_start", "message": { "id": "m" } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
        json!({ "type": "message_stop" }),
    ]);
    let done = json!({ "id": "r", "status": "completed" });
    let gpt = stream(&[json!({ "type": "response.completed", "response": done })]);
    for (api, response) in [("anthropic-messages", claude), ("openai-responses", gpt)] {
        for (flag, thinking, expected) in [
            (true, ThinkingLevel::Minimal, Some(if api == "openai-responses" { "minimal" } else { "low" })),
            (true, ThinkingLevel::Off, None),
            (false, ThinkingLevel::High, None),
        ] {
            let server = serve(response.clone(), After::Close).await;
            let model = model(
                api,
                json!({ "reasoning": true, "baseUrl": server.url, "compat": { "supportsMidConvoEffort": flag } }),
            );
            let request = request(model, thinking, json!([user("q")]));
            let (updates, mut reader) = mpsc::channel(16);
            let provider = Providers::new().get(api).unwrap();
            let completion = provider.stream(&request, &updates, &CancellationToken::new()).await;
            assert_eq!(completion.failure, None, "{api}");
            assert_eq!(completion.message.provider_thinking_level.as_deref(), expected, "{api} {thinking:?}");
            let Some(StreamUpdate::Start(start)) = reader.recv().await else { panic!("no start") };
            assert_eq!(start.provider_thinking_level.as_deref(), expected, "{api} {thinking:?}");
        }
    }
}
