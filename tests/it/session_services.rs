//! What a session is worked with in: settings, prompt files, resources, models and tools are those of its working
//! directory, also after a change of session.

use std::path::PathBuf;

use sampi_tests::fake_llm::{FakeLlm, text};
use sampi_tests::harness::{Daemon, DaemonBuilder, Model, Workspace};
use serde_json::{Value, json};

use crate::session_files::{as_lines, entry_of, session_file, written_by_pi};

/// A second, trusted project with a configuration of its own, and a session file of it without a model.
fn other_project(workspace: &Workspace) -> PathBuf {
    let other = workspace.root().join("other");
    let files = [
        (
            ".pi/settings.json",
            r#"{"defaultProvider":"mockant","defaultModel":"a1","defaultThinkingLevel":"low",
                "steeringMode":"all","compaction":{"enabled":false},"defaultTools":["read"]}"#,
        ),
        (".pi/prompts/theirs.md", "Say theirs: $1"),
        ("AGENTS.md", "the other project's rules"),
    ];
    for (file, content) in files {
        let path = other.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let trusted = json!({ other.to_str().unwrap(): true, workspace.cwd().to_str().unwrap(): true });
    std::fs::write(workspace.agent_dir().join("trust.json"), trusted.to_string()).unwrap();
    let session = other.join("session.jsonl");
    let mut lines = written_by_pi(&other);
    lines.truncate(1);
    std::fs::write(&session, as_lines(&lines)).unwrap();
    session
}

fn builder(llm: &FakeLlm) -> DaemonBuilder {
    let builder = Daemon::builder(llm).model(Model::Unnamed);
    builder.file("AGENTS.md", "the first project's rules").file(".pi/prompts/ours.md", "Say ours: $1")
}

async fn switch(daemon: &Daemon, file: &std::path::Path) {
    let switched = daemon.ok(json!({ "type": "switch_session", "sessionPath": file })).await;
    assert_eq!(switched, json!({ "cancelled": false }));
}

async fn command_names(daemon: &Daemon) -> Vec<String> {
    let commands = daemon.ok(json!({ "type": "get_commands" })).await;
    let names = commands["commands"].as_array().unwrap().iter();
    let names = names.map(|command| command["name"].as_str().unwrap().to_owned());
    // Pi has commands of its own.
    names.filter(|name| !["llama", "mcp"].contains(&name.as_str())).collect()
}

/// Model, thinking level, steering mode and automatic compaction.
async fn chosen(daemon: &Daemon) -> Value {
    let state = daemon.state().await;
    json!([
        state["model"]["id"],
        state["thinkingLevel"],
        state["steeringMode"],
        state["autoCompactionEnabled"]
    ])
}

