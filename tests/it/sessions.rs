//! Session files: what is in them, when, and what is done with those of others.

use std::path::Path;

use sampi_tests::fake_llm::{FakeLlm, RecordedRequest, Reply, text};
use sampi_tests::harness::{Daemon, Exit, text_of_content};
use serde_json::{Value, json};

use crate::session_files::{
    as_lines, entries, lines_of, reopen, session_file, with_session_file, written_by_pi,
};

// case 39
#[tokio::test]
async fn header_message_and_earlier_entries_are_on_disk_before_the_prompt_is_acknowledged() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::silence());
    let daemon = Daemon::builder(&llm).args(["--name", "early"]).spawn().await;
    let file = session_file(&daemon).await;
    daemon.prompt("keep this").await;
    let lines = lines_of(&file);
    let kinds: Vec<&Value> = lines.iter().map(|line| &line["type"]).collect();
    assert_eq!(kinds[0], "session");
    assert_eq!(lines[0]["version"], 3);
    assert_eq!(lines[0]["cwd"], daemon.workspace().cwd().to_str().unwrap());
    for kind in ["model_change", "thinking_level_change", "session_info"] {
        assert!(kinds.iter().any(|found| *found == kind), "{kind} in {kinds:?}");
    }
    let user = lines.iter().find(|line| line["message"]["role"] == "user").expect("the user's message");
    assert_eq!(text_of_content(&user["message"]["content"]), "keep this");
    daemon.close_stdin().await;
    daemon.exit().await;
}

// case 39
#[tokio::test]
async fn a_queued_message_is_on_disk_once_it_is_delivered_and_every_entry_follows_the_one_before() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("One."), text("Two.")]);
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("first").await;
    daemon.run("second").await;
    let file = session_file(&daemon).await;
    let lines = lines_of(&file);
    let mut parent = Value::Null;
    for entry in &lines[1..] {
        assert_eq!(entry["parentId"], parent, "{entry}");
        parent = entry["id"].clone();
    }
    let data = entries(&daemon, None).await;
    assert_eq!(data["entries"].as_array().unwrap(), &lines[1..]);
    assert_eq!(data["leafId"], parent);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_session_file_only_grows() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("One."), text("Two.")]);
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("first").await;
    let file = session_file(&daemon).await;
    let first = std::fs::read(&file).unwrap();
    daemon.run("second").await;
    daemon.ok(json!({ "type": "set_session_name", "name": "n" })).await;
    let second = std::fs::read(&file).unwrap();
    assert!(second.len() > first.len() && second.starts_with(&first));
    let workspace = daemon.finish().await;
    let daemon = reopen(&llm, workspace, &file).await;
    assert_eq!(daemon.state().await["sessionName"], "n");
    assert!(std::fs::read(&file).unwrap().starts_with(&second));
    daemon.finish().await;
    llm.finish();
}

// case 39
#[tokio::test]
async fn a_file_that_pi_wrote_opens_and_goes_on() {
    let llm = FakeLlm::start().await;
    llm.push(text("Still here."));
    let (builder, file) = with_session_file(&llm, |cwd| as_lines(&written_by_pi(cwd)));
    let before = std::fs::read(&file).unwrap();
    let daemon = builder.spawn().await;
    assert_eq!(session_file(&daemon).await, file);
    assert_eq!(daemon.state().await["sessionId"], "0190aaaa-0000-7000-8000-000000000001");
    assert_eq!(daemon.state().await["messageCount"], 2);
    daemon.run("now").await;
    assert_eq!(llm.requests()[0].user_texts(), ["earlier", "now"]);
    assert!(std::fs::read(&file).unwrap().starts_with(&before), "what was there stays as it was");
    daemon.finish().await;
    llm.finish();
}

// case 40
#[tokio::test]
async fn a_torn_last_line_costs_only_itself() {
    let llm = FakeLlm::start().await;
    llm.push(text("Whole."));
    let torn = "{\"type\":\"message\",\"id\":\"aaaaaaa5\",\"parentId\":\"aaaa";
    let (builder, file) = with_session_file(&llm, |cwd| as_lines(&written_by_pi(cwd)) + torn);
    let daemon = builder.spawn().await;
    daemon.run("after the crash").await;
    let expected = entries(&daemon, None).await;
    assert!(!daemon.stderr().is_empty(), "a warning is on stderr");
    let workspace = daemon.finish().await;

    let daemon = reopen(&llm, workspace, &file).await;
    let found = entries(&daemon, None).await;
    let count = expected["entries"].as_array().unwrap().len();
    assert_eq!(found["entries"].as_array().unwrap()[..count], expected["entries"].as_array().unwrap()[..]);
    let users: Vec<String> = (daemon.messages().await.iter())
        .filter(|message| message["role"] == "user")
        .map(|message| text_of_content(&message["content"]))
        .collect();
    assert_eq!(users, ["earlier", "after the crash"]);
    daemon.finish().await;
    llm.finish();
}

