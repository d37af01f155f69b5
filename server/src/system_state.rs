//! What the transcript's system messages add up to, and the message that changes it.

use sampi_protocol::data::{AgentMessage, Content, SystemMessage, ToolDefinition, ToolReference};
use serde_json::{Map, Value};

/// Between the parts of a prompt.
const PART_BREAK: &str = "\n\n";

/// A system prompt as a model gets it.
#[derive(Debug)]
pub(crate) struct SystemPrompt {
    /// Its text.
    pub(crate) text: String,
    /// The tools, in order.
    pub(crate) tools: Vec<ToolDefinition>,
}

/// The prompt and the tools as replaying system messages gives them.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct SystemState {
    content: String,
    sections: Map<String, Value>,
    tools: Vec<ToolDefinition>,
}

impl SystemState {
    /// Replays the system messages among these.
    pub(crate) fn replay<'a>(messages: impl IntoIterator<Item = &'a AgentMessage>) -> Self {
        let mut state = Self::default();
        for message in messages {
            if let AgentMessage::System(message) = message {
                state.apply(message);
            }
        }
        state
    }

    /// Applies one message.
    pub(crate) fn apply(&mut self, message: &SystemMessage) {
        if message.replace == Some(true) {
            *self = Self::default();
        }
        let text = text_of(&message.content);
        if !text.is_empty() {
            if !self.content.is_empty() {
                self.content.push_str(PART_BREAK);
            }
            self.content.push_str(&text);
        }
        for (name, text) in message.sections.iter().flatten() {
            if text.is_null() {
                self.sections.shift_remove(name);
            } else {
                self.sections.insert(name.clone(), text.clone());
            }
        }
        for tool in message.tools_removed.iter().flatten() {
            self.tools.retain(|known| known.name != tool.name);
        }
        for tool in message.tools_added.iter().flatten() {
            match self.tools.iter_mut().find(|known| known.name == tool.name) {
                Some(known) => known.clone_from(tool),
                None => self.tools.push(tool.clone()),
            }
        }
    }

    /// What a model is told: the text, then the sections, and the tools that it may call.
    pub(crate) fn into_prompt(self) -> SystemPrompt {
        let sections = self.sections.values().filter_map(Value::as_str);
        let parts: Vec<&str> =
            std::iter::once(self.content.as_str()).chain(sections).filter(|part| !part.is_empty()).collect();
        SystemPrompt { text: parts.join(PART_BREAK), tools: self.tools }
    }

    /// The tools, in order.
    pub(crate) fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    /// True when nothing was said yet.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// One message that gives this state from nothing.
    pub(crate) fn to_message(&self, timestamp: u64) -> SystemMessage {
        SystemMessage {
            content: Content::Text(self.content.clone()),
            sections: (!self.sections.is_empty()).then(|| self.sections.clone()),
            tools_added: (!self.tools.is_empty()).then(|| self.tools.clone()),
            timestamp,
            ..SystemMessage::default()
        }
    }
}

/// The message that turns the current state into what `wanted` declares from nothing. `None` when they
/// are the same.
pub(crate) fn diff_system(current: &SystemState, wanted: &SystemMessage) -> Option<SystemMessage> {
    let mut target = SystemState::default();
    target.apply(wanted);
    if current.is_empty() {
        return (!target.is_empty()).then(|| wanted.clone());
    }
    if current.content != target.content {
        // Text can only be added, so another text needs a fresh start.
        return Some(SystemMessage { replace: Some(true), ..wanted.clone() });
    }
    let mut sections = Map::new();
    for (name, text) in &target.sections {
        if current.sections.get(name) != Some(text) {
            sections.insert(name.clone(), text.clone());
        }
    }
    for name in current.sections.keys().filter(|name| !target.sections.contains_key(*name)) {
        sections.insert(name.clone(), Value::Null);
    }
    let added: Vec<ToolDefinition> =
        target.tools.iter().filter(|tool| !current.tools.contains(tool)).cloned().collect();
    // A tool that changed is removed and added again.
    let removed: Vec<ToolReference> = current
        .tools
        .iter()
        .filter(|tool| !target.tools.contains(tool))
        .map(|tool| ToolReference { name: tool.name.clone() })
        .collect();
    if sections.is_empty() && added.is_empty() && removed.is_empty() {
        return None;
    }
    Some(SystemMessage {
        sections: (!sections.is_empty()).then_some(sections),
        tools_added: (!added.is_empty()).then_some(added),
        tools_removed: (!removed.is_empty()).then_some(removed),
        timestamp: wanted.timestamp,
        ..SystemMessage::default()
    })
}

