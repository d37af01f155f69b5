//! Input that is JSON and still wrong.

use sampi_tests::fake_llm::{FakeLlm, text};
use sampi_tests::harness::{Daemon, Record};
use serde_json::{Value, json};

// case 2
#[tokio::test]
async fn json_that_is_no_object_gets_one_parse_error_each() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    for line in ["null", "42", "[1,2]", "\"x\"", "true"] {
        daemon.send_raw(format!("{line}\n").as_bytes()).await;
        let pattern = json!({ "type": "response", "command": "parse", "success": false, "code": "parse" });
        let response = daemon.wait_for(pattern).await;
        assert!(response["error"].as_str().unwrap().starts_with("Failed to parse command: "), "{response}");
    }
    daemon.state().await;
    assert_eq!(daemon.records().len(), 6);
    daemon.finish().await;
}

// case 3
#[tokio::test]
async fn an_unknown_command_is_refused_at_once_with_its_id_and_name() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let failure = daemon.refused(json!({ "id": "t", "type": "foobar" })).await;
    failure.assert_code("unknown_command");
    assert_eq!(failure.error, "Unknown command: foobar");
    assert_eq!(failure.response["command"], "foobar");
    assert_eq!(failure.response["id"], "t");
    daemon.finish().await;
}

#[tokio::test]
async fn a_record_without_a_type_is_refused_with_its_id() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    for record in [json!({ "id": "a" }), json!({ "id": "b", "type": 5 }), json!({ "id": "c", "type": null })]
    {
        daemon.refused(record).await;
    }
    daemon.state().await;
    daemon.finish().await;
}

#[tokio::test]
async fn any_json_is_an_id_and_comes_back_as_it_was() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    for id in [json!(7), json!("x"), json!(""), json!({ "a": [1] }), json!([2]), json!(false)] {
        let response = daemon.call(json!({ "id": id, "type": "get_last_assistant_text" })).await;
        assert_eq!(response["success"], true);
    }
    daemon.send(json!({ "type": "get_state" })).await;
    let response = daemon.wait_for(json!({ "type": "response", "command": "get_state" })).await;
    assert!(response.get("id").is_none(), "{response}");
    // A number of JSON's can be more than a program's number can hold.
    for id in ["null", "9007199254740993", "123456789012345678901234567890", "1.0", "{\"a\": 1e3}"] {
        let mark = daemon.mark();
        let record = |rest: &str| format!("{{\"id\":{id},\"type\":{rest}}}\n");
        daemon
            .send_raw((record("\"abort_retry\"") + &record("\"zork\"") + &record("\"prompt\"")).as_bytes())
            .await;
        daemon.state().await;
        let answers = daemon.records_since(mark);
        assert_eq!(answers.len(), 4);
        for answer in &answers[..3] {
            assert!(answer.line.starts_with(&format!("{{\"id\":{id},")), "{id}: {}", answer.line);
        }
    }
    daemon.send_raw(b"{\"id\":9007199254740993,\"type\":\"bash\",\"command\":\"echo x\"}\n").await;
    daemon.wait_for(json!({ "type": "response", "command": "bash" })).await;
    let of_command =
        |record: &Record| record.line.contains("\"id\":9007199254740993,") && record.line.contains("bash");
    let told: Vec<_> = daemon.records().into_iter().filter(of_command).collect();
    assert_eq!(told.len(), 2, "the update and the answer: {told:?}");
    daemon.finish().await;
}

