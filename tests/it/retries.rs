//! Automatic retry: what is tried again, how long it waits, and what can be done meanwhile.

use sampi_tests::fake_llm::{FakeLlm, RecordedRequest, Reply, text};
use sampi_tests::harness::{Daemon, DaemonBuilder, Model, text_of_content};
use serde_json::{Value, json};

/// A delay that no test waits for.
const VERY_LONG: u64 = 3_600_000;

/// A daemon that retries at once.
fn eager(llm: &FakeLlm) -> DaemonBuilder {
    Daemon::builder(llm).settings(json!({ "retry": { "baseDelayMs": 1 } }))
}

/// A daemon whose first attempt has failed and that waits for the next one.
async fn waiting_daemon(llm: &FakeLlm) -> Daemon {
    llm.push(Reply::error(503, "api_error", "down"));
    let settings = json!({ "retry": { "baseDelayMs": VERY_LONG, "maxAgentDelayMs": VERY_LONG } });
    let daemon = Daemon::builder(llm).settings(settings).spawn().await;
    daemon.prompt("go").await;
    daemon.wait_for(json!({ "type": "entry_appended", "entry": { "type": "context_edit" } })).await;
    daemon
}

/// The kinds of all events, updates of messages left out.
fn kinds(daemon: &Daemon) -> Vec<String> {
    let records = daemon.records().into_iter().map(|record| record.value);
    let events = records.filter(|value| value["type"] != "response" && value["type"] != "message_update");
    events.map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// What an attempt that fails looks like, from `agent_start` to the wait.
const FAILED_ATTEMPT: &str = "message_start message_end turn_end agent_end auto_retry_start entry_appended";

async fn entries(daemon: &Daemon) -> Vec<Value> {
    let data = daemon.ok(json!({ "type": "get_entries" })).await;
    data["entries"].as_array().unwrap().clone()
}

fn user_messages(messages: &[Value]) -> Vec<String> {
    let users = messages.iter().filter(|message| message["role"] == "user");
    users.map(|message| text_of_content(&message["content"])).collect()
}

// case 27
#[tokio::test]
async fn errors_that_pass_are_tried_again_and_the_events_come_in_order() {
    let passing: [(u16, &str); 7] = [
        (429, "rate_limit_error"),
        (500, "api_error"),
        (502, "api_error"),
        (503, "api_error"),
        (504, "timeout_error"),
        (529, "overloaded_error"),
        (408, "api_error"),
    ];
    for (status, kind) in passing {
        let llm = FakeLlm::start().await;
        llm.push_all([Reply::error(status, kind, "not now"), Reply::error(status, kind, "not now")]);
        llm.push(text("made it"));
        let model = if status == 529 { Model::Anthropic } else { Model::Plain };
        let daemon = eager(&llm).model(model).spawn().await;
        daemon.run("go").await;
        let prompted = "agent_start turn_start message_start message_end message_start message_end";
        let expected = format!(
            "{prompted} {FAILED_ATTEMPT} agent_start turn_start {FAILED_ATTEMPT} agent_start turn_start \
             message_start message_end auto_retry_end turn_end agent_end agent_settled"
        );
        assert_eq!(kinds(&daemon), words(&expected), "status {status}");
        let starts = daemon.all(json!({ "type": "auto_retry_start" }));
        let numbers = |event: &Value| json!([event["attempt"], event["maxAttempts"], event["delayMs"]]);
        assert_eq!(starts.iter().map(numbers).collect::<Vec<_>>(), [json!([1, 3, 1]), json!([2, 3, 2])]);
        assert!(starts[0]["errorMessage"].as_str().unwrap().contains("not now"));
        assert_eq!(
            daemon.all(json!({ "type": "auto_retry_end" })),
            [json!({ "type": "auto_retry_end", "success": true, "attempt": 2 })]
        );
        let ends = daemon.all(json!({ "type": "agent_end" }));
        assert_eq!(
            ends.iter().map(|end| &end["willRetry"]).collect::<Vec<_>>(),
            [&json!(true), &json!(true), &json!(false)]
        );
        daemon.finish().await;
        llm.finish();
    }
}

// case 27
#[tokio::test]
async fn a_connection_cut_in_mid_answer_is_tried_again() {
    for model in [Model::Plain, Model::Anthropic] {
        let llm = FakeLlm::start().await;
        llm.push(text("half of an ans").cut());
        llm.push(text("whole"));
        let daemon = eager(&llm).model(model).spawn().await;
        daemon.run("go").await;
        let messages = daemon.messages().await;
        assert_eq!(text_of_content(&messages.last().unwrap()["content"]), "whole");
        assert_eq!(messages.iter().filter(|message| message["role"] == "assistant").count(), 1);
        let request = llm.request(1).await;
        assert!(request.messages_of("assistant").is_empty(), "the half answer is not in the context");
        daemon.finish().await;
        llm.finish();
    }
}

// cases 5 and 29
#[tokio::test]
async fn a_model_server_that_falls_silent_is_tried_again_after_the_idle_timeout() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::silence());
    llm.push(text("half").hang());
    llm.push(text("whole"));
    let settings = json!({ "httpIdleTimeoutMs": 100, "retry": { "baseDelayMs": 1 } });
    let daemon = Daemon::builder(&llm).settings(settings).spawn().await;
    daemon.run("go").await;
    assert_eq!(daemon.all(json!({ "type": "auto_retry_start" })).len(), 2);
    assert_eq!(daemon.all(json!({ "type": "auto_retry_end", "success": true })).len(), 1);
    let messages = daemon.messages().await;
    assert_eq!(text_of_content(&messages.last().unwrap()["content"]), "whole");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn when_all_attempts_fail_the_run_ends_with_the_last_error() {
    let llm = FakeLlm::start().await;
    llm.on_request(|_| Reply::error(503, "api_error", "down"));
    let settings = json!({ "retry": { "baseDelayMs": 1, "maxRetries": 2 } });
    let daemon = Daemon::builder(&llm).settings(settings).spawn().await;
    daemon.run("go").await;
    assert_eq!(llm.requests().len(), 3);
    let end = daemon.all(json!({ "type": "auto_retry_end" }));
    assert_eq!(end.len(), 1);
    assert_eq!((&end[0]["success"], &end[0]["attempt"]), (&json!(false), &json!(2)));
    assert!(end[0]["finalError"].as_str().unwrap().contains("down"));
    let kinds = kinds(&daemon);
    assert_eq!(kinds[kinds.len() - 3..], words("agent_end auto_retry_end agent_settled"));
    // The next prompt has all its attempts again.
    daemon.run("again").await;
    assert_eq!(llm.requests().len(), 6);
    daemon.finish().await;
}

