//! `kill -9` at any moment costs nothing that was acknowledged.
//!
//! `SAMPI_CRASH_ROUNDS` sets how often the daemon is killed, `SAMPI_CRASH_SEED` where. With `SAMPI_TEST_PI`
//! (such as `node /path/to/pi/cli.js`) the session is opened with Pi as well.

use std::path::Path;

use rustix::process::Signal;
use sampi_tests::fake_llm::{Answer, FakeLlm, RecordedRequest, text};
use sampi_tests::harness::{Daemon, Exit, Workspace};
use serde_json::{Value, json};

use crate::session_files::{as_lines, texts_of, written_by_pi};

/// How often the daemon is killed unless the environment says otherwise.
const ROUNDS: usize = 25;

/// After at most this many records of a run the daemon is killed.
const MOST_RECORDS: u64 = 24;

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A small generator of numbers that a seed makes the same again (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Every other prompt makes the model call a tool first.
fn answer(request: &RecordedRequest) -> Answer {
    let asked = request.user_texts().len();
    let last_is_a_result = request.messages().last().is_some_and(|message| message["role"] == "tool");
    if asked.is_multiple_of(2) && !last_is_a_result {
        let id = format!("call{}", request.messages().len());
        return text("Looking. ").tool_call(&id, "bash", json!({ "command": "echo found" }));
    }
    text(&format!("The answer to message {asked}, in a few deltas."))
}

/// Sends a prompt, kills the daemon after some records, and tells what was acknowledged or kept by then.
async fn one_round(daemon: Daemon, prompt: &str, records: u64, acknowledged: &mut Vec<String>) -> Workspace {
    let id = daemon.start(json!({ "type": "prompt", "message": prompt })).await;
    let mut left = records;
    while left > 0 {
        let record = daemon.wait_until("the next record", |_| true).await;
        if record["type"] == "agent_settled" {
            break;
        }
        left -= 1;
    }
    daemon.signal(Signal::KILL);
    let exit = daemon.exit().await;
    assert_eq!(exit, Exit::Signal(9), "stderr: {}", daemon.stderr());
    for record in daemon.records() {
        let record = record.value;
        if record["id"] == id && record["success"] == true {
            acknowledged.push(format!("user: {prompt}"));
        }
        // What a message_end tells is kept as well; the user's own message is known already.
        if record["type"] == "message_end" && record["message"]["role"] == "assistant" {
            acknowledged.push(format!("assistant: {}", record["message"]["content"]));
        }
    }
    daemon.into_workspace()
}

fn found_in(messages: &[Value]) -> Vec<String> {
    let line = |message: &Value| match message["role"].as_str() {
        Some("user") => Some(format!("user: {}", texts_of(std::slice::from_ref(message), "user")[0])),
        Some("assistant") => Some(format!("assistant: {}", message["content"])),
        _ => None,
    };
    messages.iter().filter_map(line).collect()
}

async fn open(llm: &FakeLlm, workspace: Workspace, file: &Path) -> Daemon {
    let arguments = ["--session", file.to_str().unwrap()];
    Daemon::builder(llm).in_workspace(workspace).args(arguments).spawn().await
}

#[tokio::test]
async fn everything_that_was_acknowledged_is_there_after_any_number_of_kills() {
    let rounds = from_environment("SAMPI_CRASH_ROUNDS").map_or(ROUNDS, |rounds| rounds as usize);
    let seed = from_environment("SAMPI_CRASH_SEED").unwrap_or(0x5eed).max(1);
    let mut numbers = Numbers(seed);
    let llm = FakeLlm::start().await;
    llm.on_request(answer);
    let mut workspace = Workspace::new();
    let file = workspace.cwd().join("session.jsonl");
    std::fs::write(&file, as_lines(&written_by_pi(&workspace.cwd()))).unwrap();
    let mut acknowledged = vec!["user: earlier".to_owned()];
    for round in 0..rounds {
        let daemon = open(&llm, workspace, &file).await;
        let records = numbers.below(MOST_RECORDS);
        workspace = one_round(daemon, &format!("message {round}"), records, &mut acknowledged).await;
    }

    let daemon = open(&llm, workspace, &file).await;
    let messages = daemon.messages().await;
    assert_all_there(&acknowledged, &messages, &format!("seed {seed}, {rounds} rounds"));
    daemon.run("and the last").await;
    let workspace = daemon.finish().await;
    acknowledged.push("user: and the last".to_owned());
    if std::env::var_os("SAMPI_TEST_PI").is_some() {
        assert_all_there(&acknowledged, &opened_with_pi(&workspace, &file).await, "opened with Pi");
    }
}

/// The acknowledged messages are among the messages, in this order.
fn assert_all_there(acknowledged: &[String], messages: &[Value], what: &str) {
    let found = found_in(messages);
    let mut rest = found.iter();
    for message in acknowledged {
        assert!(
            rest.any(|found| found == message),
            "{what}: {message:?} is lost or out of order in {found:#?}"
        );
    }
}

/// What Pi reads from the session file.
async fn opened_with_pi(workspace: &Workspace, file: &Path) -> Vec<Value> {
    let command = std::env::var("SAMPI_TEST_PI").expect("checked before");
    let mut words = command.split_whitespace();
    let mut process = tokio::process::Command::new(words.next().expect("SAMPI_TEST_PI names a program"));
    process
        .args(words)
        .args(["--mode", "rpc", "--provider", "mock", "--model", "m1", "--session"])
        .arg(file)
        .current_dir(workspace.cwd())
        .env("HOME", workspace.root())
        .env("PI_CODING_AGENT_DIR", workspace.agent_dir())
        .env("PI_OFFLINE", "1")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true);
    let mut child = process.spawn().expect("Pi can be started");
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let pi = Daemon::attach(stdout, stdin, Workspace::new());
    pi.messages().await
}
