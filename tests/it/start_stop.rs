//! Start, exit codes, signals, and what must be gone afterwards.

use rustix::process::Signal;
use sampi_tests::fake_llm::{Answer, FakeLlm, Gate, text, tool_call};
use sampi_tests::harness::{Daemon, Exit, Model, Pid, pids_in};
use serde_json::{Value, json};

/// A command that prints its own id and that of a child, and ends when both are killed.
const TWO_SLEEPERS: &str = "echo $$; sleep 600 & echo $!; wait";

/// The state of a daemon whose model has begun to answer and is held.
async fn daemon_in_a_run(llm: &FakeLlm) -> (Daemon, Gate) {
    let gate = Gate::new();
    llm.push(text("Half of it").wait(&gate).text(" and the rest."));
    let daemon = Daemon::builder(llm).spawn().await;
    daemon.prompt("go").await;
    gate.reached().await;
    daemon.wait_for(json!({ "type": "message_update" })).await;
    (daemon, gate)
}

/// The end of a run as a host sees it: one settled, last of all events, the message ended as aborted.
fn assert_ended_as_aborted(daemon: &Daemon) {
    let events: Vec<Value> = daemon
        .records()
        .into_iter()
        .map(|record| record.value)
        .filter(|record| record["type"] != "response")
        .collect();
    assert_eq!(events.last().unwrap(), &json!({ "type": "agent_settled", "aborted": true }));
    let ends = daemon.all(json!({ "type": "message_end", "message": { "role": "assistant" } }));
    assert_eq!(ends.last().unwrap()["message"]["stopReason"], "aborted");
    for kind in ["turn_end", "agent_end", "agent_settled"] {
        assert_eq!(daemon.all(json!({ "type": kind })).len(), 1, "{kind}");
    }
}

/// Fails unless the session file ends with the aborted answer.
fn assert_answer_is_on_disk(daemon: &Daemon) {
    let workspace = daemon.workspace();
    let files = workspace.files_below(&workspace.agent_dir().join("sessions"));
    let [file] = files.as_slice() else { panic!("expected one session file: {files:?}") };
    let lines = std::fs::read_to_string(file).unwrap();
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(last["message"]["stopReason"], "aborted", "{last}");
    assert!(lines.ends_with('\n'));
}

async fn sleepers_of_a_shell_command(daemon: &Daemon) -> Vec<Pid> {
    let id = daemon.start(json!({ "type": "bash", "command": TWO_SLEEPERS })).await;
    let output =
        daemon.bash_output(&id, |output| output.lines().count() == 2 && output.ends_with('\n')).await;
    let pids = pids_in(&json!(output));
    assert!(pids.len() == 2 && pids.iter().all(|pid| pid.is_alive()), "{output}");
    pids
}

async fn sleepers_of_a_tool_call(llm: &FakeLlm, daemon: &Daemon) -> Vec<Pid> {
    llm.push(tool_call("c1", "bash", json!({ "command": TWO_SLEEPERS })));
    daemon.prompt("go").await;
    let output =
        daemon.tool_output("c1", |output| output.lines().count() == 2 && output.ends_with('\n')).await;
    let pids = pids_in(&json!(output));
    assert!(pids.len() == 2 && pids.iter().all(|pid| pid.is_alive()), "{output}");
    pids
}

// case 12
#[tokio::test]
async fn without_credentials_no_model_is_available_and_a_prompt_fails_once() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).models(json!({ "providers": {} })).model(Model::Unnamed).spawn().await;
    assert_eq!(daemon.ok(json!({ "type": "get_available_models" })).await, json!({ "models": [] }));
    let failure = daemon.refused(json!({ "id": "p", "type": "prompt", "message": "hi" })).await;
    failure.assert_code("no_model");
    assert_eq!(daemon.ok(json!({ "type": "cycle_model" })).await, Value::Null);
    daemon.state().await;
    assert_eq!(daemon.all(json!({ "id": "p" })).len(), 1);
    assert!(daemon.all(json!({ "type": "agent_start" })).is_empty());
    daemon.finish().await;
}

