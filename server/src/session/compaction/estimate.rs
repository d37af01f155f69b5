//! How many tokens the context has: what the last answer measured, and an estimate of the rest.

use sampi_protocol::data::{AgentMessage, Content, ContentBlock, StopReason, Usage};

use crate::session::Context;

/// Characters that count as one token where nothing was measured.
const CHARACTERS_PER_TOKEN: usize = 4;

/// Characters that an image counts as where nothing was measured.
const IMAGE_CHARACTERS: usize = 4800;

/// Tokens of a context; `None` when a compaction came after the last answer that measured it.
///
/// An answer from before an edit of the context, such as a failed answer that was taken out, measured
/// another context: then all of it is estimated.
pub fn measured_context_tokens(context: &Context) -> Option<u64> {
    let messages = || context.messages.iter().map(|kept| &*kept.message);
    // Answers that a compaction kept measured a context that is no longer there.
    let compacted_at = messages().find_map(|message| match message {
        AgentMessage::CompactionSummary(summary) => Some(summary.timestamp),
        _ => None,
    });
    let mut rest = 0;
    for message in messages().skip(context.edited).rev() {
        if let Some((tokens, timestamp)) = measured_tokens(message)
            && compacted_at.is_none_or(|compacted_at| timestamp >= compacted_at)
        {
            return Some(tokens + rest);
        }
        if !matches!(message, AgentMessage::System(_)) {
            rest += estimate_tokens(message);
        }
    }
    compacted_at.is_none().then(|| messages().map(estimate_tokens).sum())
}

/// Tokens of a context as far as they can be told: measured, or estimated when a compaction came last.
pub fn context_tokens(context: &Context) -> u64 {
    let estimate = || context.messages.iter().map(|kept| estimate_tokens(&kept.message)).sum();
    measured_context_tokens(context).unwrap_or_else(estimate)
}

fn measured_tokens(message: &AgentMessage) -> Option<(u64, u64)> {
    let answer = message.as_assistant()?;
    if matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
        return None;
    }
    let tokens = usage_tokens(&answer.usage);
    (tokens > 0).then_some((tokens, answer.timestamp))
}

fn usage_tokens(usage: &Usage) -> u64 {
    match usage.total_tokens {
        0 => usage.input + usage.output + usage.cache_read + usage.cache_write,
        total => total,
    }
}

/// A rough count of the tokens of a message.
pub fn estimate_tokens(message: &AgentMessage) -> u64 {
    let characters = match message {
        AgentMessage::System(message) => {
            let sections = message.sections.iter().flat_map(|sections| sections.values());
            let tools = message.tools_added.iter().flatten();
            content_characters(&message.content)
                + sections.filter_map(|text| text.as_str()).map(str::len).sum::<usize>()
                + tools.map(|tool| tool.description.len() + tool.parameters.to_string().len()).sum::<usize>()
        }
        AgentMessage::User(message) => content_characters(&message.content),
        AgentMessage::Assistant(message) => message.content.iter().map(block_characters).sum(),
        AgentMessage::ToolResult(message) => message.content.iter().map(block_characters).sum(),
        AgentMessage::BashExecution(message) if message.exclude_from_context == Some(true) => 0,
        AgentMessage::BashExecution(message) => message.command.len() + message.output.len(),
        AgentMessage::Custom(message) => content_characters(&message.content),
        AgentMessage::BranchSummary(message) => message.summary.len(),
        AgentMessage::CompactionSummary(message) => message.summary.len(),
        AgentMessage::Unknown(_) => 0,
    };
    estimate_text(characters)
}

/// A rough count of the tokens of a text of this many characters.
pub fn estimate_text(characters: usize) -> u64 {
    characters.div_ceil(CHARACTERS_PER_TOKEN) as u64
}

fn content_characters(content: &Content) -> usize {
    match content {
        Content::Text(text) => text.len(),
        Content::Blocks(blocks) => blocks.iter().map(block_characters).sum(),
    }
}

fn block_characters(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text(block) => block.text.len(),
        ContentBlock::Thinking(block) => block.thinking.len(),
        ContentBlock::Image(_) => IMAGE_CHARACTERS,
        ContentBlock::ToolCall(call) => {
            call.name.len() + serde_json::to_string(&call.arguments).map_or(0, |text| text.len())
        }
        ContentBlock::Unknown(_) => 0,
    }
}
