//! What can be appended to a session.

use sampi_protocol::Shared;
use sampi_protocol::data::{
    AgentMessage, BranchSummaryEntry, CompactionEntry, Content, ContextEditEntry, ContextReplacement,
    CustomMessageEntry, EntryBase, EntryId, LabelEntry, MessageEntry, ModelChangeEntry, SessionEntry,
    SessionInfoEntry, SystemMessage, TaggedSystemMessage, ThinkingLevelChangeEntry, Untagged, Usage,
};
use serde_json::Value;

/// The body of an entry; id, parent and time are given when it is appended.
#[derive(Debug, Clone)]
pub enum NewEntry {
    /// A message of the conversation.
    Message(Shared<AgentMessage>),
    /// The user chose a model.
    ModelChange {
        /// The provider's id.
        provider: String,
        /// The model's id.
        model_id: String,
    },
    /// The user chose a thinking level.
    ThinkingLevelChange {
        /// The level.
        thinking_level: String,
    },
    /// What came before was summarised.
    Compaction {
        /// The summary.
        summary: String,
        /// The first entry that the model still sees; `None` when none is kept.
        first_kept_entry_id: Option<EntryId>,
        /// Tokens of the context before.
        tokens_before: u64,
        /// Data specific to whoever made the summary.
        details: Option<Value>,
        /// Usage of the summarising.
        usage: Option<Usage>,
        /// Whether an extension made the summary.
        from_hook: Option<bool>,
        /// The whole prompt and tool state at this point.
        system_message: Option<SystemMessage>,
    },
    /// A change of what one earlier entry contributes to the model's context.
    ContextEdit {
        /// The entry that is changed.
        target_id: EntryId,
        /// The new content, or `None` to leave the entry out.
        replacement: Option<Content>,
    },
    /// The summary of a branch that was left.
    BranchSummary {
        /// The leaf of the branch that was left.
        from_id: EntryId,
        /// The summary.
        summary: String,
        /// Data specific to whoever made the summary.
        details: Option<Value>,
        /// Usage of the summarising.
        usage: Option<Usage>,
        /// Whether an extension made the summary.
        from_hook: Option<bool>,
    },
    /// A message of an extension; the model sees it as the user's.
    CustomMessage {
        /// The extension's name for this kind of message.
        custom_type: String,
        /// Text and images for the model.
        content: Content,
        /// Details for people and hosts; not sent to the model.
        details: Option<Value>,
        /// Whether people should see it.
        display: bool,
    },
    /// The user's mark on an entry.
    Label {
        /// The entry that is marked.
        target_id: EntryId,
        /// The mark; `None` takes it away.
        label: Option<String>,
    },
    /// What is known of the session as a whole.
    SessionInfo {
        /// The display name; `None` takes it away.
        name: Option<String>,
    },
}

impl From<AgentMessage> for NewEntry {
    fn from(message: AgentMessage) -> Self {
        Self::Message(Shared::new(message))
    }
}

impl From<Shared<AgentMessage>> for NewEntry {
    fn from(message: Shared<AgentMessage>) -> Self {
        Self::Message(message)
    }
}

impl NewEntry {
    /// The entry that this one speaks of and that must exist.
    pub(super) fn target(&self) -> Option<&EntryId> {
        match self {
            Self::ContextEdit { target_id, .. } | Self::Label { target_id, .. } => Some(target_id),
            Self::Compaction { first_kept_entry_id, .. } => first_kept_entry_id.as_ref(),
            _ => None,
        }
    }

    pub(super) fn into_entry(self, base: EntryBase) -> SessionEntry {
        let extra = Untagged::default();
        match self {
            Self::Message(message) => MessageEntry { base, message, extra }.into(),
            Self::ModelChange { provider, model_id } => {
                ModelChangeEntry { base, provider, model_id, extra }.into()
            }
            Self::ThinkingLevelChange { thinking_level } => {
                ThinkingLevelChangeEntry { base, thinking_level, extra }.into()
            }
            Self::Compaction {
                summary,
                first_kept_entry_id,
                tokens_before,
                details,
                usage,
                from_hook,
                system_message,
            } => CompactionEntry {
                first_kept_entry_id: first_kept_entry_id.unwrap_or_else(|| base.id.clone()),
                base,
                summary,
                tokens_before,
                details,
                usage,
                from_hook,
                system_message: system_message.map(TaggedSystemMessage::System),
                extra,
            }
            .into(),
            Self::ContextEdit { target_id, replacement } => {
                let replacement = replacement.map(|content| ContextReplacement { content });
                ContextEditEntry { base, target_id, replacement, extra }.into()
            }
            Self::BranchSummary { from_id, summary, details, usage, from_hook } => {
                BranchSummaryEntry { base, from_id, summary, details, usage, from_hook, extra }.into()
            }
            Self::CustomMessage { custom_type, content, details, display } => {
                CustomMessageEntry { base, custom_type, content, details, display, extra }.into()
            }
            Self::Label { target_id, label } => LabelEntry { base, target_id, label, extra }.into(),
            Self::SessionInfo { name } => SessionInfoEntry { base, name, extra }.into(),
        }
    }
}
