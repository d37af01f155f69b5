//! What can be asked of a session.

use std::io::{self, Write};
use std::path::Path;

use sampi_protocol::Shared;
use sampi_protocol::Unknown;
use sampi_protocol::data::{AgentMessage, EntryId, SessionEntry};
use serde_json::Value;

use super::index::{Kind, Label, Position, Role, SessionTotals};
use super::{Session, SessionError};

impl Session {
    /// The ids of the active branch, from its root to the leaf.
    pub fn branch(&self) -> Vec<EntryId> {
        self.ids(self.index.path(self.leaf))
    }

    /// The ids from a root to this entry.
    pub fn branch_to(&self, id: &str) -> Result<Vec<EntryId>, SessionError> {
        Ok(self.ids(self.index.path(Some(self.position(id)?))))
    }

    fn ids(&self, path: Vec<Position>) -> Vec<EntryId> {
        path.into_iter().filter_map(|at| self.index.node(at)).map(|node| node.id.clone()).collect()
    }

    /// How many entries the session has, on all branches.
    pub fn entry_count(&self) -> usize {
        self.index.len()
    }

    /// The entry with this id; the last one when several have it.
    pub fn entry(&self, id: &str) -> Option<Shared<SessionEntry>> {
        self.entry_at(self.index.find(id)?)
    }

    /// The place in the order of appending that each entry's parent has. An entry that comes before its
    /// parent is possible in files of others; cycles are not.
    pub fn parents(&self) -> Vec<Option<usize>> {
        self.index.nodes().iter().map(|node| node.parent).collect()
    }

    /// The place of the leaf in the order of appending.
    pub fn leaf_place(&self) -> Option<usize> {
        self.leaf
    }

    /// The entry at a place in the order of appending.
    pub fn entry_at_place(&self, place: usize) -> Option<SessionEntry> {
        self.decode(place)
    }

    /// The id of the entry at a place in the order of appending.
    pub fn id_at_place(&self, place: usize) -> Option<&EntryId> {
        self.index.node(place).map(|node| &node.id)
    }

    pub(super) fn entry_at(&self, position: Position) -> Option<Shared<SessionEntry>> {
        let entry = self.decode(position)?;
        let json = self.body(position).ok()?;
        Some(Shared::with_json(entry, json))
    }

    /// An entry whose body is not what its type promises is given as unknown.
    pub(super) fn decode(&self, position: Position) -> Option<SessionEntry> {
        let text = match self.text(position) {
            Ok(text) => text,
            Err(error) => {
                tracing::warn!("an entry cannot be read: {error}");
                return None;
            }
        };
        let error = match serde_json::from_str::<SessionEntry>(&text) {
            Ok(entry) => return Some(entry),
            Err(error) => error,
        };
        tracing::warn!("an entry is not what its type promises: {error}");
        serde_json::from_str::<Value>(&text).ok().map(|value| SessionEntry::Unknown(Unknown::new(value)))
    }

    /// Writes the array of every entry after `since`, or of all of them.
    pub fn write_entries(&self, since: Option<&str>, out: &mut dyn Write) -> Result<(), SessionError> {
        let from = match since {
            Some(id) => {
                let found = self.index.find_first(id);
                found.ok_or_else(|| SessionError::EntryNotFound(id.to_owned()))? + 1
            }
            None => 0,
        };
        put(out, b"[")?;
        for position in from..self.index.len() {
            if position > from {
                put(out, b",")?;
            }
            put(out, self.text(position)?.as_bytes())?;
        }
        put(out, b"]")
    }

    /// Writes the tree of entries, `[{entry, children, label?, labelTimestamp?}]`. Its depth costs no stack.
    pub fn write_tree(&self, out: &mut dyn Write) -> Result<(), SessionError> {
        let mut children: Vec<Vec<Position>> = vec![Vec::new(); self.index.len()];
        let mut roots = Vec::new();
        for (position, node) in self.index.nodes().iter().enumerate() {
            match node.parent.and_then(|parent| children.get_mut(parent)) {
                Some(siblings) => siblings.push(position),
                None => roots.push(position),
            }
        }
        // Each level: whose children these are, and which of them are still to be written.
        let mut open = vec![(None, roots.into_iter(), true)];
        put(out, b"[")?;
        while let Some((parent, rest, first)) = open.last_mut() {
            match rest.next() {
                Some(position) => {
                    if !std::mem::take(first) {
                        put(out, b",")?;
                    }
                    put(out, br#"{"entry":"#)?;
                    put(out, self.text(position)?.as_bytes())?;
                    put(out, br#","children":["#)?;
                    let children = children.get_mut(position).map(std::mem::take).unwrap_or_default();
                    open.push((Some(position), children.into_iter(), true));
                }
                None => {
                    let closed = *parent;
                    open.pop();
                    put(out, b"]")?;
                    if let Some(position) = closed {
                        self.write_label(position, out)?;
                        put(out, b"}")?;
                    }
                }
            }
        }
        Ok(())
    }

    fn write_label(&self, position: Position, out: &mut dyn Write) -> Result<(), SessionError> {
        let label = self.index.node(position).and_then(|node| self.index.label(node.id.as_str()));
        let Some(label) = label else { return Ok(()) };
        put(out, br#","label":"#)?;
        put(out, serde_json::to_string(&label.text)?.as_bytes())?;
        put(out, br#","labelTimestamp":"#)?;
        put(out, serde_json::to_string(&label.timestamp)?.as_bytes())
    }

    /// The session's display name.
    pub fn name(&self) -> Option<&str> {
        self.index.name()
    }

    /// The user's mark on an entry.
    pub fn label(&self, id: &str) -> Option<&Label> {
        self.index.label(id)
    }

    /// Counts and sums over the whole session.
    pub fn totals(&self) -> SessionTotals {
        self.index.totals().clone()
    }

    /// The user's messages that have text, on all branches, in the order in which they were appended.
    pub fn fork_points(&self) -> Vec<(EntryId, String)> {
        let users = self.index.nodes().iter().enumerate();
        users
            .filter(|(_, node)| node.kind == Kind::Message(Role::User))
            .filter_map(|(at, node)| Some((node.id.clone(), self.user_text(at)?)))
            .filter(|(_, text)| !text.is_empty())
            .collect()
    }

    pub(super) fn user_text(&self, position: Position) -> Option<String> {
        match &self.decode(position)? {
            SessionEntry::MessageEntry(entry) => match &*entry.message {
                AgentMessage::User(message) => Some(message.content.text().into_owned()),
                _ => None,
            },
            _ => None,
        }
    }

    /// The folder that the session's file is in.
    pub fn dir(&self) -> Option<&Path> {
        self.file().and_then(Path::parent)
    }
}

fn put(out: &mut dyn Write, bytes: &[u8]) -> Result<(), SessionError> {
    out.write_all(bytes).map_err(|source: io::Error| SessionError::Io {
        action: "write",
        path: "the response".into(),
        source,
    })
}
