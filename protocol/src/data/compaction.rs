//! Results of compaction.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{EntryId, Usage};
use crate::number;

/// What a compaction made.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionResult {
    /// The summary.
    pub summary: String,
    /// The first entry before the compaction that the model still sees.
    pub first_kept_entry_id: EntryId,
    /// Tokens of the context before.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub tokens_before: u64,
    /// Estimate of the tokens of the context after.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "number::optional_count::serialize",
        deserialize_with = "number::optional_count::deserialize"
    )]
    pub estimated_tokens_after: Option<u64>,
    /// Usage of the summarising.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Files that were read and changed: `{ readFiles, modifiedFiles }`, or an extension's own data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// Why a compaction runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompactionReason {
    /// The `compact` command.
    Manual,
    /// The context is nearly full.
    Threshold,
    /// The provider refused the request as too long.
    Overflow,
}
