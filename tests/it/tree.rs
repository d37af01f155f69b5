//! Moving in a session's tree, labels, and the sessions on disk.

use std::collections::HashSet;
use std::path::PathBuf;

use sampi_tests::fake_llm::{FakeLlm, Gate, RecordedRequest, Reply, text};
use sampi_tests::harness::{Daemon, Workspace};
use serde_json::{Value, json};

use crate::session_files::{entries, entry_of, reopen, session_file, texts_of};

/// A daemon with the exchanges first/alpha and second/beta.
async fn with_two_exchanges(llm: &FakeLlm) -> Daemon {
    llm.push_all([text("alpha"), text("beta")]);
    let settings = json!({ "retry": { "baseDelayMs": 1, "maxRetries": 1 } });
    let daemon = Daemon::builder(llm).settings(settings).spawn().await;
    daemon.run("first").await;
    daemon.run("second").await;
    daemon
}

async fn navigate(daemon: &Daemon, target: &str) -> Value {
    daemon.ok(json!({ "type": "navigate_tree", "targetId": target })).await
}

async fn leaf(daemon: &Daemon) -> Value {
    entries(daemon, None).await["leafId"].clone()
}

async fn parent_of(daemon: &Daemon, id: &str) -> Value {
    let data = entries(daemon, None).await;
    let entry = data["entries"].as_array().unwrap().iter().find(|entry| entry["id"] == id).unwrap();
    entry["parentId"].clone()
}

/// The labels of a tree, with the ids of their entries.
async fn labels(daemon: &Daemon) -> Vec<(String, String)> {
    let data = daemon.ok(json!({ "type": "get_tree" })).await;
    let mut nodes: Vec<&Value> = data["tree"].as_array().unwrap().iter().collect();
    let mut found = Vec::new();
    while let Some(node) = nodes.pop() {
        if let Some(label) = node["label"].as_str() {
            found.push((node["entry"]["id"].as_str().unwrap().to_owned(), label.to_owned()));
        }
        nodes.extend(node["children"].as_array().unwrap());
    }
    found
}