/// The text of a message's content.
pub(crate) fn text_of(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        Content::Blocks(blocks) => {
            blocks.iter().filter_map(|block| block.as_text()).collect::<Vec<_>>().join("\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(value: Value) -> SystemMessage {
        serde_json::from_value(value).unwrap()
    }

    fn state(value: Value) -> SystemState {
        SystemState::replay([&AgentMessage::System(message(value))])
    }

    fn tool(name: &str, description: &str) -> Value {
        json!({ "name": name, "description": description, "parameters": {} })
    }

    #[test]
    fn replaying_patches_sections_by_name_and_adds_and_removes_tools() {
        let mut state = state(json!({ "content": "", "timestamp": 1,
            "sections": { "preamble": "p", "skills": "s", "cwd": "c" },
            "toolsAdded": [tool("read", "1"), tool("bash", "1")] }));
        state.apply(&message(json!({ "content": "", "timestamp": 2,
            "sections": { "skills": null, "cwd": "d" }, "toolsRemoved": [{ "name": "read" }],
            "toolsAdded": [tool("bash", "2"), tool("ls", "1")] })));
        assert_eq!(serde_json::to_value(&state.sections).unwrap(), json!({ "preamble": "p", "cwd": "d" }));
        let tools: Vec<_> =
            state.tools().iter().map(|tool| format!("{} {}", tool.name, tool.description)).collect();
        assert_eq!(tools, ["bash 2", "ls 1"]);
        state.apply(&message(json!({ "content": "new", "replace": true, "timestamp": 3 })));
        assert!(state.sections.is_empty() && state.tools().is_empty() && !state.is_empty());
    }

    #[test]
    fn nothing_changed_gives_no_message() {
        let wanted = json!({ "content": "", "timestamp": 9, "sections": { "a": "1" }, "toolsAdded": [tool("read", "1")] });
        assert_eq!(diff_system(&state(wanted.clone()), &message(wanted)), None);
        assert_eq!(
            diff_system(&SystemState::default(), &message(json!({ "content": "", "timestamp": 1 }))),
            None
        );
    }

    #[test]
    fn the_first_message_declares_everything() {
        let wanted = message(json!({ "content": "", "timestamp": 9, "sections": { "a": "1" } }));
        assert_eq!(diff_system(&SystemState::default(), &wanted), Some(wanted));
    }

    #[test]
    fn a_patch_has_only_what_changed_and_leads_to_what_was_wanted() {
        let current =
            state(json!({ "content": "", "timestamp": 1, "sections": { "a": "1", "b": "2", "c": "3" },
            "toolsAdded": [tool("read", "1"), tool("bash", "1"), tool("ls", "1")] }));
        let wanted =
            message(json!({ "content": "", "timestamp": 5, "sections": { "a": "1", "b": "9", "d": "4" },
            "toolsAdded": [tool("read", "1"), tool("bash", "2"), tool("grep", "1")] }));
        let patch = diff_system(&current, &wanted).unwrap();
        assert_eq!(
            serde_json::to_value(&patch).unwrap(),
            json!({ "content": "", "sections": { "b": "9", "d": "4", "c": null },
                "toolsAdded": [tool("bash", "2"), tool("grep", "1")],
                "toolsRemoved": [{ "name": "bash" }, { "name": "ls" }], "timestamp": 5 })
        );
        let mut after = current;
        after.apply(&patch);
        assert_eq!(diff_system(&after, &wanted), None);
        assert_eq!(
            diff_system(&SystemState::default(), &after.to_message(5)).unwrap().sections.unwrap().len(),
            3
        );
    }

    #[test]
    fn another_text_outside_of_sections_starts_from_nothing() {
        let current =
            state(json!({ "content": "forced", "timestamp": 1, "toolsAdded": [tool("read", "1")] }));
        let wanted = message(json!({ "content": "", "timestamp": 2, "sections": { "a": "1" } }));
        let patch = diff_system(&current, &wanted).unwrap();
        assert_eq!(patch.replace, Some(true));
        let mut after = current;
        after.apply(&patch);
        assert_eq!(diff_system(&after, &wanted), None);
    }
}
