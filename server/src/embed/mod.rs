//! The agent inside another Rust program, without a process and without RPC.
//!
//! ```
//! use sampi_server::embed::{AgentSession, EmbedError};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), EmbedError> {
//! let session = AgentSession::builder()
//!     .model("demo/demo") // offline; leave it out to use the user's own
//!     .in_memory()
//!     .build()
//!     .await?;
//! let answer = session.prompt("What is in this folder?").await?;
//! println!("{}", answer.text());
//! session.dispose().await;
//! # Ok(())
//! # }
//! ```
//!
//! [`AgentSession`] is a handle of one conversation: clone it, share it, call it from many tasks. A task of its
//! own drives the agent; it ends with [`AgentSession::dispose`], or in the background once the last handle is
//! dropped. [`AgentSessionBuilder`] takes what the command line takes and lets each boundary be replaced: models
//! and credentials, settings, sessions, resources, tools. [`AgentSessionRuntime`] replaces the session that is
//! active: a new one, another file, a fork, an import.
//!
//! What holds:
//!
//! - A prompt resolves once its run has settled, retries included. Dropping its future abandons the wait; the run
//!   goes on.
//! - [`AgentSession::subscribe`] hears everything from the call on. A slow reader never holds the agent up: while it
//!   is behind, what is new of one message waits as one [`MessageProgress`], and when more than [`EVENT_CAPACITY`]
//!   events wait, the oldest go and [`Event::Lagged`] says how many.
//! - Every method fails with [`EmbedError::Disposed`] once the session is disposed or replaced.
//! - The builder must be used, and lives, in a Tokio runtime with its drivers enabled.

mod builder;
mod driver;
mod events;
mod message;
mod prompt;
mod queue;
mod runtime;
mod session;

pub use builder::AgentSessionBuilder;
pub use events::Event;
pub use message::MessageProgress;
pub use prompt::{Prompt, PromptOutcome};
pub use queue::{EVENT_CAPACITY, Subscription};
pub use runtime::AgentSessionRuntime;
pub use session::AgentSession;

use crate::agent::AgentError;
use crate::assembly::StartError;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The session could not be made.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The agent refuses it, or could not do it.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The session is disposed, or another one has taken its place.
    #[error("the session is disposed")]
    Disposed,
}
