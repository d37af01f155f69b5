//! pi-rpc, a client that others wrote against Pi, drives the daemon.
//!
//! The daemon is the one that `SAMPI_BIN` names, else the workspace's debug build.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use pi_rpc::protocol::{AssistantEvent, Command, Event, KnownEvent, PromptDisposition};
use pi_rpc::{Error, PiClient, PiEvents, PiProcess, ProcessOptions};
use tempfile::TempDir;

const SCRIPT: &str = r#"@script {"steps":[
    {"text":"Looking.","tools":[{"name":"bash","args":{"command":"echo from the tool"}}]},
    {"thinking":"Hm.","text":"All done, \ud83d\ude00."}]}"#;

fn daemon() -> PathBuf {
    let named = std::env::var_os("SAMPI_BIN").map(PathBuf::from);
    named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/debug/sampi"))
}

/// A program `pi` that is the daemon with a configuration of its own.
///
/// pi-rpc starts only what answers `--version` with a release of Pi that it knows, of which 1.4.0 is the
/// last; it refuses Pi 1.6.0 itself.
fn pi(folder: &Path) -> PathBuf {
    let daemon = daemon().canonicalize().expect("the daemon is built: cargo build -p sampi-server");
    let program = folder.join("pi");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && exec echo 1.4.0\n\
         export HOME='{folder}' PI_CODING_AGENT_DIR='{folder}' PI_OFFLINE=1\nexec '{daemon}' \"$@\"\n",
        folder = folder.display(),
        daemon = daemon.display(),
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    program
}

async fn start(folder: &TempDir) -> (PiClient, PiEvents, PiProcess) {
    let args = ["--provider", "demo", "--no-session"];
    PiProcess::spawn(ProcessOptions {
        executable: pi(folder.path()),
        args: args.into_iter().map(Into::into).collect(),
        cwd: Some(folder.path().to_owned()),
        ..ProcessOptions::default()
    })
    .await
    .unwrap()
}

/// The events up to and with `agent_settled`. One that pi-rpc does not know fails the test.
async fn run_to_the_end(events: &mut PiEvents) -> Vec<KnownEvent> {
    let mut seen = Vec::new();
    loop {
        match events.recv().await.expect("the run settles").unwrap() {
            Event::Known(event) => {
                let settled = matches!(event, KnownEvent::AgentSettled { .. });
                seen.push(event);
                if settled {
                    return seen;
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn pi_rpc_runs_a_prompt_and_reads_all_of_its_events() {
    let folder = tempfile::tempdir().unwrap();
    let (client, mut events, mut process) = start(&folder).await;
    assert_eq!(client.prompt(SCRIPT).await.unwrap(), PromptDisposition::Started);
    let seen = run_to_the_end(&mut events).await;
    assert!(matches!(seen.last(), Some(KnownEvent::AgentSettled { aborted: false })));
    let mut streamed = String::new();
    let mut tools = Vec::new();
    for event in &seen {
        match event {
            KnownEvent::MessageUpdate {
                assistant_message_event: AssistantEvent::TextDelta { delta, .. },
                ..
            } => streamed += delta,
            KnownEvent::ToolExecutionEnd { tool_name, result, is_error, .. } => {
                tools.push((tool_name.as_str(), result["content"][0]["text"].clone(), *is_error));
            }
            _ => {}
        }
    }
    assert_eq!(streamed, "Looking.All done, \u{1f600}.");
    assert_eq!(tools, [("bash", "from the tool\n".into(), false)]);

    let state = client.get_state().await.unwrap();
    assert!(!state.is_streaming);
    assert_eq!((state.pending_message_count, state.session_file), (0, None));
    assert_eq!(state.model.unwrap()["provider"], "demo");
    let text = client.get_last_assistant_text().await.unwrap().text;
    assert_eq!(text.as_deref(), Some("All done, \u{1f600}."));
    let roles: Vec<_> = client.get_messages().await.unwrap().messages.into_iter().map(|m| m.role).collect();
    assert_eq!(roles[roles.len() - 4..], ["user", "assistant", "toolResult", "assistant"]);
    assert_eq!(client.get_session_stats().await.unwrap().tool_calls, 1);
    assert_eq!(process.close().await, Error::ProcessExit(Some(0)));
}

#[tokio::test]
async fn pi_rpc_aborts_a_run_and_finds_the_daemon_ready_again() {
    let folder = tempfile::tempdir().unwrap();
    let (client, mut events, mut process) = start(&folder).await;
    client.prompt(r#"@script {"steps":[{"text":"Never ","hang":true}]}"#).await.unwrap();
    let busy = client.prompt("me too").await.unwrap_err();
    assert!(matches!(&busy, Error::Rejected { command, .. } if command == "prompt"), "{busy}");
    client.abort().await.unwrap();
    let seen = run_to_the_end(&mut events).await;
    assert!(matches!(seen.last(), Some(KnownEvent::AgentSettled { aborted: true })));
    client.prompt(r#"@script {"steps":[{"text":"Again."}]}"#).await.unwrap();
    run_to_the_end(&mut events).await;
    assert_eq!(client.get_last_assistant_text().await.unwrap().text.as_deref(), Some("Again."));
    process.close().await;
}

#[tokio::test]
async fn pi_rpc_reads_the_answers_of_the_other_commands() {
    let folder = tempfile::tempdir().unwrap();
    let (client, mut events, mut process) = start(&folder).await;
    client.prompt(SCRIPT).await.unwrap();
    run_to_the_end(&mut events).await;
    let drain = tokio::spawn(async move { while events.recv().await.is_some_and(|event| event.is_ok()) {} });
    client.set_session_name("named").await.unwrap();
    assert_eq!(client.get_state().await.unwrap().session_name.as_deref(), Some("named"));
    let bash = client.bash("printf abc; exit 3", None).await.unwrap();
    assert_eq!((bash.output.as_str(), bash.exit_code), ("abc", Some(3)));
    let entries = client.get_entries(None).await.unwrap();
    assert!(!entries.entries.is_empty() && entries.leaf_id.is_some());
    assert!(!client.get_tree().await.unwrap().tree.is_empty());
    assert_eq!(client.get_fork_messages().await.unwrap().messages.len(), 1);
    assert!(!client.get_available_models().await.unwrap().models.is_empty());
    client.get_available_thinking_levels().await.unwrap();
    client.get_commands().await.unwrap();
    client.clear_queue().await.unwrap();
    client.command(Command::SetAutoRetry { enabled: false }).await.unwrap();
    client.new_session(None).await.unwrap();
    assert!(client.get_last_assistant_text().await.unwrap().text.is_none());
    let missing = client.fork("nowhere").await.unwrap_err();
    assert!(matches!(missing, Error::Rejected { .. }), "{missing}");
    process.close().await;
    drain.await.unwrap();
}
