//! The session as a tree, read without recursion.
//!
//! A conversation is a chain, so its tree is about as deep as it has entries. serde_json refuses text that
//! is nested 128 levels deep, and types that own their children overflow the stack when they are dropped.
//! So a reply to `get_tree` is read into one flat list, and entries are decoded when they are asked for.

use std::ops::Range;

use sampi_protocol::WireError;
use sampi_protocol::data::{EntryId, SessionEntry};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::pending::read_repaired;
use crate::scan::Cursor;

/// The session as a tree of entries, kept flat.
#[derive(Debug, Clone)]
pub struct SessionTree {
    text: String,
    nodes: Vec<Node>,
    roots: Vec<usize>,
    leaf_id: Option<EntryId>,
}

#[derive(Debug, Clone, Default)]
struct Node {
    entry: Range<usize>,
    parent: Option<usize>,
    children: Vec<usize>,
    label: Option<String>,
    label_timestamp: Option<String>,
}

impl SessionTree {
    /// Reads what `get_tree` answers in `data`.
    pub fn read(data: &str) -> Result<Self, WireError> {
        serde_json::from_str::<&RawValue>(data).map_err(|error| WireError::new(error.to_string()))?;
        Self::from_valid(data.to_owned(), 0..data.len())
    }

    /// Reads the part of `text` that is known to be valid JSON, without copying it.
    pub(crate) fn from_valid(text: String, data: Range<usize>) -> Result<Self, WireError> {
        let mut reader = Reader {
            text: &text,
            offset: data.start,
            cursor: Cursor::new(text.get(data).unwrap_or_default()),
            nodes: Vec::new(),
            roots: Vec::new(),
        };
        let leaf_id = reader.read()?;
        let Reader { nodes, roots, .. } = reader;
        Ok(Self { text, nodes, roots, leaf_id })
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True when the session is empty.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The entry at which the active branch ends; `None` in an empty session.
    pub fn leaf_id(&self) -> Option<&EntryId> {
        self.leaf_id.as_ref()
    }

    /// All nodes, each parent before its children.
    pub fn nodes(&self) -> impl Iterator<Item = TreeNode<'_>> {
        (0..self.nodes.len()).filter_map(|index| self.node(index))
    }

    /// The nodes without a parent.
    pub fn roots(&self) -> impl Iterator<Item = TreeNode<'_>> {
        self.roots.iter().filter_map(|&index| self.node(index))
    }

    /// The node at this index.
    pub fn node(&self, index: usize) -> Option<TreeNode<'_>> {
        self.nodes.get(index).map(|node| TreeNode { tree: self, index, node })
    }

    /// The node of this entry.
    pub fn find(&self, entry_id: &str) -> Option<TreeNode<'_>> {
        self.nodes().find(|node| node.entry_id().is_ok_and(|id| id == *entry_id))
    }
}

/// One node of a [`SessionTree`].
#[derive(Debug, Clone, Copy)]
pub struct TreeNode<'a> {
    tree: &'a SessionTree,
    index: usize,
    node: &'a Node,
}

impl<'a> TreeNode<'a> {
    /// The node's index in its tree.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The entry as JSON.
    pub fn entry_text(&self) -> &'a str {
        self.tree.text.get(self.node.entry.clone()).unwrap_or_default()
    }

    /// The entry, decoded anew by each call.
    pub fn entry(&self) -> Result<SessionEntry, WireError> {
        read_repaired(self.entry_text())
    }

    /// The entry's id, without decoding the rest of it.
    pub fn entry_id(&self) -> Result<EntryId, WireError> {
        #[derive(Deserialize)]
        struct OnlyId {
            id: EntryId,
        }
        serde_json::from_str::<OnlyId>(self.entry_text())
            .map(|only| only.id)
            .map_err(|error| WireError::new(error.to_string()))
    }

    /// The node that this one continues.
    pub fn parent(&self) -> Option<TreeNode<'a>> {
        self.tree.node(self.node.parent?)
    }

    /// The nodes that continue this one.
    pub fn children(&self) -> impl Iterator<Item = TreeNode<'a>> + use<'a> {
        let tree = self.tree;
        self.node.children.iter().filter_map(move |&index| tree.node(index))
    }

    /// This node, its parent, and so on up to a root.
    pub fn ancestors(&self) -> impl Iterator<Item = TreeNode<'a>> + use<'a> {
        std::iter::successors(Some(*self), TreeNode::parent)
    }

    /// The user's mark on the entry.
    pub fn label(&self) -> Option<&'a str> {
        self.node.label.as_deref()
    }

    /// When the mark was set, ISO 8601.
    pub fn label_timestamp(&self) -> Option<&'a str> {
        self.node.label_timestamp.as_deref()
    }
}

