//! The steering and follow-up queues.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice;

/// Takes all queued messages out and gives their texts back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClearQueue {}

/// The texts of the messages that were taken out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClearedQueue {
    /// Steering messages, oldest first.
    pub steering: Vec<String>,
    /// Follow-up messages, oldest first.
    pub follow_up: Vec<String>,
}

/// Sets how steering messages are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetSteeringMode {
    /// The mode.
    #[serde(deserialize_with = "choice::read")]
    pub mode: QueueMode,
}

/// Sets how follow-up messages are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SetFollowUpMode {
    /// The mode.
    #[serde(deserialize_with = "choice::read")]
    pub mode: QueueMode,
}

/// How many queued messages are delivered at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueMode {
    /// All of them.
    All,
    /// The oldest one.
    #[default]
    OneAtATime,
}
