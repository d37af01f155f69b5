//! The embedded demo model: a provider that answers offline, as a script says. It streams, thinks, calls
//! real tools, is slow, fails and recovers, so that every path of a client can be tried without a key.
#![doc = include_str!("format.md")]

mod choose;
mod script;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sampi_protocol::data::{Model, StopReason, ThinkingContent, Usage};
use tokio_util::sync::CancellationToken;

use super::draft::Draft;
use super::exchange::Fault;
use super::failure::ErrorReport;
use super::{Completion, Failure, FailureKind, ModelRequest, Provider, UpdateSink};
use crate::BoxFuture;
use crate::branding::BRANDING;
use choose::{Choice, argument_text, choose};
use script::{Call, Fail, Step, StepStop};

/// The wire name of the API.
pub const API: &str = "demo";

/// The provider's id.
pub const PROVIDER: &str = "demo";

/// The format of a script, as Markdown.
pub const SCRIPT_FORMAT: &str = include_str!("format.md");

/// Characters of a delta.
const DELTA_SIZE: usize = 12;

/// Steps whose failed tries are remembered; when there are more, all are forgotten.
const MAX_REMEMBERED: usize = 1024;

/// Characters that make up a token, for usage that the script does not give.
const CHARS_PER_TOKEN: u64 = 4;

/// The models: `demo`, and `demo-thinking`, which can think.
pub fn demo_models() -> Vec<Model> {
    let model = |id: &str, name: &str, reasoning| Model {
        id: id.to_owned(),
        name: name.to_owned(),
        api: API.to_owned(),
        provider: PROVIDER.to_owned(),
        reasoning,
        input: vec!["text".to_owned(), "image".to_owned()],
        context_window: 100_000,
        max_tokens: 4096,
        ..Model::default()
    };
    vec![model("demo", "Demo", false), model("demo-thinking", "Demo Thinking", true)]
}

/// The demo model.
#[derive(Debug, Clone)]
pub(crate) struct Scripted {
    script_file: Option<PathBuf>,
    failed_tries: Arc<Mutex<HashMap<u64, u32>>>,
    hasher: RandomState,
}

impl Scripted {
    /// With the script that the environment names, if any.
    pub(crate) fn new() -> Self {
        let file = std::env::var_os(BRANDING.script_variable()).filter(|file| !file.is_empty());
        Self::with_script_file(file.map(PathBuf::from))
    }

    /// With the script of this file.
    pub(crate) fn with_script_file(script_file: Option<PathBuf>) -> Self {
        Self { script_file, failed_tries: Arc::default(), hasher: RandomState::new() }
    }

    /// Counts this try; true when the step's failure applies to it.
    fn fails(&self, request: &ModelRequest, choice: &Choice, fail: &Fail) -> bool {
        let Some(times) = fail.times else { return true };
        let key = self.hasher.hash_one((
            &request.options.session_id,
            choice.since,
            choice.index,
            &fail.message,
            times,
        ));
        let mut tries = self.failed_tries.lock().unwrap_or_else(PoisonError::into_inner);
        if tries.len() >= MAX_REMEMBERED && !tries.contains_key(&key) {
            tries.clear();
        }
        let tried = tries.entry(key).or_default();
        if *tried < times {
            *tried += 1;
            true
        } else {
            tries.remove(&key);
            false
        }
    }
}

impl Default for Scripted {
    fn default() -> Self {
        Self::new()
    }
}

impl Provider for Scripted {
    fn stream<'a>(
        &'a self,
        request: &'a ModelRequest,
        updates: &'a UpdateSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            let mut draft = Draft::new(request);
            let choice = choose(request, self.script_file.as_deref()).await;
            let mut player = Player { request, updates, cancel, draft: &mut draft, step: &choice.step };
            let end = match &choice.step.fail {
                Some(fail) if self.fails(request, &choice, fail) => player.fail(fail).await,
                _ => player.play().await,
            };
            match end {
                Ok(stop) => draft.complete(request, stop, None),
                Err(End::Fault(fault)) => {
                    draft.complete(request, StopReason::Error, Some((fault.text, fault.failure)))
                }
                Err(End::Cancelled) => {
                    draft.end_all();
                    while let Some(update) = draft.next_update() {
                        // A reader that is gone or stuck must not keep an abort from ending.
                        let _ = updates.try_send(update);
                    }
                    draft.message.error_message = Some("Request was aborted".to_owned());
                    draft.complete(request, StopReason::Aborted, None)
                }
            }
        })
    }
}

enum End {
    Cancelled,
    Fault(Fault),
}

struct Player<'a> {
    request: &'a ModelRequest,
    updates: &'a UpdateSink,
    cancel: &'a CancellationToken,
    draft: &'a mut Draft,
    step: &'a Step,
}

