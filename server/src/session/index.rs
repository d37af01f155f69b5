//! The index of a session: what each entry is, where it hangs in the tree, where its bytes are.

use std::collections::HashMap;

use sampi_protocol::data::{EntryId, Usage};
use serde_json::value::RawValue;

use super::record::Head;

/// Position of an entry in the order in which entries were appended.
pub(super) type Position = usize;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Message(Role),
    ModelChange,
    ThinkingLevelChange,
    Compaction,
    ContextEdit,
    BranchSummary,
    CustomMessage,
    Label,
    /// Anything that neither the tree nor the context looks at.
    Other,
}

/// Whose message an entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    System,
    User,
    Assistant,
    ToolResult,
    Other,
}

impl Kind {
    fn of(head: &Head<'_>) -> Self {
        match head.kind.as_deref().unwrap_or_default() {
            "message" => {
                let message = head.message.0.as_ref();
                Self::Message(match message.and_then(|m| m.role.as_deref()).unwrap_or_default() {
                    "system" => Role::System,
                    "user" => Role::User,
                    "assistant" => Role::Assistant,
                    "toolResult" => Role::ToolResult,
                    _ => Role::Other,
                })
            }
            "model_change" => Self::ModelChange,
            "thinking_level_change" => Self::ThinkingLevelChange,
            "compaction" => Self::Compaction,
            "context_edit" => Self::ContextEdit,
            "branch_summary" => Self::BranchSummary,
            "custom_message" => Self::CustomMessage,
            "label" => Self::Label,
            _ => Self::Other,
        }
    }
}

/// Where an entry's JSON is.
#[derive(Debug)]
pub(super) enum Body {
    /// In the file.
    File {
        /// Its first byte.
        offset: u64,
        /// Its length in bytes.
        length: usize,
        /// Whether it has invalid UTF-8 or lone surrogates that are replaced when it is read.
        repair: bool,
    },
    /// In memory: not written yet, or different from what the file says.
    Memory(Box<RawValue>),
}

/// One entry.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: EntryId,
    pub(super) parent: Option<Position>,
    pub(super) kind: Kind,
    pub(super) body: Body,
}

/// The user's mark on an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The mark.
    pub text: String,
    /// When it was set, ISO 8601.
    pub timestamp: String,
}

/// Counts and sums over a whole session, abandoned branches and edited entries included.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionTotals {
    /// Messages of the user.
    pub user_messages: u64,
    /// Messages of models.
    pub assistant_messages: u64,
    /// Tool calls in messages of models.
    pub tool_calls: u64,
    /// Results of tools.
    pub tool_results: u64,
    /// All message entries, of any role.
    pub total_messages: u64,
    /// Tokens of all model work: answers, tools, summaries, usage entries.
    pub tokens: TokenSums,
    /// The cost of all model work, in US dollars.
    pub cost: f64,
}

/// Sums of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenSums {
    /// Input tokens that the cache had no part in.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Tokens written to the cache.
    pub cache_write: u64,
}

impl TokenSums {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.input
            .saturating_add(self.output)
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }
}

impl SessionTotals {
    fn add(&mut self, kind: Kind, head: &Head<'_>) {
        let message = head.message.0.as_ref();
        if let Kind::Message(role) = kind {
            self.total_messages += 1;
            match role {
                Role::User => self.user_messages += 1,
                Role::Assistant => {
                    self.assistant_messages += 1;
                    self.tool_calls += message.map_or(0, |message| message.content.0);
                }
                Role::ToolResult => self.tool_results += 1,
                Role::System | Role::Other => {}
            }
        }
        let usage = message.and_then(|message| message.usage).or(head.usage);
        if let Some(usage) = usage.and_then(|raw| serde_json::from_str::<Usage>(raw.get()).ok()) {
            let tokens = &mut self.tokens;
            tokens.input = tokens.input.saturating_add(usage.input);
            tokens.output = tokens.output.saturating_add(usage.output);
            tokens.cache_read = tokens.cache_read.saturating_add(usage.cache_read);
            tokens.cache_write = tokens.cache_write.saturating_add(usage.cache_write);
            self.cost += usage.cost.total;
        }
    }
}

/// The entries of a session in the order in which they were appended.
#[derive(Debug, Default)]
pub(super) struct Index {
    nodes: Vec<Node>,
    /// The last entry with each id.
    latest: HashMap<Box<str>, Position>,
    /// The first entry with an id that several have.
    first_of_many: HashMap<Box<str>, Position>,
    /// Entries whose parent was not there yet when they came.
    waiting: Vec<(Position, Box<str>)>,
    labels: HashMap<Box<str>, Label>,
    name: Option<String>,
    totals: SessionTotals,
}

impl Index {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    pub(super) fn node(&self, position: Position) -> Option<&Node> {
        self.nodes.get(position)
    }

