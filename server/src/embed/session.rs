//! The handle of a session.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use sampi_protocol::Shared;
use sampi_protocol::commands::{
    ClearedQueue, Disposition, ListSessions, Navigated, SessionList, SessionState, SessionStats, SlashCommand,
};
use sampi_protocol::data::{AgentMessage, CompactionResult, EntryId, Model, SessionId, ThinkingLevel};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::driver::{Command, Envelope};
use super::events::Hub;
use super::prompt::{Prompt, PromptOutcome};
use super::queue::Subscription;
use super::{AgentSessionBuilder, EmbedError};
use crate::agent::{Agent, AgentError, Navigation, Outcome, PromptMode, Ticket};

/// One conversation: its model and tools, its queues, the run that is under way. Cheap to clone.
#[derive(Clone)]
pub struct AgentSession(Arc<Link>);

/// What the handles of one session share.
struct Link {
    commands: mpsc::Sender<Envelope>,
    generation: u64,
    hub: Arc<Hub>,
    stop: CancellationToken,
    /// Stops the session with the last handle.
    _stop_at_last: DropGuard,
}

impl AgentSession {
    /// A builder with the defaults: the process's working directory and environment, discovered resources,
    /// stored settings, configured credentials, a new session in a file.
    pub fn builder() -> AgentSessionBuilder {
        AgentSessionBuilder::default()
    }

    pub(super) fn new(
        commands: mpsc::Sender<Envelope>,
        generation: u64,
        hub: Arc<Hub>,
        stop: CancellationToken,
    ) -> Self {
        let stop_at_last = stop.clone().drop_guard();
        Self(Arc::new(Link { commands, generation, hub, stop, _stop_at_last: stop_at_last }))
    }

