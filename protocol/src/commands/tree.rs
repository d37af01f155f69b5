//! Moving in the tree of a session. Commands of Sampi; Pi has them in its terminal interface alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::{EntryId, SessionEntry};
use crate::shared::Shared;

/// Moves to another point of the tree; what comes next continues there. Nothing is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NavigateTree {
    /// The entry to move to. A user message means the point before it, so that it can be said anew.
    pub target_id: EntryId,
    /// True to have the model summarise the branch that is left; the summary goes along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summarize: Option<bool>,
    /// What the summary should pay attention to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    /// A mark for the summary, or for the target when there is no summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// Where the session is now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Navigated {
    /// The entry at which the active branch ends; `null` before the first one.
    pub leaf_id: Option<EntryId>,
    /// The text of the user message that was moved to, to be edited and sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub editor_text: Option<String>,
    /// The summary of the branch that was left, an entry of the kind `branch_summary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Shared<SessionEntry>>,
    /// True when an extension prevented it.
    pub cancelled: bool,
}

/// Marks an entry, or takes its mark away.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetLabel {
    /// The entry.
    pub entry_id: EntryId,
    /// The mark; absent or empty takes it away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// The entry that keeps the mark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LabelSet {
    /// An entry of the kind `label`.
    pub entry: Shared<SessionEntry>,
}
