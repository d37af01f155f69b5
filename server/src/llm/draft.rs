//! The assistant message that is being streamed, and what there is to report about it.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use sampi_protocol::data::{
    AssistantMessage, ContentBlock, Model, ModelCost, StopReason, TextContent, ThinkingContent, ToolCall,
    Usage,
};
use sampi_protocol::stream::{AssistantMessageEvent as Event, BlockDelta, BlockEnd, BlockStart};
use sampi_protocol::stream::{ToolCallEnd, ToolCallStart};

use super::partial_json::parse_arguments;
use super::{Completion, Failure, ModelRequest, StreamUpdate, cost};

/// What stands for thinking that the provider hid.
pub(crate) const REDACTED: &str = "[Reasoning redacted]";

/// A message that grows block by block. Every change is kept as an update until it is taken.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The message as far as it is known.
    pub(crate) message: AssistantMessage,
    model: Model,
    started: bool,
    open: Vec<OpenBlock>,
    updates: VecDeque<StreamUpdate>,
}

/// A block whose end has not been reported.
#[derive(Debug)]
struct OpenBlock {
    index: usize,
    // The text of a tool call's arguments so far; empty for other blocks.
    arguments: String,
}

impl Draft {
    /// An empty message for a request that starts now.
    pub(crate) fn new(request: &ModelRequest) -> Self {
        let model = &request.model;
        let message = AssistantMessage {
            api: model.api.clone(),
            provider: model.provider.clone(),
            model: model.id.clone(),
            timestamp: now(),
            ..AssistantMessage::default()
        };
        Self { message, model: model.clone(), started: false, open: Vec::new(), updates: VecDeque::new() }
    }

    /// The response began. Only the first call counts.
    pub(crate) fn start(&mut self) {
        if !std::mem::replace(&mut self.started, true) {
            self.updates.push_back(StreamUpdate::Start(Box::new(self.message.clone())));
        }
    }

    /// Sets the counts of the usage; the total and the cost follow from them.
    pub(crate) fn set_usage(&mut self, mut usage: Usage) {
        cost::settle(&self.model, &mut usage);
        self.message.usage = usage;
    }

    /// Another model's prices hold, from the first token on.
    pub(crate) fn set_prices(&mut self, cost: ModelCost) {
        self.model.cost = cost;
        cost::settle(&self.model, &mut self.message.usage);
    }

    /// Notes which model answered, when it is not the one that was asked.
    pub(crate) fn set_response_model(&mut self, model: &str) {
        if self.message.response_model.is_none() && !model.is_empty() && model != self.model.id {
            self.message.response_model = Some(model.to_owned());
        }
    }

    /// Notes the provider's id of the response.
    pub(crate) fn set_response_id(&mut self, id: &str) {
        if self.message.response_id.is_none() && !id.is_empty() {
            self.message.response_id = Some(id.to_owned());
        }
    }

    /// Begins a text block and gives its index.
    pub(crate) fn begin_text(&mut self) -> usize {
        let index = self.push(ContentBlock::Text(TextContent::default()));
        self.report(Event::TextStart(BlockStart { content_index: index }));
        index
    }

    /// Begins a thinking block and gives its index.
    pub(crate) fn begin_thinking(&mut self, thinking: ThinkingContent) -> usize {
        let index = self.push(ContentBlock::Thinking(thinking));
        self.report(Event::ThinkingStart(BlockStart { content_index: index }));
        index
    }

    /// Begins a tool call and gives its index.
    pub(crate) fn begin_tool_call(&mut self, id: &str, name: &str) -> usize {
        let call = ToolCall { id: id.to_owned().into(), name: name.to_owned(), ..ToolCall::default() };
        let start = ToolCallStart {
            content_index: self.message.content.len(),
            id: call.id.clone(),
            tool_name: call.name.clone(),
        };
        let index = self.push(ContentBlock::ToolCall(call));
        self.report(Event::ToolCallStart(start));
        index
    }

    /// Adds to a block: to the text, to the thinking, or to the text of the arguments.
    pub(crate) fn append(&mut self, index: usize, delta: &str) {
        let change = || BlockDelta { content_index: index, delta: delta.to_owned() };
        let event = match self.message.content.get_mut(index) {
            Some(ContentBlock::Text(block)) => {
                block.text.push_str(delta);
                Event::TextDelta(change())
            }
            Some(ContentBlock::Thinking(block)) => {
                block.thinking.push_str(delta);
                Event::ThinkingDelta(change())
            }
            Some(ContentBlock::ToolCall(_)) => {
                if let Some(open) = self.open.iter_mut().find(|open| open.index == index) {
                    open.arguments.push_str(delta);
                }
                Event::ToolCallDelta(change())
            }
            _ => return,
        };
        self.report(event);
    }