// case 13
#[tokio::test]
async fn a_fresh_session_is_idle() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let idle = json!({
        "isStreaming": false, "isCompacting": false, "messageCount": 0, "pendingMessageCount": 0,
    });
    assert!(sampi_tests::harness::matches(&idle, &daemon.state().await));
    assert_eq!(daemon.records().len(), 1, "nothing is written that nobody asked for");
    daemon.finish().await;
}

// case 14
#[tokio::test]
async fn the_end_of_stdin_during_a_run_aborts_it_writes_its_end_and_exits_with_0() {
    let llm = FakeLlm::start().await;
    let (daemon, _gate) = daemon_in_a_run(&llm).await;
    daemon.close_stdin().await;
    assert_eq!(daemon.exit().await, Exit::Code(0));
    assert_ended_as_aborted(&daemon);
    assert_answer_is_on_disk(&daemon);
    llm.finish();
}

#[tokio::test]
async fn the_end_of_stdin_when_idle_exits_with_0() {
    let llm = FakeLlm::start().await;
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("hi").await;
    daemon.finish().await;
    llm.finish();
}

// case 15
#[tokio::test]
async fn a_last_line_without_line_end_is_handled_before_the_end() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.send_raw(b"{\"id\":\"last\",\"type\":\"get_state\"}").await;
    daemon.close_stdin().await;
    assert_eq!(daemon.response(&json!("last")).await["success"], true);
    assert_eq!(daemon.exit().await, Exit::Code(0));
}

// case 16
#[tokio::test]
async fn sigterm_during_a_run_aborts_it_writes_its_end_and_exits_with_143() {
    let llm = FakeLlm::start().await;
    let (daemon, _gate) = daemon_in_a_run(&llm).await;
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.exit().await, Exit::Code(143));
    assert_ended_as_aborted(&daemon);
    assert_answer_is_on_disk(&daemon);
    daemon.assert_only_records();
    llm.finish();
}

// case 16
#[tokio::test]
async fn sighup_during_a_run_exits_with_129_and_sigint_with_130() {
    for (signal, code) in [(Signal::HUP, 129), (Signal::INT, 130)] {
        let llm = FakeLlm::start().await;
        let (daemon, _gate) = daemon_in_a_run(&llm).await;
        daemon.signal(signal);
        assert_eq!(daemon.exit().await, Exit::Code(code));
        assert_ended_as_aborted(&daemon);
        llm.finish();
    }
}

// case 16
#[tokio::test]
async fn a_signal_when_idle_exits_with_its_code() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let llm = FakeLlm::start().await;
        let daemon = Daemon::builder(&llm).spawn().await;
        daemon.state().await;
        daemon.signal(signal);
        assert_eq!(daemon.exit().await, Exit::Code(code));
    }
}

// case 16
#[tokio::test]
async fn a_second_signal_exits_at_once_even_when_the_host_reads_no_more() {
    let llm = FakeLlm::start().await;
    let exhausting = (0..4000).map(|number| format!("{number:01000}"));
    llm.push(Answer::empty().text_deltas(exhausting).hang());
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("go").await;
    daemon.wait_for(json!({ "type": "message_update" })).await;
    daemon.pause_reading();
    daemon.signal(Signal::TERM);
    // Two signals that are pending together are one, so the second is sent until it was seen.
    let mut ticks = tokio::time::interval(std::time::Duration::from_millis(50));
    while !daemon.exited().await {
        ticks.tick().await;
        daemon.signal(Signal::TERM);
    }
    assert_eq!(daemon.exit().await, Exit::Code(143));
}

// case 17
#[tokio::test]
async fn the_death_of_the_host_stops_the_children_and_ends_the_daemon() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let mut pids = sleepers_of_a_shell_command(&daemon).await;
    pids.extend(sleepers_of_a_tool_call(&llm, &daemon).await);
    daemon.hang_up().await;
    daemon.exit().await;
    for pid in pids {
        pid.gone().await;
    }
    llm.finish();
}