// case 41
#[tokio::test]
async fn an_empty_file_becomes_a_session() {
    let llm = FakeLlm::start().await;
    llm.push(text("ok"));
    let (builder, file) = with_session_file(&llm, |_| String::new());
    let daemon = builder.spawn().await;
    daemon.run("hi").await;
    assert_eq!(session_file(&daemon).await, file);
    assert_eq!(lines_of(&file)[0]["type"], "session");
    daemon.finish().await;
    llm.finish();
}

// case 41
#[tokio::test]
async fn a_file_that_is_no_session_is_refused_and_left_alone() {
    let llm = FakeLlm::start().await;
    for content in ["just some notes\n", "{\"a\":1}\n", "[1,2]\n"] {
        let (builder, file) = with_session_file(&llm, |_| content.to_owned());
        let daemon = builder.spawn().await;
        assert_ne!(daemon.exit().await, Exit::Code(0));
        assert!(daemon.stderr().contains("session"), "stderr: {}", daemon.stderr());
        assert_eq!(std::fs::read_to_string(file).unwrap(), content);
    }
}

// case 43
#[tokio::test]
async fn get_entries_since_an_entry_gives_exactly_what_came_after_also_after_a_restart() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("One."), text("Two.")]);
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("first").await;
    let before = entries(&daemon, None).await;
    let file = session_file(&daemon).await;
    let workspace = daemon.finish().await;

    let daemon = reopen(&llm, workspace, &file).await;
    daemon.run("second").await;
    let all = entries(&daemon, None).await["entries"].as_array().unwrap().clone();
    let count = before["entries"].as_array().unwrap().len();
    assert_eq!(all[..count], before["entries"].as_array().unwrap()[..]);
    let after = entries(&daemon, Some(&before["leafId"])).await;
    assert_eq!(after["entries"].as_array().unwrap()[..], all[count..]);
    let texts: Vec<String> = (after["entries"].as_array().unwrap().iter())
        .filter(|entry| entry["type"] == "message" && entry["message"]["role"] != "system")
        .map(|entry| text_of_content(&entry["message"]["content"]))
        .collect();
    assert_eq!(texts, ["second", "Two."]);
    daemon.finish().await;
    llm.finish();
}

// case 44
#[tokio::test]
async fn switching_to_a_session_that_does_not_exist_fails_and_makes_nothing() {
    let llm = FakeLlm::start().await;
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("hi").await;
    let before = daemon.state().await;
    let missing = daemon.workspace().cwd().join("nope/x.jsonl");
    daemon
        .refused(json!({ "type": "switch_session", "sessionPath": missing }))
        .await
        .assert_code("not_found");
    assert!(!missing.exists() && !missing.parent().unwrap().exists());
    assert_eq!(daemon.state().await, before);
    daemon.finish().await;
    llm.finish();
}

// case 44
#[tokio::test]
async fn switching_to_a_file_that_is_no_session_fails_and_the_session_stays() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).file("notes.txt", "just some notes\n").spawn().await;
    let before = daemon.state().await;
    let file = daemon.workspace().cwd().join("notes.txt");
    daemon.refused(json!({ "type": "switch_session", "sessionPath": file })).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "just some notes\n");
    assert_eq!(daemon.state().await, before);
    daemon.finish().await;
}

#[tokio::test]
async fn switch_session_goes_on_in_the_other_file() {
    let llm = FakeLlm::start().await;
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).spawn().await;
    let file = daemon.workspace().cwd().join("other.jsonl");
    std::fs::write(&file, as_lines(&written_by_pi(&daemon.workspace().cwd()))).unwrap();
    let data = daemon.ok(json!({ "type": "switch_session", "sessionPath": file })).await;
    assert_eq!(data, json!({ "cancelled": false }));
    assert_eq!(session_file(&daemon).await, file);
    daemon.run("now").await;
    assert_eq!(llm.requests()[0].user_texts(), ["earlier", "now"]);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_new_session_is_empty_and_the_old_file_stays_as_it_was() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("One."), text("Two.")]);
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("first").await;
    let old = session_file(&daemon).await;
    let before = std::fs::read(&old).unwrap();
    assert_eq!(daemon.ok(json!({ "type": "new_session" })).await, json!({ "cancelled": false }));
    assert_eq!(daemon.state().await["messageCount"], 0);
    daemon.run("second").await;
    assert_ne!(session_file(&daemon).await, old);
    assert_eq!(llm.requests()[1].user_texts(), ["second"]);
    assert_eq!(std::fs::read(&old).unwrap(), before);
    daemon.finish().await;
    llm.finish();
}

