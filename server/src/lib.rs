//! The Sampi coding-agent daemon as a library: agent, model providers, tools, sessions, modes.
//!
//! ARCHITECTURE.md at the root of the repository has the code map and the invariants.

pub mod agent;
pub mod assembly;
pub mod branding;
pub mod cli;
mod ecmascript;
pub mod embed;
mod environment;
pub mod export;
pub mod extensions;
mod images;
pub mod llm;
pub mod modes;
pub mod oauth;
mod paths;
pub mod process;
pub mod resources;
pub mod session;
mod system_state;
pub mod tools;

/// A boxed future, for traits that are used as objects.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
