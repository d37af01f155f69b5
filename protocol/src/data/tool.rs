//! Tools as the model and the transcript see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ContentBlock, Extra, Usage};
use crate::wire::string_id;

string_id!(
    /// Id of a tool call, given by the model's provider.
    ToolCallId
);

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// The tool's name.
    pub name: String,
    /// What the tool does, for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A tool named without its definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolReference {
    /// The tool's name.
    pub name: String,
}

/// What a tool gave back, as `tool_execution_end` and `tool_execution_update` carry it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput {
    /// Text and images for the model.
    pub content: Vec<ContentBlock>,
    /// Details for people and hosts, specific to the tool; not sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The result as data, specific to the tool; not kept in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<Value>,
    /// True when the tool ran and reports that it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Usage of model work that the tool did itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}
