//! Real processes: starting, dying, stopping, starting again.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use sampi_client::{
    ClientError, EventItem, ExitReason, RpcClient, RpcClientBuilder, STDERR_TAIL, StderrSink, StopDelays,
};

/// A shell script as the daemon.
fn script(script: &str) -> RpcClientBuilder {
    RpcClient::builder().program("sh").program_args(["-c", script])
}

/// A daemon that answers every command with its own process id.
const ECHO: &str = r#"
while read -r line; do
  id=$(printf %s "$line" | sed 's/.*"id":"\([^"]*\)".*/\1/')
  printf '{"id":"%s","type":"response","success":true,"data":{"text":"%s"}}\n' "$id" $$
done"#;

const SHORT: StopDelays = StopDelays {
    after_close: Duration::from_millis(50),
    after_term: Duration::from_millis(50),
    after_kill: Duration::from_secs(10),
};

fn is_alive(pid: &str) -> bool {
    // A zombie is not alive.
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

async fn wait_until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn content_of(file: &Path) -> String {
    wait_until(|| std::fs::read_to_string(file).is_ok_and(|text| text.ends_with('\n'))).await;
    std::fs::read_to_string(file).unwrap()
}

#[tokio::test]
async fn a_daemon_that_dies_at_once_fails_calls_with_its_exit_code() {
    let client = RpcClient::builder().program("/bin/false").spawn().await.unwrap();
    let error = client.get_state().await.unwrap_err();
    let exit = error.as_exit().unwrap();
    assert_eq!((exit.code(), &exit.reason), (Some(1), &ExitReason::Exited));
    assert_eq!(client.abort().await.unwrap_err().as_exit().unwrap().code(), Some(1));
    assert!(client.prompt_and_wait("hi").await.unwrap_err().as_exit().is_some());
}

#[tokio::test]
async fn the_error_of_a_death_has_the_end_of_stderr() {
    let client =
        script("read -r line; yes 0123456789 | head -c 100000 >&2; echo 'no such model' >&2; exit 7");
    let client = client.spawn().await.unwrap();
    let error = client.get_state().await.unwrap_err();
    let exit = error.as_exit().unwrap();
    assert_eq!(exit.code(), Some(7));
    assert_eq!(exit.stderr_tail.len(), STDERR_TAIL);
    assert!(error.to_string().ends_with("no such model"), "{error}");
}

#[tokio::test]
async fn what_a_daemon_wrote_before_it_died_counts() {
    let client = script(
        r#"read -r line; id=$(printf %s "$line" | sed 's/.*"id":"\([^"]*\)".*/\1/')
        printf '{"type":"agent_start"}\n{"id":"%s","type":"response","success":true,"data":{"text":"bye"}}\n{"torn' "$id"
        exit 3"#,
    );
    let client = client.spawn().await.unwrap();
    let mut events = client.subscribe();
    assert_eq!(client.get_last_assistant_text().await.unwrap().as_deref(), Some("bye"));
    assert_eq!(events.next().await.unwrap().as_event().unwrap().name(), "agent_start");
    assert!(matches!(events.next().await, Some(EventItem::Closed(exit)) if exit.code() == Some(3)));
}

#[tokio::test]
async fn a_daemon_that_closes_its_output_and_lingers_is_killed() {
    let client = script("exec 1>&-; exec sleep 600").spawn().await.unwrap();
    let pid = client.process_id().unwrap().to_string();
    let error = client.get_state().await.unwrap_err();
    assert_eq!(error.as_exit().unwrap().reason, ExitReason::OutputClosed);
    assert!(!is_alive(&pid));
}

#[tokio::test]
async fn a_program_that_is_missing_fails_the_start() {
    let error = RpcClient::builder().program("/no/such/program").spawn().await.unwrap_err();
    assert!(matches!(&error, ClientError::Spawn { .. }));
    assert!(error.to_string().starts_with("could not start /no/such/program: "), "{error}");
}

#[tokio::test]
async fn a_client_starts_again_and_nothing_of_the_first_process_reaches_the_second() {
    let client = script(ECHO).spawn().await.unwrap();
    let (seen, mut seen_end) = tokio::sync::mpsc::unbounded_channel();
    client.on_event(move |item| _ = seen.send(matches!(item, EventItem::Closed(_)))).unwrap();
    let mut events = client.subscribe();
    let first = client.get_last_assistant_text().await.unwrap().unwrap();
    assert_eq!(client.stop().await.reason, ExitReason::Stopped);
    assert!(client.abort().await.unwrap_err().as_exit().is_some());
    client.restart().await.unwrap();
    let second = client.get_last_assistant_text().await.unwrap().unwrap();
    assert_ne!(first, second);
    assert!(matches!(events.next().await, Some(EventItem::Closed(_))));
    assert!(events.next().await.is_none());
    assert!(seen_end.recv().await.unwrap(), "the listener saw the end of the first process");
    // Also while it runs: the call that waits fails, and is not sent to the new process.
    client.restart().await.unwrap();
    let third = client.get_last_assistant_text().await.unwrap().unwrap();
    assert_ne!(second, third);
    assert!(seen_end.recv().await.unwrap());
}

#[tokio::test]
async fn a_daemon_that_ends_with_its_input_is_stopped_gently() {
    let client = script("cat >/dev/null; exit 5").spawn().await.unwrap();
    let exit = client.stop().await;
    assert_eq!((exit.code(), &exit.reason), (Some(5), &ExitReason::Stopped));
}

#[tokio::test]
async fn a_daemon_that_ignores_its_input_gets_term_and_one_that_ignores_that_is_killed() {
    use std::os::unix::process::ExitStatusExt;
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    let wait = format!("echo x > {}; while :; do sleep 1; done", ready.display());
    let client = script(&format!("trap 'exit 9' TERM; {wait}")).spawn().await.unwrap();
    content_of(&ready).await;
    let delays = StopDelays { after_term: Duration::from_secs(30), ..SHORT };
    assert_eq!(client.stop_with(delays).await.code(), Some(9));
    std::fs::remove_file(&ready).unwrap();
    let client = script(&format!("trap '' TERM; {wait}")).spawn().await.unwrap();
    content_of(&ready).await;
    assert_eq!(client.stop_with(SHORT).await.status.unwrap().signal(), Some(9));
}

#[tokio::test]
async fn dropping_the_last_handle_kills_the_process_and_all_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let client = script(&format!("sleep 600 & echo $! > {}; wait", file.display())).spawn().await.unwrap();
    let daemon = client.process_id().unwrap().to_string();
    let grandchild = content_of(&file).await;
    let other = client.clone();
    drop(client);
    assert!(is_alive(&daemon) && is_alive(&grandchild));
    drop(other);
    wait_until(|| !is_alive(&daemon) && !is_alive(&grandchild)).await;
}

