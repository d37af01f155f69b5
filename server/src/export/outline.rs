//! The first pass over a session: what belongs together, and what the sidebar says.

use std::collections::HashMap;

use sampi_protocol::data::{
    AgentMessage, AssistantMessage, ContentBlock, SessionEntry, StopReason, ToolCall,
};

use super::format;
use super::tool::headline;
use crate::session::Session;

/// What is known of a session before its page is written. An entry is named by its place in the order of
/// appending.
pub(super) struct Outline {
    pub(super) nodes: Vec<Node>,
    pub(super) leaf: Option<usize>,
    /// What the user said first.
    pub(super) first_prompt: Option<String>,
    /// The entry with the first system message.
    pub(super) first_system: Option<usize>,
    /// The models that answered, in order.
    pub(super) models: Vec<String>,
    /// The result of each call, by the place of the answer and the call's id.
    results: HashMap<(usize, String), usize>,
}

/// One entry.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) parent: Option<usize>,
    pub(super) children: Vec<usize>,
    /// The answer inside which this result stands.
    pub(super) inside: Option<usize>,
    /// On the branch that is shown first.
    pub(super) is_active: bool,
    pub(super) row: Option<Row>,
}

/// One line of the sidebar.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) kind: RowKind,
    pub(super) text: String,
}

/// What a line of the sidebar stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowKind {
    User,
    Answer,
    Tool,
    FailedTool,
    Summary,
    Note,
}

impl Outline {
    pub(super) fn of(session: &Session) -> Self {
        let mut nodes: Vec<Node> =
            session.parents().into_iter().map(|parent| Node { parent, ..Node::default() }).collect();
        for place in 0..nodes.len() {
            if let Some(parent) = nodes[place].parent.and_then(|parent| nodes.get_mut(parent)) {
                parent.children.push(place);
            }
        }
        let leaf = session.leaf_place();
        let mut at = leaf;
        while let Some(node) = at.and_then(|place| nodes.get_mut(place)) {
            node.is_active = true;
            at = node.parent;
        }
        let mut outline = Self {
            nodes,
            leaf,
            first_prompt: None,
            first_system: None,
            models: Vec::new(),
            results: HashMap::new(),
        };
        let mut headlines = HashMap::new();
        for place in 0..outline.nodes.len() {
            if let Some(entry) = session.entry_at_place(place) {
                outline.note(place, &entry, &mut headlines);
            }
        }
        outline
    }

    /// The place of a call's result, if it stands right after the answer.
    pub(super) fn result_of(&self, answer: usize, call: &ToolCall) -> Option<usize> {
        self.results.get(&(answer, call.id.as_str().to_owned())).copied()
    }

    /// The children of an entry's parent, and which of them the entry is, when there are several.
    pub(super) fn siblings(&self, place: usize) -> Option<(usize, &[usize])> {
        let parent = self.nodes.get(place)?.parent?;
        let siblings = self.nodes.get(parent)?.children.as_slice();
        let index = siblings.iter().position(|sibling| *sibling == place)?;
        (siblings.len() > 1).then_some((index, siblings))
    }

    fn note(&mut self, place: usize, entry: &SessionEntry, headlines: &mut HashMap<(usize, String), String>) {
        let row = match entry {
            SessionEntry::MessageEntry(entry) => match &*entry.message {
                AgentMessage::System(_) => {
                    self.first_system.get_or_insert(place);
                    None
                }
                AgentMessage::User(message) => {
                    let text = message.content.text();
                    if self.first_prompt.is_none() {
                        self.first_prompt = Some(format::line(&text)).filter(|text| !text.is_empty());
                    }
                    row(RowKind::User, &text)
                }
                AgentMessage::Assistant(message) => {
                    for call in message.tool_calls() {
                        headlines.insert(
                            (place, call.id.as_str().to_owned()),
                            format!("{} {}", call.name, headline(call)),
                        );
                    }
                    self.note_model(message);
                    answer_row(message)
                }
                AgentMessage::ToolResult(message) => {
                    let key =
                        self.owner(place).map(|owner| (owner, message.tool_call_id.as_str().to_owned()));
                    let headline = key.as_ref().and_then(|key| headlines.get(key));
                    let text = headline.map_or(message.tool_name.as_str(), String::as_str);
                    let kind = if message.is_error { RowKind::FailedTool } else { RowKind::Tool };
                    let row = row(kind, text);
                    if let Some(key) = key.filter(|key| headlines.contains_key(key))
                        && !self.results.contains_key(&key)
                    {
                        if let Some(node) = self.nodes.get_mut(place) {
                            node.inside = Some(key.0);
                        }
                        self.results.insert(key, place);
                    }
                    row
                }
                AgentMessage::BashExecution(message) => row(RowKind::Tool, &format!("$ {}", message.command)),
                AgentMessage::Custom(message) if message.display => {
                    row(RowKind::Note, &format!("{}: {}", message.custom_type, message.content.text()))
                }
                AgentMessage::BranchSummary(message) => row(RowKind::Summary, &message.summary),
                AgentMessage::CompactionSummary(message) => row(RowKind::Summary, &message.summary),
                _ => None,
            },
            SessionEntry::CompactionEntry(_) => row(RowKind::Summary, "Compaction"),
            SessionEntry::BranchSummaryEntry(_) => row(RowKind::Summary, "Branch summary"),
            SessionEntry::CustomMessageEntry(entry) if entry.display => {
                row(RowKind::Note, &format!("{}: {}", entry.custom_type, entry.content.text()))
            }
            SessionEntry::ModelChangeEntry(entry) => row(RowKind::Note, &format!("Model {}", entry.model_id)),
            _ => None,
        };
        if let Some(node) = self.nodes.get_mut(place) {
            node.row = row;
        }
    }

    /// The answer after which a result comes, with only results in between.
    fn owner(&self, place: usize) -> Option<usize> {
        let parent = self.nodes.get(place)?.parent?;
        Some(self.nodes.get(parent)?.inside.unwrap_or(parent))
    }

    fn note_model(&mut self, message: &AssistantMessage) {
        let model = format!("{}/{}", message.provider, message.model);
        if !self.models.contains(&model) {
            self.models.push(model);
        }
    }
}

fn answer_row(message: &AssistantMessage) -> Option<Row> {
    let text = message.content.iter().find_map(|block| match block {
        ContentBlock::Text(block) if !block.text.trim().is_empty() => Some(block.text.as_str()),
        _ => None,
    });
    match (text, &message.stop_reason) {
        (Some(text), _) => row(RowKind::Answer, &format::without_marks(text)),
        (None, StopReason::Error) => row(RowKind::FailedTool, "Error"),
        (None, StopReason::Aborted) => row(RowKind::FailedTool, "Aborted"),
        // The rows of its calls follow.
        (None, _) => None,
    }
}

fn row(kind: RowKind, text: &str) -> Option<Row> {
    let text = format::line(text);
    Some(Row { kind, text: if text.is_empty() { "(empty)".to_owned() } else { text } })
}