#[tokio::test]
async fn a_session_of_another_working_directory_brings_the_configuration_that_holds_there() {
    let llm = FakeLlm::start().await;
    llm.push(text("Theirs."));
    llm.push(text("Ours."));
    let builder = builder(&llm).settings(json!({ "defaultProvider": "mock", "defaultModel": "m1" }));
    let theirs = other_project(builder.workspace());
    let daemon = builder.spawn().await;
    let ours = session_file(&daemon).await;
    assert_eq!(chosen(&daemon).await, json!(["m1", "off", "one-at-a-time", true]));
    assert_eq!(command_names(&daemon).await, ["ours"]);

    switch(&daemon, &theirs).await;
    assert_eq!(chosen(&daemon).await, json!(["a1", "low", "all", false]));
    assert_eq!(command_names(&daemon).await, ["theirs"]);
    daemon.run("/theirs now").await;
    let request = llm.request(0).await;
    let body = request.body.to_string();
    assert!(body.contains("the other project's rules") && !body.contains("the first project's rules"));
    assert_eq!(request.tool_names(), ["read"]);
    assert_eq!(request.user_texts(), ["Say theirs: now"]);

    // A new session stays where the one before it was.
    daemon.ok(json!({ "type": "new_session" })).await;
    assert_eq!(command_names(&daemon).await, ["theirs"]);

    std::fs::create_dir_all(ours.parent().unwrap()).unwrap();
    std::fs::write(&ours, as_lines(&written_by_pi(&daemon.workspace().cwd()))).unwrap();
    switch(&daemon, &ours).await;
    assert_eq!(chosen(&daemon).await, json!(["m1", "off", "one-at-a-time", true]));
    daemon.run("/ours again").await;
    let body = llm.request(1).await.body.to_string();
    assert!(body.contains("the first project's rules") && !body.contains("the other project's rules"));
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_new_session_starts_with_the_model_of_the_configuration_and_keeps_what_was_set_for_good() {
    let llm = FakeLlm::start().await;
    let builder = builder(&llm).settings(json!({ "defaultProvider": "mock", "defaultModel": "m1" }));
    let daemon = builder.spawn().await;
    daemon.ok(json!({ "type": "set_model", "provider": "mock", "modelId": "m2" })).await;
    daemon.ok(json!({ "type": "set_thinking_level", "level": "high" })).await;
    daemon.ok(json!({ "type": "set_steering_mode", "mode": "all" })).await;
    daemon.ok(json!({ "type": "set_auto_compaction", "enabled": false })).await;
    assert_eq!(chosen(&daemon).await, json!(["m2", "high", "all", false]));
    daemon.ok(json!({ "type": "new_session" })).await;
    assert_eq!(chosen(&daemon).await, json!(["m1", "off", "all", false]));
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn what_the_command_line_says_goes_before_what_a_session_says_and_its_paths_stay_where_they_were() {
    let llm = FakeLlm::start().await;
    let skill = "---\nname: mine\ndescription: d\n---\nx";
    let builder = builder(&llm).file("skills/mine/SKILL.md", skill);
    let arguments = ["--model", "mock/m2", "--thinking", "low", "--skill", "./skills"];
    let theirs = other_project(builder.workspace());
    let daemon = builder.args(arguments).spawn().await;
    daemon.ok(json!({ "type": "set_model", "provider": "mockant", "modelId": "a1" })).await;
    switch(&daemon, &theirs).await;
    assert_eq!(chosen(&daemon).await, json!(["m2", "low", "all", false]));
    assert_eq!(command_names(&daemon).await, ["theirs", "skill:mine"]);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_fork_has_the_model_of_its_branch_and_a_configuration_that_cannot_be_read_stops_it_without_a_trace()
{
    let llm = FakeLlm::start().await;
    llm.push_all([text("One."), text("Two.")]);
    let builder = builder(&llm).settings(json!({ "defaultProvider": "mock", "defaultModel": "m1" }));
    let daemon = builder.spawn().await;
    daemon.run("first").await;
    daemon.run("second").await;
    daemon.ok(json!({ "type": "set_model", "provider": "mock", "modelId": "m2" })).await;
    let entry = entry_of(&daemon, "second").await;

    let sessions = session_file(&daemon).await.parent().unwrap().to_owned();
    let system = daemon.workspace().agent_dir().join("SYSTEM.md");
    std::fs::write(&system, [0xff, 0xfe]).unwrap();
    let before = (daemon.state().await, daemon.workspace().files_below(&sessions));
    if !sampi_tests::harness::is_reference() {
        daemon
            .refused(json!({ "type": "fork", "entryId": entry }))
            .await
            .assert_code("io")
            .assert_says("SYSTEM.md");
        assert_eq!((daemon.state().await, daemon.workspace().files_below(&sessions)), before);
    }
    std::fs::remove_file(&system).unwrap();

    let forked = daemon.ok(json!({ "type": "fork", "entryId": entry })).await;
    assert_eq!(forked["text"], "second");
    assert_eq!(daemon.state().await["model"]["id"], "m1");
    daemon.finish().await;
    llm.finish();
}
