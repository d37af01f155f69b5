//! Compaction: the older part of the conversation becomes a summary.
//!
//! The logic is here, the model is not: whoever calls gives a function that answers one request for a
//! summary.

mod cut;
pub mod estimate;
mod files;
mod prompts;
mod transcript_text;

use sampi_protocol::Shared;
use sampi_protocol::data::{AgentMessage, CompactionEntry, SessionEntry, Usage};
use serde_json::Value;

pub use cut::{CutInput, Preparation, prepare};
use estimate::estimate_text;
pub use files::FileOperations;

use super::Session;
use super::index::Kind;
use crate::BoxFuture;

/// The part of the context window that the transcript of one request may take, in percent.
const TRANSCRIPT_SHARE: u64 = 60;

/// The fewest tokens that a transcript may take, whatever the model's window.
const SMALLEST_TRANSCRIPT: u64 = 1000;

/// The fewest tokens that a summary may take.
const SMALLEST_SUMMARY: u64 = 256;

/// One request for a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryRequest {
    /// The system prompt.
    pub system: &'static str,
    /// The user's message.
    pub prompt: String,
    /// The most output tokens.
    pub max_tokens: u64,
}

/// The answer to one request.
#[derive(Debug, Clone, PartialEq)]
pub struct SummaryReply {
    /// The text.
    pub text: String,
    /// What it took.
    pub usage: Usage,
}

/// Answers requests for summaries.
pub type Summariser<'a, E> =
    dyn Fn(SummaryRequest) -> BoxFuture<'a, Result<SummaryReply, E>> + Send + Sync + 'a;

/// The limits of the model that summarises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SummaryLimits {
    /// Its context window in tokens.
    pub context_window: u64,
    /// Its largest output in tokens.
    pub max_tokens: u64,
    /// Tokens of the window that the transcript leaves free, as far as three quarters of the window allow.
    pub reserve_tokens: u64,
}

/// A summary, with what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The text, file lists included.
    pub text: String,
    /// The usage of all requests.
    pub usage: Usage,
    /// The details for the entry.
    pub details: Value,
}

/// Summarises what was prepared.
pub async fn summarise<E>(
    preparation: &Preparation,
    instructions: Option<&str>,
    limits: SummaryLimits,
    ask: &Summariser<'_, E>,
) -> Result<Summary, E> {
    let mut usage = Usage::default();
    let mut text = preparation.previous_summary.clone();
    for chunk in chunks(&preparation.history, limits) {
        let prompt = prompts::history(&chunk, text.as_deref(), instructions);
        text = Some(answer(prompt, limits, &mut usage, ask).await?);
    }
    if !preparation.span_start.is_empty() {
        let mut start = String::new();
        for chunk in chunks(&preparation.span_start, limits) {
            let prompt = prompts::span_start(&chunk, instructions);
            let part = answer(prompt, limits, &mut usage, ask).await?;
            start = if start.is_empty() { part } else { format!("{start}\n\n{part}") };
        }
        text = Some(match text {
            Some(text) => format!("{text}\n\n---\n\n# The current request, from its beginning\n\n{start}"),
            None => start,
        });
    }
    let text = text.unwrap_or_default() + &preparation.files.text();
    Ok(Summary { text, usage, details: preparation.files.details() })
}

/// Summarises a branch that is left. `files` are those of the summaries in it.
pub async fn summarise_branch<E>(
    messages: &[Shared<AgentMessage>],
    mut files: FileOperations,
    instructions: Option<&str>,
    limits: SummaryLimits,
    ask: &Summariser<'_, E>,
) -> Result<Summary, E> {
    messages.iter().for_each(|message| files.note(message));
    let mut usage = Usage::default();
    // What does not fit the model's window is the oldest part.
    let transcript = newest(messages, limits);
    let text = answer(prompts::branch(&transcript, instructions), limits, &mut usage, ask).await?;
    Ok(Summary { text: text + &files.text(), usage, details: files.details() })
}

