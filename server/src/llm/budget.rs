//! How many tokens a request may ask for.

use super::transcript::{AssistantPart, Part, Transcript, Turn};
use super::{ModelRequest, ThinkingBudgets};
use sampi_protocol::data::{AgentMessage, AssistantMessage, StopReason, ThinkingLevel, ToolDefinition};

/// Characters of text that make up a token, on average and on the safe side.
const CHARS_PER_TOKEN: f64 = 3.5;

/// Tokens that an image takes, roughly.
const IMAGE_TOKENS: u64 = 1200;

/// Tokens of the context window that are left unused, as the counts are estimates.
const CONTEXT_MARGIN: u64 = 4096;

/// Output tokens that thinking must leave for the answer.
const ANSWER_TOKENS: u64 = 1024;

/// The answer may always take this much: a context that is really full should be refused by the provider,
/// which starts a compaction, and not end in answers of one word.
const LEAST_OUTPUT: u64 = 1024;

/// The most output tokens to ask for: what was wanted, as far as the model and its context allow.
pub(crate) fn output_limit(request: &ModelRequest, transcript: &Transcript<'_>) -> u64 {
    let model = &request.model;
    let wanted = request.options.max_tokens.unwrap_or(model.max_tokens);
    if model.context_window == 0 {
        return wanted;
    }
    let used = context_tokens(request, transcript).saturating_add(CONTEXT_MARGIN);
    wanted.min(model.context_window.saturating_sub(used).max(LEAST_OUTPUT))
}

/// Claude's output limit and what of it may be thinking, from the limit and the tokens to think.
pub(crate) fn claude_limits(request: &ModelRequest, limit: u64, thinking: u64) -> (u64, u64) {
    let most = request.model.max_tokens;
    // A limit that was asked for is the answer's: thinking comes on top, as far as the model goes.
    let limit = match request.options.max_tokens {
        Some(_) if most > 0 => limit.saturating_add(thinking).min(most),
        Some(_) => limit.saturating_add(thinking),
        None => limit,
    };
    (limit, thinking.min(limit.saturating_sub(ANSWER_TOKENS)))
}

/// The tokens that a level may think, in the user's numbers where there are any.
pub(crate) fn thinking_budget(level: ThinkingLevel, budgets: &ThinkingBudgets) -> Option<u64> {
    match level {
        ThinkingLevel::Off => None,
        ThinkingLevel::Minimal => Some(budgets.minimal.unwrap_or(1024)),
        ThinkingLevel::Low => Some(budgets.low.unwrap_or(2048)),
        ThinkingLevel::Medium => Some(budgets.medium.unwrap_or(8192)),
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => {
            Some(budgets.high.unwrap_or(16384))
        }
    }
}

/// An estimate: what the last answer's usage says, and the characters of what came after it.
fn context_tokens(request: &ModelRequest, transcript: &Transcript<'_>) -> u64 {
    match measured_tokens(request) {
        Some(total) => {
            let answer = |turn: &Turn<'_>| matches!(turn, Turn::Assistant(_));
            let after = transcript.turns.iter().rev().take_while(|turn| !answer(turn));
            total.saturating_add(after.map(turn_tokens).sum())
        }
        None => {
            let turns: u64 = transcript.turns.iter().map(turn_tokens).sum();
            turns.saturating_add(text_tokens(transcript.system.len() + tool_chars(&transcript.tools)))
        }
    }
}

/// What the last whole answer measured, unless a compaction kept it: then it measured a context that is no
/// longer there.
fn measured_tokens(request: &ModelRequest) -> Option<u64> {
    let messages = || request.messages.iter().map(|message| &**message);
    let is_whole =
        |answer: &&AssistantMessage| !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted);
    let answer = messages().rev().filter_map(AgentMessage::as_assistant).find(is_whole)?;
    let compacted_at = messages().find_map(|message| match message {
        AgentMessage::CompactionSummary(summary) => Some(summary.timestamp),
        _ => None,
    });
    let is_current = compacted_at.is_none_or(|compacted_at| answer.timestamp >= compacted_at);
    (is_current && answer.usage.total_tokens > 0).then_some(answer.usage.total_tokens)
}

