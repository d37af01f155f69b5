//! Tools as the model and the transcript see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

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
    /// How the provider should hold the model to what the tool takes: `false`, `{"type": "json_schema", "strict":
    /// "prefer" | "require"}`, or a grammar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constrained_sampling: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl ToolDefinition {
    /// Asks the provider to hold the model to the schema where it can.
    #[must_use]
    pub fn with_strict_schema(mut self) -> Self {
        self.constrained_sampling = Some(json!({ "type": "json_schema", "strict": "prefer" }));
        self
    }

    /// True when the provider should hold the model to the schema.
    pub fn wants_strict_schema(&self) -> bool {
        let Some(Value::Object(sampling)) = &self.constrained_sampling else { return false };
        let text = |name: &str| sampling.get(name).and_then(Value::as_str);
        text("type") == Some("json_schema") && matches!(text("strict"), Some("prefer" | "require"))
    }
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
