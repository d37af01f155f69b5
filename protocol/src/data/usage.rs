//! Token usage and its cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Extra;
use crate::number;

/// Tokens of one response, and what they cost.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Input tokens that were neither read from nor written to the cache.
    #[serde(
        default,
        serialize_with = "number::count::serialize",
        deserialize_with = "number::count::deserialize"
    )]
    pub input: u64,
    /// Output tokens, reasoning included.
    #[serde(
        default,
        serialize_with = "number::count::serialize",
        deserialize_with = "number::count::deserialize"
    )]
    pub output: u64,
    /// Tokens read from the prompt cache.
    #[serde(
        default,
        serialize_with = "number::count::serialize",
        deserialize_with = "number::count::deserialize"
    )]
    pub cache_read: u64,
    /// Tokens written to the prompt cache.
    #[serde(
        default,
        serialize_with = "number::count::serialize",
        deserialize_with = "number::count::deserialize"
    )]
    pub cache_write: u64,
    /// The part of `cacheWrite` that is kept for one hour.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "number::optional_count::serialize",
        deserialize_with = "number::optional_count::deserialize"
    )]
    pub cache_write1h: Option<u64>,
    /// The part of `output` that is reasoning, when the provider tells.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "number::optional_count::serialize",
        deserialize_with = "number::optional_count::deserialize"
    )]
    pub reasoning: Option<u64>,
    /// All tokens of the request and its response.
    #[serde(
        default,
        serialize_with = "number::count::serialize",
        deserialize_with = "number::count::deserialize"
    )]
    pub total_tokens: u64,
    /// What the tokens cost, in US dollars.
    #[serde(default)]
    pub cost: UsageCost,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The cost of one response, in US dollars.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageCost {
    /// Cost of the input tokens.
    #[serde(default, serialize_with = "number::serialize", deserialize_with = "number::deserialize")]
    pub input: f64,
    /// Cost of the output tokens.
    #[serde(default, serialize_with = "number::serialize", deserialize_with = "number::deserialize")]
    pub output: f64,
    /// Cost of reading the cache.
    #[serde(default, serialize_with = "number::serialize", deserialize_with = "number::deserialize")]
    pub cache_read: f64,
    /// Cost of writing the cache.
    #[serde(default, serialize_with = "number::serialize", deserialize_with = "number::deserialize")]
    pub cache_write: f64,
    /// The whole cost: what the provider billed when it says so, else the sum of the parts.
    #[serde(default, serialize_with = "number::serialize", deserialize_with = "number::deserialize")]
    pub total: f64,
    /// True when `total` is the provider's own figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_from_provider: Option<bool>,
}
