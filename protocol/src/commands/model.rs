//! Models and thinking levels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice;
use crate::data::{Model, ThinkingLevel};

/// Chooses a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetModel {
    /// The provider's id.
    pub provider: String,
    /// The model's id.
    pub model_id: String,
}

/// Chooses the next model. The result is `null` when there is no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CycleModel {}

/// The model that was chosen by cycling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CycledModel {
    /// The model.
    pub model: Model,
    /// The thinking level that is now in force.
    pub thinking_level: ThinkingLevel,
    /// True when cycling is limited to the models of `--models`.
    pub is_scoped: bool,
}

/// Lists the models whose provider has credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetAvailableModels {}

/// The models whose provider has credentials.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AvailableModels {
    /// The models.
    pub models: Vec<Model>,
}

/// Sets the thinking level; one that the model does not support is clamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SetThinkingLevel {
    /// The level.
    #[serde(deserialize_with = "choice::read")]
    pub level: ThinkingLevel,
}

/// Chooses the next thinking level. The result is `null` when the model cannot think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CycleThinkingLevel {}

/// The level that was chosen by cycling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CycledThinkingLevel {
    /// The level.
    pub level: ThinkingLevel,
}

/// Lists the thinking levels that the model supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetAvailableThinkingLevels {}

/// The thinking levels that the model supports.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AvailableThinkingLevels {
    /// The levels, from low to high; only `off` when the model cannot think.
    pub levels: Vec<ThinkingLevel>,
}
