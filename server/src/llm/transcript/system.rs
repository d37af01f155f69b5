//! The system prompt and the tools that follow from the system messages of a context.

use sampi_protocol::data::{AgentMessage, Content, ContentBlock, SystemMessage, ToolDefinition};

/// Between the parts of a prompt.
const PART_BREAK: &str = "\n\n";

/// Replays the system messages in order: content is added to, sections are set and removed by name, tools
/// come and go.
pub(super) fn replay<'a>(messages: &[&'a AgentMessage]) -> (String, Vec<&'a ToolDefinition>) {
    let mut state = State::default();
    for message in messages {
        if let AgentMessage::System(system) = message {
            state.apply(system);
        }
    }
    let sections = state.sections.iter().map(|(_, text)| (*text).to_owned());
    let parts: Vec<String> =
        state.content.into_iter().chain(sections).filter(|part| !part.is_empty()).collect();
    (parts.join(PART_BREAK), state.tools)
}

#[derive(Default)]
struct State<'a> {
    content: Vec<String>,
    sections: Vec<(&'a str, &'a str)>,
    tools: Vec<&'a ToolDefinition>,
}

impl<'a> State<'a> {
    fn apply(&mut self, message: &'a SystemMessage) {
        if message.replace == Some(true) {
            *self = Self::default();
        }
        self.content.push(text(&message.content));
        for (name, value) in message.sections.iter().flatten() {
            let place = self.sections.iter().position(|(known, _)| known == name);
            match (value.as_str(), place) {
                (Some(text), Some(at)) => {
                    if let Some(section) = self.sections.get_mut(at) {
                        section.1 = text;
                    }
                }
                (Some(text), None) => self.sections.push((name, text)),
                (None, Some(at)) => {
                    self.sections.remove(at);
                }
                (None, None) => {}
            }
        }
        for removed in message.tools_removed.iter().flatten() {
            self.tools.retain(|tool| tool.name != removed.name);
        }
        for added in message.tools_added.iter().flatten() {
            match self.tools.iter_mut().find(|tool| tool.name == added.name) {
                Some(known) => *known = added,
                None => self.tools.push(added),
            }
        }
    }
}

fn text(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        Content::Blocks(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(ContentBlock::as_text).collect();
            texts.join("\n")
        }
    }
}
