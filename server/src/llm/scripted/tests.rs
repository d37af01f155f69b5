use sampi_protocol::data::{StopReason, ThinkingLevel};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::llm::testing::{answer, call, request, result, short, system, user};
use crate::llm::{FailureKind, StreamUpdate};

fn demo(id: &str, thinking: ThinkingLevel, messages: Value) -> ModelRequest {
    let model = demo_models().into_iter().find(|model| model.id == id).unwrap();
    request(model, thinking, messages)
}

fn script(steps: Value) -> Value {
    user(&format!("@script {}", json!({ "steps": steps })))
}

async fn run_with(provider: &Scripted, request: &ModelRequest) -> (Vec<String>, Completion) {
    let (sender, mut receiver) = mpsc::channel::<StreamUpdate>(4);
    let cancel = CancellationToken::new();
    let collect = async {
        let mut updates = Vec::new();
        while let Some(update) = receiver.recv().await {
            updates.push(short(&update));
        }
        updates
    };
    let stream = async {
        let sender = sender;
        provider.stream(request, &sender, &cancel).await
    };
    let (end, updates) = tokio::join!(stream, collect);
    (updates, end)
}

async fn run(messages: Value) -> (Vec<String>, Completion) {
    let provider = Scripted::with_script_file(None);
    run_with(&provider, &demo("demo", ThinkingLevel::Off, messages)).await
}

#[tokio::test(start_paused = true)]
async fn a_script_in_a_message_is_played_step_by_step() {
    let steps = json!([
        { "thinking": "hm", "text": "Reading the file.", "delayMs": 5, "firstDelayMs": 100,
            "tools": [{ "id": "c1", "name": "read", "args": { "path": "a" } }],
            "usage": { "input": 100, "output": 10 } },
        { "text": "Fin.", "stopReason": "length" },
    ]);
    let (updates, end) = run(json!([script(steps.clone())])).await;
    assert_eq!(
        updates,
        [
            "start 0",
            "thinking_start 0",
            "thinking_delta 0 hm",
            "thinking_end 0 hm",
            "text_start 1",
            "text_delta 1 Reading the ",
            "text_delta 1 file.",
            "text_end 1 Reading the file.",
            "toolcall_start 2 c1 read",
            "toolcall_delta 2 {\"path\":\"a\"}",
            r#"toolcall_end 2 {"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a"}}"#,
        ]
    );
    assert_eq!(end.message.stop_reason, StopReason::ToolUse);
    assert_eq!(end.message.usage.total_tokens, 110);

    let done = answer("demo", "toolUse", json!([call("c1", json!({}))]));
    let text = json!([{ "type": "text", "text": "r" }]);
    let next = json!([script(steps.clone()), done, result("c1", text.clone()), user("steered")]);
    let (_, end) = run(next).await;
    assert_eq!((end.message.text(), end.message.stop_reason), ("Fin.".to_owned(), StopReason::Length));
    let over = json!([script(steps), done, result("c1", text), answer("demo", "stop", json!([])), user("x")]);
    assert_eq!(run(over).await.1.message.text(), "The script has no more steps.");
}

#[tokio::test(start_paused = true)]
async fn failures_come_as_often_as_the_script_says() {
    let steps = json!([{ "text": "made it", "fail": { "status": 529, "message": "Overloaded", "times": 2,
        "retryAfterMs": 50 } }]);
    let provider = Scripted::with_script_file(None);
    let request = demo("demo", ThinkingLevel::Off, json!([script(steps)]));
    for _ in 0..2 {
        let (updates, end) = run_with(&provider, &request).await;
        assert_eq!(updates, Vec::<String>::new());
        assert_eq!(end.message.error_message.as_deref(), Some("529: Overloaded"));
        let failure = end.failure.unwrap();
        assert_eq!((failure.kind, failure.status), (FailureKind::Overloaded, Some(529)));
        assert_eq!(failure.retry_after, Some(Duration::from_millis(50)));
    }
    assert_eq!(run_with(&provider, &request).await.1.message.text(), "made it");

    let always = json!([{ "fail": { "kind": "overflow", "message": "too much" } }]);
    let (_, end) = run(json!([script(always)])).await;
    assert_eq!(end.failure.unwrap().kind, FailureKind::Overflow);
}

