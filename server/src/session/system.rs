//! The prompt and tool state that a transcript's system messages add up to.

use sampi_protocol::data::{AgentMessage, Content, ContentBlock, SystemMessage, ToolDefinition};
use serde_json::{Map, Value};

use super::{Context, stamp};

impl Context {
    /// The system messages of the context replayed into one that stands for all of them: what a
    /// compaction stores as its checkpoint. `None` when there are none.
    pub fn system_state(&self) -> Option<SystemMessage> {
        let mut messages = self
            .messages
            .iter()
            .filter_map(|message| match &*message.message {
                AgentMessage::System(message) => Some(message),
                _ => None,
            })
            .peekable();
        messages.peek()?;
        let mut texts = Vec::new();
        let mut sections = Map::new();
        let mut tools: Vec<ToolDefinition> = Vec::new();
        for message in messages {
            texts.push(text(&message.content));
            for (name, section) in message.sections.iter().flatten() {
                match section {
                    Value::Null => drop(sections.shift_remove(name)),
                    section => drop(sections.insert(name.clone(), section.clone())),
                }
            }
            for removed in message.tools_removed.iter().flatten() {
                tools.retain(|tool| tool.name != removed.name);
            }
            for added in message.tools_added.iter().flatten() {
                match tools.iter_mut().find(|tool| tool.name == added.name) {
                    Some(tool) => *tool = added.clone(),
                    None => tools.push(added.clone()),
                }
            }
        }
        texts.retain(|text| !text.is_empty());
        Some(SystemMessage {
            content: Content::Text(texts.join("\n\n")),
            sections: Some(sections).filter(|sections| !sections.is_empty()),
            tools_added: Some(tools).filter(|tools| !tools.is_empty()),
            timestamp: stamp::to_millis(&stamp::now()),
            ..SystemMessage::default()
        })
    }
}

fn text(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        Content::Blocks(blocks) => {
            blocks.iter().filter_map(ContentBlock::as_text).collect::<Vec<_>>().join("\n")
        }
    }
}
