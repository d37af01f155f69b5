//! One typed method for each command.

use sampi_protocol::commands::*;
use sampi_protocol::data::{CompactionResult, EntryId, Model, ThinkingLevel};
use sampi_protocol::events::SessionEvent;
use serde_json::Value;

use crate::call::Call;
use crate::client::{RpcClient, encode_raw};
use crate::error::ClientError;
use crate::pending::Reply;
use crate::run::text_prompt;
use crate::tree::SessionTree;

/// Prompts and runs.
impl RpcClient {
    /// Submits a prompt. Answered once it is accepted, queued or handled; see [`run`](Self::run) and
    /// [`prompt_and_wait`](Self::prompt_and_wait) for the run that follows.
    pub fn prompt(&self, message: impl Into<String>) -> Call<PromptResult> {
        self.call(&text_prompt(message))
    }

    /// Queues a message that is delivered before the next request to the model.
    pub fn steer(&self, message: impl Into<String>) -> Call<QueuedResult> {
        self.call(&Steer { message: message.into(), images: Vec::new() })
    }

    /// Queues a message that is delivered once the agent would stop.
    pub fn follow_up(&self, message: impl Into<String>) -> Call<QueuedResult> {
        self.call(&FollowUp { message: message.into(), images: Vec::new() })
    }

    /// Stops what is going on. Answered once the session is idle.
    pub fn abort(&self) -> Call<()> {
        self.call(&Abort {})
    }

    /// Takes all queued messages out and gives their texts back.
    pub fn clear_queue(&self) -> Call<ClearedQueue> {
        self.call(&ClearQueue {})
    }

    /// Sets how steering messages are delivered.
    pub fn set_steering_mode(&self, mode: QueueMode) -> Call<()> {
        self.call(&SetSteeringMode { mode })
    }

    /// Sets how follow-up messages are delivered.
    pub fn set_follow_up_mode(&self, mode: QueueMode) -> Call<()> {
        self.call(&SetFollowUpMode { mode })
    }

    /// Waits until the session is idle; at once when it is.
    pub async fn wait_for_idle(&self) -> Result<(), ClientError> {
        let mut events = self.subscribe();
        if !self.get_state().await?.is_streaming {
            return Ok(());
        }
        while let Some(item) = events.next().await {
            match item {
                crate::EventItem::Event(event) if matches!(*event, SessionEvent::AgentSettled(_)) => {
                    return Ok(());
                }
                crate::EventItem::Lagged(_) if !self.get_state().await?.is_streaming => return Ok(()),
                crate::EventItem::Closed(exit) => return Err(exit.into()),
                _ => {}
            }
        }
        Err(ClientError::Stopping)
    }
}

/// Models and thinking.
impl RpcClient {
    /// Chooses a model.
    pub fn set_model(&self, provider: impl Into<String>, model_id: impl Into<String>) -> Call<Model> {
        self.call(&SetModel { provider: provider.into(), model_id: model_id.into() })
    }

    /// Chooses the next model; `None` when there is no other.
    pub fn cycle_model(&self) -> Call<Option<CycledModel>> {
        self.call(&CycleModel {})
    }

    /// Lists the models whose provider has credentials.
    pub fn get_available_models(&self) -> Call<Vec<Model>> {
        self.call(&GetAvailableModels {}).map(|available| available.models)
    }

    /// Sets the thinking level; one that the model does not support is clamped.
    pub fn set_thinking_level(&self, level: ThinkingLevel) -> Call<()> {
        self.call(&SetThinkingLevel { level })
    }

    /// Chooses the next thinking level; `None` when the model cannot think.
    pub fn cycle_thinking_level(&self) -> Call<Option<ThinkingLevel>> {
        self.call(&CycleThinkingLevel {}).map(|cycled| cycled.map(|cycled| cycled.level))
    }

    /// Lists the thinking levels that the model supports.
    pub fn get_available_thinking_levels(&self) -> Call<Vec<ThinkingLevel>> {
        self.call(&GetAvailableThinkingLevels {}).map(|available| available.levels)
    }
}

/// Compaction, retry, shell commands.
impl RpcClient {
    /// Summarises the older part of the conversation. Takes as long as the model does.
    pub fn compact(&self) -> Call<CompactionResult> {
        self.call(&Compact { custom_instructions: None })
    }

    /// [`compact`](Self::compact), told what the summary should pay attention to.
    pub fn compact_with(&self, instructions: impl Into<String>) -> Call<CompactionResult> {
        self.call(&Compact { custom_instructions: Some(instructions.into()) })
    }

    /// Turns automatic compaction on or off.
    pub fn set_auto_compaction(&self, enabled: bool) -> Call<()> {
        self.call(&SetAutoCompaction { enabled })
    }

    /// Turns automatic retry on or off.
    pub fn set_auto_retry(&self, enabled: bool) -> Call<()> {
        self.call(&SetAutoRetry { enabled })
    }

    /// Ends the wait before a retry, and with it the retrying.
    pub fn abort_retry(&self) -> Call<()> {
        self.call(&AbortRetry {})
    }

    /// Runs a shell command and adds its output to the conversation. Answered when it has ended; what it
    /// writes meanwhile comes in `bash_execution_update` events with the [id](Call::id) of this call.
    pub fn bash(&self, command: impl Into<String>) -> Call<BashResult> {
        self.call(&Bash { command: command.into(), exclude_from_context: None })
    }

