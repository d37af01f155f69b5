//! Files that the conversation read and changed, carried on from one compaction to the next.

use std::collections::BTreeSet;

use sampi_protocol::data::AgentMessage;
use serde_json::{Value, json};

/// Files that were read and files that were changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileOperations {
    read: BTreeSet<String>,
    modified: BTreeSet<String>,
}

impl FileOperations {
    /// What the details of an earlier summary say; anything else in them is ignored.
    pub fn from_details(details: Option<&Value>) -> Self {
        let list = |name: &str| -> BTreeSet<String> {
            let files = details.and_then(|details| details.get(name)).and_then(Value::as_array);
            files.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        Self { read: list("readFiles"), modified: list("modifiedFiles") }
    }

    /// Adds what the details of another summary say.
    pub fn carry_on(&mut self, details: Option<&Value>) {
        let other = Self::from_details(details);
        self.read.extend(other.read);
        self.modified.extend(other.modified);
    }

    /// Adds the files of a message's tool calls.
    pub fn note(&mut self, message: &AgentMessage) {
        let Some(answer) = message.as_assistant() else { return };
        for call in answer.tool_calls() {
            let Some(path) = call.arguments.get("path").and_then(Value::as_str) else { continue };
            match call.name.as_str() {
                "read" => self.read.insert(path.to_owned()),
                "write" | "edit" => self.modified.insert(path.to_owned()),
                _ => continue,
            };
        }
    }

    fn only_read(&self) -> impl Iterator<Item = &String> {
        self.read.difference(&self.modified)
    }

    /// The details that the summary's entry carries.
    pub fn details(&self) -> Value {
        json!({ "readFiles": self.only_read().collect::<Vec<_>>(), "modifiedFiles": self.modified })
    }

    /// The lists as they stand at the end of a summary; empty when there are none.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut list = |tag: &str, files: Vec<&String>| {
            if !files.is_empty() {
                let lines: Vec<&str> = files.into_iter().map(String::as_str).collect();
                text.push_str(&format!("\n\n<{tag}>\n{}\n</{tag}>", lines.join("\n")));
            }
        };
        list("read-files", self.only_read().collect());
        list("modified-files", self.modified.iter().collect());
        text
    }
}
