//! The sessions on disk. Commands of Sampi; Pi has them in its terminal interface alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::SessionId;
use crate::number;

/// The most sessions that one list has.
pub const MOST_LISTED: u32 = 1000;

/// Lists sessions, the one that was appended to last first. Reads headers, names and first messages only.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListSessions {
    /// Only those of this working directory; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Only those whose name, first message, id or working directory has this text in it, whatever its case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
    /// The most sessions to list, from 1 to 1000; 50 when absent.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "number::optional_within::<_, 1, MOST_LISTED>"
    )]
    #[schemars(range(min = 1, max = MOST_LISTED))]
    pub limit: Option<u32>,
    /// `nextCursor` of an earlier answer, to go on from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Sessions on disk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionList {
    /// The sessions.
    pub sessions: Vec<ListedSession>,
    /// Gives the sessions that follow; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// One session on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedSession {
    /// The session's file.
    pub path: String,
    /// The session's id.
    pub id: SessionId,
    /// Its working directory; empty when an old file does not tell.
    pub cwd: String,
    /// Its display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// When it was made, ISO 8601.
    pub created: String,
    /// When it was last appended to, Unix milliseconds.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub modified: u64,
    /// The file of the session that it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    /// The text of the user's first message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_message: Option<String>,
}

/// Deletes the file of a session that no process has open.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteSession {
    /// The session's file.
    pub session_path: String,
}
