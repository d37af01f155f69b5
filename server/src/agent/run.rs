//! The run task: turn after turn until the agent says stop.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use sampi_protocol::Shared;
use sampi_protocol::data::{AgentMessage, AssistantMessage, StopReason};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::link::{GivenUp, RunLink, RunMessage, TurnPlan};
use super::now_millis;
use super::tool_calls::run_tool_calls;
use crate::extensions::{Extension, Input};
use crate::llm::{Completion, Failure, FailureKind, StreamUpdate};

/// Updates of a response that may wait before the provider is slowed down.
const UPDATE_CAPACITY: usize = 64;

/// How long a provider or a tool may take to obey its cancellation before it is left behind.
const CANCEL_GRACE: Duration = Duration::from_millis(1000);

/// What a run begins with.
pub(super) enum First {
    /// This turn, which has begun.
    Turn(Box<TurnPlan>),
    /// The first turn begins once an extension has seen the input.
    AfterExtension(Input),
}

/// Runs until the agent says stop; always ends with `Finished`, also after a panic.
pub(super) async fn run_agent(
    link: RunLink,
    extension: Arc<dyn Extension>,
    first: First,
    cancel: CancellationToken,
) {
    let turns = std::panic::AssertUnwindSafe(run_turns(&link, extension.as_ref(), first, &cancel));
    let broken = match turns.catch_unwind().await {
        Ok(Ok(())) => None,
        Ok(Err(GivenUp)) => return,
        Err(panic) => Some(panic_text(panic.as_ref())),
    };
    // A send that fails means that the agent is gone, and with it whoever would want to know.
    link.send(RunMessage::Finished { broken }).await.ok();
}

async fn run_turns(
    link: &RunLink,
    extension: &dyn Extension,
    first: First,
    cancel: &CancellationToken,
) -> Result<(), GivenUp> {
    let mut plan = match first {
        First::Turn(plan) => plan,
        First::AfterExtension(input) => {
            let messages = extension.before_agent_start(&input).await;
            if !messages.is_empty() {
                link.send(RunMessage::Inject(messages)).await?;
            }
            link.ask(|reply| RunMessage::BeginTurn { reply }).await?
        }
    };
    loop {
        let messages = std::mem::take(&mut plan.request.messages);
        plan.request.messages = extension.context(messages).await;
        let message = answer(link, extension, &mut plan, cancel).await?;
        let Some(assistant) = message.as_assistant() else { return Ok(()) };
        let results = match assistant.stop_reason {
            StopReason::Error | StopReason::Aborted => Vec::new(),
            _ => run_tool_calls(link, extension, &plan, assistant, cancel).await?,
        };
        extension.turn_end(&message).await;
        match link.ask(|reply| RunMessage::EndTurn { message, results, reply }).await? {
            Some(next) => plan = next,
            None => return Ok(()),
        }
    }
}

/// Asks the model and reports its response as it comes.
async fn answer(
    link: &RunLink,
    extension: &dyn Extension,
    plan: &mut TurnPlan,
    cancel: &CancellationToken,
) -> Result<Shared<AgentMessage>, GivenUp> {
    let started_at = std::time::Instant::now();
    let thinking = plan.request.thinking;
    let (updates, mut received) = mpsc::channel(UPDATE_CAPACITY);
    let mut partial: Option<Box<AssistantMessage>> = None;
    let resolved = tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        resolved = plan.models.credentials(&plan.request.model) => Some(resolved),
    };
    let completion = if let Some(Err(error)) = &resolved {
        failed_completion(empty_message(plan), error.failure_kind(), error.to_string())
    } else if let Some(Ok(credentials)) = resolved {
        plan.request.authorise(credentials);
        let request = extension.before_provider_request(plan.request.clone()).await;
        let provider = Arc::clone(&plan.provider);
        let token = cancel.clone();
        let mut response = tokio::spawn(async move { provider.stream(&request, &updates, &token).await });
        let deadline = grace_over(cancel);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                biased;
                update = received.recv(), if !received.is_closed() || !received.is_empty() => {
                    if let Some(update) = update {
                        forward(link, update, &mut partial).await?;
                    }
                }
                ended = &mut response => {
                    // The task may have written its last updates just after the channel was looked at.
                    while let Ok(update) = received.try_recv() {
                        forward(link, update, &mut partial).await?;
                    }
                    break ended.unwrap_or_else(|error| {
                        let text = format!("the provider stopped working: {}", join_text(error));
                        failed_completion(unfinished(partial.as_deref(), plan), FailureKind::Other, text)
                    });
                }
                () = &mut deadline => {
                    response.abort();
                    break aborted_completion(unfinished(partial.as_deref(), plan));
                }
            }
        }
    } else {
        aborted_completion(empty_message(plan))
    };
    let started = partial.is_some();
    extension.after_provider_response(&completion).await;
    let Completion { mut message, failure } = completion;
    message.error_message = message.error_message.map(|text| plan.request.credentials.redact(&text));
    message.thinking_level = Some(thinking.as_str().to_owned());
    message.duration_ms = Some(u64::try_from(started_at.elapsed().as_millis()).unwrap_or(u64::MAX));
    let message = AgentMessage::Assistant(message);
    let content = extension.message_end(&message).await;
    let AgentMessage::Assistant(mut message) = message else { return Err(GivenUp) };
    if let Some(content) = content {
        message.content = content;
    }
    let message = Box::new(message);
    link.ask(|reply| RunMessage::AssistantEnd { message, failure, started, reply }).await
}

async fn forward(
    link: &RunLink,
    update: StreamUpdate,
    partial: &mut Option<Box<AssistantMessage>>,
) -> Result<(), GivenUp> {
    match update {
        StreamUpdate::Start(message) => {
            *partial = Some(message.clone());
            link.send(RunMessage::AssistantStart(message)).await
        }
        StreamUpdate::Event { event, usage } => link.send(RunMessage::Update { event, usage }).await,
    }
}

fn unfinished(partial: Option<&AssistantMessage>, plan: &TurnPlan) -> AssistantMessage {
    partial.cloned().unwrap_or_else(|| empty_message(plan))
}

fn empty_message(plan: &TurnPlan) -> AssistantMessage {
    let model = &plan.request.model;
    AssistantMessage {
        api: model.api.clone(),
        provider: model.provider.clone(),
        model: model.id.clone(),
        timestamp: now_millis(),
        ..AssistantMessage::default()
    }
}

fn aborted_completion(mut message: AssistantMessage) -> Completion {
    message.stop_reason = StopReason::Aborted;
    message.error_message = Some("This operation was aborted".to_owned());
    Completion { message, failure: None }
}

fn failed_completion(mut message: AssistantMessage, kind: FailureKind, text: String) -> Completion {
    message.stop_reason = StopReason::Error;
    message.error_message = Some(text);
    Completion { message, failure: Some(Failure::of(kind)) }
}

fn join_text(error: tokio::task::JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => panic_text(panic.as_ref()),
        Err(error) => error.to_string(),
    }
}

/// Waits until what was cancelled should have ended.
pub(super) async fn grace_over(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(CANCEL_GRACE).await;
}

/// The text of a panic, for a message.
pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a fault without a message".to_owned())
}
