//! Questions about the conversation.

use sampi_protocol::Shared;
use sampi_protocol::commands::{SessionState, SessionStats, SlashCommands, TokenTotals};
use sampi_protocol::data::AgentMessage;
use sampi_protocol::events::SessionInfoChanged;

use super::{Agent, AgentError};
use crate::session::NewEntry;

impl Agent {
    /// The session's state.
    pub fn state(&self) -> SessionState {
        let message_count = self.session.outline().message_count as u64;
        SessionState {
            model: Some(self.model.clone().unwrap_or_else(crate::resources::models::unknown_model)),
            thinking_level: self.thinking,
            is_streaming: self.is_streaming(),
            is_compacting: self.compaction.is_some(),
            steering_mode: self.queues.steering_mode,
            follow_up_mode: self.queues.follow_up_mode,
            session_file: self.session_file(),
            session_id: self.session.id().clone(),
            session_name: self.session.name().map(str::to_owned),
            auto_compaction_enabled: self.auto_compaction,
            message_count,
            pending_message_count: self.queues.len() as u64,
        }
    }

    /// The messages of the context.
    pub fn messages(&mut self) -> Vec<Shared<AgentMessage>> {
        self.session.context().messages.iter().map(|kept| kept.message.clone()).collect()
    }

    /// Totals over the whole session.
    pub fn stats(&mut self) -> SessionStats {
        let totals = self.session.totals();
        SessionStats {
            session_file: self.session_file(),
            session_id: self.session.id().clone(),
            user_messages: totals.user_messages,
            assistant_messages: totals.assistant_messages,
            tool_calls: totals.tool_calls,
            tool_results: totals.tool_results,
            total_messages: totals.total_messages,
            tokens: TokenTotals {
                input: totals.tokens.input,
                output: totals.tokens.output,
                cache_read: totals.tokens.cache_read,
                cache_write: totals.tokens.cache_write,
                total: totals.tokens.total(),
            },
            cost: totals.cost,
            context_usage: self.context_usage(),
        }
    }

    /// The text of the last assistant message that has any.
    pub fn last_assistant_text(&mut self) -> Option<String> {
        self.session.last_assistant_text()
    }

    /// The commands that a prompt can name with a slash.
    pub fn commands(&self) -> SlashCommands {
        SlashCommands { commands: self.resources.commands() }
    }

    /// The names of the tools that the model may call.
    pub fn active_tools(&self) -> Vec<String> {
        self.tools.iter().map(|tool| tool.definition().name.clone()).collect()
    }

    /// Chooses the tools that the model may call from its next turn on.
    pub fn set_active_tools(&mut self, names: &[String]) -> Result<(), AgentError> {
        let find = |name: &String| {
            let tool = self.available_tools.get(name).cloned();
            tool.ok_or_else(|| AgentError::NotFound(format!("there is no tool {name}")))
        };
        self.tools = names.iter().map(find).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Sets the session's display name.
    pub fn set_session_name(&mut self, name: &str) -> Result<(), AgentError> {
        let name = name
            .split(['\r', '\n'])
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        if name.is_empty() {
            return Err(AgentError::Invalid("Session name cannot be empty".to_owned()));
        }
        self.append(NewEntry::SessionInfo { name: Some(name.clone()) })?;
        self.emit(SessionInfoChanged { name: Some(name) });
        Ok(())
    }

    pub(super) fn session_file(&self) -> Option<String> {
        self.session.file().map(|path| path.to_string_lossy().into_owned())
    }
}
