//! Stopping a run at any point.

use sampi_tests::fake_llm::{FakeLlm, text, tool_call};
use sampi_tests::harness::{Daemon, pids_in, text_of_content};
use serde_json::{Value, json};

async fn abort(daemon: &Daemon) {
    daemon.ok(json!({ "type": "abort" })).await;
}

#[tokio::test]
async fn abort_in_mid_answer_keeps_what_was_written_and_hangs_up_on_the_model() {
    let llm = FakeLlm::start().await;
    llm.push(text("Half of it").hang());
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("go").await;
    daemon
        .wait_for(json!({ "type": "message_update", "assistantMessageEvent": { "delta": "Half of it" } }))
        .await;
    abort(&daemon).await;
    llm.exchange(0).await.over().await;
    daemon.wait_for(json!({ "type": "agent_settled", "aborted": true })).await;
    let messages = daemon.messages().await;
    let answer = messages.last().unwrap();
    assert_eq!(answer["stopReason"], "aborted");
    assert_eq!(answer["errorMessage"], "Request was aborted");
    assert_eq!(text_of_content(&answer["content"]), "Half of it");
    assert_eq!(daemon.state().await["isStreaming"], false);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn abort_is_answered_only_when_the_session_is_idle() {
    let llm = FakeLlm::start().await;
    llm.push(text("Half").hang());
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("go").await;
    daemon.wait_for(json!({ "type": "message_update" })).await;
    let id = daemon.start(json!({ "type": "abort" })).await;
    daemon.response(&id).await;
    let kinds: Vec<Value> = daemon.records().into_iter().map(|record| record.value["type"].clone()).collect();
    let settled = kinds.iter().position(|kind| kind == "agent_settled");
    let answered = kinds.iter().rposition(|kind| kind == "response");
    assert!(settled.is_some() && settled < answered, "{kinds:?}");
    daemon.finish().await;
    llm.finish();
}

// case 18
#[tokio::test]
async fn abort_during_a_tool_call_kills_the_whole_tree() {
    let llm = FakeLlm::start().await;
    let command = "echo $$; (sleep 600 & echo $!; wait) & wait";
    llm.push(tool_call("c1", "bash", json!({ "command": command })));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("go").await;
    let output = daemon.tool_output("c1", |output| output.lines().count() == 2).await;
    let pids = pids_in(&json!(output));
    assert_eq!(pids.len(), 2, "{output}");
    abort(&daemon).await;
    for pid in pids {
        pid.gone().await;
    }
    let end = &daemon.all(json!({ "type": "tool_execution_end", "toolCallId": "c1" }))[0];
    assert_eq!(end["isError"], true);
    assert!(text_of_content(&end["result"]["content"]).contains("Command aborted"), "{end}");
    daemon.finish().await;
    llm.finish();
}

// case 35
#[tokio::test]
async fn abort_settles_although_a_command_ignores_the_signals_that_ask() {
    let llm = FakeLlm::start().await;
    let stubborn = "trap '' TERM INT HUP; echo $$; while :; do sleep 0.1; done";
    llm.push(tool_call("c1", "bash", json!({ "command": stubborn })));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("go").await;
    let output = daemon.tool_output("c1", |output| output.ends_with('\n')).await;
    abort(&daemon).await;
    daemon.wait_for(json!({ "type": "agent_settled", "aborted": true })).await;
    for pid in pids_in(&json!(output)) {
        pid.gone().await;
    }
    let result = daemon.all(json!({ "type": "message_end", "message": { "role": "toolResult" } }));
    assert!(text_of_content(&result[0]["message"]["content"]).contains("aborted"), "{result:?}");
    daemon.finish().await;
    llm.finish();
}

// case 32
#[tokio::test]
async fn abort_when_idle_succeeds_and_says_nothing_else() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    for command in ["abort", "abort_bash", "abort_retry"] {
        daemon.ok(json!({ "type": command })).await;
    }
    assert_eq!(daemon.records().len(), 3);
    daemon.finish().await;
}

#[tokio::test]
async fn two_aborts_at_once_are_both_answered_and_the_run_settles_once() {
    let llm = FakeLlm::start().await;
    llm.push(text("Half").hang());
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("go").await;
    daemon.wait_for(json!({ "type": "message_update" })).await;
    daemon.send_raw(b"{\"id\":\"a\",\"type\":\"abort\"}\n{\"id\":\"b\",\"type\":\"abort\"}\n").await;
    for id in ["a", "b"] {
        assert_eq!(daemon.response(&json!(id)).await["success"], true);
    }
    assert_eq!(daemon.all(json!({ "type": "agent_settled" })).len(), 1);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn an_abort_that_comes_right_behind_the_prompt_ends_its_run() {
    let llm = FakeLlm::start().await;
    llm.on_request(|_| text("Half").hang());
    let daemon = Daemon::builder(&llm).spawn().await;
    let both = "{\"id\":\"p\",\"type\":\"prompt\",\"message\":\"go\"}\n{\"id\":\"a\",\"type\":\"abort\"}\n";
    daemon.send_raw(both.as_bytes()).await;
    assert_eq!(daemon.response(&json!("a")).await["success"], true);
    assert_eq!(daemon.response(&json!("p")).await["success"], true);
    daemon.settled().await;
    assert_eq!(daemon.state().await["isStreaming"], false);
    daemon.finish().await;
}

#[tokio::test]
async fn the_conversation_goes_on_after_an_abort_and_every_tool_call_is_answered() {
    let llm = FakeLlm::start().await;
    let calls = tool_call("c1", "bash", json!({ "command": "echo $$; sleep 600" })).tool_call(
        "c2",
        "bash",
        json!({ "command": "sleep 600" }),
    );
    llm.push(calls);
    llm.push(text("Fine."));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("go").await;
    daemon.tool_output("c1", |output| output.ends_with('\n')).await;
    abort(&daemon).await;
    daemon.settled().await;
    // The model server refuses a request with an unanswered call.
    daemon.run("next").await;
    assert_eq!(llm.requests()[1].messages_of("tool").len(), 2);
    let messages = daemon.messages().await;
    assert_eq!(text_of_content(&messages.last().unwrap()["content"]), "Fine.");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn the_conversation_goes_on_after_an_abort_in_the_middle_of_a_tool_calls_arguments() {
    let llm = FakeLlm::start().await;
    llm.push(text("Calling.").raw_tool_call("c1", "bash", "{\"command\": \"sl").hang());
    llm.push(text("Fine."));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("go").await;
    daemon
        .wait_for(json!({ "type": "message_update", "assistantMessageEvent": { "type": "toolcall_delta" } }))
        .await;
    abort(&daemon).await;
    daemon.settled().await;
    daemon.run("next").await;
    assert!(daemon.all(json!({ "type": "tool_execution_start" })).is_empty());
    daemon.finish().await;
    llm.finish();
}
