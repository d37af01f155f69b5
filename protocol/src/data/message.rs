//! The eight roles of messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Content, ContentBlock, RoleTag, ToolCall, ToolCallId, ToolDefinition, ToolReference, Untagged, Usage,
};
use crate::number;
use crate::wire::{Unknown, read_tagged};

/// A message of the conversation. Timestamps are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "role")]
pub enum AgentMessage {
    /// Instructions and tool declarations.
    #[serde(rename = "system")]
    System(SystemMessage),
    /// What the user said.
    #[serde(rename = "user")]
    User(UserMessage),
    /// What the model answered.
    #[serde(rename = "assistant")]
    Assistant(AssistantMessage),
    /// What a tool gave back.
    #[serde(rename = "toolResult")]
    ToolResult(ToolResultMessage),
    /// A shell command that the user ran directly.
    #[serde(rename = "bashExecution")]
    BashExecution(BashExecutionMessage),
    /// A message of an extension.
    #[serde(rename = "custom")]
    Custom(CustomMessage),
    /// The summary of a branch that was left.
    #[serde(rename = "branchSummary")]
    BranchSummary(BranchSummaryMessage),
    /// The summary of what was compacted.
    #[serde(rename = "compactionSummary")]
    CompactionSummary(CompactionSummaryMessage),
    /// A message of a role that this version does not know.
    #[serde(untagged)]
    Unknown(Unknown),
}

read_tagged!(AgentMessage, "role", {
    "system" => System,
    "user" => User,
    "assistant" => Assistant,
    "toolResult" => ToolResult,
    "bashExecution" => BashExecution,
    "custom" => Custom,
    "branchSummary" => BranchSummary,
    "compactionSummary" => CompactionSummary,
});

impl AgentMessage {
    /// The user message, if it is one.
    pub fn as_user(&self) -> Option<&UserMessage> {
        match self {
            Self::User(message) => Some(message),
            _ => None,
        }
    }

    /// The result of a tool call, if it is one.
    pub fn as_tool_result(&self) -> Option<&ToolResultMessage> {
        match self {
            Self::ToolResult(message) => Some(message),
            _ => None,
        }
    }

    /// The assistant message, if it is one.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant(message) => Some(message),
            _ => None,
        }
    }

    /// The wire name of the role.
    pub fn role(&self) -> &str {
        match self {
            Self::System(_) => "system",
            Self::User(_) => "user",
            Self::Assistant(_) => "assistant",
            Self::ToolResult(_) => "toolResult",
            Self::BashExecution(_) => "bashExecution",
            Self::Custom(_) => "custom",
            Self::BranchSummary(_) => "branchSummary",
            Self::CompactionSummary(_) => "compactionSummary",
            Self::Unknown(raw) => raw.str_field("role").unwrap_or_default(),
        }
    }
}

/// Instructions and tool declarations at one point of the transcript.
///
/// The first one declares the prompt and the tools; later ones patch sections by name (`null` removes
/// one) and add or remove tools. Replaying them in order gives the current state.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SystemMessage {
    /// Instruction text.
    pub content: Content,
    /// Named sections in order, each text or `null`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sections: Option<Map<String, Value>>,
    /// Tools that become available here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_added: Option<Vec<ToolDefinition>>,
    /// Tools that stop being available here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools_removed: Option<Vec<ToolReference>>,
    /// True when this message starts from nothing instead of patching what came before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replace: Option<bool>,
    /// Unix milliseconds.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub timestamp: u64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Untagged<RoleTag>,
}

/// What the user said.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    /// Text and images.
    pub content: Content,
    /// Unix milliseconds.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub timestamp: u64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Untagged<RoleTag>,
}

/// What the model answered.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    /// Text, thinking and tool calls.
    pub content: Vec<ContentBlock>,
    /// The API that was spoken, such as `anthropic-messages`.
    pub api: String,
    /// The provider's id.
    pub provider: String,
    /// The model's id.
    pub model: String,
    /// Tokens and cost.
    #[serde(default)]
    pub usage: Usage,
    /// Why the answer ended.
    pub stop_reason: StopReason,
    /// When the request started, Unix milliseconds.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub timestamp: u64,
    /// The model that answered, when it is not the one that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_model: Option<String>,
    /// The provider's id of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// What went wrong, for `error` and `aborted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The provider's own stop reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_stop_reason: Option<String>,
    /// The thinking level that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// The provider's own name of the effort that was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_thinking_level: Option<String>,
    /// Milliseconds from `timestamp` to the end of the response.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "number::optional_count::serialize",
        deserialize_with = "number::optional_count::deserialize"
    )]
    pub duration_ms: Option<u64>,
    /// Fields that this version does not know, among them `diagnostics`, `deferred` and `endTurn`.
    #[serde(flatten)]
    pub extra: Untagged<RoleTag>,
}

