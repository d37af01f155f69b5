//! Behaviour of sessions as a whole.

mod big;
mod context;
mod damage;
mod forks;
mod property;
mod store;

use std::path::{Path, PathBuf};

use sampi_protocol::data::{
    AgentMessage, AssistantMessage, ContentBlock, EntryId, StopReason, Usage, UserMessage,
};
use serde_json::{Value, json};

use super::{NewEntry, NewSessionOptions, Session, SessionError};

const TIME: &str = "2026-01-01T00:00:00.000Z";

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn user(text: &str) -> NewEntry {
    AgentMessage::User(UserMessage {
        content: sampi_protocol::data::Content::Blocks(vec![ContentBlock::text(text)]),
        timestamp: 1,
        ..UserMessage::default()
    })
    .into()
}

fn assistant(text: &str) -> NewEntry {
    AgentMessage::Assistant(AssistantMessage {
        content: vec![ContentBlock::text(text)],
        api: "openai-completions".into(),
        provider: "mock".into(),
        model: "m1".into(),
        usage: Usage { input: 10, output: 2, total_tokens: 12, ..Usage::default() },
        stop_reason: StopReason::Stop,
        timestamp: 2,
        ..AssistantMessage::default()
    })
    .into()
}

fn put(session: &mut Session, entry: NewEntry) -> EntryId {
    session.append(entry).unwrap().id().into()
}

fn header() -> Value {
    json!({"type": "session", "version": 3, "id": "the-id", "timestamp": TIME, "cwd": "/"})
}

fn line(id: &str, parent: Option<&str>, kind: &str, rest: Value) -> Value {
    let mut entry = json!({"type": kind, "id": id, "parentId": parent, "timestamp": TIME});
    entry.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    entry
}

fn message(id: &str, parent: Option<&str>, message: Value) -> Value {
    line(id, parent, "message", json!({ "message": message }))
}

fn user_line(id: &str, parent: Option<&str>, text: &str) -> Value {
    message(id, parent, json!({"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}))
}

fn usage() -> Value {
    json!({"input": 1000, "output": 50, "cacheRead": 10, "cacheWrite": 5, "totalTokens": 1065,
        "cost": {"input": 0.001, "output": 0.002, "cacheRead": 0, "cacheWrite": 0, "total": 0.003}})
}

fn assistant_line(id: &str, parent: Option<&str>, text: &str) -> Value {
    message(
        id,
        parent,
        json!({"role": "assistant", "content": [{"type": "text", "text": text}], "api": "openai-completions",
            "provider": "mock", "model": "m1", "usage": usage(), "stopReason": "stop", "timestamp": 1}),
    )
}

fn lines(all: &[Value]) -> String {
    all.iter().map(|line| format!("{line}\n")).collect()
}

fn write(dir: &Path, content: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.join("s.jsonl");
    std::fs::write(&path, content).unwrap();
    path
}

fn opened(dir: &Path, all: &[Value]) -> Session {
    Session::open(&write(dir, lines(all))).unwrap()
}

fn entries(session: &Session) -> Vec<Value> {
    serde_json::from_str(&entries_json(session, None).unwrap()).unwrap()
}

fn entries_json(session: &Session, since: Option<&str>) -> Result<String, SessionError> {
    let mut bytes = Vec::new();
    session.write_entries(since, &mut bytes)?;
    Ok(String::from_utf8(bytes).unwrap())
}

fn tree_json(session: &Session) -> String {
    let mut bytes = Vec::new();
    session.write_tree(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn ids(session: &Session) -> Vec<String> {
    entries(session).iter().map(|entry| entry["id"].as_str().unwrap_or("?").to_owned()).collect()
}

fn branch(session: &Session) -> String {
    session.branch().iter().map(EntryId::as_str).collect::<Vec<_>>().join(" ")
}

/// Role and text of each message of the context.
fn seen(session: &mut Session) -> Vec<String> {
    let context = session.context();
    let text = |message: &AgentMessage| {
        let value = serde_json::to_value(message).unwrap();
        let content = value.get("content").or(value.get("summary")).cloned().unwrap_or(Value::Null);
        let role = value["role"].as_str().unwrap_or("?").to_owned();
        let shown = match content {
            Value::String(text) => text,
            Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
            _ => String::new(),
        };
        format!("{role}:{shown}")
    };
    context.messages.iter().map(|message| text(&message.message)).collect()
}

fn started(dir: &Path) -> Session {
    Session::create(dir, Path::new("/work"), NewSessionOptions::default()).unwrap()
}
