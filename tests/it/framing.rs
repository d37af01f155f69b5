//! Records in and out: lines, bytes, limits.

use sampi_tests::fake_llm::{FakeLlm, text, tool_call};
use sampi_tests::harness::{Daemon, text_of_content};
use serde_json::json;

/// The default limit of one frame.
const FRAME_LIMIT: usize = 64 * 1024 * 1024;

// case 1
#[tokio::test]
async fn a_line_that_is_not_json_gets_one_parse_error_and_the_daemon_lives_on() {
    let llm = FakeLlm::start().await;
    llm.push(text("Hello."));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.send_raw(b"ls\n").await;
    let response = daemon.wait_for(json!({ "type": "response", "command": "parse", "success": false })).await;
    assert!(response["error"].as_str().unwrap().starts_with("Failed to parse command: "), "{response}");
    assert!(response.get("id").is_none());
    daemon.run("hi").await;
    assert_eq!(daemon.all(json!({ "type": "response", "command": "parse" })).len(), 1);
    daemon.finish().await;
    llm.finish();
}

// case 1
#[tokio::test]
async fn blank_lines_are_skipped_silently() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.state().await;
    let mark = daemon.mark();
    daemon.send_raw(b"\n\r\n\n   \n\t \r\n").await;
    daemon.state().await;
    assert_eq!(daemon.records_since(mark).len(), 1);
    daemon.finish().await;
}

// case 5
#[tokio::test]
async fn raw_line_separators_pass_through_a_prompt_and_an_answer_unchanged() {
    const TEXT: &str = "a\u{2028}b\u{2029}c\u{85}d\u{b}e \u{1f600} \"q\" \\ \t end";
    let llm = FakeLlm::start().await;
    llm.push(text(TEXT));
    let daemon = Daemon::builder(&llm).spawn().await;
    // serde_json writes the separators raw, which is the point.
    daemon.run(TEXT).await;
    let messages = daemon.messages().await;
    let (user, assistant) = (&messages[1], &messages[2]);
    assert_eq!(text_of_content(&user["content"]), TEXT);
    assert_eq!(text_of_content(&assistant["content"]), TEXT);
    assert_eq!(llm.requests()[0].user_texts(), [TEXT]);
    daemon.finish().await;
    llm.finish();
}

// case 6
#[tokio::test]
async fn crlf_line_ends_are_accepted() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon
        .send_raw(b"{\"id\":\"a\",\"type\":\"get_state\"}\r\n{\"id\":\"b\",\"type\":\"get_state\"}\r\n")
        .await;
    for id in ["a", "b"] {
        assert_eq!(daemon.response(&json!(id)).await["success"], true);
    }
    daemon.finish().await;
}

// case 6
#[tokio::test]
async fn one_record_in_three_writes_is_one_record() {
    let llm = FakeLlm::start().await;
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).spawn().await;
    let record = "{\"id\":\"p\",\"type\":\"prompt\",\"message\":\"caf\u{e9}\"}\n".as_bytes();
    // The second cut goes through the middle of the é.
    for piece in [&record[..9], &record[9..41], &record[41..]] {
        daemon.send_raw(piece).await;
        // A whole command of another kind cannot come between, so let the daemon see the pieces apart.
        tokio::task::yield_now().await;
    }
    assert_eq!(daemon.response(&json!("p")).await["success"], true);
    daemon.settled().await;
    assert_eq!(llm.requests()[0].user_texts(), ["caf\u{e9}"]);
    daemon.finish().await;
    llm.finish();
}

// case 7
#[tokio::test]
async fn a_frame_over_the_limit_fails_alone_with_a_clear_error() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let message = "x".repeat(FRAME_LIMIT);
    daemon.send(json!({ "id": "big", "type": "prompt", "message": message })).await;
    let response = daemon.wait_for(json!({ "type": "response", "success": false })).await;
    assert!(response["id"] == "big" || response["command"] == "parse", "{response}");
    assert_eq!(response["code"], "parse");
    let error = response["error"].as_str().unwrap().to_lowercase();
    assert!(error.contains("limit") || error.contains("too long") || error.contains("too large"), "{error}");
    assert!(error.len() < 1000, "the record is not repeated in the error");
    daemon.state().await;
    assert_eq!(llm.requests().len(), 0);
    daemon.finish().await;
}

// case 8
#[tokio::test]
async fn the_limit_counts_one_frame_and_never_the_whole_connection() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let padding = "x".repeat(FRAME_LIMIT / 4);
    for _ in 0..5 {
        daemon.ok(json!({ "type": "get_state", "padding": padding })).await;
    }
    daemon.finish().await;
}

