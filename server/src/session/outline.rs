//! What can be told of the context without reading its messages.

use sampi_protocol::data::{AgentMessage, SessionEntry, TaggedSystemMessage};

use super::Session;
use super::index::{Kind, Position, Role};

/// What can be told of the context without reading its messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outline {
    /// How many messages the context has.
    pub message_count: usize,
    /// Provider and id of the model that was used or chosen last on the branch.
    pub model: Option<(String, String)>,
    /// The thinking level that was chosen last on the branch.
    pub thinking_level: Option<String>,
}

impl Session {
    /// The outline of the active branch. Costs a walk over the index and the reading of a few entries.
    pub fn outline(&self) -> Outline {
        if let Some(context) = self.kept_context() {
            return Outline {
                message_count: context.messages.len(),
                model: context.model.clone(),
                thinking_level: context.thinking_level.clone(),
            };
        }
        let path = self.index.path(self.leaf);
        let edits = self.edits(&path);
        let counted = self.selected(&path).into_iter().filter_map(|position| {
            let node = self.index.node(position)?;
            let edit = edits.get(node.id.as_str());
            let left_out = edit.is_some_and(|edit| edit.replacement.is_none());
            (!left_out).then(|| self.messages_at(position, node.kind))
        });
        let message_count = counted.sum();
        let (model, thinking_level) = self.choices(&path);
        Outline { message_count, model, thinking_level }
    }

    fn messages_at(&self, position: Position, kind: Kind) -> usize {
        match kind {
            Kind::Message(_) | Kind::CustomMessage => 1,
            Kind::Compaction | Kind::BranchSummary => self.contribution_at(position, kind).len(),
            _ => 0,
        }
    }

    /// The system messages of the context, in order; nothing else of it is read.
    pub fn system_messages(&self) -> Vec<AgentMessage> {
        let path = self.index.path(self.leaf);
        let mut messages = Vec::new();
        for position in self.selected(&path) {
            match self.index.node(position).map(|node| node.kind) {
                Some(kind @ Kind::Message(Role::System)) => {
                    let contributed = self.contribution_at(position, kind);
                    messages.extend(contributed.iter().map(|message| (**message).clone()));
                }
                Some(Kind::Compaction) => {
                    if let Some(SessionEntry::CompactionEntry(entry)) = self.decode(position)
                        && let Some(TaggedSystemMessage::System(message)) = entry.system_message
                    {
                        messages.push(AgentMessage::System(message));
                    }
                }
                _ => {}
            }
        }
        messages
    }
}
