//! The data that agents exchange and keep: messages, models, tools, session entries.

mod compaction;
mod content;
mod message;
mod model;
mod session;
mod tool;
mod usage;

pub use compaction::*;
pub use content::*;
pub use message::*;
pub use model::*;
pub use session::*;
pub use tool::*;
pub use usage::*;

/// Fields that this version does not know, kept in the order in which they came.
pub type Extra = serde_json::Map<String, serde_json::Value>;
