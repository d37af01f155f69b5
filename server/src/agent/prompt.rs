//! The system prompt and the declared tools, as the transcript has them and as they should be.

use sampi_protocol::data::{AgentMessage, SystemMessage};

use super::{Agent, now_millis};
use crate::resources::skills::skills_section;
use crate::resources::system_prompt::{PromptInput, PromptTool, build_system};
use crate::system_state::{SystemState, diff_system};

impl Agent {
    /// The system prompt as the next request has it.
    pub fn system_prompt(&self) -> String {
        let mut state = SystemState::default();
        state.apply(&self.wanted_system());
        state.into_prompt().text
    }

    /// The system message that the transcript needs now: the whole prompt when it has none, what has
    /// changed otherwise.
    pub(super) fn system_change(&mut self) -> Option<AgentMessage> {
        let wanted = self.wanted_system();
        let context = self.session.context();
        let current = SystemState::replay(context.messages.iter().map(|kept| &*kept.message));
        diff_system(&current, &wanted).map(AgentMessage::System)
    }

    fn wanted_system(&self) -> SystemMessage {
        let tools: Vec<PromptTool<'_>> = self
            .tools
            .iter()
            .map(|tool| PromptTool {
                definition: tool.definition(),
                snippet: tool.snippet(),
                guidelines: tool.guidelines(),
            })
            .collect();
        let has_tool = |name: &str| tools.iter().any(|tool| tool.definition.name == name);
        let skills = skills_section(&self.resources.skills, has_tool);
        build_system(&PromptInput {
            tools: &tools,
            sources: &self.prompt,
            context_files: &self.resources.context_files,
            sections: skills.as_slice(),
            cwd: self.session.cwd(),
            date: Some(&jiff::ZonedDateTime::now().strftime("%F").to_string()),
            timestamp: now_millis(),
        })
    }
}
