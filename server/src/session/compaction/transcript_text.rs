//! The conversation as a text that a model can summarise without taking it for its own conversation.

use sampi_protocol::data::{AgentMessage, Content, ContentBlock};

/// Characters of one tool result that are kept.
const TOOL_RESULT_CHARACTERS: usize = 2000;

/// One paragraph a message.
pub(super) fn message_text(message: &AgentMessage) -> Option<String> {
    match message {
        AgentMessage::User(message) => Some(format!("[User]: {}", content_text(&message.content))),
        AgentMessage::Custom(message) => Some(format!("[User]: {}", content_text(&message.content))),
        AgentMessage::Assistant(message) => {
            let mut parts = Vec::new();
            let text = message.text();
            if !text.trim().is_empty() {
                parts.push(format!("[Assistant]: {text}"));
            }
            let calls: Vec<String> = message
                .tool_calls()
                .map(|call| {
                    let arguments: Vec<String> =
                        call.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
                    format!("{}({})", call.name, arguments.join(", "))
                })
                .collect();
            if !calls.is_empty() {
                parts.push(format!("[Assistant tool calls]: {}", calls.join("; ")));
            }
            if let Some(error) = &message.error_message {
                parts.push(format!("[Assistant failed]: {error}"));
            }
            (!parts.is_empty()).then(|| parts.join("\n"))
        }
        AgentMessage::ToolResult(message) => {
            let text = blocks_text(&message.content);
            let kind = if message.is_error { "Tool error" } else { "Tool result" };
            Some(format!("[{kind} of {}]: {}", message.tool_name, shorten(&text)))
        }
        AgentMessage::BashExecution(message) if message.exclude_from_context == Some(true) => None,
        AgentMessage::BashExecution(message) => {
            let code =
                message.exit_code.map_or_else(|| "stopped".to_owned(), |code| format!("exit code {code}"));
            Some(format!("[User ran `{}`, {code}]: {}", message.command, shorten(&message.output)))
        }
        AgentMessage::BranchSummary(message) => {
            Some(format!("[Summary of a side branch]: {}", message.summary))
        }
        AgentMessage::System(_) | AgentMessage::CompactionSummary(_) | AgentMessage::Unknown(_) => None,
    }
}

fn content_text(content: &Content) -> String {
    match content {
        Content::Text(text) => text.clone(),
        Content::Blocks(blocks) => blocks_text(blocks),
    }
}

fn blocks_text(blocks: &[ContentBlock]) -> String {
    let parts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(block) => Some(block.text.as_str()),
            ContentBlock::Image(_) => Some("[an image]"),
            _ => None,
        })
        .collect();
    parts.join("\n")
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(TOOL_RESULT_CHARACTERS) {
        None => text.to_owned(),
        Some((end, _)) => {
            let left_out = text[end..].chars().count();
            format!("{}\n[{left_out} more characters left out]", &text[..end])
        }
    }
}
