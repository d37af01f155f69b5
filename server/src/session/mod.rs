//! Sessions: the append-only file of a conversation, its index, its tree and the model's context.
//!
//! A session file is read in one pass into an index: id, parent and kind of each entry, and where its
//! bytes are. Bodies stay in the file and are decoded when someone asks for them, so an open session
//! costs its index and its active context, not its size. Entries are only ever appended, one write a
//! line; nothing that was in the file is changed.
//!
//! | module | what it holds |
//! |---|---|
//! | `store` | [`Session`]: opening, appending, saving, moving the leaf |
//! | `read` | what can be asked of a session: entries, tree, totals, fork points |
//! | `index`, `record`, `scan` | from bytes to entries, also in damaged files |
//! | `file` | the file itself: appends, the lock, a file that vanishes under us |
//! | `context` | what the model sees of the active branch |
//! | `system` | the prompt and tool state that the context's system messages add up to |
//! | `fork` | new sessions from parts of old ones |
//! | `migrate` | versions 1 and 2 |
//! | [`listing`] | finding sessions on disk |

pub mod compaction;
mod context;
mod error;
mod file;
mod fork;
mod index;
pub mod listing;
mod migrate;
mod new_entry;
mod outline;
mod read;
mod record;
mod scan;
mod stamp;
mod store;
#[cfg(test)]
mod tests;

pub use context::{Context, ContextMessage};
pub use error::SessionError;
pub use index::{Label, SessionTotals, TokenSums};
pub use new_entry::NewEntry;
pub use outline::Outline;
pub use scan::Diagnostic;
pub use store::{NewSessionOptions, Session};
