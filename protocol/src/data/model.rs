//! Models and thinking levels.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Extra;
use crate::number;

/// A model that can be chosen. Costs are US dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    /// The model's id, as sent to the API.
    pub id: String,
    /// Display name.
    pub name: String,
    /// The API it speaks, such as `openai-completions`.
    pub api: String,
    /// The provider's id.
    pub provider: String,
    /// Base URL of the API.
    pub base_url: String,
    /// True when the model can think.
    pub reasoning: bool,
    /// The provider's value for each thinking level; `null` marks a level as not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_level_map: Option<Map<String, Value>>,
    /// What the model takes: `text`, `image`.
    pub input: Vec<String>,
    /// Prices.
    pub cost: ModelCost,
    /// Context window in tokens.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub context_window: u64,
    /// Largest output in tokens.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub max_tokens: u64,
    /// Deviations from the API's standard behaviour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compat: Option<Map<String, Value>>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Model {
    /// True when the model takes images.
    pub fn takes_images(&self) -> bool {
        self.input.iter().any(|kind| kind == "image")
    }

    /// What `thinkingLevelMap` says of a level: the provider's own name of it, or `null` for one that the model does
    /// not have.
    pub fn mapped_level(&self, level: ThinkingLevel) -> Option<&Value> {
        self.thinking_level_map.as_ref()?.get(level.as_str())
    }

    /// The thinking levels that can be chosen, from low to high.
    pub fn thinking_levels(&self) -> Vec<ThinkingLevel> {
        if !self.reasoning {
            return vec![ThinkingLevel::Off];
        }
        ThinkingLevel::ALL
            .into_iter()
            .filter(|level| match self.mapped_level(*level) {
                Some(Value::Null) => false,
                Some(_) => true,
                None => *level <= ThinkingLevel::High,
            })
            .collect()
    }

    /// The supported level that is nearest to the wanted one: itself, else the next higher one, else
    /// the highest.
    pub fn clamp_thinking(&self, wanted: ThinkingLevel) -> ThinkingLevel {
        let levels = self.thinking_levels();
        levels
            .iter()
            .copied()
            .find(|level| *level >= wanted)
            .or_else(|| levels.last().copied())
            .unwrap_or(ThinkingLevel::Off)
    }
}

/// Prices in US dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelCost {
    /// Input tokens.
    #[serde(serialize_with = "number::serialize", deserialize_with = "number::deserialize")]
    pub input: f64,
    /// Output tokens.
    #[serde(serialize_with = "number::serialize", deserialize_with = "number::deserialize")]
    pub output: f64,
    /// Tokens read from the cache.
    #[serde(serialize_with = "number::serialize", deserialize_with = "number::deserialize")]
    pub cache_read: f64,
    /// Tokens written to the cache.
    #[serde(serialize_with = "number::serialize", deserialize_with = "number::deserialize")]
    pub cache_write: f64,
    /// Prices of long requests; the highest threshold that the request's input passes applies to all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tiers: Option<Vec<CostTier>>,
}

/// Prices that apply above a number of input tokens.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CostTier {
    /// The threshold, in input tokens.
    #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
    pub input_tokens_above: u64,
    /// Input tokens.
    #[serde(serialize_with = "number::serialize", deserialize_with = "number::deserialize")]
    pub input: f64,
    /// Output tokens.
    #[serde(serialize_with = "number::serialize", deserialize_with = "number::deserialize")]
    pub output: f64,
    /// Tokens read from the cache.
    #[serde(serialize_with = "number::serialize", deserialize_with = "number::deserialize")]
    pub cache_read: f64,
    /// Tokens written to the cache.
    #[serde(serialize_with = "number::serialize", deserialize_with = "number::deserialize")]
    pub cache_write: f64,
}

/// How much the model should think.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// Not at all.
    #[default]
    Off,
    /// As little as the model can.
    Minimal,
    /// A little.
    Low,
    /// The usual amount.
    Medium,
    /// A lot.
    High,
    /// More than a lot; only some models.
    Xhigh,
    /// All it can; only some models.
    Max,
}

impl ThinkingLevel {
    /// Every level, from low to high.
    pub const ALL: [Self; 7] =
        [Self::Off, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    /// The wire name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// The level of a wire name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }
}

impl fmt::Display for ThinkingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(map: Value) -> Model {
        Model { reasoning: true, thinking_level_map: map.as_object().cloned(), ..Model::default() }
    }

    #[test]
    fn xhigh_and_max_need_the_models_word_and_null_takes_a_level_away() {
        assert_eq!(Model::default().thinking_levels(), [ThinkingLevel::Off]);
        assert_eq!(model(Value::Null).thinking_levels().last(), Some(&ThinkingLevel::High));
        let mapped = model(serde_json::json!({ "xhigh": "xhigh", "minimal": null, "off": null }));
        assert_eq!(
            mapped.thinking_levels(),
            [ThinkingLevel::Low, ThinkingLevel::Medium, ThinkingLevel::High, ThinkingLevel::Xhigh]
        );
    }

    #[test]
    fn a_level_that_is_not_supported_is_clamped() {
        assert_eq!(model(Value::Null).clamp_thinking(ThinkingLevel::Max), ThinkingLevel::High);
        assert_eq!(Model::default().clamp_thinking(ThinkingLevel::High), ThinkingLevel::Off);
        let mapped = model(serde_json::json!({ "minimal": null }));
        assert_eq!(mapped.clamp_thinking(ThinkingLevel::Minimal), ThinkingLevel::Low);
    }
}
