//! Where to cut: what is summarised and what is kept.

use sampi_protocol::Shared;
use sampi_protocol::data::{AgentMessage, EntryId};
use serde_json::Value;

use super::estimate::estimate_tokens;
use super::files::FileOperations;
use crate::session::ContextMessage;

/// What a compaction starts from.
#[derive(Debug, Clone, Copy)]
pub struct CutInput<'a> {
    /// The context, as the model would see it.
    pub context: &'a [ContextMessage],
    /// The answer that was taken out of the context because it failed or was cut off, when it is what
    /// the compaction is to recover from.
    pub omitted_answer: Option<&'a EntryId>,
    /// The details of the compaction before, when it was not an extension's.
    pub previous_details: Option<&'a Value>,
    /// Tokens of recent messages that are kept.
    pub keep_recent_tokens: u64,
}

/// What is to be summarised.
#[derive(Debug, Clone, PartialEq)]
pub struct Preparation {
    /// The first entry that is kept.
    pub first_kept: EntryId,
    /// Whole spans of the conversation.
    pub history: Vec<Shared<AgentMessage>>,
    /// The early part of the span that is cut in two; empty when the cut lies between spans.
    pub span_start: Vec<Shared<AgentMessage>>,
    /// The summary of the compaction before.
    pub previous_summary: Option<String>,
    /// Files that were read and changed so far.
    pub files: FileOperations,
}

/// Finds what to summarise; `None` when there is nothing that may be.
pub fn prepare(input: CutInput<'_>) -> Option<Preparation> {
    let previous_summary = input.context.iter().find_map(|kept| match &*kept.message {
        AgentMessage::CompactionSummary(summary) => Some(summary.summary.clone()),
        _ => None,
    });
    let candidates: Vec<&ContextMessage> = input
        .context
        .iter()
        .filter(|kept| {
            !matches!(&*kept.message, AgentMessage::System(_) | AgentMessage::CompactionSummary(_))
        })
        .collect();
    let crossing = crossing(&candidates, input.keep_recent_tokens)?;
    let is_last = crossing + 1 == candidates.len();
    let (cut, first_kept) = match input.omitted_answer {
        // Even the newest message is over the budget, and it is what the lost answer was given to.
        Some(omitted) if is_last => (candidates.len(), omitted.clone()),
        _ => {
            let cut = cut_point(&candidates, crossing)?;
            (cut, candidates.get(cut)?.entry.clone())
        }
    };
    let span = if candidates.get(cut).is_some_and(|kept| starts_span(&kept.message)) {
        cut
    } else {
        candidates[..cut].iter().rposition(|kept| starts_span(&kept.message)).unwrap_or(0)
    };
    let messages = |range: &[&ContextMessage]| range.iter().map(|kept| kept.message.clone()).collect();
    let (history, span_start): (Vec<_>, Vec<_>) =
        (messages(&candidates[..span]), messages(&candidates[span..cut]));
    if history.is_empty() && span_start.is_empty() {
        return None;
    }
    let mut files = FileOperations::from_details(input.previous_details);
    history.iter().chain(&span_start).for_each(|message| files.note(message));
    Some(Preparation { first_kept, history, span_start, previous_summary, files })
}

/// The newest message with which the recent ones reach the budget.
fn crossing(candidates: &[&ContextMessage], budget: u64) -> Option<usize> {
    let mut tokens = 0;
    candidates.iter().enumerate().rev().find_map(|(at, kept)| {
        tokens += estimate_tokens(&kept.message);
        (tokens >= budget).then_some(at)
    })
}

/// The place of the cut: at or after the crossing, never between a tool call and its result.
fn cut_point(candidates: &[&ContextMessage], crossing: usize) -> Option<usize> {
    let may_cut = |at: &usize| !matches!(&*candidates[*at].message, AgentMessage::ToolResult(_));
    (crossing..candidates.len()).find(may_cut).or_else(|| (0..crossing).rev().find(may_cut))
}

/// True for what a span of the conversation starts with.
fn starts_span(message: &AgentMessage) -> bool {
    matches!(
        message,
        AgentMessage::User(_)
            | AgentMessage::BashExecution(_)
            | AgentMessage::Custom(_)
            | AgentMessage::BranchSummary(_)
    )
}