// case 18
#[tokio::test]
async fn sigterm_leaves_no_child_and_no_grandchild_of_a_shell_command() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let pids = sleepers_of_a_shell_command(&daemon).await;
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.exit().await, Exit::Code(143));
    for pid in pids {
        pid.gone().await;
    }
}

// case 18
#[tokio::test]
async fn sigterm_leaves_no_child_and_no_grandchild_of_a_tool_call() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let pids = sleepers_of_a_tool_call(&llm, &daemon).await;
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.exit().await, Exit::Code(143));
    for pid in pids {
        pid.gone().await;
    }
    llm.finish();
}

#[tokio::test]
async fn the_end_of_stdin_leaves_no_child_of_a_shell_command() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let pids = sleepers_of_a_shell_command(&daemon).await;
    daemon.close_stdin().await;
    assert_eq!(daemon.exit().await, Exit::Code(0));
    for pid in pids {
        pid.gone().await;
    }
}

// case 24
#[tokio::test]
async fn the_process_exits_only_when_all_output_is_flushed() {
    let llm = FakeLlm::start().await;
    let long = "0123456789".repeat(500_000);
    llm.push(Answer::empty().text_deltas([long.clone()]));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("go").await;
    daemon.pause_reading();
    let id = daemon.start(json!({ "type": "get_messages" })).await;
    daemon.close_stdin().await;
    daemon.resume_reading();
    assert_eq!(daemon.exit().await, Exit::Code(0));
    let response = daemon.response(&id).await;
    let text = sampi_tests::harness::text_of_content(&response["data"]["messages"][2]["content"]);
    assert!(text == long, "the answer came through whole");
    daemon.assert_only_records();
    llm.finish();
}

// case 20
#[tokio::test]
async fn a_slow_reader_holds_up_the_model_keeps_memory_bounded_and_loses_nothing() {
    const PIECES: usize = 6_000;
    const PIECE: usize = 4_000;
    let llm = FakeLlm::start().await;
    let end = Gate::new();
    let pieces = (0..PIECES).map(|number| format!("{number:0PIECE$}"));
    llm.push(Answer::empty().text_deltas(pieces).wait(&end));
    let daemon = Daemon::builder(&llm).args(["--no-session"]).spawn().await;
    daemon.prompt("go").await;
    daemon.pause_reading();
    let exchange = llm.exchange(0).await;

    // The server is held up once it has sent nothing for a while; if it never is, it sends all.
    let mut sent = 0;
    let mut quiet = 0;
    let mut ticks = tokio::time::interval(std::time::Duration::from_millis(100));
    while quiet < 20 {
        ticks.tick().await;
        let now = exchange.pieces_sent();
        quiet = if now == sent && now > 0 { quiet + 1 } else { 0 };
        sent = now;
        assert!(sent < PIECES, "the daemon took the whole answer while nobody read its output");
    }
    if let Some(resident) = daemon.pid().resident_bytes() {
        assert!(resident < 64 << 20, "{resident} bytes resident, with an answer of {} bytes", PIECES * PIECE);
    }

    daemon.resume_reading();
    end.open();
    daemon.settled().await;
    let deltas =
        daemon.all(json!({ "type": "message_update", "assistantMessageEvent": { "type": "text_delta" } }));
    let text: String =
        deltas.iter().map(|event| event["assistantMessageEvent"]["delta"].as_str().unwrap()).collect();
    assert_eq!(text.len(), PIECES * PIECE);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_file_argument_is_refused_in_rpc_mode() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).file("a.txt", "x").args(["@a.txt"]).spawn().await;
    assert_eq!(daemon.exit().await, Exit::Code(1));
    assert!(daemon.records().is_empty());
    assert!(daemon.stderr().contains("@file"), "stderr: {}", daemon.stderr());
}

#[tokio::test]
async fn an_unknown_short_option_is_an_error_on_stderr() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).args(["-Z"]).spawn().await;
    assert_ne!(daemon.exit().await, Exit::Code(0));
    assert!(daemon.records().is_empty());
    assert!(daemon.stderr().contains("-Z"), "stderr: {}", daemon.stderr());
}