// case 4
#[tokio::test]
async fn a_wrong_parameter_is_an_error_that_names_the_field_and_changes_nothing() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let before = daemon.state().await;
    let wrong = [
        (json!({ "type": "set_auto_retry", "enabled": "yes" }), "enabled"),
        (json!({ "type": "set_auto_compaction", "enabled": 1 }), "enabled"),
        (json!({ "type": "set_auto_compaction" }), "enabled"),
        (json!({ "type": "prompt" }), "message"),
        (json!({ "type": "prompt", "message": ["x"] }), "message"),
        (json!({ "type": "prompt", "message": "x", "images": "y" }), "images"),
        (json!({ "type": "prompt", "message": "x", "images": [{ "type": "image", "data": 1 }] }), "data"),
        (json!({ "type": "prompt", "message": "x", "streamingBehavior": "later" }), "streamingBehavior"),
        (json!({ "type": "steer" }), "message"),
        (json!({ "type": "follow_up", "message": null }), "message"),
        (json!({ "type": "bash", "command": 1 }), "command"),
        (json!({ "type": "bash", "command": "true", "excludeFromContext": "no" }), "excludeFromContext"),
        (json!({ "type": "set_model", "provider": "mock" }), "modelId"),
        (json!({ "type": "set_thinking_level", "level": "deep" }), "level"),
        (json!({ "type": "set_steering_mode", "mode": "some" }), "mode"),
        (json!({ "type": "set_follow_up_mode", "mode": true }), "mode"),
        (json!({ "type": "set_session_name" }), "name"),
        (json!({ "type": "switch_session", "sessionPath": 1 }), "sessionPath"),
        (json!({ "type": "fork" }), "entryId"),
    ];
    for (command, field) in wrong {
        let failure = daemon.refused(command.clone()).await;
        failure.assert_code("invalid_params").assert_says(field);
        assert_eq!(failure.response["command"], command["type"]);
    }
    let failure = daemon.refused(json!({ "type": "set_steering_mode", "mode": 5 })).await;
    let expected = "mode: invalid type: integer `5`, expected one of `all`, `one-at-a-time`";
    assert_eq!(failure.error, format!("Invalid parameters for set_steering_mode: {expected}"));
    assert_eq!(daemon.state().await, before);
    assert_eq!(llm.requests().len(), 0);
    daemon.finish().await;
}

#[tokio::test]
async fn what_does_not_exist_is_not_found_and_changes_nothing() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let before = daemon.state().await;
    let missing: [(Value, &str); 3] = [
        (json!({ "type": "set_model", "provider": "no", "modelId": "pe" }), "Model not found: no/pe"),
        (json!({ "type": "fork", "entryId": "zzz" }), "Invalid entry ID for forking"),
        (json!({ "type": "get_entries", "since": "zzz" }), "Entry not found: zzz"),
    ];
    for (command, text) in missing {
        let failure = daemon.refused(command).await;
        assert_eq!(failure.error, text);
        failure.assert_code("not_found");
    }
    assert_eq!(daemon.state().await, before);
    daemon.finish().await;
}

#[tokio::test]
async fn an_empty_session_name_is_refused_and_line_ends_in_one_become_spaces() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).args(["--name", "first"]).spawn().await;
    assert_eq!(daemon.state().await["sessionName"], "first");
    let failure = daemon.refused(json!({ "type": "set_session_name", "name": "   " })).await;
    assert_eq!(failure.error, "Session name cannot be empty");
    daemon.ok(json!({ "type": "set_session_name", "name": " two\nlines " })).await;
    daemon.wait_for(json!({ "type": "session_info_changed", "name": "two lines" })).await;
    assert_eq!(daemon.state().await["sessionName"], "two lines");
    daemon.finish().await;
}

#[tokio::test]
async fn an_empty_prompt_is_a_prompt() {
    let llm = FakeLlm::start().await;
    llm.push(text("You said nothing."));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("").await;
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn deep_nesting_in_a_record_is_survived() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let deep = format!(
        "{{\"id\":\"d\",\"type\":\"get_state\",\"x\":{}{}}}\n",
        "[".repeat(20_000),
        "]".repeat(20_000)
    );
    daemon.send_raw(deep.as_bytes()).await;
    daemon.wait_for(json!({ "type": "response" })).await;
    daemon.state().await;
    daemon.finish().await;
}