// case 28
#[tokio::test]
async fn errors_that_do_not_pass_are_not_tried_again() {
    let lasting: [(u16, &str, &str); 5] = [
        (400, "invalid_request_error", "no such parameter"),
        (401, "authentication_error", "bad key"),
        (403, "permission_error", "not yours"),
        (404, "not_found_error", "no such model"),
        (429, "insufficient_quota", "You exceeded your current quota"),
    ];
    for (status, kind, message) in lasting {
        let llm = FakeLlm::start().await;
        llm.push(Reply::error(status, kind, message));
        let daemon = eager(&llm).spawn().await;
        daemon.run("go").await;
        assert!(daemon.all(json!({ "type": "auto_retry_start" })).is_empty(), "status {status}");
        let error = daemon.all(json!({ "type": "message_end", "message": { "stopReason": "error" } }));
        assert!(error[0]["message"]["errorMessage"].as_str().unwrap().contains(message), "{}", error[0]);
        daemon.finish().await;
        llm.finish();
    }
}

// case 27
#[tokio::test]
async fn retry_after_is_honoured_up_to_the_configured_maximum() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::error(429, "rate_limit_error", "slow down").retry_after(3600));
    let settings = json!({ "retry": { "baseDelayMs": 1, "provider": { "maxRetryDelayMs": VERY_LONG } } });
    let daemon = Daemon::builder(&llm).settings(settings).spawn().await;
    daemon.prompt("go").await;
    let start = daemon.wait_for(json!({ "type": "auto_retry_start" })).await;
    assert_eq!(start["delayMs"], VERY_LONG);
    daemon.ok(json!({ "type": "abort_retry" })).await;
    daemon.settled().await;
    daemon.finish().await;
    llm.finish();

    let llm = FakeLlm::start().await;
    llm.push(Reply::error(429, "rate_limit_error", "slow down").retry_after(61));
    let daemon = eager(&llm).spawn().await;
    daemon.run("go").await;
    assert!(daemon.all(json!({ "type": "auto_retry_start" })).is_empty(), "61 s are over the default limit");
    assert_eq!(daemon.all(json!({ "type": "agent_end", "willRetry": false })).len(), 1);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn attempts_inside_a_request_are_made_before_the_run_hears_of_a_failure() {
    let llm = FakeLlm::start().await;
    let busy = || Reply::error(503, "api_error", "busy").retry_after(0);
    let settings = json!({ "retry": { "enabled": false, "provider": { "maxRetries": 2 } } });
    llm.push_all([busy(), busy()]);
    llm.push(text("made it"));
    let daemon = Daemon::builder(&llm).settings(settings).spawn().await;
    daemon.run("go").await;
    assert_eq!(text_of_content(&daemon.messages().await.last().unwrap()["content"]), "made it");
    assert_eq!((llm.requests().len(), daemon.all(json!({ "type": "auto_retry_start" })).len()), (3, 0));

    llm.push_all([busy(), busy(), busy()]);
    daemon.run("again").await;
    let last = daemon.messages().await.pop().unwrap();
    assert_eq!((&last["stopReason"], llm.requests().len()), (&json!("error"), 6));
    // What another attempt does not change is not tried again, nor what the provider wants to be late for.
    for refusal in [
        Reply::error(400, "invalid_request_error", "no"),
        Reply::error(429, "rate_limit_error", "slow down").retry_after(61),
    ] {
        let before = llm.requests().len();
        llm.push(refusal);
        daemon.run("again").await;
        assert_eq!(llm.requests().len(), before + 1);
    }
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn the_head_of_a_response_may_take_as_long_as_the_settings_say() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::silence());
    llm.push(text("made it"));
    let settings = json!({ "retry": { "baseDelayMs": 1, "provider": { "timeoutMs": 500 } } });
    let daemon = Daemon::builder(&llm).settings(settings).spawn().await;
    daemon.run("go").await;
    let start = &daemon.all(json!({ "type": "auto_retry_start" }))[0];
    assert!(start["errorMessage"].as_str().unwrap().contains("0.5 seconds"), "{start}");
    assert_eq!(text_of_content(&daemon.messages().await.last().unwrap()["content"]), "made it");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn an_abort_ends_the_wait_between_attempts_inside_a_request() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::error(503, "api_error", "busy").retry_after(3600));
    let provider = json!({ "maxRetries": 1, "maxRetryDelayMs": 0 });
    let daemon = Daemon::builder(&llm).settings(json!({ "retry": { "provider": provider } })).spawn().await;
    daemon.prompt("go").await;
    llm.request(0).await;
    daemon.ok(json!({ "type": "abort" })).await;
    daemon.settled().await;
    assert_eq!(daemon.messages().await.pop().unwrap()["stopReason"], "aborted");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn abort_retry_ends_the_wait_and_settles_at_once() {
    let llm = FakeLlm::start().await;
    let daemon = waiting_daemon(&llm).await;
    assert_eq!(daemon.state().await["isStreaming"], true);
    daemon.ok(json!({ "type": "abort_retry" })).await;
    let end = daemon.wait_for(json!({ "type": "auto_retry_end" })).await;
    assert_eq!((&end["success"], &end["attempt"]), (&json!(false), &json!(1)));
    assert_eq!(end["finalError"], "Retry cancelled");
    daemon.settled().await;
    assert_eq!(daemon.state().await["isStreaming"], false);
    // Nothing waits any more: a second one does nothing, and a prompt works.
    daemon.ok(json!({ "type": "abort_retry" })).await;
    llm.push(text("ok"));
    daemon.run("again").await;
    assert_eq!(llm.request(1).await.user_texts(), ["go", "again"]);
    assert_eq!(daemon.all(json!({ "type": "auto_retry_end" })).len(), 1);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn abort_during_the_wait_settles_at_once() {
    let llm = FakeLlm::start().await;
    let daemon = waiting_daemon(&llm).await;
    daemon.ok(json!({ "type": "abort" })).await;
    let settled = daemon.settled().await;
    assert_eq!(settled["aborted"], true);
    assert_eq!(daemon.all(json!({ "type": "auto_retry_end", "success": false })).len(), 1);
    assert_eq!(daemon.all(json!({ "type": "agent_settled" })).len(), 1);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn the_end_of_stdin_during_the_wait_ends_the_daemon_in_order() {
    let llm = FakeLlm::start().await;
    let daemon = waiting_daemon(&llm).await;
    daemon.close_stdin().await;
    daemon.settled().await;
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn with_auto_retry_off_the_first_error_settles() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::error(503, "api_error", "down"));
    let daemon = eager(&llm).spawn().await;
    daemon.ok(json!({ "type": "set_auto_retry", "enabled": false })).await;
    daemon.run("go").await;
    assert!(daemon.all(json!({ "type": "auto_retry_start" })).is_empty());
    assert_eq!(daemon.all(json!({ "type": "agent_end", "willRetry": false })).len(), 1);
    llm.push(Reply::error(503, "api_error", "down"));
    llm.push(text("ok"));
    daemon.ok(json!({ "type": "set_auto_retry", "enabled": true })).await;
    daemon.run("again").await;
    assert_eq!(daemon.all(json!({ "type": "auto_retry_end", "success": true })).len(), 1);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn failed_attempts_stay_in_the_file_and_leave_the_models_context_also_after_a_restart() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::error(503, "api_error", "down"));
    llm.push(text("made it"));
    let daemon = eager(&llm).spawn().await;
    daemon.run("go").await;
    let all = entries(&daemon).await;
    let failed = all.iter().position(|entry| entry["message"]["stopReason"] == "error").unwrap();
    let edit = &all[failed + 1];
    assert_eq!((&edit["type"], &edit["targetId"]), (&json!("context_edit"), &all[failed]["id"]));
    assert_eq!(edit["replacement"], Value::Null);
    let messages = daemon.messages().await;
    assert!(!messages.iter().any(|message| message["stopReason"] == "error"), "{messages:?}");
    let file = daemon.state().await["sessionFile"].as_str().unwrap().to_owned();
    let workspace = daemon.finish().await;

    llm.push(text("still here"));
    let daemon = Daemon::builder(&llm).in_workspace(workspace).args(["--session", &file]).spawn().await;
    assert_eq!(daemon.messages().await, messages);
    daemon.run("next").await;
    let request = llm.request(2).await;
    let answers: Vec<String> =
        request.messages_of("assistant").into_iter().map(RecordedRequest::text_of).collect();
    assert_eq!(answers, ["made it"]);
    daemon.finish().await;
    llm.finish();
}

