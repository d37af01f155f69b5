//! What the daemon reads before and around a run: settings, credentials, models, the system prompt,
//! skills, prompt templates, instruction files.
//!
//! Nothing here reads the process environment by itself: an [`Environment`] is handed in, so that two
//! configurations can live side by side in one process.

pub mod auth;
mod config_value;
mod context_files;
pub mod discovery;
pub mod front_matter;
mod jsonc;
mod library;
pub mod models;
pub mod paths;
pub mod settings;
pub mod shared_file;
pub mod skills;
pub mod system_prompt;
pub mod templates;
pub mod trust;

pub use crate::environment::Environment;
pub use context_files::load_context_files;
pub use library::{ResourceWish, Resources};
pub use paths::Paths;
