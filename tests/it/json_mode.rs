//! JSON mode: the session's header and every event of the prompts as JSON lines.

use rustix::process::{Signal, kill_process};
use sampi_tests::fake_llm::{FakeLlm, Reply, text, tool_call};
use sampi_tests::harness::{Daemon, DaemonBuilder, Finished, Model, Normaliser, finished};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

fn records(stdout: &str) -> Vec<Value> {
    stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no record: {line}")))
        .collect()
}

fn types(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["type"].as_str().unwrap()).collect()
}

async fn run(builder: DaemonBuilder, args: &[&str]) -> Finished {
    builder.args(["--mode", "json"]).args(args.iter().copied()).run_once("").await
}

#[tokio::test]
async fn the_header_of_the_session_comes_first_and_it_is_that_of_the_file() {
    let llm = FakeLlm::start().await;
    llm.push(text("Hi."));
    let run = run(Daemon::builder(&llm), &["hello"]).await;
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
    let records = records(&run.stdout);
    assert_eq!(records[0]["type"], "session");
    assert_eq!(records[0]["version"], 3);
    assert_eq!(records[0]["cwd"], run.workspace.cwd().to_str().unwrap());
    let file = run.workspace.files_below(&run.workspace.agent_dir().join("sessions")).remove(0);
    let content = std::fs::read_to_string(file).unwrap();
    assert_eq!(content.lines().next(), run.stdout.lines().next());
    assert_eq!(types(&records).last(), Some(&"agent_settled"));
    llm.finish();
}

#[tokio::test]
async fn the_events_are_those_of_rpc_mode() {
    for scenario in ["text", "tools", "fatal-error", "retry"] {
        let llm = FakeLlm::start().await;
        let script = || match scenario {
            "text" => vec![text("Hello there, friend.").into()],
            "tools" => vec![
                tool_call("call_a", "read", json!({ "path": "a.txt" }))
                    .text("Reading.")
                    .tool_call("call_b", "bash", json!({ "command": "echo hi" }))
                    .into(),
                text("Fin.").into(),
            ],
            "fatal-error" => vec![Reply::error(401, "authentication_error", "bad key")],
            _ => vec![Reply::error(529, "overloaded_error", "Overloaded"), text("made it").into()],
        };
        let builder = || {
            Daemon::builder(&llm)
                .model(Model::Anthropic)
                .settings(json!({ "retry": { "baseDelayMs": 1 } }))
                .file("a.txt", "hello\n")
        };
        llm.push_all(script());
        let run = run(builder(), &["the prompt"]).await;
        assert_eq!(run.code, Some(0), "{scenario}: {}", run.stderr);
        let once = Normaliser::new(&run.workspace).transcript(records(&run.stdout).into_iter().skip(1));
        llm.push_all(script());
        let daemon = builder().spawn().await;
        daemon.run("the prompt").await;
        let events = daemon.records().into_iter().map(|record| record.value);
        let events = events.filter(|record| record["type"] != "response");
        assert_eq!(once, Normaliser::new(daemon.workspace()).transcript(events), "{scenario}");
        daemon.finish().await;
        llm.finish();
    }
}

#[tokio::test]
async fn every_prompt_runs_in_turn_in_one_session() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("One."), text("Two.")]);
    let run = run(Daemon::builder(&llm), &["first", "second"]).await;
    let records = records(&run.stdout);
    let count = |kind: &str| types(&records).iter().filter(|found| **found == kind).count();
    assert_eq!((count("session"), count("agent_start"), count("agent_settled")), (1, 2, 2));
    assert_eq!(llm.requests()[1].user_texts(), ["first", "second"]);
    llm.finish();
}

// case 36
#[tokio::test]
async fn a_failed_answer_is_told_by_the_events_and_with_print_by_the_exit_code_and_stderr_too() {
    for (args, code) in [(&["hi"][..], 0), (&["-p", "hi"], 1)] {
        let llm = FakeLlm::start().await;
        llm.push(Reply::error(401, "authentication_error", "bad key"));
        let run = run(Daemon::builder(&llm), args).await;
        assert_eq!(run.code, Some(code), "{args:?}");
        assert!(run.stderr.contains("bad key"), "{}", run.stderr);
        let records = records(&run.stdout);
        let end = records.iter().rev().find(|record| record["type"] == "message_end").unwrap();
        assert_eq!(end["message"]["stopReason"], "error");
        llm.finish();
    }
}

#[tokio::test]
async fn without_a_prompt_there_is_only_the_header_and_without_a_model_an_error_as_well() {
    let llm = FakeLlm::start().await;
    let nothing = run(Daemon::builder(&llm), &[]).await;
    assert_eq!(nothing.code, Some(0));
    assert_eq!(types(&records(&nothing.stdout)), ["session"]);
    let builder = Daemon::builder(&llm).model(Model::Unnamed).models(json!({ "providers": {} }));
    let refused = run(builder, &["hi"]).await;
    assert_eq!(refused.code, Some(1));
    assert_eq!(types(&records(&refused.stdout)), ["session"]);
    assert!(refused.stderr.contains("No API key found"), "{}", refused.stderr);
    llm.finish();
}

#[tokio::test]
async fn a_signal_aborts_the_run_and_its_end_is_written() {
    let llm = FakeLlm::start().await;
    llm.push(text("Partly").hang());
    let (mut child, workspace) = Daemon::builder(&llm).args(["--mode", "json", "hi", "never"]).spawn_once();
    drop(child.stdin.take());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut seen = Vec::new();
    let pid = rustix::process::Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("\"text_delta\"") {
            kill_process(pid, Signal::TERM).unwrap();
        }
        seen.push(line);
    }
    assert_eq!(finished(child, workspace).await.code, Some(143));
    let records = records(&seen.join("\n"));
    assert_eq!(types(&records)[records.len() - 3..], ["turn_end", "agent_end", "agent_settled"]);
    assert_eq!(records.last().unwrap()["aborted"], true);
    assert_eq!(records.iter().filter(|record| record["type"] == "agent_start").count(), 1);
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_the_program() {
    let llm = FakeLlm::start().await;
    llm.push(text("Partly").hang());
    let (mut child, workspace) = Daemon::builder(&llm).args(["--mode", "json", "hi"]).spawn_once();
    drop(child.stdin.take());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next_line().await.unwrap().unwrap().contains("\"session\""));
    drop(lines);
    assert_eq!(finished(child, workspace).await.code, Some(1));
}