#[tokio::test]
async fn moving_to_a_message_of_the_user_gives_its_text_back_and_stands_before_it() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    let second = entry_of(&daemon, "second").await;
    let moved = navigate(&daemon, &second).await;
    assert_eq!((&moved["editorText"], &moved["cancelled"]), (&json!("second"), &json!(false)));
    assert_eq!(moved["leafId"], parent_of(&daemon, &second).await);
    assert_eq!(moved["leafId"], leaf(&daemon).await);
    assert!(moved.get("summary").is_none());
    assert_eq!(texts_of(&daemon.messages().await, "user"), ["first"]);
    llm.push(text("gamma"));
    daemon.run("another second").await;
    assert_eq!(llm.request(2).await.user_texts(), ["first", "another second"]);
    let expected = daemon.messages().await;
    let file = session_file(&daemon).await;
    let daemon = reopen(&llm, daemon.finish().await, &file).await;
    assert_eq!(daemon.messages().await, expected);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn moving_to_an_answer_stands_behind_it_and_to_the_first_message_at_the_beginning() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    let alpha = entry_of(&daemon, "alpha").await;
    let moved = navigate(&daemon, &alpha).await;
    assert_eq!(moved["leafId"], json!(alpha));
    assert!(moved.get("editorText").is_none());
    llm.push(text("gamma"));
    daemon.run("another second").await;
    let request = llm.request(2).await;
    assert_eq!(request.user_texts(), ["first", "another second"]);
    assert_eq!(
        request.messages_of("assistant").into_iter().map(RecordedRequest::text_of).collect::<Vec<_>>(),
        ["alpha"]
    );

    let first = entry_of(&daemon, "first").await;
    assert_eq!(navigate(&daemon, &first).await["editorText"], "first");
    llm.push(text("delta"));
    daemon.run("another first").await;
    assert_eq!(llm.request(3).await.user_texts(), ["another first"]);
    // Back to the branch that was left.
    navigate(&daemon, &entry_of(&daemon, "beta").await).await;
    assert_eq!(texts_of(&daemon.messages().await, "user"), ["first", "second"]);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn the_branch_that_is_left_can_be_summarised_and_the_summary_comes_along() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    let (alpha, old_leaf) = (entry_of(&daemon, "alpha").await, leaf(&daemon).await);
    llm.push(text("what was tried"));
    let moved = daemon
        .ok(json!({ "type": "navigate_tree", "targetId": alpha, "summarize": true,
            "customInstructions": "mind the bikeshed", "label": "dead end" }))
        .await;
    let request = llm.request(2).await;
    let asked = request.user_texts().concat();
    assert!(request.tool_names().is_empty() && asked.contains("mind the bikeshed"));
    assert!(asked.contains("second") && asked.contains("beta") && !asked.contains("alpha"), "{asked}");
    let summary = &moved["summary"];
    assert_eq!((&summary["type"], &summary["summary"]), (&json!("branch_summary"), &json!("what was tried")));
    assert_eq!((&summary["fromId"], &summary["parentId"]), (&old_leaf, &json!(alpha)));
    assert_eq!(summary["usage"]["input"], 100);
    let appended = daemon.all(json!({ "type": "entry_appended" }));
    assert_eq!(appended[0]["entry"], *summary);
    let summary_id = summary["id"].as_str().unwrap().to_owned();
    assert_eq!(labels(&daemon).await, [(summary_id, "dead end".to_owned())]);
    assert_eq!(moved["leafId"], leaf(&daemon).await);

    llm.push(text("gamma"));
    daemon.run("third").await;
    let texts = llm.request(3).await.user_texts();
    assert_eq!((&texts[0], &texts[2]), (&"first".to_owned(), &"third".to_owned()));
    assert!(texts[1].contains("what was tried"), "{texts:?}");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_summary_of_nothing_is_not_asked_for() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    let beta = entry_of(&daemon, "beta").await;
    let moved = daemon
        .ok(json!({ "type": "navigate_tree", "targetId": beta, "summarize": true, "label": "here" }))
        .await;
    assert!(moved.get("summary").is_none());
    assert_eq!(labels(&daemon).await, [(beta, "here".to_owned())]);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn an_abort_during_the_summary_leaves_the_session_where_it_was() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    let (alpha, before) = (entry_of(&daemon, "alpha").await, entries(&daemon, None).await);
    llm.push(text("half of").hang());
    let id = daemon.start(json!({ "type": "navigate_tree", "targetId": alpha, "summarize": true })).await;
    let exchange = llm.exchange(2).await;
    daemon.refused(json!({ "type": "prompt", "message": "p" })).await.assert_code("busy");
    daemon.refused(json!({ "type": "navigate_tree", "targetId": alpha })).await.assert_code("busy");
    daemon.ok(json!({ "type": "abort" })).await;
    let response = daemon.response(&id).await;
    assert_eq!((&response["success"], &response["code"]), (&json!(false), &json!("cancelled")));
    exchange.over().await;
    assert_eq!(entries(&daemon, None).await, before);
    llm.push(text("gamma"));
    daemon.run("third").await;
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_summary_that_fails_leaves_the_session_where_it_was() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    let (alpha, before) = (entry_of(&daemon, "alpha").await, entries(&daemon, None).await);
    llm.push_all([Reply::error(503, "api_error", "down"), Reply::error(503, "api_error", "down")]);
    let command = json!({ "type": "navigate_tree", "targetId": alpha, "summarize": true });
    daemon.refused(command.clone()).await.assert_says("down");
    assert_eq!(entries(&daemon, None).await, before);
    llm.push(Reply::error(503, "api_error", "down"));
    llm.push(text("what was tried"));
    daemon.ok(command).await;
    let again = &daemon.all(json!({ "type": "summarization_retry_attempt_start" }))[1];
    assert_eq!((&again["source"], again.get("reason")), (&json!("branchSummary"), None));
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_new_session_during_the_summary_stops_it() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    let alpha = entry_of(&daemon, "alpha").await;
    llm.push(text("half of").hang());
    let id = daemon.start(json!({ "type": "navigate_tree", "targetId": alpha, "summarize": true })).await;
    llm.exchange(2).await;
    daemon.ok(json!({ "type": "new_session" })).await;
    assert_eq!(daemon.response(&id).await["success"], false);
    assert_eq!(daemon.state().await["messageCount"], 0);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn during_a_run_the_tree_stays_and_an_unknown_target_is_not_found() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    let alpha = entry_of(&daemon, "alpha").await;
    let gate = Gate::new();
    llm.push(text("gamma").wait(&gate));
    daemon.prompt("third").await;
    daemon.refused(json!({ "type": "navigate_tree", "targetId": alpha })).await.assert_code("busy");
    gate.open();
    daemon.settled().await;
    for summarize in [false, true] {
        let command = json!({ "type": "navigate_tree", "targetId": "nope", "summarize": summarize });
        daemon.refused(command).await.assert_code("not_found").assert_says("nope");
    }
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_label_is_set_changed_and_taken_away_and_survives_a_restart() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    let alpha = entry_of(&daemon, "alpha").await;
    let set = daemon.ok(json!({ "type": "set_label", "entryId": alpha, "label": " good " })).await;
    assert_eq!((&set["entry"]["type"], &set["entry"]["label"]), (&json!("label"), &json!("good")));
    let appended = daemon.wait_for(json!({ "type": "entry_appended" })).await;
    assert_eq!(appended["entry"], set["entry"]);
    assert_eq!(labels(&daemon).await, [(alpha.clone(), "good".to_owned())]);
    daemon.ok(json!({ "type": "set_label", "entryId": alpha, "label": "better" })).await;
    let file = session_file(&daemon).await;
    let daemon = reopen(&llm, daemon.finish().await, &file).await;
    assert_eq!(labels(&daemon).await, [(alpha.clone(), "better".to_owned())]);
    daemon.ok(json!({ "type": "set_label", "entryId": alpha })).await;
    assert!(labels(&daemon).await.is_empty());
    daemon
        .refused(json!({ "type": "set_label", "entryId": "nope", "label": "x" }))
        .await
        .assert_code("not_found");
    daemon.finish().await;
    llm.finish();
}

