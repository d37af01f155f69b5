//! Asking the model for a summary, with retries.

use std::sync::Arc;
use std::time::Duration;

use sampi_protocol::Shared;
use sampi_protocol::data::{AgentMessage, CompactionReason, Model, StopReason, ThinkingLevel};
use sampi_protocol::events::{
    SessionEvent, SummarizationRetryAttemptStart, SummarizationRetryFinished, SummarizationRetryScheduled,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::compaction::summary_context;
use super::recovery::RetryPlan;
use super::run::grace_over;
use super::{Agent, Inbox, InboxMessage};
use crate::BoxFuture;
use crate::llm::{CacheRetention, Completion, Credentials, Failure, ModelRequest, Provider, RequestOptions};
use crate::resources::models::ModelRegistry;
use crate::session::compaction::{
    FileOperations, Preparation, Summary, SummaryLimits, SummaryReply, SummaryRequest, summarise,
    summarise_branch,
};

/// Updates of the answer that may wait; nobody looks at them.
const UPDATE_CAPACITY: usize = 64;

/// Why there is no summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SummaryFailure {
    Cancelled,
    Failed(String),
}

/// What the summary is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Compaction(CompactionReason),
    BranchSummary,
}

impl Source {
    fn attempt_start(self) -> SummarizationRetryAttemptStart {
        match self {
            Self::Compaction(reason) => {
                SummarizationRetryAttemptStart { source: "compaction".to_owned(), reason: Some(reason) }
            }
            Self::BranchSummary => {
                SummarizationRetryAttemptStart { source: "branchSummary".to_owned(), reason: None }
            }
        }
    }
}

/// Everything that is needed to ask for a summary.
pub(super) struct SummaryTask {
    model: Model,
    thinking: ThinkingLevel,
    provider: Arc<dyn Provider>,
    models: Arc<ModelRegistry>,
    options: RequestOptions,
    retries: RetryPlan,
    /// `branchSummary.reserveTokens`
    branch_reserve: u64,
    source: Source,
    cancel: CancellationToken,
    inbox: mpsc::Sender<Inbox>,
}

impl Agent {
    /// Everything that is needed to ask for a summary with the chosen model.
    pub(super) fn summary_task(
        &self,
        cancel: CancellationToken,
        source: Source,
    ) -> Result<SummaryTask, String> {
        let (model, provider) = self.model_and_provider()?;
        Ok(SummaryTask {
            thinking: model.clamp_thinking(self.thinking),
            provider,
            models: self.models.clone(),
            options: self.request_options(),
            retries: self.recovery.plan(),
            branch_reserve: self.settings.branch_summary.reserve_tokens,
            source,
            cancel,
            inbox: self.inbox_writer.clone(),
            model,
        })
    }
}