impl Player<'_> {
    async fn fail(&mut self, fail: &Fail) -> Result<StopReason, End> {
        self.wait(self.step.first_delay_ms).await?;
        let text = match (fail.message.as_str(), fail.status) {
            ("", Some(status)) => format!("{status}: the script says so"),
            ("", None) => "the script says so".to_owned(),
            (message, Some(status)) => format!("{status}: {message}"),
            (message, None) => message.to_owned(),
        };
        let retry_after = fail.retry_after_ms.map(Duration::from_millis);
        let report = ErrorReport { status: fail.status, text: &text, retry_after, ..ErrorReport::default() };
        let mut failure: Failure = report.classify();
        if let Some(kind) = fail.kind {
            failure.kind = kind;
        }
        Err(End::Fault(Fault { text, failure }))
    }

    async fn play(&mut self) -> Result<StopReason, End> {
        let step = self.step;
        self.wait(step.first_delay_ms).await?;
        let is_empty = step.thinking.is_empty() && step.text.is_empty() && step.tools.is_empty();
        if step.hang && is_empty && step.deltas == 0 {
            return self.hang().await;
        }
        self.draft.start();
        self.draft.set_usage(self.usage());
        self.flush().await?;

        if !step.thinking.is_empty() {
            let signature = Some("demo".to_owned());
            let thinking = ThinkingContent { thinking_signature: signature, ..ThinkingContent::default() };
            let index = self.draft.begin_thinking(thinking);
            self.deltas(index, &step.thinking).await?;
            self.end(index).await?;
        }
        if !step.text.is_empty() || step.deltas > 0 {
            let index = self.draft.begin_text();
            self.deltas(index, &step.text).await?;
            let filler = "x".repeat(self.delta_size());
            for _ in 0..step.deltas {
                self.delta(index, &filler).await?;
            }
            self.end(index).await?;
        }
        for (number, call) in step.tools.iter().enumerate() {
            self.call(number, call).await?;
        }
        if step.cut {
            return Err(End::Fault(Fault::cut("Connection error.: the script cuts the stream")));
        }
        if step.hang {
            return self.hang().await;
        }
        let (stop, raw) = match step.stop_reason {
            Some(StepStop::Length) => (StopReason::Length, "length"),
            Some(StepStop::ToolUse) => (StopReason::ToolUse, "toolUse"),
            None if !step.tools.is_empty() => (StopReason::ToolUse, "toolUse"),
            Some(StepStop::Stop) | None => (StopReason::Stop, "stop"),
        };
        self.draft.message.raw_stop_reason = Some(raw.to_owned());
        Ok(stop)
    }

    async fn call(&mut self, number: usize, call: &Call) -> Result<(), End> {
        let made = || format!("call_{}_{number}", uuid::Uuid::new_v4().simple());
        let id = call.id.clone().unwrap_or_else(made);
        let index = self.draft.begin_tool_call(&id, &call.name);
        self.flush().await?;
        self.deltas(index, &argument_text(call)).await?;
        self.end(index).await
    }

    async fn deltas(&mut self, index: usize, text: &str) -> Result<(), End> {
        let size = self.delta_size();
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.char_indices().nth(size).map_or(rest.len(), |(end, _)| end);
            let (delta, after) = rest.split_at(end);
            self.delta(index, delta).await?;
            rest = after;
        }
        Ok(())
    }

    async fn delta(&mut self, index: usize, delta: &str) -> Result<(), End> {
        self.draft.append(index, delta);
        self.flush().await?;
        self.wait(self.step.delay_ms).await
    }

    async fn end(&mut self, index: usize) -> Result<(), End> {
        self.draft.end(index);
        self.flush().await
    }

    fn delta_size(&self) -> usize {
        self.step.delta_size.unwrap_or(DELTA_SIZE).max(1)
    }

    fn usage(&self) -> Usage {
        match self.step.usage {
            Some(usage) => Usage {
                input: usage.input,
                output: usage.output,
                cache_read: usage.cache_read,
                cache_write: usage.cache_write,
                ..Usage::default()
            },
            None => {
                let calls: usize = self.step.tools.iter().map(|call| argument_text(call).len()).sum();
                let said = self.step.text.len() + self.step.thinking.len() + calls;
                let read =
                    self.request.messages.iter().map(|message| message.json().map_or(0, |j| j.get().len()));
                Usage {
                    input: (read.sum::<usize>() as u64) / CHARS_PER_TOKEN,
                    output: (said as u64) / CHARS_PER_TOKEN,
                    ..Usage::default()
                }
            }
        }
    }

    async fn flush(&mut self) -> Result<(), End> {
        while self.draft.has_updates() {
            // An update is taken when there is room for it: an abort that ends the wait loses none.
            let room = tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(End::Cancelled),
                room = self.updates.reserve() => room.ok(),
            };
            // When nobody reads, the answer itself is still wanted.
            if let (Some(update), Some(room)) = (self.draft.next_update(), room) {
                room.send(update);
            }
        }
        Ok(())
    }

    async fn wait(&self, millis: u64) -> Result<(), End> {
        if millis == 0 {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(End::Cancelled),
            () = tokio::time::sleep(Duration::from_millis(millis)) => Ok(()),
        }
    }

    async fn hang(&self) -> Result<StopReason, End> {
        let idle = async {
            match self.request.options.idle_timeout {
                Some(limit) => {
                    tokio::time::sleep(limit).await;
                    limit
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(End::Cancelled),
            limit = idle => {
                let text = format!(
                    "Connection error.: no data from the provider for {} seconds",
                    limit.as_secs_f64()
                );
                Err(End::Fault(Fault::of_kind(FailureKind::Network, text)))
            }
        }
    }
}

#[cfg(test)]
mod tests;
