//! What the model sees of the active branch.

use std::collections::HashMap;
use std::sync::Arc;

use sampi_protocol::data::{
    AgentMessage, BranchSummaryEntry, BranchSummaryMessage, CompactionEntry, CompactionSummaryMessage,
    Content, ContextEditEntry, CustomMessage, CustomMessageEntry, EntryId, SessionEntry, TaggedSystemMessage,
    Untagged,
};
use sampi_protocol::{Shared, Unknown};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::index::{Kind, Position, Role};
use super::{NewEntry, Session, stamp};

/// The model's view of the active branch.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Context {
    /// The messages in order, each with the entry that it comes from.
    pub messages: Vec<ContextMessage>,
    /// How many of them came before the last edit of the context.
    pub edited: usize,
    /// Provider and id of the model that was used or chosen last on the branch.
    pub model: Option<(String, String)>,
    /// The thinking level that was chosen last on the branch.
    pub thinking_level: Option<String>,
}

/// One message of the context.
#[derive(Debug, Clone, PartialEq)]
pub struct ContextMessage {
    /// The entry that it comes from.
    pub entry: EntryId,
    /// The message, with the branch's edits applied.
    pub message: Shared<AgentMessage>,
}

/// The context of the leaf, kept up to date while entries are appended.
#[derive(Debug)]
pub(super) struct ContextCache {
    leaf: Option<Position>,
    context: Arc<Context>,
}

impl Session {
    /// The context of the active branch. It is built once and then follows the entries that are appended.
    pub fn context(&mut self) -> Arc<Context> {
        if let Some(context) = self.kept_context() {
            return context;
        }
        let context = Arc::new(self.build_context());
        self.context = Some(ContextCache { leaf: self.leaf, context: Arc::clone(&context) });
        context
    }

    pub(super) fn kept_context(&self) -> Option<Arc<Context>> {
        let cache = self.context.as_ref().filter(|cache| cache.leaf == self.leaf)?;
        Some(Arc::clone(&cache.context))
    }

    /// The text of the last assistant message of the context that has one.
    pub fn last_assistant_text(&self) -> Option<String> {
        let context = self.kept_context().unwrap_or_else(|| Arc::new(self.build_context()));
        let mut texts = context.messages.iter().rev().filter_map(|message| message.message.as_assistant());
        texts.find_map(|message| Some(message.text().trim().to_owned()).filter(|text| !text.is_empty()))
    }

    fn build_context(&self) -> Context {
        let path = self.index.path(self.leaf);
        let edits = self.edits(&path);
        let mut messages = Vec::new();
        let mut edited = 0;
        for position in self.selected(&path) {
            let Some(node) = self.index.node(position) else { continue };
            if node.kind == Kind::ContextEdit {
                edited = messages.len();
            }
            if !matches!(
                node.kind,
                Kind::Message(_) | Kind::Compaction | Kind::BranchSummary | Kind::CustomMessage
            ) {
                continue;
            }
            let edit = edits.get(node.id.as_str());
            if edit.is_some_and(|edit| edit.replacement.is_none()) {
                continue;
            }
            let replacement = edit.and_then(|edit| edit.replacement.as_ref()).map(|new| &new.content);
            for message in self.contribution_at(position, node.kind) {
                let message = match replacement.and_then(|content| replaced(&message, content)) {
                    Some(message) => Shared::new(message),
                    None => message,
                };
                messages.push(ContextMessage { entry: node.id.clone(), message });
            }
        }
        let (model, thinking_level) = self.choices(&path);
        Context { messages, edited, model, thinking_level }
    }

    /// The messages that the entry at this place gives to the context.
    pub(super) fn contribution_at(&self, position: Position, kind: Kind) -> Vec<Shared<AgentMessage>> {
        // A message whose role is known is read straight into its struct: contexts can be large.
        let message = match kind {
            Kind::Message(role) => self.text(position).ok().and_then(|text| read_message(role, &text)),
            _ => None,
        };
        match message {
            Some(message) => vec![Shared::new(message)],
            None => self.decode(position).iter().flat_map(contribution).collect(),
        }
    }

