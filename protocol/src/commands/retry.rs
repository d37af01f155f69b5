//! Automatic retry.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Turns automatic retry on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SetAutoRetry {
    /// On or off.
    pub enabled: bool,
}

/// Ends the wait before a retry, and with it the retrying.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AbortRetry {}
