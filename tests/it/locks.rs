//! Two processes on one file: sessions, and settings that another program changes at the same time.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use sampi_tests::fake_llm::{FakeLlm, Gate, text};
use sampi_tests::harness::{Daemon, Exit, eventually};
use serde_json::{Value, json};

use crate::session_files::{as_lines, entry_ids, lines_of, session_file, texts_of, written_by_pi};

/// A session file beside the directories of any daemon, and the folder that must outlive it.
fn shared_session() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().canonicalize().unwrap().join("shared.jsonl");
    std::fs::write(&file, as_lines(&written_by_pi(folder.path()))).unwrap();
    (folder, file)
}

async fn daemon_on(llm: &FakeLlm, file: &Path) -> Daemon {
    Daemon::builder(llm).args(["--session", file.to_str().unwrap()]).spawn().await
}

fn names(failure: &str, holder: &Daemon) -> bool {
    failure.contains(&format!("pid {}", holder.pid().0))
}

// case 47
#[tokio::test]
async fn a_second_daemon_may_read_and_is_told_who_writes_until_that_one_is_gone() {
    let llm = FakeLlm::start().await;
    let (_folder, file) = shared_session();
    let first = daemon_on(&llm, &file).await;
    first.state().await;
    let second = daemon_on(&llm, &file).await;
    let told = second.wait_for(json!({ "type": "session_diagnostic" })).await;
    assert!(names(told["message"].as_str().unwrap(), &first), "{told}");
    assert_eq!(told["path"], file.to_str().unwrap());
    assert!(names(&second.stderr(), &first), "stderr: {}", second.stderr());

    assert_eq!(texts_of(&second.messages().await, "user"), ["earlier"]);
    assert_eq!(entry_ids(&second).await, entry_ids(&first).await);
    let refused = second.refused(json!({ "type": "prompt", "message": "mine" })).await;
    refused.assert_code("busy");
    assert!(names(&refused.error, &first), "{refused:?}");
    for command in [
        json!({ "type": "set_session_name", "name": "n" }),
        json!({ "type": "set_label", "entryId": "aaaaaaa3", "label": "l" }),
        json!({ "type": "navigate_tree", "targetId": "aaaaaaa3" }),
    ] {
        second.refused(command).await.assert_code("busy");
    }

    llm.push_all([text("To the first."), text("To the second.")]);
    first.run("theirs").await;
    first.finish().await;
    second.run("mine").await;
    let texts = lines_of(&file).iter().filter(|line| line["message"]["role"] == "user").count();
    assert_eq!(texts, 3, "nobody's message is lost");
    assert_eq!(texts_of(&second.messages().await, "user").last().unwrap(), "mine");
    assert_eq!(second.all(json!({ "type": "session_diagnostic" })).len(), 1, "it is told once");
    second.finish().await;
    llm.finish();
}

// case 47
#[tokio::test]
async fn switching_to_a_session_of_another_daemon_allows_reading_only() {
    let llm = FakeLlm::start().await;
    let (_folder, file) = shared_session();
    let first = daemon_on(&llm, &file).await;
    first.state().await;
    let second = Daemon::builder(&llm).spawn().await;
    second.ok(json!({ "type": "switch_session", "sessionPath": file })).await;
    let told = second.wait_for(json!({ "type": "session_diagnostic" })).await;
    assert!(names(told["message"].as_str().unwrap(), &first), "{told}");
    assert_eq!(session_file(&second).await, file);
    assert_eq!(texts_of(&second.messages().await, "user"), ["earlier"]);
    second.refused(json!({ "type": "prompt", "message": "mine" })).await.assert_code("busy");
    second.refused(json!({ "type": "delete_session", "sessionPath": file })).await;
    // What the first one has stays as it is when the second one leaves.
    second.ok(json!({ "type": "new_session" })).await;
    llm.push_all([text("To the first."), text("To the second.")]);
    first.run("theirs").await;
    second.run("mine").await;
    assert_eq!(llm.request(1).await.user_texts(), ["mine"]);
    first.finish().await;
    second.finish().await;
    llm.finish();
}

// case 47
#[tokio::test]
async fn a_session_of_another_process_cannot_be_deleted() {
    let llm = FakeLlm::start().await;
    let (_folder, file) = shared_session();
    let first = daemon_on(&llm, &file).await;
    first.state().await;
    let second = Daemon::builder(&llm).spawn().await;
    let refused = second.refused(json!({ "type": "delete_session", "sessionPath": file })).await;
    refused.assert_code("busy");
    assert!(names(&refused.error, &first), "{refused:?}");
    assert!(file.exists());
    first.finish().await;
    second.ok(json!({ "type": "delete_session", "sessionPath": file })).await;
    assert!(!file.exists());
    second.finish().await;
}