async fn answer<E>(
    prompt: String,
    limits: SummaryLimits,
    usage: &mut Usage,
    ask: &Summariser<'_, E>,
) -> Result<String, E> {
    let taken = estimate_text(prompt.len() + prompts::SYSTEM.len());
    let room = limits.context_window.saturating_sub(taken).max(SMALLEST_SUMMARY);
    let max_tokens = if limits.max_tokens == 0 { room } else { limits.max_tokens.min(room) };
    let reply = ask(SummaryRequest { system: prompts::SYSTEM, prompt, max_tokens }).await?;
    add_usage(usage, &reply.usage);
    Ok(reply.text.trim().to_owned())
}

/// The tokens of a transcript that one request may take.
fn transcript_budget(limits: SummaryLimits) -> u64 {
    let window = limits.context_window;
    let unreserved = window.saturating_sub(limits.reserve_tokens).max(window / 4);
    (window * TRANSCRIPT_SHARE / 100).min(unreserved).max(SMALLEST_TRANSCRIPT)
}

/// The transcript of as many of the last messages as one request may take.
fn newest(messages: &[Shared<AgentMessage>], limits: SummaryLimits) -> String {
    let budget = transcript_budget(limits);
    let mut kept: Vec<String> = Vec::new();
    let mut length = 0;
    'messages: for text in messages.iter().rev().filter_map(|message| transcript_text::message_text(message))
    {
        for piece in pieces(&text, budget).into_iter().rev() {
            if !kept.is_empty() && estimate_text(length + piece.len()) > budget {
                break 'messages;
            }
            length += piece.len();
            kept.push(piece.to_owned());
        }
    }
    kept.reverse();
    kept.join("\n\n")
}

/// Transcripts of at most the share of the window that one request may take, oldest first.
fn chunks(messages: &[Shared<AgentMessage>], limits: SummaryLimits) -> Vec<String> {
    let budget = transcript_budget(limits);
    let mut chunks: Vec<String> = Vec::new();
    for text in messages.iter().filter_map(|message| transcript_text::message_text(message)) {
        for piece in pieces(&text, budget) {
            match chunks.last_mut() {
                Some(chunk) if estimate_text(chunk.len() + piece.len()) <= budget => {
                    chunk.push_str("\n\n");
                    chunk.push_str(piece);
                }
                _ => chunks.push(piece.to_owned()),
            }
        }
    }
    chunks
}

/// Cuts one message that is longer than the budget.
fn pieces(mut text: &str, budget: u64) -> Vec<&str> {
    let most = usize::try_from(budget).unwrap_or(usize::MAX).saturating_mul(4);
    let mut pieces = Vec::new();
    while text.len() > most {
        let (piece, rest) = text.split_at(text.floor_char_boundary(most));
        pieces.push(piece);
        text = rest;
    }
    pieces.push(text);
    pieces
}

/// Adds the tokens and costs of one usage to another.
pub fn add_usage(total: &mut Usage, usage: &Usage) {
    let add = |total: &mut Option<u64>, part: Option<u64>| {
        if let Some(part) = part {
            *total = Some(total.unwrap_or(0) + part);
        }
    };
    total.input += usage.input;
    total.output += usage.output;
    total.cache_read += usage.cache_read;
    total.cache_write += usage.cache_write;
    add(&mut total.cache_write1h, usage.cache_write1h);
    add(&mut total.reasoning, usage.reasoning);
    total.total_tokens += usage.total_tokens;
    total.cost.input += usage.cost.input;
    total.cost.output += usage.cost.output;
    total.cost.cache_read += usage.cost.cache_read;
    total.cost.cache_write += usage.cost.cache_write;
    total.cost.total += usage.cost.total;
}

impl Session {
    /// The last compaction of the active branch.
    pub fn last_compaction(&self) -> Option<CompactionEntry> {
        let path = self.index.path(self.leaf);
        let compaction = path.into_iter().rev().find_map(|position| {
            let node = self.index.node(position)?;
            (node.kind == Kind::Compaction).then(|| node.id.to_string())
        })?;
        match &*self.entry(&compaction)? {
            SessionEntry::CompactionEntry(entry) => Some(entry.clone()),
            _ => None,
        }
    }
}
