//! Shell commands that the user runs directly.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Runs a shell command and adds its output to the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bash {
    /// The command.
    pub command: String,
    /// True to keep the output in the session and away from the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclude_from_context: Option<bool>,
}

/// How a shell command ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BashResult {
    /// Stdout and stderr together, possibly cut.
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
}

/// Stops the shell commands that are running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AbortBash {}