// case 47
#[tokio::test]
async fn the_lock_of_a_daemon_that_was_killed_is_free() {
    let llm = FakeLlm::start().await;
    let (_folder, file) = shared_session();
    let first = daemon_on(&llm, &file).await;
    let gate = Gate::new();
    llm.push(text("half of").wait(&gate));
    first.prompt("theirs").await;
    gate.reached().await;
    let second = daemon_on(&llm, &file).await;
    second.refused(json!({ "type": "prompt", "message": "mine" })).await.assert_code("busy");
    first.signal(Signal::KILL);
    assert_eq!(first.exit().await, Exit::Signal(9));
    llm.push(text("To the second."));
    second.run("mine").await;
    let users = lines_of(&file).iter().filter(|line| line["message"]["role"] == "user").count();
    assert_eq!(users, 3);
    second.finish().await;
}

#[tokio::test]
async fn switching_to_the_session_that_is_open_reads_it_anew_and_goes_on() {
    let llm = FakeLlm::start().await;
    let (_folder, file) = shared_session();
    let daemon = Daemon::builder(&llm)
        .args(["--session", file.to_str().unwrap()])
        .env("SAMPI_LOG", "debug")
        .spawn()
        .await;
    llm.push_all([text("One."), text("Two.")]);
    daemon.run("first").await;
    daemon.ok(json!({ "type": "switch_session", "sessionPath": file })).await;
    daemon.run("second").await;
    assert_eq!(llm.request(1).await.user_texts(), ["earlier", "first", "second"]);
    assert!(daemon.all(json!({ "type": "session_diagnostic" })).is_empty());
    let other = daemon_on(&llm, &file).await;
    let refused = other.refused(json!({ "type": "prompt", "message": "mine" })).await;
    assert!(names(&refused.error, &daemon), "the lock is still held: {}", refused.error);
    other.finish().await;
    daemon.close_stdin().await;
    daemon.exit().await;
    let log = daemon.stderr();
    assert_eq!(log.matches("session file opened").count(), 2, "at the start and once more: {log}");
    llm.finish();
}

fn settings_of(daemon: &Daemon) -> Value {
    let file = daemon.workspace().agent_dir().join("settings.json");
    std::fs::read(file).ok().map_or(Value::Null, |bytes| serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn a_setting_waits_for_the_program_that_changes_the_file_and_then_both_changes_are_there() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).settings(json!({ "theme": "dark" })).spawn().await;
    let folder = daemon.workspace().agent_dir();
    let lock = folder.join("settings.json.lock");
    std::fs::create_dir(&lock).unwrap();
    daemon.ok(json!({ "type": "set_steering_mode", "mode": "all" })).await;
    daemon.ok(json!({ "type": "set_follow_up_mode", "mode": "all" })).await;
    assert_eq!(settings_of(&daemon), json!({ "theme": "dark" }), "the file belongs to the other one");
    // The other one changes the file and lets go.
    std::fs::write(folder.join("settings.json"), r#"{"theme":"light"}"#).unwrap();
    std::fs::remove_dir(&lock).unwrap();
    let expected = json!({ "theme": "light", "steeringMode": "all", "followUpMode": "all" });
    eventually("the settings to be written", || settings_of(&daemon) == expected).await;
    eventually("the lock to be given back", || !lock.exists()).await;
    daemon.finish().await;
}

#[tokio::test]
async fn a_setting_takes_over_the_lock_of_a_program_that_died() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let lock = daemon.workspace().agent_dir().join("settings.json.lock");
    std::fs::create_dir(&lock).unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(60);
    std::fs::File::open(&lock).unwrap().set_modified(long_ago).unwrap();
    daemon.ok(json!({ "type": "set_steering_mode", "mode": "all" })).await;
    eventually("the setting to be written", || settings_of(&daemon)["steeringMode"] == "all").await;
    eventually("the lock to be given back", || !lock.exists()).await;
    daemon.finish().await;
}

#[tokio::test]
async fn the_daemon_ends_only_when_its_settings_are_written() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let settings = daemon.workspace().agent_dir().join("settings.json");
    daemon.ok(json!({ "type": "set_auto_retry", "enabled": false })).await;
    let _workspace = daemon.finish().await;
    let settings: Value = serde_json::from_slice(&std::fs::read(settings).unwrap()).unwrap();
    assert_eq!(settings, json!({ "retry": { "enabled": false } }));
}
