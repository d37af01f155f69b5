//! Commands that print keys.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use secrecy::{ExposeSecret, SecretString};
use tokio::sync::OnceCell;

use crate::resources::Environment;
use crate::resources::config_value::{CommandError, run_command};

/// Runs commands of `auth.json` once in the life of the process, as Pi does: a key store asks its
/// person once, also when that failed.
#[derive(Default)]
pub(in crate::resources) struct CommandCache(Mutex<HashMap<String, Arc<OnceCell<CommandResult>>>>);

type CommandResult = Result<SecretString, CommandError>;

impl CommandCache {
    /// The output of the command, which runs at most once.
    pub(in crate::resources) async fn run(
        &self,
        command: &SecretString,
        environment: &Environment,
    ) -> CommandResult {
        let cell = {
            let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(cells.entry(command.expose_secret().to_owned()).or_default())
        };
        cell.get_or_init(|| run_command(command, environment)).await.clone()
    }
}