    /// The entries that the latest compaction on the path leaves, that compaction first.
    pub(super) fn selected(&self, path: &[Position]) -> Vec<Position> {
        let kind = |position: &Position| self.index.node(*position).map(|node| node.kind);
        let Some(at) = path.iter().rposition(|position| kind(position) == Some(Kind::Compaction)) else {
            return path.to_vec();
        };
        let (before, after) = path.split_at(at);
        let mut selected: Vec<Position> = after.first().copied().into_iter().collect();
        let first_kept = selected.first().and_then(|position| match self.decode(*position) {
            Some(SessionEntry::CompactionEntry(entry)) => Some(entry.first_kept_entry_id),
            _ => None,
        });
        let from = first_kept
            .and_then(|id| before.iter().position(|p| self.index.node(*p).is_some_and(|node| node.id == id)));
        if let Some(kept) = from.and_then(|from| before.get(from..)) {
            selected.extend(kept.iter().filter(|position| {
                !matches!(kind(position), Some(Kind::Compaction | Kind::Message(Role::System)))
            }));
        }
        selected.extend(after.iter().skip(1));
        selected
    }

    /// The latest edit of each entry that the path edits.
    pub(super) fn edits(&self, path: &[Position]) -> HashMap<String, ContextEditEntry> {
        path.iter()
            .filter(|position| self.index.node(**position).is_some_and(|node| node.kind == Kind::ContextEdit))
            .filter_map(|position| match self.decode(*position) {
                Some(SessionEntry::ContextEditEntry(edit)) => {
                    Some((edit.target_id.as_str().to_owned(), edit))
                }
                _ => None,
            })
            .collect()
    }

    /// The model and the thinking level at the end of the path.
    pub(super) fn choices(&self, path: &[Position]) -> (Option<(String, String)>, Option<String>) {
        let mut found = Context::default();
        for position in path.iter().rev() {
            if found.model.is_some() && found.thinking_level.is_some() {
                break;
            }
            let Some(node) = self.index.node(*position) else { continue };
            let wanted = match node.kind {
                Kind::ModelChange | Kind::Message(Role::Assistant) => found.model.is_none(),
                Kind::ThinkingLevelChange => found.thinking_level.is_none(),
                _ => false,
            };
            if let Some(entry) = wanted.then(|| self.decode(*position)).flatten() {
                note_choice(&entry, &mut found);
            }
        }
        (found.model, found.thinking_level)
    }

    /// The entries of the active branch that memory holds, for a file that lost them.
    pub(super) fn entries_in_memory(&self) -> Vec<(String, NewEntry)> {
        let Some(cache) = &self.context else { return Vec::new() };
        let groups = cache.context.messages.chunk_by(|one, next| one.entry == next.entry);
        groups
            .filter_map(|group| {
                let entry = group.last()?;
                let checkpoint = group.first().map(|first| &first.message);
                Some((entry.entry.as_str().to_owned(), held_entry(&entry.message, checkpoint)))
            })
            .collect()
    }
}

/// The entry that gives this message to the context, as far as the message tells.
fn held_entry(message: &Shared<AgentMessage>, checkpoint: Option<&Shared<AgentMessage>>) -> NewEntry {
    match &**message {
        AgentMessage::CompactionSummary(summary) => NewEntry::Compaction {
            summary: summary.summary.clone(),
            // What was kept follows: it hangs below this entry now.
            first_kept_entry_id: None,
            tokens_before: summary.tokens_before,
            details: None,
            usage: None,
            from_hook: None,
            system_message: checkpoint.and_then(|message| match &**message {
                AgentMessage::System(message) => Some(message.clone()),
                _ => None,
            }),
        },
        AgentMessage::BranchSummary(summary) => NewEntry::BranchSummary {
            from_id: summary.from_id.clone().unwrap_or_default().into(),
            summary: summary.summary.clone(),
            details: None,
            usage: None,
            from_hook: None,
        },
        AgentMessage::Custom(custom) => NewEntry::CustomMessage {
            custom_type: custom.custom_type.clone(),
            content: custom.content.clone(),
            details: custom.details.clone(),
            display: custom.display,
        },
        _ => NewEntry::Message(message.clone()),
    }
}

impl ContextCache {
    /// Follows an entry that was appended at the leaf. False when the context must be built anew.
    pub(super) fn append(&mut self, leaf: Position, entry: &SessionEntry) -> bool {
        match entry {
            SessionEntry::CompactionEntry(_) => return false,
            SessionEntry::ContextEditEntry(edit) => {
                if !self.edit(edit) {
                    return false;
                }
                let context = Arc::make_mut(&mut self.context);
                context.edited = context.messages.len();
            }
            entry => {
                let mut news = contribution(entry).peekable();
                let context = Arc::make_mut(&mut self.context);
                if news.peek().is_some() {
                    let id = EntryId::from(entry.id());
                    context
                        .messages
                        .extend(news.map(|message| ContextMessage { entry: id.clone(), message }));
                }
                note_choice(entry, context);
            }
        }
        self.leaf = Some(leaf);
        true
    }

