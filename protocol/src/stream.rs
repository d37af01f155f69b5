//! The deltas of an assistant message.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::{AssistantMessage, ContentBlock, StopReason, ToolCallId};
use crate::wire::{Unknown, read_tagged};

/// What happened to one block of the assistant message that is being streamed.
///
/// Deltas are for showing progress; the content of the `*_end` events and, above them, the message of
/// `message_end` is what counts.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type")]
pub enum AssistantMessageEvent {
    /// The provider's stream began.
    #[serde(rename = "start")]
    Start(StreamStart),
    /// A text block began.
    #[serde(rename = "text_start")]
    TextStart(BlockStart),
    /// Text was added.
    #[serde(rename = "text_delta")]
    TextDelta(BlockDelta),
    /// A text block ended.
    #[serde(rename = "text_end")]
    TextEnd(BlockEnd),
    /// A thinking block began.
    #[serde(rename = "thinking_start")]
    ThinkingStart(BlockStart),
    /// Thinking was added.
    #[serde(rename = "thinking_delta")]
    ThinkingDelta(BlockDelta),
    /// A thinking block ended.
    #[serde(rename = "thinking_end")]
    ThinkingEnd(BlockEnd),
    /// A tool call began.
    #[serde(rename = "toolcall_start")]
    ToolCallStart(ToolCallStart),
    /// Text was added to a tool call's arguments.
    #[serde(rename = "toolcall_delta")]
    ToolCallDelta(BlockDelta),
    /// A tool call ended.
    #[serde(rename = "toolcall_end")]
    ToolCallEnd(ToolCallEnd),
    /// The provider's stream ended well.
    #[serde(rename = "done")]
    Done(StreamDone),
    /// The provider's stream failed or was aborted.
    #[serde(rename = "error")]
    Error(StreamError),
    /// An event that this version does not know.
    #[serde(untagged)]
    Unknown(Unknown),
}

read_tagged!(AssistantMessageEvent, "type", {
    "start" => Start,
    "text_start" => TextStart,
    "text_delta" => TextDelta,
    "text_end" => TextEnd,
    "thinking_start" => ThinkingStart,
    "thinking_delta" => ThinkingDelta,
    "thinking_end" => ThinkingEnd,
    "toolcall_start" => ToolCallStart,
    "toolcall_delta" => ToolCallDelta,
    "toolcall_end" => ToolCallEnd,
    "done" => Done,
    "error" => Error,
});

/// The provider's stream began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct StreamStart {}

/// A block began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockStart {
    /// The block's place in the message's content.
    pub content_index: usize,
}

/// Something was added to a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockDelta {
    /// The block's place in the message's content.
    pub content_index: usize,
    /// What was added.
    pub delta: String,
}

/// A block of text or thinking ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockEnd {
    /// The block's place in the message's content.
    pub content_index: usize,
    /// The whole text of the block.
    pub content: String,
}

/// A tool call began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallStart {
    /// The block's place in the message's content.
    pub content_index: usize,
    /// The call's id.
    pub id: ToolCallId,
    /// The tool's name.
    pub tool_name: String,
}

/// A tool call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallEnd {
    /// The block's place in the message's content.
    pub content_index: usize,
    /// The whole call, a block with the tag `toolCall`.
    pub tool_call: ContentBlock,
}

/// The provider's stream ended well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamDone {
    /// Why it ended.
    pub reason: StopReason,
    /// The whole message.
    pub message: AssistantMessage,
}

/// The provider's stream failed or was aborted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamError {
    /// `error` or `aborted`.
    pub reason: StopReason,
    /// What there is of the message.
    pub error: AssistantMessage,
}
