//! Models that answer in place of one that refuses to:
//! <https://platform.claude.com/docs/en/build-with-claude/refusals-and-fallback>

use sampi_protocol::data::{Model, ModelCost};
use serde::Deserialize;
use serde_json::Value;

/// A model that the server may turn to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Fallback {
    /// Its id.
    pub(super) model: String,
    /// What it takes, where that is known.
    #[serde(default)]
    pub(super) cost: Option<ModelCost>,
}

/// The models that the server may turn to, in the order in which it tries them.
pub(super) fn fallbacks(model: &Model) -> Vec<Fallback> {
    let given = model.compat.as_ref().and_then(|compat| compat.get("allowedFallbackModels"));
    let entries = given.and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(|entry| Fallback::deserialize(entry).ok()).collect()
}