    /// Sends a prompt and waits until its run has settled, automatic retries included. One that is queued, or that
    /// an extension handles, resolves at once.
    ///
    /// During a run the prompt must say what to do ([`Prompt::during_run`]); otherwise it is refused as busy. That
    /// the model failed is no error here: [`PromptOutcome::error`] tells.
    pub async fn prompt(&self, prompt: impl Into<Prompt>) -> Result<PromptOutcome, EmbedError> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Prompt(prompt.into(), reply)).await?;
        Ok(answer.await.map_err(|_| EmbedError::Disposed)??)
    }

    /// Queues a message that is delivered before the next request to the model.
    pub async fn steer(&self, message: impl Into<Prompt>) -> Result<Disposition, EmbedError> {
        self.queue(message.into(), PromptMode::Steer).await
    }

    /// Queues a message that is delivered once the agent would stop.
    pub async fn follow_up(&self, message: impl Into<Prompt>) -> Result<Disposition, EmbedError> {
        self.queue(message.into(), PromptMode::FollowUp).await
    }

    /// Takes all queued messages out and gives their texts back.
    pub async fn clear_queue(&self) -> Result<ClearedQueue, EmbedError> {
        self.now(Agent::clear_queue).await
    }

    /// Stops what is under way (a run, a compaction, a summary) and waits until the session is idle.
    pub async fn abort(&self) -> Result<(), EmbedError> {
        self.later(|agent, ticket| agent.abort(ticket)).await?;
        Ok(())
    }

    /// Waits until nothing is under way, without stopping it.
    pub async fn wait_for_idle(&self) -> Result<(), EmbedError> {
        let (reply, idle) = oneshot::channel();
        self.send(Command::WaitForIdle(reply)).await?;
        idle.await.map_err(|_| EmbedError::Disposed)
    }

    /// Hears what happens from now on.
    pub fn subscribe(&self) -> Subscription {
        self.0.hub.subscribe()
    }

    /// The messages of the context, as the model sees them.
    pub async fn messages(&self) -> Result<Vec<Shared<AgentMessage>>, EmbedError> {
        self.now(Agent::messages).await
    }

    /// The text of the last assistant message that has any.
    pub async fn last_assistant_text(&self) -> Result<Option<String>, EmbedError> {
        self.now(Agent::last_assistant_text).await
    }

    /// Model, queues, file and the like at one moment.
    pub async fn state(&self) -> Result<SessionState, EmbedError> {
        self.now(|agent| agent.state()).await
    }

    /// The chosen model.
    pub async fn model(&self) -> Result<Option<Model>, EmbedError> {
        self.now(|agent| agent.model().cloned()).await
    }

    /// The models that have credentials.
    pub async fn available_models(&self) -> Result<Vec<Model>, EmbedError> {
        self.now(|agent| agent.available_models()).await
    }

    /// Chooses a model; the thinking level is clamped to what it supports.
    pub async fn set_model(&self, provider: &str, id: &str) -> Result<Model, EmbedError> {
        let (provider, id) = (provider.to_owned(), id.to_owned());
        self.try_now(move |agent| agent.set_model(&provider, &id)).await
    }

    /// The thinking level in force.
    pub async fn thinking_level(&self) -> Result<ThinkingLevel, EmbedError> {
        self.now(|agent| agent.thinking_level()).await
    }

    /// Sets the thinking level, clamped to what the model supports; gives back the one in force.
    pub async fn set_thinking_level(&self, level: ThinkingLevel) -> Result<ThinkingLevel, EmbedError> {
        self.try_now(move |agent| {
            agent.set_thinking_level(level)?;
            Ok(agent.thinking_level())
        })
        .await
    }

    /// Turns automatic compaction on or off, for good unless settings are in memory.
    pub async fn set_auto_compaction(&self, enabled: bool) -> Result<(), EmbedError> {
        self.now(move |agent| agent.set_auto_compaction(enabled)).await
    }

    /// Turns automatic retry on or off, for good unless settings are in memory.
    pub async fn set_auto_retry(&self, enabled: bool) -> Result<(), EmbedError> {
        self.now(move |agent| agent.set_auto_retry(enabled)).await
    }

    /// The system prompt as the next request has it, changes included that the model has not been sent yet.
    pub async fn system_prompt(&self) -> Result<String, EmbedError> {
        self.now(|agent| agent.system_prompt()).await
    }

    /// The names of the tools that the model may call.
    pub async fn active_tools(&self) -> Result<Vec<String>, EmbedError> {
        self.now(|agent| agent.active_tools()).await
    }

    /// Chooses the tools that the model may call from its next turn on.
    pub async fn set_active_tools<N: Into<String>>(
        &self,
        names: impl IntoIterator<Item = N>,
    ) -> Result<(), EmbedError> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        self.try_now(move |agent| agent.set_active_tools(&names)).await
    }

    /// The commands that a prompt can name with a slash.
    pub async fn commands(&self) -> Result<Vec<SlashCommand>, EmbedError> {
        self.now(|agent| agent.commands().commands).await
    }

    /// The working directory.
    pub async fn cwd(&self) -> Result<PathBuf, EmbedError> {
        self.now(|agent| agent.session().cwd().to_owned()).await
    }

    /// The session's id.
    pub async fn session_id(&self) -> Result<SessionId, EmbedError> {
        self.now(|agent| agent.session().id().clone()).await
    }

    /// The session's file, which is there once something was said; `None` when it is kept in memory.
    pub async fn session_file(&self) -> Result<Option<PathBuf>, EmbedError> {
        self.now(|agent| agent.session().file().map(ToOwned::to_owned)).await
    }

    /// Sets the session's display name.
    pub async fn set_session_name(&self, name: &str) -> Result<(), EmbedError> {
        let name = name.to_owned();
        self.try_now(move |agent| agent.set_session_name(&name)).await
    }

    /// Totals over the whole session.
    pub async fn stats(&self) -> Result<SessionStats, EmbedError> {
        self.now(Agent::stats).await
    }

    /// Compacts the conversation. A run that is under way is aborted first.
    pub async fn compact(&self) -> Result<CompactionResult, EmbedError> {
        self.compact_now(None).await
    }

    /// The same, telling the model what the summary should pay attention to.
    pub async fn compact_with(
        &self,
        instructions: impl Into<String>,
    ) -> Result<CompactionResult, EmbedError> {
        self.compact_now(Some(instructions.into())).await
    }

    /// Moves to another point of the session's tree.
    pub async fn navigate(&self, navigation: Navigation) -> Result<Navigated, EmbedError> {
        match self.later(|agent, ticket| agent.navigate(ticket, navigation)).await? {
            Outcome::Navigated(navigated) => Ok(*navigated?),
            _ => Err(EmbedError::Disposed),
        }
    }

    /// The messages of the user that a session can be forked from, with their texts.
    pub async fn fork_points(&self) -> Result<Vec<(EntryId, String)>, EmbedError> {
        self.now(|agent| agent.session().fork_points()).await
    }

    /// Lists sessions on disk.
    pub async fn list_sessions(&self, wish: ListSessions) -> Result<SessionList, EmbedError> {
        match self.later(|agent, ticket| agent.list_sessions(ticket, wish)).await? {
            Outcome::Listed(listed) => Ok(listed?),
            _ => Err(EmbedError::Disposed),
        }
    }

    /// What is wrong with the configuration and does no harm, one line each.
    pub async fn warnings(&self) -> Result<Vec<String>, EmbedError> {
        self.now(|agent| agent.warnings().to_vec()).await
    }

    /// Stops what is under way and ends the session: subscriptions end, every handle is disposed. Returns when all
    /// of it is over. Once is enough; dropping the last handle does the same in the background.
    pub async fn dispose(&self) {
        self.0.stop.cancel();
        self.0.hub.ended().await;
    }

    pub(super) async fn send(&self, command: Command) -> Result<(), EmbedError> {
        let envelope = Envelope { generation: self.0.generation, command };
        self.0.commands.send(envelope).await.map_err(|_| EmbedError::Disposed)
    }

    async fn now<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Agent) -> T + Send + 'static,
    ) -> Result<T, EmbedError> {
        let (reply, answer) = oneshot::channel();
        // Who asked may be gone.
        self.send(Command::Now(Box::new(move |agent| drop(reply.send(work(agent)))))).await?;
        answer.await.map_err(|_| EmbedError::Disposed)
    }

    async fn try_now<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Agent) -> Result<T, AgentError> + Send + 'static,
    ) -> Result<T, EmbedError> {
        Ok(self.now(work).await??)
    }

    async fn later(
        &self,
        work: impl FnOnce(&mut Agent, Ticket) + Send + 'static,
    ) -> Result<Outcome, EmbedError> {
        let (reply, outcome) = oneshot::channel();
        self.send(Command::Later(Box::new(work), reply)).await?;
        outcome.await.map_err(|_| EmbedError::Disposed)
    }

    async fn queue(&self, message: Prompt, mode: PromptMode) -> Result<Disposition, EmbedError> {
        match self.later(move |agent, ticket| agent.submit(ticket, message.into_input(), mode)).await? {
            Outcome::Accepted(accepted) => Ok(accepted?),
            _ => Err(EmbedError::Disposed),
        }
    }

    async fn compact_now(&self, instructions: Option<String>) -> Result<CompactionResult, EmbedError> {
        match self.later(|agent, ticket| agent.compact(ticket, instructions)).await? {
            Outcome::Compacted(compacted) => Ok(compacted?),
            _ => Err(EmbedError::Disposed),
        }
    }
}

impl fmt::Debug for AgentSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSession").field("generation", &self.0.generation).finish_non_exhaustive()
    }
}