    fn edit(&mut self, edit: &ContextEditEntry) -> bool {
        let context = Arc::make_mut(&mut self.context);
        let Some(replacement) = &edit.replacement else {
            context.messages.retain(|message| message.entry != edit.target_id);
            return true;
        };
        // An entry that is not there may have been left out by an earlier edit.
        let mut there = false;
        for message in context.messages.iter_mut().filter(|message| message.entry == edit.target_id) {
            there = true;
            if let Some(new) = replaced(&message.message, &replacement.content) {
                message.message = Shared::new(new);
            }
        }
        there
    }
}

/// The message in the JSON of a message entry; `None` when it is not what its role promises.
fn read_message(role: Role, entry: &str) -> Option<AgentMessage> {
    #[derive(Deserialize)]
    struct Line<T> {
        message: T,
    }

    fn read<T: DeserializeOwned>(entry: &str) -> Option<T> {
        serde_json::from_str::<Line<T>>(entry).ok().map(|line| line.message)
    }

    match role {
        Role::System => read(entry).map(AgentMessage::System),
        Role::User => read(entry).map(AgentMessage::User),
        Role::Assistant => read(entry).map(AgentMessage::Assistant),
        Role::ToolResult => read(entry).map(AgentMessage::ToolResult),
        Role::Other => None,
    }
}

fn note_choice(entry: &SessionEntry, context: &mut Context) {
    match entry {
        SessionEntry::ModelChangeEntry(change) => {
            context.model = Some((change.provider.clone(), change.model_id.clone()));
        }
        SessionEntry::ThinkingLevelChangeEntry(change) => {
            context.thinking_level = Some(change.thinking_level.clone());
        }
        SessionEntry::MessageEntry(entry) => {
            if let AgentMessage::Assistant(message) = &*entry.message {
                context.model = Some((message.provider.clone(), message.model.clone()));
            }
        }
        _ => {}
    }
}

/// The messages that an entry gives to the context.
fn contribution(entry: &SessionEntry) -> impl Iterator<Item = Shared<AgentMessage>> {
    let (first, second) = match entry {
        SessionEntry::MessageEntry(entry) => (Some(entry.message.clone()), None),
        SessionEntry::CompactionEntry(entry) => {
            let checkpoint = entry.system_message.clone().map(|TaggedSystemMessage::System(message)| message);
            (checkpoint.map(|message| AgentMessage::System(message).into()), Some(compaction_summary(entry)))
        }
        SessionEntry::BranchSummaryEntry(entry) if !entry.summary.is_empty() => {
            (Some(branch_summary(entry)), None)
        }
        SessionEntry::CustomMessageEntry(entry) => (Some(custom_message(entry)), None),
        // A message that cannot be read as what it says it is stays visible as it is.
        SessionEntry::Unknown(raw) if raw.str_field("type") == Some("message") => {
            let message = raw.value().get("message").cloned().unwrap_or_default();
            (Some(AgentMessage::Unknown(Unknown::new(message)).into()), None)
        }
        _ => (None, None),
    };
    first.into_iter().chain(second)
}

fn compaction_summary(entry: &CompactionEntry) -> Shared<AgentMessage> {
    AgentMessage::CompactionSummary(CompactionSummaryMessage {
        summary: entry.summary.clone(),
        tokens_before: entry.tokens_before,
        timestamp: stamp::to_millis(&entry.base.timestamp),
        extra: Untagged::default(),
    })
    .into()
}

fn branch_summary(entry: &BranchSummaryEntry) -> Shared<AgentMessage> {
    AgentMessage::BranchSummary(BranchSummaryMessage {
        summary: entry.summary.clone(),
        from_id: Some(entry.from_id.as_str().to_owned()),
        timestamp: stamp::to_millis(&entry.base.timestamp),
        extra: Untagged::default(),
    })
    .into()
}

fn custom_message(entry: &CustomMessageEntry) -> Shared<AgentMessage> {
    AgentMessage::Custom(CustomMessage {
        custom_type: entry.custom_type.clone(),
        content: entry.content.clone(),
        display: entry.display,
        details: entry.details.clone(),
        timestamp: stamp::to_millis(&entry.base.timestamp),
        extra: Untagged::default(),
    })
    .into()
}

/// A message with new content, for the roles whose content can be edited.
fn replaced(message: &AgentMessage, content: &Content) -> Option<AgentMessage> {
    let mut message = message.clone();
    match &mut message {
        AgentMessage::User(message) => message.content = content.clone(),
        AgentMessage::Custom(message) => message.content = content.clone(),
        AgentMessage::Assistant(message) => message.content = content.to_blocks(),
        AgentMessage::ToolResult(message) => message.content = content.to_blocks(),
        _ => return None,
    }
    Some(message)
}
