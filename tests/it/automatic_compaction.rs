//! Compactions that nobody asks for: before a prompt, between turns, after an overflow.

use sampi_tests::fake_llm::{Answer, FakeLlm, Gate, Reply, text, tool_call};
use serde_json::json;

use crate::compaction::{filling, hundred, is_for_a_summary, keeping, kinds_of, with_two_exchanges};
use crate::session_files::texts_of;

#[tokio::test]
async fn a_context_that_is_nearly_full_is_compacted_before_the_next_prompt() {
    let llm = FakeLlm::start().await;
    llm.push_all([text(&hundred("alpha")), filling(text(&hundred("beta")))]);
    llm.push_all([text("the notes"), text("gamma")]);
    let daemon = keeping(&llm, 150).spawn().await;
    daemon.run(&hundred("first")).await;
    daemon.run(&hundred("second")).await;
    assert!(daemon.all(json!({ "type": "compaction_start" })).is_empty());
    daemon.run("third").await;
    let start = daemon.all(json!({ "type": "compaction_start" }));
    assert_eq!(start, [json!({ "type": "compaction_start", "reason": "threshold" })]);
    let end = &daemon.all(json!({ "type": "compaction_end" }))[0];
    assert_eq!(end["result"]["tokensBefore"], 90_010);
    let texts = llm.request(3).await.user_texts();
    assert!(texts[0].contains("the notes"), "{texts:?}");
    assert_eq!(texts[1..], [hundred("second"), "third".to_owned()]);
    daemon.finish().await;
    llm.finish();
}