// case 31
#[tokio::test]
async fn messages_queued_during_the_wait_are_delivered_after_it() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::error(429, "rate_limit_error", "slow down").retry_after(2));
    llm.push_all([text("one"), text("two")]);
    let daemon = eager(&llm).spawn().await;
    daemon.prompt("go").await;
    daemon.wait_for(json!({ "type": "auto_retry_start" })).await;
    for (kind, message) in [("steer", "s1"), ("follow_up", "f1")] {
        let data = daemon.ok(json!({ "type": kind, "message": message })).await;
        assert_eq!(data, json!({ "disposition": "queued" }));
    }
    let refused = daemon.refused(json!({ "type": "prompt", "message": "p" })).await;
    refused.assert_code("busy");
    daemon.settled().await;
    assert_eq!(llm.request(1).await.user_texts(), ["go", "s1"]);
    assert_eq!(llm.request(2).await.user_texts(), ["go", "s1", "f1"]);
    assert_eq!(user_messages(&daemon.messages().await), ["go", "s1", "f1"]);
    assert_eq!(daemon.state().await["pendingMessageCount"], 0);
    daemon.finish().await;
    llm.finish();
}

// case 31
#[tokio::test]
async fn messages_queued_before_abort_retry_wait_for_the_next_prompt() {
    let llm = FakeLlm::start().await;
    let daemon = waiting_daemon(&llm).await;
    daemon.ok(json!({ "type": "steer", "message": "s1" })).await;
    daemon.ok(json!({ "type": "abort_retry" })).await;
    daemon.settled().await;
    assert_eq!(daemon.state().await["pendingMessageCount"], 1);
    llm.push(text("ok"));
    daemon.run("next").await;
    assert_eq!(llm.request(1).await.user_texts(), ["go", "next", "s1"]);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_retry_after_tool_calls_goes_on_where_the_run_was() {
    let llm = FakeLlm::start().await;
    llm.push(sampi_tests::fake_llm::tool_call("c1", "bash", json!({ "command": "echo once >> ran" })));
    llm.push(Reply::error(503, "api_error", "down"));
    llm.push(text("done"));
    let daemon = eager(&llm).spawn().await;
    daemon.run("go").await;
    let ran = std::fs::read_to_string(daemon.workspace().cwd().join("ran")).unwrap();
    assert_eq!(ran, "once\n", "the tool ran once");
    assert_eq!(llm.request(2).await.messages().len(), llm.request(1).await.messages().len());
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn an_abort_in_the_second_attempt_settles_without_another() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::error(503, "api_error", "down"));
    llm.push(Reply::silence());
    let daemon = eager(&llm).spawn().await;
    daemon.prompt("go").await;
    llm.exchange(1).await;
    daemon.ok(json!({ "type": "abort" })).await;
    let settled = daemon.settled().await;
    assert_eq!(settled["aborted"], true);
    assert_eq!(llm.requests().len(), 2);
    daemon.finish().await;
    llm.finish();
}