    /// [`bash`](Self::bash) whose output is kept in the session and away from the model.
    pub fn bash_excluded(&self, command: impl Into<String>) -> Call<BashResult> {
        self.call(&Bash { command: command.into(), exclude_from_context: Some(true) })
    }

    /// Stops the shell commands that are running.
    pub fn abort_bash(&self) -> Call<()> {
        self.call(&AbortBash {})
    }
}

/// Sessions.
impl RpcClient {
    /// Starts an empty session.
    pub fn new_session(&self) -> Call<SessionChange> {
        self.call(&NewSession { parent_session: None })
    }

    /// Starts an empty session that follows the one in this file.
    pub fn new_session_after(&self, parent_session: impl Into<String>) -> Call<SessionChange> {
        self.call(&NewSession { parent_session: Some(parent_session.into()) })
    }

    /// Opens another session file.
    pub fn switch_session(&self, session_path: impl Into<String>) -> Call<SessionChange> {
        self.call(&SwitchSession { session_path: session_path.into() })
    }

    /// Makes a new session from what came before one of the user's messages.
    pub fn fork(&self, entry_id: impl Into<EntryId>) -> Call<ForkResult> {
        self.call(&Fork { entry_id: entry_id.into() })
    }

    /// Makes a new session from the whole active branch (the command `clone`).
    pub fn clone_session(&self) -> Call<SessionChange> {
        self.call(&CloneSession {})
    }

    /// Sets the session's display name.
    pub fn set_session_name(&self, name: impl Into<String>) -> Call<()> {
        self.call(&SetSessionName { name: name.into() })
    }

    /// Writes the session as an HTML file and gives its path.
    pub fn export_html(&self) -> Call<String> {
        self.call(&ExportHtml { output_path: None }).map(|exported| exported.path)
    }

    /// Writes the session as an HTML file to this path.
    pub fn export_html_to(&self, output_path: impl Into<String>) -> Call<String> {
        self.call(&ExportHtml { output_path: Some(output_path.into()) }).map(|exported| exported.path)
    }
}

/// Moving in the tree. Commands of Sampi.
impl RpcClient {
    /// Moves to another point of the session's tree.
    pub fn navigate_tree(&self, navigation: &NavigateTree) -> Call<Navigated> {
        self.call(navigation)
    }

    /// Marks an entry.
    pub fn set_label(&self, entry_id: impl Into<EntryId>, label: impl Into<String>) -> Call<LabelSet> {
        self.call(&SetLabel { entry_id: entry_id.into(), label: Some(label.into()) })
    }

    /// Takes the mark of an entry away.
    pub fn remove_label(&self, entry_id: impl Into<EntryId>) -> Call<LabelSet> {
        self.call(&SetLabel { entry_id: entry_id.into(), label: None })
    }

    /// Deletes the file of a session that no process has open.
    pub fn delete_session(&self, session_path: impl Into<String>) -> Call<()> {
        self.call(&DeleteSession { session_path: session_path.into() })
    }
}

/// Questions.
impl RpcClient {
    /// Asks for the session's state.
    pub fn get_state(&self) -> Call<SessionState> {
        self.call(&GetState {})
    }

    /// Asks for the messages of the context.
    pub fn get_messages(&self) -> Call<Messages> {
        self.call(&GetMessages {})
    }

    /// Asks for token and cost totals.
    pub fn get_session_stats(&self) -> Call<SessionStats> {
        self.call(&GetSessionStats {})
    }

    /// Asks for the messages that [`fork`](Self::fork) accepts.
    pub fn get_fork_messages(&self) -> Call<Vec<ForkMessage>> {
        self.call(&GetForkMessages {}).map(|messages| messages.messages)
    }

    /// Asks for the session's entries in the order in which they were appended.
    pub fn get_entries(&self) -> Call<Entries> {
        self.call(&GetEntries { since: None })
    }

    /// Asks for the entries that came after this one.
    pub fn get_entries_since(&self, entry_id: impl Into<EntryId>) -> Call<Entries> {
        self.call(&GetEntries { since: Some(entry_id.into()) })
    }

    /// Asks for the session as a tree, of any depth.
    pub fn get_tree(&self) -> Call<SessionTree> {
        self.get_tree_with(Value::Null)
    }

    /// [`get_tree`](Self::get_tree) with parameters that this version does not know; see
    /// [`call_raw`](Self::call_raw).
    pub fn get_tree_with(&self, parameters: Value) -> Call<SessionTree> {
        let id = self.next_id();
        let record = encode_raw(&id, GetTree::NAME, parameters);
        self.send(id, GetTree::NAME.to_owned(), record, None, |reply, command| {
            let Reply { text, data, .. } = reply.succeeded(command)?;
            SessionTree::from_valid(text, data.unwrap_or_default())
                .map_err(|error| ClientError::Protocol { command: command.to_owned(), error })
        })
    }

    /// Asks for the text of the last assistant message that has any.
    pub fn get_last_assistant_text(&self) -> Call<Option<String>> {
        self.call(&GetLastAssistantText {}).map(|last| last.text)
    }

    /// Lists sessions on disk. A command of Sampi.
    pub fn list_sessions(&self, wish: &ListSessions) -> Call<SessionList> {
        self.call(wish)
    }

    /// Asks for the commands that a prompt can name with a slash.
    pub fn get_commands(&self) -> Call<Vec<SlashCommand>> {
        self.call(&GetCommands {}).map(|commands| commands.commands)
    }
}