#[tokio::test]
async fn what_a_dead_daemon_left_behind_is_killed_and_does_not_hold_the_end_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let client = script(&format!("sleep 600 & echo $! > {}; exit 4", file.display())).spawn().await.unwrap();
    assert_eq!(client.closed().await.code(), Some(4));
    let grandchild = content_of(&file).await;
    wait_until(|| !is_alive(&grandchild)).await;
}

#[tokio::test]
async fn settings_become_arguments_and_environment() {
    use sampi_client::SessionChoice;
    use sampi_client::protocol::data::ThinkingLevel;
    let folder = tempfile::tempdir().unwrap();
    let (lines, lines_end) = mpsc::channel();
    let client = RpcClient::builder()
        .program("sh")
        .program_args(["-c", r#"echo "$PWD $MARK ${HOME-none}" >&2; echo "$@" >&2"#, "sampi"])
        .cwd(folder.path())
        .env("MARK", "x")
        .env_remove("HOME")
        .provider("demo")
        .model("m")
        .thinking(ThinkingLevel::High)
        .session(SessionChoice::Open("s.jsonl".to_owned()))
        .session_name("n")
        .args(["--offline"])
        .stderr(StderrSink::lines(move |line| drop(lines.send(line.to_owned()))))
        .spawn()
        .await
        .unwrap();
    client.closed().await;
    let cwd = folder.path().canonicalize().unwrap();
    assert_eq!(lines_end.recv().unwrap(), format!("{} x none", cwd.display()));
    assert_eq!(
        lines_end.recv().unwrap(),
        "--mode rpc --provider demo --model m --thinking high --session s.jsonl --name n --offline"
    );
}

#[tokio::test]
async fn a_daemon_that_closes_its_input_and_lingers_is_killed() {
    let client = script("exec 0<&-; exec sleep 600").spawn().await.unwrap();
    let pid = client.process_id().unwrap().to_string();
    // The first records may still go into the pipe; the end of the daemon answers them all.
    let call = client.call_raw("prompt", serde_json::json!({ "message": "x".repeat(1 << 20) }));
    let error = call.await.unwrap_err();
    assert_eq!(error.as_exit().unwrap().reason, ExitReason::InputClosed);
    assert!(!is_alive(&pid));
}

#[tokio::test]
async fn a_daemon_that_reads_nothing_is_stopped_even_with_its_input_full() {
    let client = script("exec sleep 600").spawn().await.unwrap();
    let stuck =
        tokio::spawn(client.call_raw("prompt", serde_json::json!({ "message": "x".repeat(1 << 20) })));
    let exit = client.stop_with(SHORT).await;
    assert_eq!(exit.reason, ExitReason::Stopped);
    assert!(stuck.await.unwrap().is_err());
}

#[tokio::test]
async fn a_restart_while_a_call_waits_fails_the_call_and_the_new_process_never_sees_it() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    // Notes what it was asked and never answers.
    let client = script(&format!("cat >> {}", log.display())).spawn().await.unwrap();
    let waiting = tokio::spawn(client.set_session_name("old"));
    content_of(&log).await;
    client.restart().await.unwrap();
    assert!(waiting.await.unwrap().unwrap_err().as_exit().is_some());
    let waiting = tokio::spawn(client.set_session_name("new"));
    wait_until(|| std::fs::read_to_string(&log).is_ok_and(|text| text.contains("\"new\""))).await;
    assert_eq!(std::fs::read_to_string(&log).unwrap().matches("\"old\"").count(), 1);
    client.stop().await;
    assert!(waiting.await.unwrap().is_err());
}

#[tokio::test]
async fn a_relative_program_is_one_from_the_callers_folder_whatever_the_daemons_is() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().canonicalize().unwrap().join("daemon");
    std::fs::write(&program, "#!/bin/sh\nexit 6\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let up: std::path::PathBuf =
        std::env::current_dir().unwrap().components().skip(1).map(|_| "..").collect();
    let relative = up.join(program.strip_prefix("/").unwrap());
    // From here the same steps up do not lead to the root.
    let cwd: std::path::PathBuf = up.components().map(|_| "deep").chain(["er"]).collect();
    let cwd = folder.path().join(cwd);
    std::fs::create_dir_all(&cwd).unwrap();
    let client = RpcClient::builder().program(&relative).cwd(&cwd).spawn().await.unwrap();
    assert_eq!(client.closed().await.code(), Some(6));
}

#[tokio::test]
async fn a_function_for_stderr_that_panics_gets_the_next_line() {
    let (lines, lines_end) = mpsc::channel();
    let client = script("echo bad >&2; echo good >&2")
        .stderr(StderrSink::lines(move |line| {
            assert_ne!(line, "bad", "a sink's own affair");
            lines.send(line.to_owned()).unwrap();
        }))
        .spawn()
        .await
        .unwrap();
    let exit = client.closed().await;
    assert_eq!(lines_end.try_recv().as_deref(), Ok("good"));
    assert_eq!(exit.stderr_tail, "bad\ngood\n");
}

#[tokio::test]
async fn a_listener_of_the_builder_hears_a_daemon_from_its_first_record_on_also_the_next_one() {
    let (seen, mut seen_end) = tokio::sync::mpsc::unbounded_channel();
    let client =
        script(r#"printf '{"type":"session_diagnostic","path":"p","message":"m"}\n'; cat > /dev/null"#)
            .on_event(move |item| {
                let name = item.as_event().map(|event| event.name().to_owned());
                seen.send(name).unwrap();
            })
            .spawn()
            .await
            .unwrap();
    for _ in 0..3 {
        assert_eq!(seen_end.recv().await.unwrap().as_deref(), Some("session_diagnostic"));
        client.restart().await.unwrap();
        assert_eq!(seen_end.recv().await.unwrap(), None, "the end of the process");
    }
    drop(client);
    while seen_end.recv().await.is_some() {}
}