// case 50
#[tokio::test]
async fn a_prompt_goes_on_although_the_compaction_before_it_fails() {
    let llm = FakeLlm::start().await;
    llm.push_all([text(&hundred("alpha")), filling(text(&hundred("beta")))]);
    let daemon = keeping(&llm, 150).spawn().await;
    daemon.run(&hundred("first")).await;
    daemon.run(&hundred("second")).await;
    llm.push(Reply::error(400, "invalid_request_error", "no summaries today"));
    llm.push(text("gamma"));
    daemon.run("third").await;
    assert!(daemon.all(json!({ "type": "compaction_end" }))[0]["errorMessage"].is_string());
    assert_eq!(texts_of(&daemon.messages().await, "assistant").last().unwrap(), "gamma");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn with_automatic_compaction_off_a_full_context_is_left_alone() {
    let llm = FakeLlm::start().await;
    llm.push_all([text(&hundred("alpha")), filling(text(&hundred("beta"))), text("gamma")]);
    let daemon = keeping(&llm, 150).spawn().await;
    daemon.ok(json!({ "type": "set_auto_compaction", "enabled": false })).await;
    daemon.run(&hundred("first")).await;
    daemon.run(&hundred("second")).await;
    daemon.run("third").await;
    assert!(daemon.all(json!({ "type": "compaction_start" })).is_empty());
    daemon.finish().await;
    llm.finish();
}

// case 34
#[tokio::test]
async fn a_message_with_an_image_queued_during_an_automatic_compaction_is_delivered_after_it() {
    const PIXEL: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let llm = FakeLlm::start().await;
    llm.push_all([text(&hundred("alpha")), filling(text(&hundred("beta")))]);
    let gate = Gate::new();
    llm.push(Answer::empty().wait(&gate).text("the notes"));
    llm.push_all([text("gamma"), text("delta")]);
    let daemon = keeping(&llm, 150).spawn().await;
    daemon.run(&hundred("first")).await;
    daemon.run(&hundred("second")).await;
    let prompt = daemon.start(json!({ "type": "prompt", "message": "third" })).await;
    gate.reached().await;
    let image = json!({ "type": "image", "data": PIXEL, "mimeType": "image/png" });
    daemon.ok(json!({ "type": "steer", "message": "s1", "images": [image] })).await;
    daemon.ok(json!({ "type": "follow_up", "message": "f1" })).await;
    gate.open();
    assert_eq!(daemon.response(&prompt).await["data"]["disposition"], "started");
    daemon.settled().await;
    let request = llm.request(3).await;
    assert_eq!(request.user_texts()[1..], [hundred("second"), "third".to_owned(), "s1".to_owned()]);
    assert!(request.messages().last().unwrap().to_string().contains(PIXEL), "the image came along");
    assert_eq!(llm.request(4).await.user_texts().last().unwrap(), "f1");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_context_that_fills_up_during_a_run_is_compacted_between_turns() {
    let llm = FakeLlm::start().await;
    llm.push(text(&hundred("alpha")));
    llm.push(filling(tool_call("c1", "bash", json!({ "command": format!("echo {}", hundred("out")) }))));
    llm.push_all([text("the notes"), text("gamma")]);
    let daemon = keeping(&llm, 250).spawn().await;
    daemon.run(&hundred("first")).await;
    daemon.run(&hundred("second")).await;
    let kinds = kinds_of(&daemon, &["turn_end", "turn_start", "compaction", "agent_start", "agent_end"]);
    let expected = [
        "agent_start",
        "turn_start",
        "turn_end",
        "compaction_start",
        "compaction_end",
        "turn_start",
        "turn_end",
        "agent_end",
    ];
    assert_eq!(kinds[kinds.len() - expected.len()..], expected);
    let request = llm.request(3).await;
    assert!(request.user_texts()[0].contains("the notes"), "{:?}", request.user_texts());
    assert_eq!(request.messages_of("tool").len(), 1, "the tool's result is kept with its call");
    daemon.finish().await;
    llm.finish();
}

// case 33
#[tokio::test]
async fn an_abort_during_a_compaction_between_turns_settles_the_run() {
    let llm = FakeLlm::start().await;
    llm.push(text(&hundred("alpha")));
    llm.push(filling(tool_call("c1", "bash", json!({ "command": format!("echo {}", hundred("out")) }))));
    llm.push(text("half of").hang());
    let daemon = keeping(&llm, 250).spawn().await;
    daemon.run(&hundred("first")).await;
    daemon.prompt(&hundred("second")).await;
    llm.exchange(2).await;
    daemon.ok(json!({ "type": "abort" })).await;
    assert_eq!(daemon.settled().await["aborted"], true);
    assert_eq!(daemon.all(json!({ "type": "compaction_end", "aborted": true })).len(), 1);
    assert_eq!(daemon.all(json!({ "type": "agent_settled" })).len(), 2);
    daemon.finish().await;
    llm.finish();
}

// case 49
#[tokio::test]
async fn a_context_that_is_always_too_long_is_compacted_once_and_then_an_error() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    llm.on_request(|request| match is_for_a_summary(request) {
        true => Reply::from(text("the notes")),
        false => {
            Reply::error(400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum")
        }
    });
    daemon.run("third").await;
    assert_eq!(daemon.all(json!({ "type": "compaction_start" })).len(), 1);
    let end = &daemon.all(json!({ "type": "compaction_end" }))[0];
    assert_eq!((&end["reason"], &end["willRetry"]), (&json!("overflow"), &json!(true)));
    let asked = llm.requests()[2..].iter().filter(|request| !is_for_a_summary(request)).count();
    assert_eq!(asked, 2, "the request and one retry");
    assert_eq!(daemon.all(json!({ "type": "agent_settled" })).len(), 3);
    let errors = daemon.all(json!({ "type": "message_end", "message": { "stopReason": "error" } }));
    assert!(errors.last().unwrap()["message"]["errorMessage"].as_str().unwrap().contains("too long"));
    daemon.finish().await;
}

// case 49
#[tokio::test]
async fn after_an_overflow_the_shorter_request_is_sent_and_answered() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    llm.push(Reply::error(
        400,
        "invalid_request_error",
        "prompt is too long: 250000 tokens > 200000 maximum",
    ));
    llm.push_all([text("the notes"), text("gamma")]);
    daemon.run("third").await;
    let messages = daemon.messages().await;
    assert_eq!(texts_of(&messages, "assistant").last().unwrap(), "gamma");
    assert!(!messages.iter().any(|message| message["stopReason"] == "error"));
    assert_eq!(llm.requests().last().unwrap().user_texts().last().unwrap(), "third");
    assert_eq!(daemon.all(json!({ "type": "agent_settled" })).len(), 3);
    daemon.finish().await;
    llm.finish();
}

// case 49
#[tokio::test]
async fn an_answer_cut_off_early_is_recovered_once_and_never_in_a_loop() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    llm.on_request(|request| match is_for_a_summary(request) {
        true => text("the notes"),
        false => text("cut o").stop("length"),
    });
    daemon.run("third").await;
    assert_eq!(daemon.all(json!({ "type": "compaction_start", "reason": "overflow" })).len(), 1);
    let asked = llm.requests()[2..].iter().filter(|request| !is_for_a_summary(request)).count();
    assert_eq!(asked, 2, "the request and one retry");
    daemon.finish().await;
}