    pub(super) fn last(&self) -> Option<Position> {
        self.nodes.len().checked_sub(1)
    }

    /// The last entry with this id.
    pub(super) fn find(&self, id: &str) -> Option<Position> {
        self.latest.get(id).copied()
    }

    /// The first entry with this id.
    pub(super) fn find_first(&self, id: &str) -> Option<Position> {
        self.first_of_many.get(id).or_else(|| self.latest.get(id)).copied()
    }

    pub(super) fn label(&self, id: &str) -> Option<&Label> {
        self.labels.get(id)
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(super) fn totals(&self) -> &SessionTotals {
        &self.totals
    }

    pub(super) fn set_body(&mut self, position: Position, body: Body) {
        if let Some(node) = self.nodes.get_mut(position) {
            node.body = body;
        }
    }

    /// Adds an entry. Returns its position and whether its id was there before.
    pub(super) fn push(&mut self, id: &str, head: &Head<'_>, body: Body) -> (Position, bool) {
        let position = self.nodes.len();
        let kind = Kind::of(head);
        let parent = head.parent_id.as_deref().and_then(|parent| {
            let known = self.find(parent);
            if known.is_none() {
                self.waiting.push((position, parent.into()));
            }
            known
        });
        self.totals.add(kind, head);
        match head.kind.as_deref() {
            Some("label") => self.set_label(head),
            Some("session_info") => {
                self.name = head.name.as_deref().map(str::trim).filter(|n| !n.is_empty()).map(str::to_owned);
            }
            _ => {}
        }
        let before = self.latest.insert(id.into(), position);
        if let Some(before) = before {
            self.first_of_many.entry(id.into()).or_insert(before);
        }
        self.nodes.push(Node { id: EntryId::from(id), parent, kind, body });
        (position, before.is_some())
    }

    fn set_label(&mut self, head: &Head<'_>) {
        let Some(target) = head.target_id.as_deref() else { return };
        match head.label.as_deref().filter(|label| !label.is_empty()) {
            Some(text) => {
                let timestamp = head.timestamp.as_deref().unwrap_or_default().to_owned();
                self.labels.insert(target.into(), Label { text: text.to_owned(), timestamp });
            }
            None => {
                self.labels.remove(target);
            }
        }
    }

    /// Links entries to parents that came after them. `note` hears of parents that do not exist and of
    /// cycles; such an entry becomes a root.
    pub(super) fn link_waiting(&mut self, mut note: impl FnMut(String)) {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return;
        }
        let mut forward = false;
        for (position, parent) in waiting {
            match self.find(&parent).filter(|parent| *parent != position) {
                Some(parent) => {
                    forward = true;
                    if let Some(node) = self.nodes.get_mut(position) {
                        node.parent = Some(parent);
                    }
                }
                None => {
                    let id = self.nodes.get(position).map(|node| node.id.as_str()).unwrap_or_default();
                    note(format!(
                        "entry {id} has a parent that does not exist ({parent}); it is kept as a root"
                    ));
                }
            }
        }
        if forward {
            self.break_cycles(note);
        }
    }

    fn break_cycles(&mut self, mut note: impl FnMut(String)) {
        /// No walk has come here yet.
        const NEW: usize = usize::MAX;
        let mut walk_of = vec![NEW; self.nodes.len()];
        for start in 0..self.nodes.len() {
            let mut at = Some(start);
            while let Some(position) = at {
                let Some(seen) = walk_of.get_mut(position) else { break };
                if *seen == start {
                    let id = self.cut_cycle(position);
                    note(format!("entry {id} is its own ancestor; it is kept as a root"));
                    break;
                }
                if *seen != NEW {
                    break;
                }
                *seen = start;
                at = self.nodes.get(position).and_then(|node| node.parent);
            }
        }
    }

    /// Makes the earliest entry of a cycle a root.
    fn cut_cycle(&mut self, inside: Position) -> String {
        let mut earliest = inside;
        let mut at = self.nodes.get(inside).and_then(|node| node.parent);
        while let Some(position) = at.filter(|position| *position != inside) {
            earliest = earliest.min(position);
            at = self.nodes.get(position).and_then(|node| node.parent);
        }
        self.nodes.get_mut(earliest).map_or_else(String::new, |node| {
            node.parent = None;
            node.id.to_string()
        })
    }

    /// The entries from a root to this one.
    pub(super) fn path(&self, leaf: Option<Position>) -> Vec<Position> {
        let mut path = Vec::new();
        let mut at = leaf;
        while let Some(position) = at.filter(|position| *position < self.nodes.len()) {
            path.push(position);
            at = self.nodes.get(position).and_then(|node| node.parent);
        }
        path.reverse();
        path
    }
}
