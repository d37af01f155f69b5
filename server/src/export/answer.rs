//! Answers of the model: thinking, text, tool calls, what they cost.

use std::io;

use sampi_protocol::data::{AssistantMessage, ContentBlock, StopReason, Usage};

use super::format;
use super::html::Html;
use super::markdown::{LineEnds, markdown};
use super::tool::{self, Answered};

/// Writes an answer. `results` gives the result of each of its calls, in order.
pub(super) fn write(
    html: &mut Html<'_>,
    message: &AssistantMessage,
    mut results: impl Iterator<Item = Option<Answered>>,
) -> io::Result<()> {
    for block in &message.content {
        match block {
            ContentBlock::Text(block) => {
                html.raw("<div class=\"md\">")?;
                markdown(html, &block.text, LineEnds::Space)?;
                html.raw("</div>\n")?;
            }
            ContentBlock::Thinking(block) => {
                let text = match block.thinking.trim() {
                    "" if block.redacted == Some(true) => "The provider hid this thinking.",
                    "" => continue,
                    text => text,
                };
                html.raw("<details class=\"thinking\"><summary>Thinking")?;
                html.element(" <span>", &format::line(text), "</span></summary><div class=\"md\">")?;
                markdown(html, text, LineEnds::Space)?;
                html.raw("</div></details>\n")?;
            }
            ContentBlock::ToolCall(call) => tool::call(html, call, results.next().flatten().as_ref())?,
            ContentBlock::Image(block) => html.image(&block.mime_type, &block.data)?,
            ContentBlock::Unknown(block) => tool::json_of(html, block)?,
        }
    }
    ending(html, message)?;
    html.raw("<footer>")?;
    html.element("<span>", &message.model, "</span>")?;
    if let Some(level) = message.thinking_level.as_deref().filter(|level| *level != "off") {
        html.element("<span>", level, "</span>")?;
    }
    if let Some(millis) = message.duration_ms {
        html.element("<span>", &format::duration(millis), "</span>")?;
    }
    usage(html, &message.usage)?;
    html.raw("</footer>\n")
}

/// Writes tokens and cost.
pub(super) fn usage(html: &mut Html<'_>, usage: &Usage) -> io::Result<()> {
    let parts = [
        ("<span title=\"input tokens\">↑ ", usage.input),
        ("<span title=\"output tokens\">↓ ", usage.output),
        ("<span title=\"tokens read from the cache\">cache ", usage.cache_read),
        ("<span title=\"tokens written to the cache\">cache write ", usage.cache_write),
    ];
    for (open, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
        html.element(open, &format::tokens(count), "</span>")?;
    }
    if usage.cost.total > 0.0 {
        html.element("<span title=\"cost\">", &format::cost(usage.cost.total), "</span>")?;
    }
    Ok(())
}

fn ending(html: &mut Html<'_>, message: &AssistantMessage) -> io::Result<()> {
    let word = match &message.stop_reason {
        StopReason::Error => "Error",
        StopReason::Aborted => "Aborted",
        StopReason::Length => "Cut off at the output limit",
        _ => return Ok(()),
    };
    html.element("<p class=\"error\">", word, "")?;
    if let Some(error) = message.error_message.as_deref().filter(|error| !error.is_empty()) {
        html.element(": ", error, "")?;
    }
    html.raw("</p>\n")
}