/// Session files with one message each, and the workspace that they are in.
async fn shelf(llm: &FakeLlm, messages: &[&str]) -> (Workspace, Vec<PathBuf>) {
    let mut workspace = Workspace::new();
    let mut files = Vec::new();
    for message in messages {
        llm.push(text("ok"));
        let daemon = Daemon::builder(llm).in_workspace(workspace).spawn().await;
        daemon.run(message).await;
        files.push(session_file(&daemon).await);
        workspace = daemon.finish().await;
    }
    (workspace, files)
}

fn paths(listed: &Value) -> Vec<PathBuf> {
    let sessions = listed["sessions"].as_array().unwrap();
    sessions.iter().map(|session| session["path"].as_str().unwrap().into()).collect()
}

#[tokio::test]
async fn sessions_are_listed_the_latest_first_searched_and_paged_each_exactly_once() {
    let llm = FakeLlm::start().await;
    let (workspace, files) = shelf(&llm, &["about apples", "about pears", "about figs", "about plums"]).await;
    // Two files of the same millisecond, which only their paths tell apart.
    let time = std::time::SystemTime::now();
    for file in &files[..2] {
        std::fs::File::options().append(true).open(file).unwrap().set_modified(time).unwrap();
    }
    std::fs::write(files[0].with_file_name("notes.jsonl"), "just some notes\n").unwrap();
    let daemon = Daemon::builder(&llm).in_workspace(workspace).spawn().await;
    let all = daemon.ok(json!({ "type": "list_sessions" })).await;
    assert_eq!(paths(&all).iter().collect::<HashSet<_>>(), files.iter().collect::<HashSet<_>>());
    assert_eq!(paths(&all)[2..], [files[3].clone(), files[2].clone()]);
    assert!(all.get("nextCursor").is_none(), "{all}");
    let pears = daemon.ok(json!({ "type": "list_sessions", "search": "PEARS" })).await;
    assert_eq!(paths(&pears), [files[1].clone()]);
    assert_eq!(pears["sessions"][0]["firstMessage"], "about pears");
    assert_eq!(pears["sessions"][0]["cwd"], daemon.workspace().cwd().to_str().unwrap());
    for cursor in ["zork", "1", "x:/y"] {
        let failure = daemon.refused(json!({ "type": "list_sessions", "cursor": cursor })).await;
        failure.assert_code("invalid_params").assert_says("list_sessions: cursor: expected the nextCursor");
    }
    for limit in [json!(0), json!(1001), json!(-1), json!(1.5), json!("many"), json!([])] {
        let failure = daemon.refused(json!({ "type": "list_sessions", "limit": limit })).await;
        failure.assert_code("invalid_params").assert_says("expected a whole number from 1 to 1000");
    }
    let elsewhere = daemon.ok(json!({ "type": "list_sessions", "cwd": "/nowhere" })).await;
    assert!(paths(&elsewhere).is_empty());
    for limit in [1, 2, 3, 4] {
        let mut found = Vec::new();
        let mut wish = json!({ "type": "list_sessions", "limit": limit });
        loop {
            let page = daemon.ok(wish.clone()).await;
            found.extend(paths(&page));
            match page.get("nextCursor") {
                Some(cursor) => wish["cursor"] = cursor.clone(),
                None => break,
            }
        }
        assert_eq!(found, paths(&all), "pages of {limit}");
    }
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_session_is_deleted_unless_it_is_open_or_none() {
    let llm = FakeLlm::start().await;
    let (workspace, files) = shelf(&llm, &["one", "two"]).await;
    let notes = workspace.cwd().join("notes.txt");
    std::fs::write(&notes, "just some notes\n").unwrap();
    let daemon = reopen(&llm, workspace, &files[1]).await;
    daemon.refused(json!({ "type": "delete_session", "sessionPath": files[1] })).await.assert_code("busy");
    daemon
        .refused(json!({ "type": "delete_session", "sessionPath": notes }))
        .await
        .assert_code("invalid_params");
    daemon
        .refused(json!({ "type": "delete_session", "sessionPath": "missing.jsonl" }))
        .await
        .assert_code("not_found");
    daemon.ok(json!({ "type": "delete_session", "sessionPath": files[0] })).await;
    assert!(!files[0].exists() && files[1].exists() && notes.exists());
    let listed = daemon.ok(json!({ "type": "list_sessions" })).await;
    assert_eq!(paths(&listed), [files[1].clone()]);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn of_a_branch_too_long_for_the_model_the_newest_part_is_summarised() {
    for (window, reserve, is_whole) in [(1500, 0, false), (4000, 3000, false), (4000, 0, true)] {
        let llm = FakeLlm::start().await;
        let long = |word: &str| format!("{word} {}", "x".repeat(1800));
        llm.push_all([text("alpha"), text(&long("older")), text(&long("newer"))]);
        let models = json!({ "providers": { "mock": { "baseUrl": format!("{}/v1", llm.url()),
            "api": "openai-completions", "apiKey": "key",
            "models": [{ "id": "m1", "contextWindow": window, "maxTokens": 100 }] } } });
        let settings = json!({ "branchSummary": { "reserveTokens": reserve } });
        let daemon = Daemon::builder(&llm).models(models).settings(settings).spawn().await;
        daemon.ok(json!({ "type": "set_auto_compaction", "enabled": false })).await;
        for prompt in ["first", "second", &long("third")] {
            daemon.run(prompt).await;
        }
        llm.push(text("what was tried"));
        let alpha = entry_of(&daemon, "alpha").await;
        daemon.ok(json!({ "type": "navigate_tree", "targetId": alpha, "summarize": true })).await;
        let asked = llm.request(3).await.user_texts().concat();
        assert!(asked.contains("newer xxx") && asked.contains("third xxx"), "{window} {reserve}: {asked}");
        assert_eq!(asked.contains("older xxx"), is_whole, "{window} {reserve}: {asked}");
        daemon.finish().await;
        llm.finish();
    }
}