// case 9
#[tokio::test]
async fn bytes_that_are_not_utf8_on_stdin_are_an_error_and_the_next_line_works() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.send_raw(b"{\"id\":\"u\",\"type\":\"set_session_name\",\"name\":\"a\xff\xfeb\"}\n").await;
    let response = daemon.wait_for(json!({ "type": "response", "success": false, "code": "parse" })).await;
    assert!(response["id"] == "u" || response["command"] == "parse", "{response}");
    assert!(daemon.state().await.get("sessionName").is_none());
    daemon.finish().await;
}

// case 9
#[tokio::test]
async fn bytes_that_are_not_utf8_from_a_command_become_replacement_characters() {
    let llm = FakeLlm::start().await;
    llm.push(tool_call("c1", "bash", json!({ "command": "printf 'a\\377b\\n'" })));
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).spawn().await;
    let data = daemon.ok(json!({ "type": "bash", "command": "printf 'a\\377b\\n'" })).await;
    assert_eq!(data["output"], "a\u{fffd}b\n");
    daemon.run("go").await;
    let end = &daemon.all(json!({ "type": "tool_execution_end" }))[0];
    assert_eq!(text_of_content(&end["result"]["content"]), "a\u{fffd}b\n");
    daemon.finish().await;
    llm.finish();
}

// case 9
#[tokio::test]
async fn a_character_cut_between_two_reads_of_a_commands_output_stays_whole() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let command = "printf 'x\\303'; until [ -e go ]; do sleep 0.02; done; printf '\\251y\\n'";
    let id = daemon.start(json!({ "type": "bash", "command": command })).await;
    daemon.bash_output(&id, |output| output.contains('x')).await;
    std::fs::write(daemon.workspace().cwd().join("go"), "").unwrap();
    assert_eq!(daemon.response(&id).await["data"]["output"], "x\u{e9}y\n");
    let deltas: String = (daemon.all(json!({ "type": "bash_execution_update" })).iter())
        .map(|event| event["delta"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(deltas, "x\u{e9}y\n");
    daemon.finish().await;
}

// case 10
#[tokio::test]
async fn nothing_but_records_is_on_stdout_whatever_a_child_prints() {
    let llm = FakeLlm::start().await;
    let noise = "echo out; echo err >&2; printf 'no line end'";
    llm.push(tool_call("c1", "bash", json!({ "command": noise })));
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).settings(json!({ "unheardOf": { "a": 1 } })).spawn().await;
    daemon.ok(json!({ "type": "bash", "command": noise })).await;
    daemon.run("go").await;
    assert!(daemon.records()[0].line.starts_with('{'));
    daemon.assert_only_records();
    daemon.finish().await;
    llm.finish();
}

// case 10
#[tokio::test]
async fn a_broken_settings_file_is_reported_on_stderr_and_never_on_stdout() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).agent_file("settings.json", "{ \"retry\": ").spawn().await;
    daemon.state().await;
    assert!(daemon.stderr().contains("settings.json"), "stderr: {}", daemon.stderr());
    daemon.finish().await;
}

// case 11
#[tokio::test]
async fn a_handler_that_fails_gives_a_failure_with_the_commands_id() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).args(["--no-session"]).spawn().await;
    let failure = daemon.refused(json!({ "id": "e", "type": "export_html" })).await;
    assert_eq!(failure.response["id"], "e");
    assert_eq!(failure.response["command"], "export_html");
    daemon.state().await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_lone_surrogate_in_a_prompt_becomes_a_replacement_character() {
    let llm = FakeLlm::start().await;
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.send_raw(b"{\"id\":\"p\",\"type\":\"prompt\",\"message\":\"cut \\ud83d here\"}\n").await;
    assert_eq!(daemon.response(&json!("p")).await["success"], true);
    daemon.settled().await;
    assert_eq!(llm.requests()[0].user_texts(), ["cut \u{fffd} here"]);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn responses_carry_the_id_of_their_command_and_slow_commands_hold_up_nothing() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let wait = "until [ -e go ]; do sleep 0.02; done; echo done";
    let slow = daemon.start(json!({ "id": "slow", "type": "bash", "command": wait })).await;
    let commands =
        ["get_state", "get_messages", "get_entries", "get_last_assistant_text", "get_session_stats"];
    for command in commands {
        daemon.ok(json!({ "type": command })).await;
    }
    assert!(daemon.all(json!({ "type": "response", "id": slow })).is_empty());
    std::fs::write(daemon.workspace().cwd().join("go"), "").unwrap();
    assert_eq!(daemon.response(&slow).await["data"]["output"], "done\n");
    daemon.finish().await;
}