/// What the reader is inside of.
enum Level {
    List,
    Node(usize),
}

struct Reader<'a> {
    text: &'a str,
    /// Where the cursor's text starts in `text`.
    offset: usize,
    cursor: Cursor<'a>,
    nodes: Vec<Node>,
    roots: Vec<usize>,
}

impl Reader<'_> {
    /// Reads the object around the tree; gives the leaf's id.
    fn read(&mut self) -> Result<Option<EntryId>, WireError> {
        let mut leaf_id = None;
        let mut found = false;
        self.expect(b'{', "an object")?;
        while !self.cursor.take(b'}') {
            self.cursor.take(b',');
            match self.key()? {
                r#""tree""# => {
                    self.list()?;
                    found = true;
                }
                r#""leafId""# => leaf_id = self.decode("leafId")?,
                _ => self.skip()?,
            }
        }
        if found { Ok(leaf_id) } else { Err(WireError::new("missing field `tree`")) }
    }

    fn list(&mut self) -> Result<(), WireError> {
        self.expect(b'[', "tree: a list of nodes")?;
        let mut levels = vec![Level::List];
        while let Some(level) = levels.last() {
            match *level {
                Level::List if self.cursor.take(b']') => drop(levels.pop()),
                Level::List => {
                    self.cursor.take(b',');
                    self.expect(b'{', "tree: a node")?;
                    let index = self.nodes.len();
                    let parent = levels.iter().rev().nth(1).and_then(|level| match level {
                        Level::Node(parent) => Some(*parent),
                        Level::List => None,
                    });
                    match parent.and_then(|parent| self.nodes.get_mut(parent)) {
                        Some(parent) => parent.children.push(index),
                        None => self.roots.push(index),
                    }
                    self.nodes.push(Node { parent, ..Node::default() });
                    levels.push(Level::Node(index));
                }
                Level::Node(index) if self.cursor.take(b'}') => {
                    if self.nodes.get(index).is_none_or(|node| node.entry.is_empty()) {
                        return Err(WireError::new("tree: missing field `entry`"));
                    }
                    levels.pop();
                }
                Level::Node(index) => {
                    self.cursor.take(b',');
                    if self.field(index)? == Field::Children {
                        levels.push(Level::List);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads one field of a node; of `children` only the bracket.
    fn field(&mut self, index: usize) -> Result<Field, WireError> {
        match self.key()? {
            r#""children""# => {
                self.expect(b'[', "children: a list of nodes")?;
                return Ok(Field::Children);
            }
            r#""entry""# => {
                let entry = self.value()?;
                if let Some(node) = self.nodes.get_mut(index) {
                    node.entry = entry;
                }
            }
            r#""label""# => {
                let label = self.decode("label")?;
                if let Some(node) = self.nodes.get_mut(index) {
                    node.label = label;
                }
            }
            r#""labelTimestamp""# => {
                let timestamp = self.decode("labelTimestamp")?;
                if let Some(node) = self.nodes.get_mut(index) {
                    node.label_timestamp = timestamp;
                }
            }
            _ => self.skip()?,
        }
        Ok(Field::Other)
    }

    fn key(&mut self) -> Result<&str, WireError> {
        let at = self.cursor.position();
        self.cursor.key().ok_or_else(|| expected("a field", at))
    }

    fn value(&mut self) -> Result<Range<usize>, WireError> {
        let at = self.cursor.position();
        let value = self.cursor.value().ok_or_else(|| expected("a value", at))?;
        Ok(self.offset + value.start..self.offset + value.end)
    }

    fn skip(&mut self) -> Result<(), WireError> {
        self.value().map(|_| ())
    }

    fn decode<T: serde::de::DeserializeOwned>(&mut self, field: &str) -> Result<T, WireError> {
        let value = self.value()?;
        read_repaired(self.text.get(value).unwrap_or_default()).map_err(|error| WireError::at(field, error))
    }

    fn expect(&mut self, byte: u8, what: &str) -> Result<(), WireError> {
        if self.cursor.take(byte) { Ok(()) } else { Err(expected(what, self.cursor.position())) }
    }
}