impl AssistantMessage {
    /// The text of all text blocks, one after the other.
    pub fn text(&self) -> String {
        self.content.iter().filter_map(ContentBlock::as_text).collect()
    }

    /// The tool calls in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            ContentBlock::ToolCall(call) => Some(call),
            _ => None,
        })
    }
}

/// Why an assistant message ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// It has not ended; only in events, never in a session file.
    #[default]
    Pending,
    /// The model was done.
    Stop,
    /// The output limit was reached.
    Length,
    /// The model waits for tool results.
    ToolUse,
    /// The request failed.
    Error,
    /// The run was aborted.
    Aborted,
    /// The result comes later.
    Deferred,
    /// A reason that this version does not know.
    #[serde(untagged)]
    Other(String),
}

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultMessage {
    /// The call that this answers.
    pub tool_call_id: ToolCallId,
    /// The tool's name.
    pub tool_name: String,
    /// Text and images for the model.
    pub content: Vec<ContentBlock>,
    /// Details for people and hosts; not sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Usage of model work that the tool did itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// True when the tool failed.
    pub is_error: bool,
    /// When the result was made, Unix milliseconds.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub timestamp: u64,
    /// How long the tool ran, in milliseconds.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "number::optional_count::serialize",
        deserialize_with = "number::optional_count::deserialize"
    )]
    pub duration_ms: Option<u64>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Untagged<RoleTag>,
}

/// A shell command that the user ran directly, and its output.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BashExecutionMessage {
    /// The command.
    pub command: String,
    /// Its output, stdout and stderr together, possibly cut.
    pub output: String,
    /// The exit code; absent when the command was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// True when the command was stopped.
    pub cancelled: bool,
    /// True when `output` is not the whole output.
    pub truncated: bool,
    /// The file that has the whole output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
    /// Unix milliseconds.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub timestamp: u64,
    /// True when the model must not see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_from_context: Option<bool>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Untagged<RoleTag>,
}

/// A message of an extension; the model sees it as the user's.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    /// The extension's name for this kind of message.
    pub custom_type: String,
    /// Text and images for the model.
    pub content: Content,
    /// True when people should see it.
    pub display: bool,
    /// Details for people and hosts; not sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Unix milliseconds.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub timestamp: u64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Untagged<RoleTag>,
}

/// The summary of a branch that was left.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BranchSummaryMessage {
    /// The summary.
    pub summary: String,
    /// The leaf of the branch that was left.
    pub from_id: Option<String>,
    /// Unix milliseconds.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub timestamp: u64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Untagged<RoleTag>,
}

/// The summary of what was compacted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionSummaryMessage {
    /// The summary.
    pub summary: String,
    /// How many tokens the context had before.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub tokens_before: u64,
    /// Unix milliseconds.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub timestamp: u64,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Untagged<RoleTag>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_and_an_unknown_one_survive_a_round_trip() {
        for text in [
            r#"{"role":"system","content":"","sections":{"b":"x","a":null},"toolsAdded":[{"name":"read","description":"d","parameters":{}}],"timestamp":1}"#,
            r#"{"role":"user","content":"hi","timestamp":1}"#,
            r#"{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","data":"","mimeType":"image/png"}],"timestamp":1,"later":true}"#,
            r#"{"role":"toolResult","toolCallId":"c","toolName":"read","content":[],"details":{"a":1},"isError":false,"timestamp":1}"#,
            r#"{"role":"bashExecution","command":"ls","output":"","exitCode":0,"cancelled":false,"truncated":false,"timestamp":1,"excludeFromContext":true}"#,
            r#"{"role":"custom","customType":"x","content":"y","display":true,"timestamp":1}"#,
            r#"{"role":"branchSummary","summary":"s","fromId":null,"timestamp":1}"#,
            r#"{"role":"compactionSummary","summary":"s","tokensBefore":5,"timestamp":1}"#,
            r#"{"role":"narrator","content":"once"}"#,
        ] {
            let message: AgentMessage = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&message).unwrap(), text);
        }
    }

    #[test]
    fn an_assistant_message_keeps_what_it_does_not_know() {
        let text = r#"{"role":"assistant","content":[],"api":"a","provider":"p","model":"m","usage":{"input":1,"output":2,"cacheRead":0,"cacheWrite":0,"totalTokens":3,"cost":{"input":0,"output":0.5,"cacheRead":0,"cacheWrite":0,"total":0.5}},"stopReason":"napping","timestamp":1,"diagnostics":[{"type":"x"}],"endTurn":true}"#;
        let message: AgentMessage = serde_json::from_str(text).unwrap();
        assert_eq!(message.as_assistant().unwrap().stop_reason, StopReason::Other("napping".into()));
        assert_eq!(serde_json::to_string(&message).unwrap(), text);
    }
}
