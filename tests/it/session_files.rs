//! What tests of session files share: reading them, writing them as Pi does, opening them again.

use std::path::{Path, PathBuf};

use sampi_tests::fake_llm::FakeLlm;
use sampi_tests::harness::{Daemon, DaemonBuilder, Model, Workspace, text_of_content};
use serde_json::{Value, json};

pub(crate) fn lines_of(path: &Path) -> Vec<Value> {
    let content = std::fs::read_to_string(path).unwrap();
    content.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub(crate) async fn session_file(daemon: &Daemon) -> PathBuf {
    daemon.state().await["sessionFile"].as_str().expect("the session has a file").into()
}

pub(crate) async fn entries(daemon: &Daemon, since: Option<&Value>) -> Value {
    let mut command = json!({ "type": "get_entries" });
    if let Some(since) = since {
        command["since"] = since.clone();
    }
    daemon.ok(command).await
}

/// The ids of all entries.
pub(crate) async fn entry_ids(daemon: &Daemon) -> Vec<String> {
    let data = entries(daemon, None).await;
    let ids = data["entries"].as_array().unwrap().iter().map(|entry| entry["id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

/// The id of the entry with this message of the user or the assistant.
pub(crate) async fn entry_of(daemon: &Daemon, text: &str) -> String {
    let data = entries(daemon, None).await;
    let found = data["entries"].as_array().unwrap().iter().find(|entry| {
        let role = &entry["message"]["role"];
        (role == "user" || role == "assistant") && text_of_content(&entry["message"]["content"]) == text
    });
    found.unwrap_or_else(|| panic!("no entry says {text:?}: {data}"))["id"].as_str().unwrap().to_owned()
}

/// The texts of the messages with this role.
pub(crate) fn texts_of(messages: &[Value], role: &str) -> Vec<String> {
    let messages = messages.iter().filter(|message| message["role"] == role);
    messages.map(|message| text_of_content(&message["content"])).collect()
}

/// A daemon that opens this session in an earlier workspace.
pub(crate) async fn reopen(llm: &FakeLlm, workspace: Workspace, file: &Path) -> Daemon {
    let arguments = ["--session", file.to_str().unwrap()];
    Daemon::builder(llm).in_workspace(workspace).model(Model::Plain).args(arguments).spawn().await
}

/// The lines of a version 3 file with one exchange, as Pi writes it.
pub(crate) fn written_by_pi(cwd: &Path) -> Vec<Value> {
    let usage = json!({
        "input": 5, "output": 6, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 11,
        "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0 },
    });
    let time = "2026-01-02T03:04:05.678Z";
    vec![
        json!({ "type": "session", "version": 3, "id": "0190aaaa-0000-7000-8000-000000000001", "timestamp": time, "cwd": cwd }),
        json!({ "type": "model_change", "id": "aaaaaaa1", "parentId": null, "timestamp": time, "provider": "mock", "modelId": "m1" }),
        json!({ "type": "thinking_level_change", "id": "aaaaaaa2", "parentId": "aaaaaaa1", "timestamp": time, "thinkingLevel": "off" }),
        json!({ "type": "message", "id": "aaaaaaa3", "parentId": "aaaaaaa2", "timestamp": time,
            "message": { "role": "user", "content": [{ "type": "text", "text": "earlier" }], "timestamp": 1_767_323_045_678_u64 } }),
        json!({ "type": "message", "id": "aaaaaaa4", "parentId": "aaaaaaa3", "timestamp": time,
            "message": { "role": "assistant", "content": [{ "type": "text", "text": "Yes." }], "api": "openai-completions",
                "provider": "mock", "model": "m1", "usage": usage, "stopReason": "stop", "timestamp": 1_767_323_045_679_u64 } }),
    ]
}

pub(crate) fn as_lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A builder with this file in the working directory, to be opened as the session.
pub(crate) fn with_session_file(
    llm: &FakeLlm,
    content: impl FnOnce(&Path) -> String,
) -> (DaemonBuilder, PathBuf) {
    let builder = Daemon::builder(llm);
    let cwd = builder.workspace().cwd();
    let file = cwd.join("session.jsonl");
    std::fs::write(&file, content(&cwd)).unwrap();
    (builder.args(["--session", file.to_str().unwrap()]), file)
}
