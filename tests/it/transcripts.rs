//! Whole transcripts, compared with goldens.
//!
//! The goldens in `tests/golden` were written by Pi 1.6.0 itself: run these tests with
//! `SAMPI_TEST_DAEMON` set to Pi's command and `INSTA_UPDATE=always` to write them anew.

use sampi_tests::fake_llm::{Answer, FakeLlm, Gate, Reply, Tokens, text, thinking, tool_call};
use sampi_tests::harness::{Daemon, Model};
use serde_json::{Value, json};

/// Ends the daemon and compares all that it wrote.
async fn assert_golden(name: &str, daemon: Daemon) {
    daemon.ok(json!({ "id": "end-messages", "type": "get_messages" })).await;
    daemon.ok(json!({ "id": "end-entries", "type": "get_entries" })).await;
    daemon.ok(json!({ "id": "end-state", "type": "get_state" })).await;
    let transcript = daemon.normalised();
    daemon.finish().await;
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../golden");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, transcript));
}

#[tokio::test]
async fn an_answer_of_text() {
    let llm = FakeLlm::start().await;
    llm.push(text("Hello there, friend. a\u{2028}b \u{1f600} \"q\" \\ \t end"));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("hi").await;
    daemon.ok(json!({ "type": "get_session_stats" })).await;
    daemon.ok(json!({ "type": "get_last_assistant_text" })).await;
    assert_golden("text", daemon).await;
    llm.finish();
}

#[tokio::test]
async fn tool_calls_over_openai() {
    tools("tools-openai", Model::Plain).await;
}

#[tokio::test]
async fn tool_calls_over_anthropic() {
    tools("tools-anthropic", Model::Anthropic).await;
}

async fn tools(name: &str, model: Model) {
    let llm = FakeLlm::start().await;
    llm.push(text("Reading.").tool_call("call_a", "read", json!({ "path": "a.txt" })).tool_call(
        "call_b",
        "bash",
        json!({ "command": "echo hi" }),
    ));
    llm.push(tool_call(
        "call_c",
        "edit",
        json!({
            "path": "a.txt", "edits": [{ "oldText": "hello", "newText": "HELLO" }],
        }),
    ));
    llm.push(tool_call("call_d", "write", json!({ "path": "sub/b.txt", "content": "one\ntwo\n" })));
    llm.push(text("Fin.").usage(Tokens { input: 500, output: 20, cache_read: 300, cache_write: 0 }));
    let daemon = Daemon::builder(&llm).model(model).file("a.txt", "hello\nworld\n").spawn().await;
    daemon.run("go").await;
    daemon.ok(json!({ "type": "get_session_stats" })).await;
    assert_golden(name, daemon).await;
    llm.finish();
}

#[tokio::test]
async fn tool_calls_that_fail() {
    let llm = FakeLlm::start().await;
    llm.push(
        tool_call("c1", "read", json!({ "path": "missing.txt" }))
            .tool_call("c2", "bash", json!({ "command": "echo out; exit 3" }))
            .tool_call("c3", "nosuch", json!({}))
            .tool_call(
                "c5",
                "edit",
                json!({ "path": "a.txt", "edits": [{ "oldText": "zzz", "newText": "y" }] }),
            )
            .tool_call(
                "c6",
                "edit",
                json!({ "path": "a.txt", "edits": [{ "oldText": "o", "newText": "y" }] }),
            )
            .raw_tool_call("c7", "bash", "{\"command\": \"echo unfinished"),
    );
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).file("a.txt", "hello\nworld\n").spawn().await;
    daemon.run("go").await;
    assert_golden("tool-errors", daemon).await;
    llm.finish();
}

#[tokio::test]
async fn thinking_over_anthropic() {
    let llm = FakeLlm::start().await;
    llm.push(thinking("let me think about it").text("Then.").tool_call(
        "c1",
        "read",
        json!({ "path": "a.txt" }),
    ));
    llm.push(text("done"));
    let daemon =
        Daemon::builder(&llm).model(Model::Anthropic).args(["--thinking", "high"]).file("a.txt", "x\n");
    let daemon = daemon.spawn().await;
    daemon.run("go").await;
    assert_golden("thinking-anthropic", daemon).await;
    llm.finish();
}

#[tokio::test]
async fn thinking_over_openai() {
    let llm = FakeLlm::start().await;
    llm.push(thinking("let me think about it").text("done"));
    let daemon = Daemon::builder(&llm).model(Model::Reasoning).args(["--thinking", "low"]).spawn().await;
    daemon.run("go").await;
    assert_golden("thinking-openai", daemon).await;
    llm.finish();
}