#[derive(PartialEq, Eq)]
enum Field {
    Children,
    Other,
}

fn expected(what: &str, at: usize) -> WireError {
    WireError::new(format!("expected {what} at byte {at}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str) -> String {
        format!(r#"{{"type":"session_info","id":"{id}","parentId":null,"timestamp":"t","name":"}}]{id}"}}"#)
    }

    #[test]
    fn a_tree_is_read_with_its_shape_labels_and_leaf() {
        let data = format!(
            r#" {{"later":[{{}}],"tree":[{{"entry":{},"children":[{{"entry":{},"children":[]}},{{"children":[],"label":"mark \ud83d","labelTimestamp":"ts","entry":{} , "x":1}}]}}, {{"entry":{},"children":[]}}],"leafId":"c"}}"#,
            entry("a"),
            entry("b"),
            entry("c"),
            entry("d"),
        );
        let tree = SessionTree::read(&data).unwrap();
        let ids = |nodes: &mut dyn Iterator<Item = TreeNode<'_>>| -> Vec<String> {
            nodes.map(|node| node.entry().unwrap().id().to_owned()).collect()
        };
        assert_eq!(ids(&mut tree.nodes()), ["a", "b", "c", "d"]);
        assert_eq!(ids(&mut tree.roots()), ["a", "d"]);
        let leaf = tree.find(tree.leaf_id().unwrap().as_str()).unwrap();
        assert_eq!(ids(&mut leaf.ancestors()), ["c", "a"]);
        assert_eq!((leaf.label(), leaf.label_timestamp()), (Some("mark \u{fffd}"), Some("ts")));
        assert_eq!(ids(&mut tree.node(0).unwrap().children()), ["b", "c"]);
    }

    #[test]
    fn a_chain_of_40000_entries_is_read() {
        const DEPTH: usize = 40_000;
        let mut data = String::from(r#"{"tree":["#);
        for index in 0..DEPTH {
            data.push_str(&format!(r#"{{"entry":{},"children":["#, entry(&index.to_string())));
        }
        data.push_str(&"]}".repeat(DEPTH));
        data.push_str(r#"],"leafId":"39999"}"#);
        let tree = SessionTree::read(&data).unwrap();
        assert_eq!(tree.len(), DEPTH);
        assert_eq!(tree.find("39999").unwrap().ancestors().count(), DEPTH);
    }

    #[test]
    fn an_empty_session_has_an_empty_tree() {
        let tree = SessionTree::read(r#"{"tree":[],"leafId":null}"#).unwrap();
        assert!(tree.is_empty() && tree.leaf_id().is_none());
    }

    #[test]
    fn what_is_no_tree_is_an_error() {
        for data in [
            "null",
            "{}",
            "[]",
            r#"{"tree":null}"#,
            r#"{"tree":[1]}"#,
            r#"{"tree":[{"children":[]}]}"#,
            r#"{"tree":[{"entry":{},"children":{}}]}"#,
            r#"{"tree":[{"entry":{}"#,
            r#"{"tree":[],"leafId":7}"#,
        ] {
            assert!(SessionTree::read(data).is_err(), "{data}");
        }
    }
}
