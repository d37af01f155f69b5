//! Putting an assistant message together from its deltas.

use std::collections::BTreeMap;

use crate::data::{AgentMessage, AssistantMessage, ContentBlock, TextContent, ThinkingContent, ToolCall};
use crate::events::SessionEvent;
use crate::stream::AssistantMessageEvent;

/// The most blocks that a message is assembled from; what claims to be beyond is ignored.
const MAX_BLOCKS: usize = 10_000;

/// What an event did to the message that is being assembled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Assembled {
    /// The event has nothing to do with it.
    Unchanged,
    /// A new message began.
    Started,
    /// The block with this index began, grew or ended.
    Block(usize),
    /// The message is complete.
    Ended,
}

/// Keeps the assistant message that is being streamed, from the events of a session.
///
/// Deltas are only for showing progress: the content that comes when a block ends replaces what its
/// deltas gave, and the message that comes at the end replaces everything. So a reader that missed events
/// is right again at the end of the block or message. Until a tool call ends its arguments are a text
/// that is not complete; see [`arguments_text`](Self::arguments_text).
#[derive(Debug, Clone, Default)]
pub struct MessageAssembler {
    message: Option<AssistantMessage>,
    arguments: BTreeMap<usize, String>,
    ended: bool,
}

impl MessageAssembler {
    /// An assembler that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The message as far as it is known; the last one when none is being streamed.
    pub fn message(&self) -> Option<&AssistantMessage> {
        self.message.as_ref()
    }

    /// True between the start and the end of a message.
    pub fn is_streaming(&self) -> bool {
        self.message.is_some() && !self.ended
    }

    /// What the model has written of the arguments of the tool call with this block index; `None` once
    /// the call is complete and its arguments are in the message.
    pub fn arguments_text(&self, index: usize) -> Option<&str> {
        self.arguments.get(&index).map(String::as_str)
    }

    /// Takes the next event of the session.
    pub fn apply(&mut self, event: &SessionEvent) -> Assembled {
        match event {
            SessionEvent::MessageStart(event) => match &*event.message {
                AgentMessage::Assistant(message) => {
                    self.replace(message.clone());
                    self.ended = false;
                    Assembled::Started
                }
                _ => Assembled::Unchanged,
            },
            SessionEvent::MessageEnd(event) => match &*event.message {
                AgentMessage::Assistant(message) => self.end(message.clone()),
                _ => Assembled::Unchanged,
            },
            SessionEvent::MessageUpdate(event) => {
                self.open().usage = event.usage.clone();
                self.apply_delta(&event.assistant_message_event)
            }
            _ => Assembled::Unchanged,
        }
    }

    fn apply_delta(&mut self, event: &AssistantMessageEvent) -> Assembled {
        use AssistantMessageEvent as Event;
        let index = match event {
            Event::Start(_) | Event::Unknown(_) => return Assembled::Unchanged,
            Event::Done(event) => return self.end(event.message.clone()),
            Event::Error(event) => return self.end(event.error.clone()),
            Event::TextStart(event) | Event::ThinkingStart(event) => event.content_index,
            Event::TextDelta(event) | Event::ThinkingDelta(event) | Event::ToolCallDelta(event) => {
                event.content_index
            }
            Event::TextEnd(event) | Event::ThinkingEnd(event) => event.content_index,
            Event::ToolCallStart(event) => event.content_index,
            Event::ToolCallEnd(event) => event.content_index,
        };
        if index >= MAX_BLOCKS {
            return Assembled::Unchanged;
        }
        match event {
            Event::TextStart(_) => self.text(index, |text| *text = TextContent::default()),
            Event::TextDelta(event) => self.text(index, |text| text.text.push_str(&event.delta)),
            Event::TextEnd(event) => self.text(index, |text| text.text.clone_from(&event.content)),
            Event::ThinkingStart(_) => self.thinking(index, |block| *block = ThinkingContent::default()),
            Event::ThinkingDelta(event) => {
                self.thinking(index, |block| block.thinking.push_str(&event.delta))
            }
            Event::ThinkingEnd(event) => {
                self.thinking(index, |block| block.thinking.clone_from(&event.content));
            }
            Event::ToolCallStart(event) => {
                self.arguments.insert(index, String::new());
                *self.block(index) = ContentBlock::ToolCall(ToolCall {
                    id: event.id.clone(),
                    name: event.tool_name.clone(),
                    ..ToolCall::default()
                });
            }
            Event::ToolCallDelta(event) => {
                self.arguments.entry(index).or_default().push_str(&event.delta);
                let block = self.block(index);
                if !matches!(block, ContentBlock::ToolCall(_)) {
                    *block = ContentBlock::ToolCall(ToolCall::default());
                }
            }
            Event::ToolCallEnd(event) => {
                self.arguments.remove(&index);
                self.block(index).clone_from(&event.tool_call);
            }
            Event::Start(_) | Event::Done(_) | Event::Error(_) | Event::Unknown(_) => {}
        }
        Assembled::Block(index)
    }

    fn end(&mut self, message: AssistantMessage) -> Assembled {
        self.replace(message);
        self.ended = true;
        Assembled::Ended
    }

    fn replace(&mut self, message: AssistantMessage) {
        self.message = Some(message);
        self.arguments.clear();
    }

    /// The message that is being streamed; a new one when its start was missed.
    fn open(&mut self) -> &mut AssistantMessage {
        if self.ended {
            self.message = None;
            self.arguments.clear();
            self.ended = false;
        }
        self.message.get_or_insert_default()
    }

    fn block(&mut self, index: usize) -> &mut ContentBlock {
        let content = &mut self.open().content;
        if content.len() <= index {
            content.resize_with(index + 1, || ContentBlock::text(""));
        }
        &mut content[index]
    }

    fn text(&mut self, index: usize, change: impl FnOnce(&mut TextContent)) {
        match self.block(index) {
            ContentBlock::Text(text) => change(text),
            other => {
                let mut text = TextContent::default();
                change(&mut text);
                *other = ContentBlock::Text(text);
            }
        }
    }

    fn thinking(&mut self, index: usize, change: impl FnOnce(&mut ThinkingContent)) {
        match self.block(index) {
            ContentBlock::Thinking(thinking) => change(thinking),
            other => {
                let mut thinking = ThinkingContent::default();
                change(&mut thinking);
                *other = ContentBlock::Thinking(thinking);
            }
        }
    }
}

#[cfg(test)]
mod tests;