#[tokio::test]
async fn errors_of_the_provider() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::error(401, "authentication_error", "bad key"));
    llm.push(Reply::error(400, "invalid_request_error", "no such thing"));
    llm.push(text("Better."));
    let daemon = Daemon::builder(&llm).model(Model::Anthropic).spawn().await;
    for message in ["one", "two", "three"] {
        daemon.run(message).await;
    }
    assert_golden("errors", daemon).await;
    llm.finish();
}

#[tokio::test]
async fn an_answer_cut_off_at_its_limit() {
    let llm = FakeLlm::start().await;
    llm.push(text("cut off").stop("max_tokens"));
    let daemon = Daemon::builder(&llm).model(Model::Anthropic).spawn().await;
    daemon.run("go").await;
    assert_golden("length", daemon).await;
    llm.finish();
}

#[tokio::test]
async fn steering_and_follow_ups() {
    let llm = FakeLlm::start().await;
    let gate = Gate::new();
    llm.push(tool_call("c1", "bash", json!({ "command": "echo x" })).wait(&gate));
    llm.push_all([text("after"), text("more"), text("last")]);
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("go").await;
    gate.reached().await;
    // The last of the deltas, so that what is queued has one place among the events.
    let is_last = |record: &Value| {
        record["assistantMessageEvent"]["delta"].as_str().is_some_and(|delta| delta.ends_with('}'))
    };
    daemon.wait_until("the end of the tool call's arguments", is_last).await;
    for (kind, message) in [("steer", "steer one"), ("steer", "steer two"), ("follow_up", "follow one")] {
        daemon.ok(json!({ "type": kind, "message": message })).await;
    }
    daemon.state().await;
    gate.open();
    daemon.settled().await;
    assert_golden("steer-follow", daemon).await;
    llm.finish();
}

#[tokio::test]
async fn an_abort_in_mid_answer() {
    let llm = FakeLlm::start().await;
    llm.push(text("Half of it").hang());
    llm.push(text("Whole."));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("go").await;
    daemon
        .wait_for(json!({ "type": "message_update", "assistantMessageEvent": { "delta": "Half of it" } }))
        .await;
    daemon.ok(json!({ "type": "abort" })).await;
    daemon.settled().await;
    daemon.run("again").await;
    assert_golden("abort-answer", daemon).await;
    llm.finish();
}

#[tokio::test]
async fn an_abort_in_a_tool_call() {
    let llm = FakeLlm::start().await;
    llm.push(tool_call("c1", "bash", json!({ "command": "echo before; sleep 600" })));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("go").await;
    daemon.tool_output("c1", |output| output.contains("before")).await;
    daemon.ok(json!({ "type": "abort" })).await;
    daemon.settled().await;
    assert_golden("abort-tool", daemon).await;
    llm.finish();
}

#[tokio::test]
async fn shell_commands_of_the_user() {
    let llm = FakeLlm::start().await;
    llm.push(Answer::empty().text("ok"));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.ok(json!({ "type": "bash", "command": "printf 'a\\nb\\n'; exit 4" })).await;
    daemon.ok(json!({ "type": "bash", "command": "echo apart", "excludeFromContext": true })).await;
    daemon.ok(json!({ "type": "bash", "command": "true" })).await;
    daemon.run("go").await;
    assert_golden("bash", daemon).await;
    llm.finish();
}

#[tokio::test]
async fn models_levels_and_names() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).args(["--name", "first"]).spawn().await;
    for command in [
        json!({ "type": "get_state" }),
        json!({ "type": "cycle_model" }),
        json!({ "type": "get_available_thinking_levels" }),
        json!({ "type": "cycle_thinking_level" }),
        json!({ "type": "set_thinking_level", "level": "high" }),
        json!({ "type": "set_model", "provider": "mock", "modelId": "m1" }),
        json!({ "type": "set_thinking_level", "level": "xhigh" }),
        json!({ "type": "set_session_name", "name": " second\nname " }),
        json!({ "type": "set_steering_mode", "mode": "all" }),
        json!({ "type": "get_available_models" }),
        json!({ "type": "get_session_stats" }),
    ] {
        daemon.ok(command).await;
    }
    assert_golden("models-levels-names", daemon).await;
    llm.finish();
}
