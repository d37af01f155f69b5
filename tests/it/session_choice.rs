//! Which session a daemon works in: the options of the command line, and the commands that change it.

use std::path::{Path, PathBuf};

use sampi_tests::fake_llm::{FakeLlm, Gate, text};
use sampi_tests::harness::{Daemon, Exit, Workspace};
use serde_json::{Value, json};

use crate::session_files::{
    as_lines, entries, entry_of, lines_of, reopen, session_file, texts_of, with_session_file, written_by_pi,
};

/// A session with the message "earlier" in the folder of the workspace's sessions, with this id.
fn put_session(workspace: &Workspace, id: &str, cwd: &Path) -> PathBuf {
    let name = cwd.to_str().unwrap().replace('/', "-");
    let folder = workspace.agent_dir().join("sessions").join(format!("-{name}--"));
    std::fs::create_dir_all(&folder).unwrap();
    let mut lines = written_by_pi(cwd);
    lines[0]["id"] = json!(id);
    let file = folder.join(format!("2026-01-02T03-04-05-678Z_{id}.jsonl"));
    std::fs::write(&file, as_lines(&lines)).unwrap();
    file
}

const ONE: &str = "0190aaaa-1111-7000-8000-000000000001";
const TWO: &str = "0190aaaa-2222-7000-8000-000000000002";

async fn started_with(llm: &FakeLlm, workspace: Workspace, args: &[&str]) -> Daemon {
    Daemon::builder(llm).in_workspace(workspace).args(args.iter().copied()).spawn().await
}

async fn assert_refused(llm: &FakeLlm, workspace: Workspace, args: &[&str], says: &str) {
    let daemon = started_with(llm, workspace, args).await;
    assert_eq!(daemon.exit().await, Exit::Code(1), "{args:?}");
    assert!(daemon.stderr().contains(says), "{args:?}: {}", daemon.stderr());
    assert!(daemon.records().is_empty());
}

#[tokio::test]
async fn a_session_is_opened_by_path_by_id_and_by_the_beginning_of_its_id() {
    let llm = FakeLlm::start().await;
    let mut workspace = Workspace::new();
    let one = put_session(&workspace, ONE, &workspace.cwd());
    put_session(&workspace, TWO, &workspace.cwd());
    for name in [one.to_str().unwrap(), ONE, "0190aaaa-1"] {
        let daemon = started_with(&llm, workspace, &["--session", name]).await;
        assert_eq!(session_file(&daemon).await, one, "{name}");
        assert_eq!(texts_of(&daemon.messages().await, "user"), ["earlier"]);
        workspace = daemon.finish().await;
    }
    std::fs::copy(&one, workspace.cwd().join("here.jsonl")).unwrap();
    let daemon = started_with(&llm, workspace, &["--session", "here.jsonl"]).await;
    assert_eq!(session_file(&daemon).await, daemon.workspace().cwd().join("here.jsonl"));
    daemon.finish().await;
}

#[tokio::test]
async fn an_id_that_fits_no_session_or_several_is_an_error_that_says_so() {
    let llm = FakeLlm::start().await;
    for (name, says) in [("0190bbbb", "0190bbbb"), ("0190aaaa", "ambiguous")] {
        let workspace = Workspace::new();
        put_session(&workspace, ONE, &workspace.cwd());
        put_session(&workspace, TWO, &workspace.cwd());
        assert_refused(&llm, workspace, &["--session", name], says).await;
    }
}

#[tokio::test]
async fn a_session_of_another_directory_is_named_and_can_be_forked_here() {
    let llm = FakeLlm::start().await;
    let workspace = Workspace::new();
    let elsewhere = workspace.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let file = put_session(&workspace, ONE, &elsewhere);
    let before = std::fs::read(&file).unwrap();
    let daemon = started_with(&llm, workspace, &["--fork", ONE]).await;
    llm.push(text("Here."));
    daemon.run("now").await;
    assert_eq!(llm.request(0).await.user_texts(), ["earlier", "now"]);
    let fork = session_file(&daemon).await;
    let header = &lines_of(&fork)[0];
    assert_eq!(header["parentSession"], file.to_str().unwrap());
    assert_eq!(header["cwd"], daemon.workspace().cwd().to_str().unwrap());
    assert_eq!(std::fs::read(&file).unwrap(), before, "the parent stays as it was");
    let workspace = daemon.finish().await;
    assert_refused(&llm, workspace, &["--session", ONE], elsewhere.to_str().unwrap()).await;
    llm.finish();
}

