//! What the daemon reads before and around a run: settings, credentials, models, the system prompt.
//!
//! Nothing here reads the process environment by itself: an [`Environment`] is handed in, so that two
//! configurations can live side by side in one process.

pub mod auth;
mod config_value;
mod jsonc;
pub mod models;
pub mod paths;
pub mod settings;
pub mod shared_file;
pub mod system_prompt;

pub use paths::{Environment, Paths};