// case 48
#[tokio::test]
async fn files_of_version_1_and_2_are_read_and_go_on() {
    let llm = FakeLlm::start().await;
    for version in [1, 2] {
        let number = llm.requests().len();
        llm.push(text("Still here."));
        let (builder, file) = with_session_file(&llm, |cwd| {
            let mut lines = written_by_pi(cwd);
            if version == 1 {
                lines[0].as_object_mut().unwrap().remove("version");
                for entry in &mut lines[1..] {
                    entry.as_object_mut().unwrap().retain(|key, _| key != "id" && key != "parentId");
                }
            } else {
                lines[0]["version"] = json!(2);
                lines.push(json!({ "type": "message", "id": "aaaaaaa5", "parentId": "aaaaaaa4",
                    "timestamp": "2026-01-02T03:04:05.678Z",
                    "message": { "role": "hookMessage", "customType": "c", "content": "from a hook", "display": true,
                        "timestamp": 1_767_323_045_679_u64 } }));
            }
            as_lines(&lines)
        });
        let daemon = builder.spawn().await;
        daemon.run("now").await;
        let request = llm.request(number).await;
        let texts = request.user_texts();
        assert_eq!((texts.first().unwrap().as_str(), texts.last().unwrap().as_str()), ("earlier", "now"));
        assert_eq!(texts.contains(&"from a hook".to_owned()), version == 2, "{texts:?}");
        let count = daemon.messages().await.len();
        let workspace = daemon.finish().await;
        let daemon = reopen(&llm, workspace, &file).await;
        assert_eq!(daemon.messages().await.len(), count, "version {version}");
        daemon.finish().await;
    }
    llm.finish();
}

// case 48
#[tokio::test]
async fn a_file_of_version_4_is_refused_and_left_alone() {
    let llm = FakeLlm::start().await;
    let of_version_4 = |cwd: &Path| {
        let mut lines = written_by_pi(cwd);
        lines[0]["version"] = json!(4);
        as_lines(&lines)
    };
    let (builder, file) = with_session_file(&llm, of_version_4);
    let before = std::fs::read(&file).unwrap();
    let daemon = builder.spawn().await;
    assert_ne!(daemon.exit().await, Exit::Code(0));
    assert!(daemon.stderr().contains("version 4"), "stderr: {}", daemon.stderr());
    assert_eq!(std::fs::read(&file).unwrap(), before);

    let daemon = Daemon::builder(&llm).spawn().await;
    let file = daemon.workspace().cwd().join("newer.jsonl");
    std::fs::write(&file, &before).unwrap();
    let failure = daemon.refused(json!({ "type": "switch_session", "sessionPath": file })).await;
    failure.assert_says("version 4");
    assert_eq!(std::fs::read(&file).unwrap(), before);
    daemon.finish().await;
}

#[tokio::test]
async fn without_a_session_nothing_is_written() {
    let llm = FakeLlm::start().await;
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).args(["--no-session"]).spawn().await;
    daemon.run("hi").await;
    assert!(daemon.state().await.get("sessionFile").is_none());
    assert_eq!(entries(&daemon, None).await["entries"].as_array().unwrap().len(), 5);
    let workspace = daemon.finish().await;
    let files = workspace.files_below(&workspace.root());
    assert!(!files.iter().any(|file| file.extension().is_some_and(|end| end == "jsonl")), "{files:?}");
    llm.finish();
}

#[tokio::test]
async fn continue_opens_the_newest_session_of_the_directory() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("One."), text("Two.")]);
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("first").await;
    let file = session_file(&daemon).await;
    let workspace = daemon.finish().await;
    let daemon = Daemon::builder(&llm).in_workspace(workspace).args(["--continue"]).spawn().await;
    assert_eq!(session_file(&daemon).await, file);
    daemon.run("second").await;
    let request = llm.request(1).await;
    assert_eq!(request.user_texts(), ["first", "second"]);
    assert_eq!(
        request.messages_of("assistant").into_iter().map(RecordedRequest::text_of).collect::<Vec<_>>(),
        ["One."]
    );
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_session_is_where_pi_looks_for_it() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let state = daemon.state().await;
    let file = session_file(&daemon).await;
    let cwd = daemon.workspace().cwd().to_str().unwrap().replace('/', "-");
    let directory = daemon.workspace().agent_dir().join("sessions").join(format!("-{cwd}--"));
    assert_eq!(file.parent().unwrap(), directory);
    let name = file.file_name().unwrap().to_str().unwrap();
    assert!(name.ends_with(&format!("_{}.jsonl", state["sessionId"].as_str().unwrap())), "{name}");
    daemon.finish().await;
}
