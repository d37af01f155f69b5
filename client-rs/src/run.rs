//! Runs: a prompt, what happens until it has settled, and what came of it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::Stream;
use sampi_protocol::Shared;
use sampi_protocol::commands::{Disposition, FollowUp, Prompt, QueuedResult, Steer};
use sampi_protocol::data::{AgentMessage, StopReason, Usage};

use crate::call::Call;
use crate::client::RpcClient;
use crate::error::ClientError;
use crate::events::{EventItem, Subscription};

mod outcome;
mod place;
mod tracker;

pub(crate) use tracker::Tracker;

/// What came of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct RunOutcome {
    /// What became of the prompt. With [`Disposition::Handled`] there was no run and the rest is empty.
    pub disposition: Disposition,
    /// The text of the last answer that has any.
    pub text: String,
    /// The messages that ended during the run, in order: the prompt, answers, tool results. For a queued
    /// prompt they begin with its delivery. Failed attempts that were retried are among them.
    pub messages: Vec<Shared<AgentMessage>>,
    /// Tokens and cost of all answers, failed ones too, and of model work that tools did themselves.
    pub usage: Usage,
    /// Why the last answer ended; `None` without an answer.
    pub stop_reason: Option<StopReason>,
    /// True when the run was aborted.
    pub aborted: bool,
    /// What went wrong: the last answer's error, or that a queued prompt was never delivered.
    pub error: Option<String>,
}

impl RunOutcome {
    /// True when the run neither failed nor was aborted.
    pub fn is_ok(&self) -> bool {
        self.error.is_none() && !self.aborted
    }
}

/// A run that was accepted: a stream of its events, a handle to steer it, and its outcome.
///
/// The stream is bounded like a [`Subscription`] and ends after the run's `agent_settled`. The outcome
/// does not depend on whether the stream is read. Dropping the handle does not stop the run.
#[derive(Debug)]
pub struct Run {
    client: RpcClient,
    tracker: Arc<Tracker>,
    events: Subscription,
    disposition: Disposition,
}

impl Run {
    pub(crate) fn new(client: RpcClient, tracker: Arc<Tracker>, disposition: Disposition) -> Self {
        let events = Subscription::new(Arc::clone(tracker.events()));
        Self { client, tracker, events, disposition }
    }

    /// What became of the prompt.
    pub fn disposition(&self) -> Disposition {
        self.disposition
    }

    /// Waits for the next event; `None` after the last one.
    pub async fn next(&mut self) -> Option<EventItem> {
        self.events.next().await
    }

    /// Waits for the next event and blocks the thread meanwhile. Not for async code.
    pub fn blocking_next(&mut self) -> Option<EventItem> {
        self.events.blocking_next()
    }

    /// Queues a message that is delivered before the next request to the model.
    pub fn steer(&self, message: impl Into<String>) -> Call<QueuedResult> {
        self.client.call(&Steer { message: message.into(), images: Vec::new() })
    }

    /// Queues a message that is delivered once the agent would stop.
    pub fn follow_up(&self, message: impl Into<String>) -> Call<QueuedResult> {
        self.client.call(&FollowUp { message: message.into(), images: Vec::new() })
    }

    /// Stops what is going on in the session. Answered once the session is idle.
    pub fn abort(&self) -> Call<()> {
        self.client.abort()
    }

    /// Waits until the run has settled. Fails only when the connection ends before.
    pub async fn outcome(&self) -> Result<RunOutcome, ClientError> {
        self.tracker.outcome().await
    }

    /// True once the run has settled or the connection has ended.
    pub fn is_settled(&self) -> bool {
        self.tracker.is_done()
    }

    /// Takes the handle apart, for hosts where one thread reads the events while another waits for the
    /// outcome.
    pub fn split(self) -> (Subscription, RunWaiter) {
        (self.events, RunWaiter { tracker: self.tracker })
    }
}

/// Waits for the outcome of a [`Run`] that was [taken apart](Run::split). Cheap to clone.
#[derive(Debug, Clone)]
pub struct RunWaiter {
    tracker: Arc<Tracker>,
}

impl RunWaiter {
    /// Waits until the run has settled. Fails only when the connection ends before.
    pub async fn outcome(&self) -> Result<RunOutcome, ClientError> {
        self.tracker.outcome().await
    }

    /// True once the run has settled or the connection has ended.
    pub fn is_settled(&self) -> bool {
        self.tracker.is_done()
    }
}

impl Stream for Run {
    type Item = EventItem;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<EventItem>> {
        Pin::new(&mut self.events).poll_next(cx)
    }
}

/// A prompt with this text and nothing else.
pub(crate) fn text_prompt(message: impl Into<String>) -> Prompt {
    Prompt { message: message.into(), ..Prompt::default() }
}