impl SummaryTask {
    /// Summarises what was prepared for a compaction.
    pub(super) async fn compaction(
        &self,
        preparation: &Preparation,
        instructions: Option<&str>,
    ) -> Result<Summary, SummaryFailure> {
        let ask = |request: SummaryRequest| -> BoxFuture<'_, Result<SummaryReply, SummaryFailure>> {
            Box::pin(self.ask(request))
        };
        summarise(preparation, instructions, self.limits(), &ask).await
    }

    /// Summarises a branch that is left.
    pub(super) async fn branch(
        &self,
        messages: &[Shared<AgentMessage>],
        files: FileOperations,
        instructions: Option<&str>,
    ) -> Result<Summary, SummaryFailure> {
        let ask = |request: SummaryRequest| -> BoxFuture<'_, Result<SummaryReply, SummaryFailure>> {
            Box::pin(self.ask(request))
        };
        summarise_branch(messages, files, instructions, self.limits(), &ask).await
    }

    fn limits(&self) -> SummaryLimits {
        let reserve_tokens = match self.source {
            Source::BranchSummary => self.branch_reserve,
            Source::Compaction(_) => 0,
        };
        let Model { context_window, max_tokens, .. } = self.model;
        SummaryLimits { context_window, max_tokens, reserve_tokens }
    }

    async fn ask(&self, request: SummaryRequest) -> Result<SummaryReply, SummaryFailure> {
        let mut attempt = 0;
        loop {
            let resolved = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(SummaryFailure::Cancelled),
                resolved = self.models.credentials(&self.model) => resolved,
            };
            let (error, failure) = match resolved {
                Err(error) => (error.to_string(), Some(Failure::of(error.failure_kind()))),
                Ok(credentials) => {
                    let completion = self.send(&request, credentials.clone()).await;
                    let message = completion.message;
                    let error = match message.stop_reason {
                        StopReason::Aborted => return Err(SummaryFailure::Cancelled),
                        StopReason::Error => {
                            let error = message.error_message.as_deref().unwrap_or("the request failed");
                            credentials.redact(error)
                        }
                        _ if message.text().trim().is_empty() => {
                            "the model answered without a summary".to_owned()
                        }
                        _ => {
                            self.finish_retries(attempt).await;
                            return Ok(SummaryReply { text: message.text(), usage: message.usage });
                        }
                    };
                    (error, completion.failure)
                }
            };
            let delay = failure.and_then(|failure| self.retries.delay(attempt, &failure));
            let Some(delay) = delay else {
                self.finish_retries(attempt).await;
                return Err(SummaryFailure::Failed(error));
            };
            attempt += 1;
            if !self.wait(attempt, delay, error).await {
                self.finish_retries(attempt).await;
                return Err(SummaryFailure::Cancelled);
            }
        }
    }

    async fn send(&self, request: &SummaryRequest, credentials: Credentials) -> Completion {
        let mut options = self.options.clone();
        options.max_tokens = Some(request.max_tokens);
        // Nothing is asked twice: to write the transcript into a cache would only cost.
        options.cache_retention = CacheRetention::None;
        let mut request = ModelRequest {
            model: self.model.clone(),
            credentials: Credentials::default(),
            messages: summary_context(request.system, request.prompt.clone()),
            thinking: self.thinking,
            options,
        };
        request.authorise(credentials);
        let (updates, mut received) = mpsc::channel(UPDATE_CAPACITY);
        let response = self.provider.stream(&request, &updates, &self.cancel);
        tokio::pin!(response);
        let deadline = grace_over(&self.cancel);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                biased;
                completion = &mut response => return completion,
                Some(_) = received.recv() => {}
                () = &mut deadline => return aborted(&request),
            }
        }
    }

    async fn wait(&self, attempt: u32, delay: Duration, error_message: String) -> bool {
        self.tell(SummarizationRetryScheduled {
            attempt,
            max_attempts: self.retries.max_retries,
            delay_ms: u64::try_from(delay.as_millis()).unwrap_or(u64::MAX),
            error_message,
        })
        .await;
        let waited = tokio::select! {
            biased;
            () = self.cancel.cancelled() => false,
            () = tokio::time::sleep(delay) => true,
        };
        if waited {
            self.tell(self.source.attempt_start()).await;
        }
        waited
    }

    async fn finish_retries(&self, attempt: u32) {
        if attempt > 0 {
            self.tell(SummarizationRetryFinished {}).await;
        }
    }

    async fn tell(&self, event: impl Into<SessionEvent>) {
        // The agent is gone only when the daemon stops, and then nobody wants to know.
        self.inbox.send(Inbox(InboxMessage::Event(event.into()))).await.ok();
    }
}

fn aborted(request: &ModelRequest) -> Completion {
    let message = sampi_protocol::data::AssistantMessage {
        api: request.model.api.clone(),
        provider: request.model.provider.clone(),
        model: request.model.id.clone(),
        stop_reason: StopReason::Aborted,
        ..Default::default()
    };
    Completion { message, failure: None }
}
