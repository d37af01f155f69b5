//! Shell commands that the user runs directly.

use sampi_tests::fake_llm::{FakeLlm, Gate, text};
use sampi_tests::harness::{Daemon, pids_in};
use serde_json::json;

#[tokio::test]
async fn a_command_answers_with_its_output_and_exit_code_and_streams_meanwhile() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let command = "printf 'a\\nb\\n'; pwd; exit 4";
    let data = daemon.ok(json!({ "id": "b", "type": "bash", "command": command })).await;
    let output = format!("a\nb\n{}\n", daemon.workspace().cwd().display());
    assert_eq!(data, json!({ "output": output, "exitCode": 4, "cancelled": false, "truncated": false }));
    let deltas: String = (daemon.all(json!({ "type": "bash_execution_update", "id": "b" })).iter())
        .map(|event| event["delta"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(deltas, output);
    daemon.finish().await;
}

// case 19
#[tokio::test]
async fn a_command_that_reads_its_input_finds_the_end_of_it() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let data = daemon.ok(json!({ "type": "bash", "command": "cat; echo after" })).await;
    assert_eq!(data["output"], "after\n");
    daemon.finish().await;
}

// case 32
#[tokio::test]
async fn abort_bash_stops_the_command_which_answers_as_cancelled() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let command = "echo $$; sleep 600 & echo $!; wait";
    let id = daemon.start(json!({ "type": "bash", "command": command })).await;
    let output =
        daemon.bash_output(&id, |output| output.lines().count() == 2 && output.ends_with('\n')).await;
    daemon.ok(json!({ "type": "abort_bash" })).await;
    let data = daemon.response(&id).await["data"].clone();
    assert_eq!(data, json!({ "output": output, "cancelled": true, "truncated": false }));
    for pid in pids_in(&json!(output)) {
        pid.gone().await;
    }
    let message = &daemon.messages().await[0];
    assert_eq!(message["role"], "bashExecution");
    assert_eq!(message["cancelled"], true);
    daemon.finish().await;
}

// case 32
#[tokio::test]
async fn abort_bash_is_answered_at_once_although_the_command_ignores_the_signals_that_ask() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let command = "trap '' TERM INT HUP; echo $$; while :; do sleep 0.1; done";
    let id = daemon.start(json!({ "type": "bash", "command": command })).await;
    daemon.bash_output(&id, |output| output.ends_with('\n')).await;
    daemon.ok(json!({ "type": "abort_bash" })).await;
    assert_eq!(daemon.response(&id).await["data"]["cancelled"], true);
    daemon.finish().await;
}

#[tokio::test]
async fn the_output_goes_to_the_model_with_the_next_prompt_unless_it_is_excluded() {
    let llm = FakeLlm::start().await;
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.ok(json!({ "type": "bash", "command": "echo shown-to-it" })).await;
    let excluded = json!({ "type": "bash", "command": "echo kept-from-it", "excludeFromContext": true });
    daemon.ok(excluded).await;
    daemon.run("hi").await;
    let body = llm.requests()[0].body.to_string();
    assert!(body.contains("shown-to-it") && !body.contains("kept-from-it"), "{body}");
    let messages = daemon.messages().await;
    assert_eq!(messages.iter().filter(|message| message["role"] == "bashExecution").count(), 2);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_command_during_a_run_is_kept_behind_the_turn() {
    let llm = FakeLlm::start().await;
    let gate = Gate::new();
    llm.push(text("a").wait(&gate));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("go").await;
    gate.reached().await;
    let data = daemon.ok(json!({ "type": "bash", "command": "echo mid" })).await;
    assert_eq!(data["output"], "mid\n");
    gate.open();
    daemon.settled().await;
    let roles: Vec<_> = daemon.messages().await.into_iter().map(|message| message["role"].clone()).collect();
    assert_eq!(json!(roles), json!(["system", "user", "assistant", "bashExecution"]));
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn long_output_is_cut_and_the_whole_of_it_is_in_a_file() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let data = daemon.ok(json!({ "type": "bash", "command": "seq 1 20000" })).await;
    assert_eq!(data["truncated"], true);
    let shown = data["output"].as_str().unwrap();
    assert!(shown.len() < 60_000 && shown.contains("20000"), "the end of the output is what is shown");
    let whole = std::fs::read_to_string(data["fullOutputPath"].as_str().unwrap()).unwrap();
    let expected: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    assert!(whole == expected, "the file has the whole output");
    daemon.finish().await;
}

#[tokio::test]
async fn what_a_command_says_on_stderr_is_output_too() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let data = daemon.ok(json!({ "type": "bash", "command": "echo out; echo err >&2" })).await;
    let mut lines: Vec<&str> = data["output"].as_str().unwrap().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["err", "out"]);
    daemon.finish().await;
}

#[tokio::test]
async fn a_command_that_leaves_a_process_behind_answers_and_the_process_is_gone() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let data = daemon.ok(json!({ "type": "bash", "command": "sleep 600 & echo $!" })).await;
    assert_eq!(data["exitCode"], 0);
    for pid in pids_in(&data["output"]) {
        pid.gone().await;
    }
    daemon.finish().await;
}
