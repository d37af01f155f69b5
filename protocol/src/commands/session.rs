//! Starting, switching, forking and naming sessions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::EntryId;

/// Starts an empty session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    /// The file of the session that this one follows, noted in the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
}

/// Opens another session file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SwitchSession {
    /// The file's path.
    pub session_path: String,
}

/// Makes a new session from what came before one of the user's messages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fork {
    /// The entry of the user's message.
    pub entry_id: EntryId,
}

/// Makes a new session from the whole active branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CloneSession {}

/// Sets the session's display name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SetSessionName {
    /// The name; line breaks become spaces, blanks around it are dropped, and it must not be empty.
    pub name: String,
}

/// What became of a change of session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionChange {
    /// True when an extension prevented it.
    pub cancelled: bool,
}

/// What became of a fork.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ForkResult {
    /// The text of the message that was forked from; absent when the fork was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// True when an extension prevented it.
    pub cancelled: bool,
}