    /// Adds text to a block without reporting it, for text that came with the block's start.
    pub(crate) fn prefill_text(&mut self, index: usize, text: &str) {
        if let Some(ContentBlock::Text(block)) = self.message.content.get_mut(index) {
            block.text.push_str(text);
        }
    }

    /// Sets what a block holds in whole, without reporting it: its end will say it.
    pub(crate) fn replace(&mut self, index: usize, whole: &str) {
        match self.message.content.get_mut(index) {
            Some(ContentBlock::Text(block)) => whole.clone_into(&mut block.text),
            Some(ContentBlock::Thinking(block)) => whole.clone_into(&mut block.thinking),
            Some(ContentBlock::ToolCall(_)) => {
                if let Some(open) = self.open.iter_mut().find(|open| open.index == index) {
                    whole.clone_into(&mut open.arguments);
                }
            }
            _ => {}
        }
    }

    /// The text of a tool call's arguments so far.
    pub(crate) fn arguments(&self, index: usize) -> &str {
        self.open.iter().find(|open| open.index == index).map_or("", |open| &open.arguments)
    }

    /// The text block at an index.
    pub(crate) fn text_mut(&mut self, index: usize) -> Option<&mut TextContent> {
        match self.message.content.get_mut(index) {
            Some(ContentBlock::Text(block)) => Some(block),
            _ => None,
        }
    }

    /// The thinking block at an index.
    pub(crate) fn thinking_mut(&mut self, index: usize) -> Option<&mut ThinkingContent> {
        match self.message.content.get_mut(index) {
            Some(ContentBlock::Thinking(block)) => Some(block),
            _ => None,
        }
    }

    /// The tool call at an index.
    pub(crate) fn tool_call_mut(&mut self, index: usize) -> Option<&mut ToolCall> {
        match self.message.content.get_mut(index) {
            Some(ContentBlock::ToolCall(call)) => Some(call),
            _ => None,
        }
    }

    /// Ends a block; a tool call's arguments are read now.
    pub(crate) fn end(&mut self, index: usize) {
        let Some(at) = self.open.iter().position(|open| open.index == index) else { return };
        let open = self.open.remove(at);
        self.finish_block(&open);
        let event = match self.message.content.get(index) {
            Some(ContentBlock::Text(block)) => {
                Event::TextEnd(BlockEnd { content_index: index, content: block.text.clone() })
            }
            Some(ContentBlock::Thinking(block)) => {
                Event::ThinkingEnd(BlockEnd { content_index: index, content: block.thinking.clone() })
            }
            Some(block @ ContentBlock::ToolCall(_)) => {
                Event::ToolCallEnd(ToolCallEnd { content_index: index, tool_call: block.clone() })
            }
            _ => return,
        };
        self.report(event);
    }

    /// Ends every open block in order.
    pub(crate) fn end_all(&mut self) {
        while let Some(index) = self.open.iter().map(|open| open.index).min() {
            self.end(index);
        }
    }

    /// Takes the first update that was not taken yet.
    pub(crate) fn next_update(&mut self) -> Option<StreamUpdate> {
        self.updates.pop_front()
    }

    /// True when there are updates that were not taken yet.
    pub(crate) fn has_updates(&self) -> bool {
        !self.updates.is_empty()
    }

    /// Ends the message with this stop reason. Blocks that are still open are closed silently.
    pub(crate) fn complete(
        mut self,
        request: &ModelRequest,
        stop_reason: StopReason,
        error: Option<(String, Failure)>,
    ) -> Completion {
        for open in std::mem::take(&mut self.open) {
            // Half of a call is no call: its arguments are kept only when they are whole.
            self.finish_block(&open);
            let cut = error.is_some() || stop_reason == StopReason::Aborted;
            if let Some(call) = self.tool_call_mut(open.index).filter(|_| cut) {
                call.arguments_error = None;
            }
        }
        let message = &mut self.message;
        message.stop_reason = stop_reason;
        message.duration_ms = Some(now().saturating_sub(message.timestamp));
        message.thinking_level = Some(request.thinking.as_str().to_owned());
        let failure = error.map(|(text, failure)| {
            message.error_message = Some(text);
            failure
        });
        Completion { message: self.message, failure }
    }

    fn finish_block(&mut self, open: &OpenBlock) {
        if let Some(call) = self.tool_call_mut(open.index) {
            let arguments = parse_arguments(&open.arguments);
            call.arguments = arguments.values;
            call.arguments_error = arguments.error;
        }
    }

    fn push(&mut self, block: ContentBlock) -> usize {
        let index = self.message.content.len();
        self.message.content.push(block);
        self.open.push(OpenBlock { index, arguments: String::new() });
        index
    }

    fn report(&mut self, event: Event) {
        self.updates.push_back(StreamUpdate::Event { event, usage: self.message.usage.clone() });
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
