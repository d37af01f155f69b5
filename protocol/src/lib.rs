//! Everything that crosses Sampi's wire or lands in a session file.
//!
//! The crate holds types, the framing and the schema of the RPC protocol of the Pi coding agent
//! (reference: Pi 1.6.0), and nothing that does I/O: no runtime, no file, no process, no clock, no
//! random source.
//!
//! How the types read JSON: a known tag with a bad body is an error that names the field; an unknown
//! tag is kept as raw JSON in an `Unknown` variant; unknown fields of messages, models and entries are
//! kept in `extra`, elsewhere they are ignored.
//!
//! | module | what it holds |
//! |---|---|
//! | [`jsonl`] | framing: records to lines and back |
//! | [`wire`] | reading the tag of a record, routing it, errors that name the field |
//! | [`commands`] | the table of commands: name, parameters, result |
//! | [`response`] | the response envelope and its error codes |
//! | [`RequestId`] | the id of a command, as it came |
//! | [`events`], [`stream`] | session events and the deltas of an assistant message |
//! | [`MessageAssembler`] | an assistant message put together from its deltas |
//! | [`ui`] | the extension UI sub-protocol |
//! | [`data`] | messages, content, usage, models, tools, sessions, compaction |

mod assembler;
mod choice;
pub mod commands;
pub mod data;
pub mod events;
pub mod jsonl;
pub mod maybe;
pub mod number;
mod request_id;
pub mod response;
pub mod schema;
pub mod shared;
pub mod stream;
pub mod ui;
pub mod wire;
mod wording;

pub use assembler::{Assembled, MessageAssembler};
pub use maybe::Maybe;
pub use request_id::RequestId;
pub use shared::Shared;
pub use wire::{Unknown, WireError};

/// The version of Pi whose protocol, session files and configuration this crate follows.
pub const PI_VERSION: &str = "1.6.0";