#[tokio::test(start_paused = true)]
async fn a_stream_can_be_cut_or_hang() {
    let (updates, end) = run(json!([script(json!([{ "text": "part", "cut": true }]))])).await;
    assert_eq!(updates.last().unwrap(), "text_end 0 part");
    assert_eq!(end.failure.unwrap().kind, FailureKind::Network);

    let provider = Scripted::with_script_file(None);
    let mut request = demo("demo", ThinkingLevel::Off, json!([script(json!([{ "hang": true }]))]));
    request.options.idle_timeout = Some(Duration::from_secs(60));
    let (updates, end) = run_with(&provider, &request).await;
    assert_eq!(updates, Vec::<String>::new());
    assert!(end.message.error_message.unwrap().contains("60 seconds"));
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_a_slow_answer_with_what_there_is_of_it() {
    let provider = Scripted::with_script_file(None);
    let steps = json!([{ "text": "word word word", "deltaSize": 5, "delayMs": 60_000 }]);
    let request = demo("demo", ThinkingLevel::Off, json!([script(steps)]));
    let (sender, mut receiver) = mpsc::channel(4);
    let cancel = CancellationToken::new();
    let watch = async {
        let mut last = String::new();
        while let Some(update) = receiver.recv().await {
            last = short(&update);
            if last.starts_with("text_delta") {
                cancel.cancel();
            }
        }
        last
    };
    let stream = async {
        let sender = sender;
        provider.stream(&request, &sender, &cancel).await
    };
    let (end, last) = tokio::join!(stream, watch);
    assert_eq!(last, "text_end 0 word ");
    assert_eq!((end.message.text(), end.message.stop_reason), ("word ".to_owned(), StopReason::Aborted));
    assert_eq!(end.message.error_message.as_deref(), Some("Request was aborted"));
    assert_eq!(end.failure, None);
}

#[tokio::test(start_paused = true)]
async fn a_script_file_answers_the_whole_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script.json");
    std::fs::write(&file, r#"{"steps":[{"text":"one"},{"text":"two"}]}"#).unwrap();
    let provider = Scripted::with_script_file(Some(file));
    let said = |messages: Value| demo("demo", ThinkingLevel::Off, messages);
    assert_eq!(run_with(&provider, &said(json!([user("a")]))).await.1.message.text(), "one");
    let failed = answer("demo", "error", json!([]));
    let one = answer("demo", "stop", json!([]));
    let later = said(json!([user("a"), failed, one, user("b")]));
    assert_eq!(run_with(&provider, &later).await.1.message.text(), "two");

    let missing = Scripted::with_script_file(Some(folder.path().join("none.json")));
    let end = run_with(&missing, &said(json!([user("a")]))).await.1;
    let (name, text) = (folder.path().join("none.json"), end.message.error_message.unwrap());
    assert!(text.starts_with(&format!("the script {} cannot be read: ", name.display())), "{text}");
    assert_eq!(end.message.stop_reason, StopReason::Error);
    assert_eq!(end.failure.unwrap().kind, FailureKind::InvalidRequest);
}

#[tokio::test(start_paused = true)]
async fn a_broken_script_fails_the_request_and_says_what_is_wrong_with_it() {
    for (script, part) in [
        ("@script {\"steps\":[{\"txt\":\"a\"}]}", "unknown field `txt`"),
        ("@script {\"steps\":[{},{\"text\":5}]}", "steps[1].text: invalid type"),
        ("@script nope", "expected"),
        ("@script []", "expected an object with `steps`"),
        ("@script {}", "missing field `steps`"),
        ("@script ", "it is empty"),
    ] {
        let end = run(json!([user(script)])).await.1;
        let text = end.message.error_message.unwrap();
        assert!(text.starts_with("the script cannot be read: ") && text.contains(part), "{text}");
        assert!(!end.failure.unwrap().kind.is_retryable());
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_script_the_model_uses_its_tools_and_sums_up() {
    let provider = Scripted::with_script_file(None);
    let ask = |messages: Value| demo("demo-thinking", ThinkingLevel::Low, messages);
    let (updates, end) = run_with(&provider, &ask(json!([system(), user("look at notes.txt")]))).await;
    assert_eq!(updates[1], "thinking_start 0");
    let read = end.message.tool_calls().next().unwrap().clone();
    assert_eq!((read.name.as_str(), read.arguments.get("path")), ("read", Some(&json!("notes.txt"))));
    let done = answer("demo", "toolUse", serde_json::to_value(&end.message.content).unwrap());
    let given = result(read.id.as_str(), json!([{ "type": "text", "text": "first\nsecond" }]));
    let (_, end) = run_with(&provider, &ask(json!([system(), user("look at notes.txt"), done, given]))).await;
    assert!(end.message.text().contains("2 lines; the first is: first"), "{}", end.message.text());
    assert_eq!(end.message.stop_reason, StopReason::Stop);
    let (_, end) = run_with(&provider, &ask(json!([user("hi")]))).await;
    assert!(end.message.text().contains("demo model"));
}
