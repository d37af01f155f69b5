//! Summing up a run.

use sampi_protocol::Shared;
use sampi_protocol::commands::Disposition;
use sampi_protocol::data::{AgentMessage, AssistantMessage, ContentBlock, StopReason, Usage};

use super::RunOutcome;

/// The messages of a run so far.
#[derive(Debug, Default)]
pub(super) struct Collected {
    messages: Vec<Shared<AgentMessage>>,
}

impl Collected {
    pub(super) fn add(&mut self, message: &Shared<AgentMessage>) {
        self.messages.push(message.clone());
    }

    /// The outcome of a run that settled; `aborted` is what `agent_settled` says.
    pub(super) fn into_outcome(self, disposition: Disposition, aborted: Aborted) -> RunOutcome {
        let mut usage = Usage::default();
        for message in &self.messages {
            match &**message {
                AgentMessage::Assistant(answer) => add_usage(&mut usage, &answer.usage),
                AgentMessage::ToolResult(result) => {
                    result.usage.iter().for_each(|used| add_usage(&mut usage, used));
                }
                _ => {}
            }
        }
        let answers = || self.messages.iter().rev().filter_map(|message| message.as_assistant());
        let last = answers().next();
        let stop_reason = last.map(|answer| answer.stop_reason.clone());
        RunOutcome {
            disposition,
            text: answers().find(|answer| has_text(answer)).map(AssistantMessage::text).unwrap_or_default(),
            usage,
            aborted: aborted.0 || stop_reason == Some(StopReason::Aborted),
            error: last.filter(|answer| answer.stop_reason == StopReason::Error).map(|answer| {
                answer.error_message.clone().unwrap_or_else(|| "the model's answer failed".to_owned())
            }),
            stop_reason,
            messages: self.messages,
        }
    }
}

/// What `agent_settled` says about an abort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Aborted(pub(super) bool);

fn has_text(answer: &AssistantMessage) -> bool {
    answer.content.iter().filter_map(ContentBlock::as_text).any(|text| !text.is_empty())
}

fn add_usage(sum: &mut Usage, usage: &Usage) {
    let add = |sum: &mut u64, value: u64| *sum = sum.saturating_add(value);
    let add_optional = |sum: &mut Option<u64>, value: Option<u64>| {
        if let Some(value) = value {
            *sum = Some(sum.unwrap_or(0).saturating_add(value));
        }
    };
    add(&mut sum.input, usage.input);
    add(&mut sum.output, usage.output);
    add(&mut sum.cache_read, usage.cache_read);
    add(&mut sum.cache_write, usage.cache_write);
    add_optional(&mut sum.cache_write1h, usage.cache_write1h);
    add_optional(&mut sum.reasoning, usage.reasoning);
    add(&mut sum.total_tokens, usage.total_tokens);
    sum.cost.input += usage.cost.input;
    sum.cost.output += usage.cost.output;
    sum.cost.cache_read += usage.cost.cache_read;
    sum.cost.cache_write += usage.cost.cache_write;
    sum.cost.total += usage.cost.total;
}
