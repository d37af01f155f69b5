//! Compaction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Summarises the older part of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Compact {
    /// What the summary should pay attention to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
}

/// Turns automatic compaction on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SetAutoCompaction {
    /// On or off.
    pub enabled: bool,
}