#[tokio::test]
async fn a_session_id_opens_the_session_that_has_it_or_starts_one() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("One."), text("Two.")]);
    let daemon = started_with(&llm, Workspace::new(), &["--session-id", "my-session.1"]).await;
    assert_eq!(daemon.state().await["sessionId"], "my-session.1");
    daemon.run("first").await;
    let file = session_file(&daemon).await;
    let daemon = started_with(&llm, daemon.finish().await, &["--session-id", "my-session.1"]).await;
    assert_eq!(session_file(&daemon).await, file);
    daemon.run("second").await;
    assert_eq!(llm.request(1).await.user_texts(), ["first", "second"]);
    daemon.finish().await;
    assert_refused(&llm, Workspace::new(), &["--session-id", "../x"], "Session id must be").await;
    llm.finish();
}

#[tokio::test]
async fn continue_takes_the_session_of_this_directory_that_was_written_last_or_starts_one() {
    let llm = FakeLlm::start().await;
    let daemon = started_with(&llm, Workspace::new(), &["-c"]).await;
    assert_eq!(daemon.state().await["messageCount"], 0);
    let workspace = daemon.finish().await;
    let (one, two) =
        (put_session(&workspace, ONE, &workspace.cwd()), put_session(&workspace, TWO, &workspace.cwd()));
    let past = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
    std::fs::File::options().append(true).open(&two).unwrap().set_modified(past).unwrap();
    let daemon = started_with(&llm, workspace, &["-c"]).await;
    assert_eq!(session_file(&daemon).await, one);
    daemon.finish().await;
}

// case 45
#[tokio::test]
async fn a_session_whose_directory_is_gone_is_an_error_that_names_it() {
    let llm = FakeLlm::start().await;
    let (builder, file) = with_session_file(&llm, |_| as_lines(&written_by_pi(Path::new("/gone/for/good"))));
    let before = std::fs::read(&file).unwrap();
    let daemon = builder.spawn().await;
    assert_eq!(daemon.exit().await, Exit::Code(1));
    assert!(daemon.stderr().contains("/gone/for/good"), "{}", daemon.stderr());
    assert_eq!(std::fs::read(&file).unwrap(), before);

    let daemon = Daemon::builder(&llm).spawn().await;
    let file = daemon.workspace().cwd().join("gone.jsonl");
    std::fs::write(&file, &before).unwrap();
    let state = daemon.state().await;
    let refused = daemon.refused(json!({ "type": "switch_session", "sessionPath": file })).await;
    refused.assert_says("/gone/for/good").assert_code("not_found");
    assert_eq!(daemon.state().await, state);
    daemon.finish().await;
}

/// A daemon on a session with one exchange, "earlier".
async fn on_a_session(llm: &FakeLlm) -> (Daemon, PathBuf) {
    let (builder, file) = with_session_file(llm, |cwd| as_lines(&written_by_pi(cwd)));
    (builder.spawn().await, file)
}

// case 42
#[tokio::test]
async fn a_fork_and_what_follows_it_leave_the_parents_bytes_alone() {
    let llm = FakeLlm::start().await;
    let (daemon, file) = on_a_session(&llm).await;
    llm.push_all([text("One."), text("Two.")]);
    daemon.run("first").await;
    let before = std::fs::read(&file).unwrap();
    let forkable = daemon.ok(json!({ "type": "get_fork_messages" })).await;
    let texts: Vec<&Value> = forkable["messages"].as_array().unwrap().iter().map(|m| &m["text"]).collect();
    assert_eq!(texts, ["earlier", "first"]);
    let entry = &forkable["messages"][1]["entryId"];
    let forked = daemon.ok(json!({ "type": "fork", "entryId": entry })).await;
    assert_eq!(forked, json!({ "text": "first", "cancelled": false }));
    daemon.run("other first").await;
    assert_eq!(llm.request(1).await.user_texts(), ["earlier", "other first"]);
    let fork = session_file(&daemon).await;
    assert_ne!(fork, file);
    assert_eq!(lines_of(&fork)[0]["parentSession"], file.to_str().unwrap());
    assert_eq!(std::fs::read(&file).unwrap(), before);
    // An answer cannot be forked from.
    let answer = entry_of(&daemon, "Two.").await;
    daemon.refused(json!({ "type": "fork", "entryId": answer })).await.assert_says("Invalid entry ID");
    daemon.finish().await;
    llm.finish();
}

// case 42
#[tokio::test]
async fn a_clone_has_the_whole_branch_and_leaves_the_original_alone() {
    let llm = FakeLlm::start().await;
    let (daemon, file) = on_a_session(&llm).await;
    let before = std::fs::read(&file).unwrap();
    let messages = daemon.messages().await;
    daemon.ok(json!({ "type": "clone" })).await;
    assert_eq!(daemon.messages().await, messages);
    let clone = session_file(&daemon).await;
    llm.push(text("One."));
    daemon.run("first").await;
    assert_eq!(llm.request(0).await.user_texts(), ["earlier", "first"]);
    assert_eq!(std::fs::read(&file).unwrap(), before);
    // The original is free for others.
    let daemon = reopen(&llm, daemon.finish().await, &clone).await;
    assert_eq!(texts_of(&daemon.messages().await, "user"), ["earlier", "first"]);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_session_that_was_never_saved_cannot_be_cloned() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let state = daemon.state().await;
    daemon.refused(json!({ "type": "clone" })).await.assert_says("not been saved yet");
    assert_eq!(daemon.state().await, state);
    daemon.finish().await;
}

