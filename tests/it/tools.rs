//! Tool calls end to end: the model asks, the daemon acts, the model is told.

use std::path::Path;

use sampi_tests::fake_llm::{Answer, FakeLlm, RecordedRequest, text, tool_call};
use sampi_tests::harness::{Daemon, DaemonBuilder, Model, text_of_content};
use serde_json::{Value, json};

/// Runs one tool call, and gives back its result and the text that the model was told.
async fn run_tool(
    prepare: impl FnOnce(DaemonBuilder) -> DaemonBuilder,
    name: &str,
    arguments: Value,
) -> (Value, String, sampi_tests::harness::Workspace) {
    let llm = FakeLlm::start().await;
    llm.push(tool_call("c1", name, arguments));
    llm.push(text("ok"));
    let daemon = prepare(Daemon::builder(&llm)).spawn().await;
    daemon.run("go").await;
    let end = daemon.all(json!({ "type": "tool_execution_end", "toolCallId": "c1" })).remove(0);
    let told = RecordedRequest::text_of(llm.requests()[1].messages_of("tool")[0]);
    let workspace = daemon.finish().await;
    llm.finish();
    (end, told, workspace)
}

fn content_of(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[tokio::test]
async fn what_a_tool_says_goes_to_the_model_and_to_the_host() {
    let (end, told, _) =
        run_tool(|daemon| daemon.file("a.txt", "hello\n"), "read", json!({ "path": "a.txt" })).await;
    assert_eq!(told, "hello\n");
    assert_eq!(text_of_content(&end["result"]["content"]), "hello\n");
    assert_eq!(end["isError"], false);
}

#[tokio::test]
async fn a_failed_tool_call_is_told_to_the_model_and_never_ends_the_run() {
    let read = json!({ "path": "missing.txt" });
    let (end, told, _) = run_tool(|daemon| daemon, "read", read).await;
    assert_eq!(end["isError"], true);
    assert!(told.contains("ENOENT") || told.contains("missing.txt"), "{told}");
    let (end, told, _) = run_tool(|daemon| daemon, "bash", json!({ "command": "echo out; exit 3" })).await;
    assert_eq!(end["isError"], true);
    assert!(told.contains("out\n") && told.contains("Command exited with code 3"), "{told}");
}

#[tokio::test]
async fn arguments_that_do_not_fit_the_schema_are_told_to_the_model_and_the_tool_does_not_run() {
    let wrong = json!({ "command": ["touch", "made"] });
    let (end, told, workspace) = run_tool(|daemon| daemon, "bash", wrong).await;
    assert_eq!(end["isError"], true);
    assert!(told.contains("command"), "{told}");
    assert!(!workspace.cwd().join("made").exists());
}

#[tokio::test]
async fn arguments_that_are_no_json_are_told_to_the_model_as_they_were() {
    let llm = FakeLlm::start().await;
    llm.push(Answer::empty().raw_tool_call("c1", "bash", "{\"command\": \"echo unfinished"));
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("go").await;
    let told = RecordedRequest::text_of(llm.requests()[1].messages_of("tool")[0]);
    assert!(told.starts_with("Invalid arguments for tool \"bash\": "), "{told}");
    assert!(told.ends_with("Received arguments:\n{\"command\": \"echo unfinished"), "{told}");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn edit_replaces_exact_unique_texts_and_keeps_line_ends_and_the_byte_order_mark() {
    let edits =
        json!([{ "oldText": "two\nthree", "newText": "2\n3" }, { "oldText": "four", "newText": "4" }]);
    let original = "\u{feff}one\r\ntwo\r\nthree\r\nfour\r\n";
    let arguments = json!({ "path": "a.txt", "edits": edits });
    let (end, _, workspace) = run_tool(|daemon| daemon.file("a.txt", original), "edit", arguments).await;
    assert_eq!(end["isError"], false, "{end}");
    assert_eq!(content_of(&workspace.cwd().join("a.txt")), "\u{feff}one\r\n2\r\n3\r\n4\r\n");
}

#[tokio::test]
async fn an_edit_that_does_not_apply_leaves_the_file_as_it_was() {
    for old in ["zzz", "o"] {
        let edits = json!([{ "oldText": "hello", "newText": "HELLO" }, { "oldText": old, "newText": "y" }]);
        let arguments = json!({ "path": "a.txt", "edits": edits });
        let (end, _, workspace) =
            run_tool(|daemon| daemon.file("a.txt", "hello\nworld\n"), "edit", arguments).await;
        assert_eq!(end["isError"], true);
        assert_eq!(content_of(&workspace.cwd().join("a.txt")), "hello\nworld\n");
    }
}

#[tokio::test]
async fn write_makes_the_directories_that_are_missing() {
    let arguments = json!({ "path": "sub/dir/b.txt", "content": "one\ntwo\n" });
    let (end, _, workspace) = run_tool(|daemon| daemon, "write", arguments).await;
    assert_eq!(end["isError"], false);
    assert_eq!(content_of(&workspace.cwd().join("sub/dir/b.txt")), "one\ntwo\n");
}

#[tokio::test]
async fn the_search_tools_respect_gitignore_and_need_no_other_program() {
    let prepare = |daemon: DaemonBuilder| {
        daemon
            .args(["--tools", "grep,find,ls"])
            .file(".git/HEAD", "ref: refs/heads/main\n")
            .file(".gitignore", "skip\n")
            .file("src/a.rs", "x\nneedle here\n")
            .file("skip/c.rs", "needle\n")
            .file("z.txt", "needle z\n")
    };
    let (_, told, _) = run_tool(prepare, "grep", json!({ "pattern": "needle" })).await;
    assert!(told.contains("src/a.rs:2:") && told.contains("z.txt:1:") && !told.contains("skip"), "{told}");
    let (_, told, _) = run_tool(prepare, "find", json!({ "pattern": "*.rs" })).await;
    assert_eq!(told.trim_end(), "src/a.rs");
    let (_, told, _) = run_tool(prepare, "ls", json!({ "path": "." })).await;
    assert!(told.contains("src/") && told.contains("z.txt"), "{told}");
}

#[tokio::test]
async fn tool_calls_of_one_answer_run_side_by_side_and_their_results_keep_the_order() {
    let llm = FakeLlm::start().await;
    let wait = "touch a; until [ -e b ]; do sleep 0.02; done; echo first";
    llm.push(tool_call("c1", "bash", json!({ "command": wait })).tool_call(
        "c2",
        "bash",
        json!({ "command": "until [ -e a ]; do sleep 0.02; done; echo second; touch b" }),
    ));
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("go").await;
    let told: Vec<String> =
        llm.requests()[1].messages_of("tool").into_iter().map(RecordedRequest::text_of).collect();
    assert_eq!(told, ["first\n", "second\n"]);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn only_the_tools_of_the_command_line_are_offered_and_no_other_runs() {
    let llm = FakeLlm::start().await;
    llm.push(tool_call("c1", "bash", json!({ "command": "touch made" })));
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).args(["--tools", "read,ls"]).spawn().await;
    daemon.run("go").await;
    assert_eq!(llm.requests()[0].tool_names(), ["read", "ls"]);
    let told = RecordedRequest::text_of(llm.requests()[1].messages_of("tool")[0]);
    assert_eq!(told, "Tool bash not found");
    assert!(!daemon.workspace().cwd().join("made").exists());
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn without_tools_none_are_declared() {
    let llm = FakeLlm::start().await;
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).args(["-nt"]).spawn().await;
    daemon.run("go").await;
    assert!(llm.requests()[0].body.get("tools").is_none_or(|tools| tools == &json!([])));
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn shell_tools_know_the_session_and_the_model() {
    let command = "echo \"$PI_SESSION_ID|$PI_PROVIDER|$PI_MODEL\"";
    let llm = FakeLlm::start().await;
    llm.push(tool_call("c1", "bash", json!({ "command": command })));
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("go").await;
    let session = daemon.state().await["sessionId"].as_str().unwrap().to_owned();
    let told = RecordedRequest::text_of(llm.requests()[1].messages_of("tool")[0]);
    assert_eq!(told, format!("{session}|mock|m1\n"));
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_tools_output_streams_to_the_host_while_it_runs() {
    let llm = FakeLlm::start().await;
    let command = "echo started; until [ -e go ]; do sleep 0.02; done; echo ended";
    llm.push(tool_call("c1", "bash", json!({ "command": command })));
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).model(Model::Plain).spawn().await;
    daemon.prompt("go").await;
    let so_far = daemon.tool_output("c1", |output| output.contains("started")).await;
    assert!(!so_far.contains("ended"));
    std::fs::write(daemon.workspace().cwd().join("go"), "").unwrap();
    daemon.settled().await;
    let end = &daemon.all(json!({ "type": "tool_execution_end" }))[0];
    assert_eq!(text_of_content(&end["result"]["content"]), "started\nended\n");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_command_over_its_timeout_is_killed_and_the_model_is_told() {
    let command = json!({ "command": "echo begun; sleep 600", "timeout": 1 });
    let (end, told, _) = run_tool(|daemon| daemon, "bash", command).await;
    assert_eq!(end["isError"], true);
    assert!(told.contains("begun") && told.contains("timed out after 1 seconds"), "{told}");
}
