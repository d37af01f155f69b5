//! Replacing the session that is active.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use sampi_protocol::data::EntryId;
use tokio::sync::oneshot;

use super::EmbedError;
use super::driver::{Command, Slot};
use super::session::AgentSession;
use crate::agent::{SessionChange, SessionChanged};

/// Holds the session that is active and puts others in its place.
///
/// A replacement stops what is under way, loads settings, models, resources and tools anew for the working
/// directory of the next session, and makes it the active one. The handles of the session before are disposed then
/// and their subscriptions end: take [`session`](Self::session) again and subscribe anew. When the replacement fails
/// or an extension prevents it, the session stays as it was. Relative paths start at the working directory of the
/// process.
#[derive(Debug)]
pub struct AgentSessionRuntime {
    active: Slot,
}

impl AgentSessionRuntime {
    pub(super) fn new(session: AgentSession) -> Self {
        Self { active: Arc::new(Mutex::new(session)) }
    }

    /// A handle of the session that is active.
    pub fn session(&self) -> AgentSession {
        self.active.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts an empty session in the same working directory.
    pub async fn new_session(&self) -> Result<SessionChanged, EmbedError> {
        self.replace(SessionChange::New { parent: None }).await
    }

    /// Opens the session in this file.
    pub async fn switch_session(&self, path: impl Into<PathBuf>) -> Result<SessionChanged, EmbedError> {
        self.replace(SessionChange::Switch { path: path.into() }).await
    }

    /// Makes a session from what came before a message of the user, whose text is given back.
    pub async fn fork(&self, entry: EntryId) -> Result<SessionChanged, EmbedError> {
        self.replace(SessionChange::Fork { entry }).await
    }

    /// Makes a session from the active branch.
    pub async fn clone_session(&self) -> Result<SessionChanged, EmbedError> {
        self.replace(SessionChange::Clone).await
    }

    /// Copies this session file to where the sessions of its working directory are kept, and opens the copy.
    pub async fn import_jsonl(&self, path: impl Into<PathBuf>) -> Result<SessionChanged, EmbedError> {
        self.replace(SessionChange::Import { path: path.into() }).await
    }

    /// Disposes the session that is active.
    pub async fn dispose(&self) {
        self.session().dispose().await;
    }

    async fn replace(&self, change: SessionChange) -> Result<SessionChanged, EmbedError> {
        let (reply, answer) = oneshot::channel();
        self.session().send(Command::Replace(change, Arc::clone(&self.active), reply)).await?;
        Ok(answer.await.map_err(|_| EmbedError::Disposed)??)
    }
}
