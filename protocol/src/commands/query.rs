//! Questions about the state, the conversation and the session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::QueueMode;
use crate::data::{AgentMessage, EntryId, Model, SessionEntry, SessionId, SessionTreeNode, ThinkingLevel};
use crate::number;
use crate::shared::Shared;

/// Asks for the session's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetState {}

/// The session's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    /// The chosen model; one with the id `unknown` when none could be chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// The thinking level in force.
    pub thinking_level: ThinkingLevel,
    /// True while a run is under way.
    pub is_streaming: bool,
    /// True while a compaction runs.
    pub is_compacting: bool,
    /// How steering messages are delivered.
    pub steering_mode: QueueMode,
    /// How follow-up messages are delivered.
    pub follow_up_mode: QueueMode,
    /// The session's file; absent for a session in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// The session's id.
    pub session_id: SessionId,
    /// The session's display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    /// True when automatic compaction is on.
    pub auto_compaction_enabled: bool,
    /// How many messages the context has.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub message_count: u64,
    /// How many messages wait in the queues.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub pending_message_count: u64,
}

/// Asks for the messages of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetMessages {}

/// The messages of the context.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Messages {
    /// The messages in order.
    pub messages: Vec<Shared<AgentMessage>>,
}

/// Asks for token and cost totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetSessionStats {}

/// Totals over the whole session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionStats {
    /// The session's file; absent for a session in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// The session's id.
    pub session_id: SessionId,
    /// Messages of the user.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub user_messages: u64,
    /// Messages of the assistant.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub assistant_messages: u64,
    /// Tool calls.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub tool_calls: u64,
    /// Tool results.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub tool_results: u64,
    /// Messages of any role.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub total_messages: u64,
    /// Tokens.
    pub tokens: TokenTotals,
    /// US dollars.
    #[serde(serialize_with = "number::serialize", deserialize_with = "number::deserialize")]
    pub cost: f64,
    /// How full the context is; absent without a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_usage: Option<ContextUsage>,
}

/// Token totals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenTotals {
    /// Input tokens outside the cache.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub input: u64,
    /// Output tokens.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub output: u64,
    /// Tokens read from the cache.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub cache_read: u64,
    /// Tokens written to the cache.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub cache_write: u64,
    /// The sum of the four.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub total: u64,
}

/// How full the context is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextUsage {
    /// Tokens of the context; `null` after a compaction until the next answer measures it.
    pub tokens: Option<u64>,
    /// The model's context window in tokens.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub context_window: u64,
    /// `tokens` as a percentage of the window; `null` when `tokens` is.
    #[serde(
        serialize_with = "number::nullable::serialize",
        deserialize_with = "number::nullable::deserialize"
    )]
    pub percent: Option<f64>,
}

/// Writes the session as an HTML file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExportHtml {
    /// Where to write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_path: Option<String>,
}

/// The file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ExportedHtml {
    /// The file's path.
    pub path: String,
}

/// Asks for the messages that `fork` accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetForkMessages {}

/// The messages that `fork` accepts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ForkMessages {
    /// The user's messages of the active branch, oldest first.
    pub messages: Vec<ForkMessage>,
}

/// A message that `fork` accepts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForkMessage {
    /// Its entry.
    pub entry_id: EntryId,
    /// Its text.
    pub text: String,
}

/// Asks for the session's entries in the order in which they were appended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetEntries {
    /// Only what came after this entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<EntryId>,
}

/// The session's entries.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Entries {
    /// The entries, without the header.
    pub entries: Vec<Shared<SessionEntry>>,
    /// The entry at which the active branch ends; `null` in an empty session.
    pub leaf_id: Option<EntryId>,
}

/// Asks for the session as a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetTree {}

/// The session as a tree.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Tree {
    /// The roots, entries whose parent is missing among them.
    pub tree: Vec<SessionTreeNode>,
    /// The entry at which the active branch ends; `null` in an empty session.
    pub leaf_id: Option<EntryId>,
}

/// Asks for the text of the last assistant message that has any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetLastAssistantText {}

/// The text of the last assistant message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LastAssistantText {
    /// The text; `null` when there is none.
    pub text: Option<String>,
}

/// Asks for the commands that a prompt can name with a slash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetCommands {}

/// The commands that a prompt can name with a slash.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SlashCommands {
    /// Commands of extensions, prompt templates and skills.
    pub commands: Vec<SlashCommand>,
}

/// A command that a prompt can name with a slash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SlashCommand {
    /// The name without the slash.
    pub name: String,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What kind of command it is.
    pub source: SlashCommandSource,
    /// Where it comes from.
    pub source_info: SourceInfo,
}

/// What kind of thing registered a slash command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SlashCommandSource {
    /// An extension.
    Extension,
    /// A prompt template.
    Prompt,
    /// A skill.
    Skill,
}

/// Where a resource comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceInfo {
    /// Its path.
    pub path: String,
    /// How it was found, such as `auto`, `local` or `cli`.
    pub source: String,
    /// `user`, `project` or `temporary`.
    pub scope: String,
    /// `top-level` or `package`.
    pub origin: String,
    /// The folder that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_dir: Option<String>,
}
