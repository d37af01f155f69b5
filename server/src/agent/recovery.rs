//! What happens by itself after an answer that failed or was cut off.

use std::time::Duration;

use sampi_protocol::data::{EntryId, StopReason};
use sampi_protocol::events::{AutoRetryEnd, AutoRetryStart, EntryAppended};
use tokio::task::JoinHandle;

use super::{Agent, Inbox, InboxMessage};
use crate::llm::Failure;
use crate::resources::settings::Settings;
use crate::session::NewEntry;

/// The state of retries.
pub(super) struct Recovery {
    pub(super) enabled: bool,
    plan: RetryPlan,
    attempt: u32,
    timer: Option<JoinHandle<()>>,
    /// True when this run has already tried to recover from a context that is too long.
    pub(super) overflow_tried: bool,
    /// Why the run must not go on.
    pub(super) broken: Option<String>,
}

impl Recovery {
    pub(super) fn new(settings: &Settings) -> Self {
        let retry = settings.retry;
        Self {
            enabled: retry.enabled,
            plan: RetryPlan {
                max_retries: retry.max_retries,
                base_delay: retry.base_delay,
                max_delay: retry.max_delay,
                max_requested_delay: retry.provider.max_retry_delay,
            },
            attempt: 0,
            timer: None,
            overflow_tried: false,
            broken: None,
        }
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.timer.is_some()
    }

    pub(super) fn reset(&mut self) {
        self.attempt = 0;
        self.overflow_tried = false;
        self.broken = None;
    }

    /// How a failed request is sent again.
    pub(super) fn plan(&self) -> RetryPlan {
        RetryPlan { max_retries: if self.enabled { self.plan.max_retries } else { 0 }, ..self.plan }
    }
}

/// How often and how fast a failed request is sent again.
#[derive(Debug, Clone, Copy)]
pub(super) struct RetryPlan {
    pub(super) max_retries: u32,
    base_delay: Duration,
    max_delay: Duration,
    /// The longest wait that a provider may ask for; `None` for any.
    max_requested_delay: Option<Duration>,
}

impl RetryPlan {
    /// How long to wait before the next attempt, after so many of them; `None` when there is none.
    pub(super) fn delay(&self, attempts: u32, failure: &Failure) -> Option<Duration> {
        if attempts >= self.max_retries || !failure.kind.is_retryable() {
            return None;
        }
        let backoff = self.base_delay.saturating_mul(2u32.saturating_pow(attempts)).min(self.max_delay);
        match (failure.retry_after, self.max_requested_delay) {
            (Some(asked), Some(most)) if asked > most => None,
            (Some(asked), _) => Some(asked.max(backoff)),
            (None, _) => Some(backoff),
        }
    }
}

impl Agent {
    /// Ends the wait before a retry, and with it the retrying.
    pub fn abort_retry(&mut self) {
        if self.recovery.is_waiting() {
            self.end_retry_wait();
        }
    }

    /// An answer came: if it is one, the retrying was a success.
    pub(super) fn note_answer_for_retry(&mut self) {
        let failed = self.run.as_ref().and_then(|run| run.last.as_ref()).is_none_or(|last| {
            last.message
                .as_assistant()
                .is_none_or(|answer| matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted))
        });
        if !failed && self.recovery.attempt > 0 {
            let attempt = std::mem::take(&mut self.recovery.attempt);
            self.emit(AutoRetryEnd { success: true, attempt, final_error: None });
        }
    }

    pub(super) fn will_retry(&self) -> bool {
        self.retry_delay().is_some()
    }

    /// How long to wait before the next attempt; `None` when there is none.
    fn retry_delay(&self) -> Option<Duration> {
        let failure = self.run.as_ref()?.last.as_ref()?.failure.as_ref()?;
        if self.recovery.broken.is_some() {
            return None;
        }
        self.recovery.plan().delay(self.recovery.attempt, failure)
    }

    pub(super) fn wait_for_retry(&mut self) {
        let (Some(delay), Some(run)) = (self.retry_delay(), &self.run) else {
            self.settle();
            return;
        };
        let id = run.id;
        self.recovery.attempt += 1;
        self.emit(AutoRetryStart {
            attempt: self.recovery.attempt,
            max_attempts: self.recovery.plan.max_retries,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            error_message: self.last_error(),
        });
        self.leave_out_last_answer();
        let inbox = self.inbox_writer.clone();
        self.recovery.timer = Some(tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            inbox.send(Inbox(InboxMessage::RetryDue { run: id })).await.ok();
        }));
    }

    pub(super) fn handle_retry_due(&mut self, id: u64) {
        if self.recovery.timer.is_none() || self.run.as_ref().is_none_or(|run| run.id != id) {
            return;
        }
        self.recovery.timer = None;
        self.restart_run();
    }

    /// Ends the wait before a retry; the run settles.
    pub(super) fn end_retry_wait(&mut self) {
        if let Some(timer) = self.recovery.timer.take() {
            timer.abort();
        }
        let attempt = std::mem::take(&mut self.recovery.attempt);
        self.emit(AutoRetryEnd { success: false, attempt, final_error: Some("Retry cancelled".to_owned()) });
        self.settle();
    }

    /// The last attempt failed: says so.
    pub(super) fn finish_retries(&mut self) {
        if self.recovery.attempt > 0 {
            let attempt = std::mem::take(&mut self.recovery.attempt);
            let final_error = Some(self.last_error());
            self.emit(AutoRetryEnd { success: false, attempt, final_error });
        }
    }

    /// Keeps the last answer in the session and takes it out of the model's context.
    fn leave_out_last_answer(&mut self) {
        let entry = self.run.as_ref().and_then(|run| run.last.as_ref()).and_then(|last| last.entry.clone());
        if let Some(target) = entry {
            self.leave_out(target);
        }
    }

    pub(super) fn leave_out(&mut self, target: EntryId) {
        match self.append(NewEntry::ContextEdit { target_id: target, replacement: None }) {
            Ok(entry) => self.emit(EntryAppended { entry }),
            Err(error) => {
                tracing::error!(%error, "a failed answer could not be taken out of the context");
                self.recovery.broken.get_or_insert(error.to_string());
            }
        }
    }

    fn last_error(&self) -> String {
        let last = self.run.as_ref().and_then(|run| run.last.as_ref());
        last.and_then(|last| last.message.as_assistant())
            .and_then(|answer| answer.error_message.clone())
            .unwrap_or_else(|| "the run ended without an answer".to_owned())
    }
}