#[tokio::test]
async fn a_new_session_notes_its_parent() {
    let llm = FakeLlm::start().await;
    let (daemon, file) = on_a_session(&llm).await;
    daemon.ok(json!({ "type": "new_session", "parentSession": file })).await;
    llm.push(text("One."));
    daemon.run("first").await;
    assert_eq!(lines_of(&session_file(&daemon).await)[0]["parentSession"], file.to_str().unwrap());
    assert_eq!(llm.request(0).await.user_texts(), ["first"]);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn switching_during_a_run_ends_the_run_in_its_own_session_first() {
    let llm = FakeLlm::start().await;
    let (daemon, file) = on_a_session(&llm).await;
    let other = daemon.workspace().cwd().join("other.jsonl");
    let mut lines = written_by_pi(&daemon.workspace().cwd());
    lines[0]["id"] = json!(TWO);
    lines[3]["message"]["content"][0]["text"] = json!("elsewhere");
    std::fs::write(&other, as_lines(&lines)).unwrap();
    let gate = Gate::new();
    llm.push(text("half of").wait(&gate));
    daemon.prompt("first").await;
    gate.reached().await;
    daemon.ok(json!({ "type": "steer", "message": "queued" })).await;
    let id = daemon.start(json!({ "type": "switch_session", "sessionPath": other })).await;
    assert_eq!(daemon.settled().await["aborted"], true);
    assert_eq!(daemon.response(&id).await["data"], json!({ "cancelled": false }));
    let update = daemon.wait_for(json!({ "type": "queue_update" })).await;
    assert_eq!((&update["steering"], &update["followUp"]), (&json!([]), &json!([])), "the host hears of it");
    assert_eq!(texts_of(&daemon.messages().await, "user"), ["elsewhere"]);
    assert_eq!(lines_of(&file).last().unwrap()["message"]["stopReason"], "aborted");
    llm.push(text("Two."));
    daemon.run("second").await;
    assert_eq!(llm.request(1).await.user_texts(), ["elsewhere", "second"]);
    daemon.finish().await;
    llm.finish();
}

// case 43
#[tokio::test]
async fn get_entries_since_an_unknown_entry_is_refused() {
    let llm = FakeLlm::start().await;
    let (daemon, _file) = on_a_session(&llm).await;
    daemon.refused(json!({ "type": "get_entries", "since": "nope" })).await.assert_code("not_found");
    let all = entries(&daemon, None).await;
    let after = entries(&daemon, Some(&json!("aaaaaaa3"))).await;
    assert_eq!(after["entries"][0], all["entries"][3]);
    assert_eq!(after["entries"].as_array().unwrap().len(), 1);
    assert!(entries(&daemon, Some(&all["leafId"])).await["entries"].as_array().unwrap().is_empty());
    daemon.finish().await;
}

#[tokio::test]
async fn a_change_of_session_that_cannot_be_done_aborts_nothing() {
    let llm = FakeLlm::start().await;
    let (daemon, file) = on_a_session(&llm).await;
    let notes = daemon.workspace().cwd().join("notes.txt");
    std::fs::write(&notes, "just some notes\n").unwrap();
    let gate = Gate::new();
    llm.push(text("One.").wait(&gate));
    daemon.prompt("first").await;
    gate.reached().await;
    daemon.refused(json!({ "type": "switch_session", "sessionPath": notes })).await;
    let missing = daemon.workspace().cwd().join("nope.jsonl");
    daemon
        .refused(json!({ "type": "switch_session", "sessionPath": missing }))
        .await
        .assert_code("not_found");
    daemon.refused(json!({ "type": "fork", "entryId": "nope" })).await;
    assert_eq!(daemon.state().await["isStreaming"], true);
    gate.open();
    assert_eq!(daemon.settled().await["aborted"], false);
    assert_eq!(session_file(&daemon).await, file);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_copy_of_an_opened_session_stands_beside_it_when_new_sessions_are_not_kept() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).args(["--no-session"]).spawn().await;
    let folder = daemon.workspace().cwd().join("kept");
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("session.jsonl");
    std::fs::write(&file, as_lines(&written_by_pi(&daemon.workspace().cwd()))).unwrap();
    daemon.ok(json!({ "type": "switch_session", "sessionPath": file })).await;
    daemon.ok(json!({ "type": "clone" })).await;
    let copy = session_file(&daemon).await;
    assert_ne!(copy, file);
    assert_eq!(copy.parent().unwrap(), folder);
    assert!(copy.is_file());
    daemon.finish().await;
    llm.finish();
}
