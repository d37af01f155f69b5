//! The blocks of tool calls whose pieces come one by one, for APIs that have no event for their beginning.

use std::collections::HashMap;

/// Knows which block a piece of a tool call belongs to.
#[derive(Debug, Default)]
pub(crate) struct CallBlocks {
    last: Option<usize>,
    by_index: HashMap<u64, usize>,
    by_id: HashMap<String, usize>,
}

impl CallBlocks {
    /// The block of a piece: the one with its index, without an index the one with its id, without both the
    /// one that began last. When there is none, `begin` begins it.
    pub(crate) fn block(&mut self, index: Option<u64>, id: &str, begin: impl FnOnce() -> usize) -> usize {
        let known = match index {
            Some(index) => self.by_index.get(&index).copied(),
            None if id.is_empty() => self.last,
            None => self.by_id.get(id).copied(),
        };
        let block = known.unwrap_or_else(|| *self.last.insert(begin()));
        if let Some(index) = index {
            self.by_index.entry(index).or_insert(block);
        }
        if !id.is_empty() && !self.by_id.contains_key(id) {
            self.by_id.insert(id.to_owned(), block);
        }
        block
    }

    /// True while no call has begun.
    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_none()
    }
}