fn tool_chars(tools: &[ToolDefinition]) -> usize {
    tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.to_string().len())
        .sum()
}

fn turn_tokens(turn: &Turn<'_>) -> u64 {
    let parts = |parts: &[Part<'_>]| parts.iter().map(part_tokens).sum();
    match turn {
        Turn::User(user) => parts(&user.parts),
        Turn::ToolResult(result) => parts(&result.parts),
        Turn::System(change) => text_tokens(change.text.len() + tool_chars(&change.added)),
        Turn::Effort(_) => 0,
        Turn::Assistant(parts) => parts
            .iter()
            .map(|part| match part {
                AssistantPart::Text { text, .. } | AssistantPart::Thinking { text, .. } => {
                    text_tokens(text.len())
                }
                AssistantPart::ToolCall { name, arguments, .. } => {
                    let values: usize = arguments.values().map(|value| value.to_string().len()).sum();
                    text_tokens(name.len() + values)
                }
            })
            .sum(),
    }
}

fn part_tokens(part: &Part<'_>) -> u64 {
    match part {
        Part::Text(text) => text_tokens(text.len()),
        Part::Image { .. } => IMAGE_TOKENS,
    }
}

fn text_tokens(chars: usize) -> u64 {
    (chars as f64 / CHARS_PER_TOKEN).ceil() as u64
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::llm::testing::{answer, model, request, user};
    use crate::llm::transcript::ImageLimits;

    fn limit(window: u64, wanted: Option<u64>, messages: Value) -> u64 {
        let model = model("x", json!({ "contextWindow": window, "maxTokens": 8192 }));
        let mut request = request(model, ThinkingLevel::Off, messages);
        request.options.max_tokens = wanted;
        output_limit(&request, &Transcript::new(&request, str::to_owned, ImageLimits::NONE))
    }

    #[test]
    fn the_output_is_limited_by_what_is_wanted_and_by_what_the_context_leaves() {
        let long = json!([user(&"y".repeat(4000))]);
        assert_eq!(limit(100_000, None, long.clone()), 8192);
        assert_eq!(limit(100_000, Some(77), long.clone()), 77);
        assert_eq!(limit(0, None, long.clone()), 8192);
        assert_eq!(limit(9000, None, long.clone()), 9000 - 4096 - 1143);
        assert_eq!(limit(3000, None, long), LEAST_OUTPUT);
    }

    #[test]
    fn the_usage_of_the_last_answer_counts_for_all_before_it() {
        let mut said = answer("x", "stop", json!([{ "type": "text", "text": "a" }]));
        said["usage"] =
            json!({ "input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2000 });
        let talk = json!([user(&"y".repeat(40_000)), said, user(&"z".repeat(350))]);
        assert_eq!(limit(10_000, None, talk), 10_000 - 4096 - 2000 - 100);
    }

    #[test]
    fn an_answer_that_measured_another_context_does_not_count() {
        let mut said = answer("x", "stop", json!([{ "type": "text", "text": "a" }]));
        said["usage"] =
            json!({ "input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 99_000 });
        said["timestamp"] = json!(5);
        let with_summary = |timestamp: u64, said: &Value| {
            let summary = json!({ "role": "compactionSummary", "summary": "s", "tokensBefore": 99_000,
                "timestamp": timestamp });
            limit(100_000, None, json!([summary, user("q"), said]))
        };
        assert_eq!(with_summary(6, &said), 8192);
        assert_eq!(with_summary(5, &said), LEAST_OUTPUT);
        said["stopReason"] = json!("aborted");
        assert_eq!(with_summary(5, &said), 8192);
    }
}
