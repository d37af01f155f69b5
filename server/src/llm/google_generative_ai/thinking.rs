//! How each family of models is told to think.

use sampi_protocol::data::{Model, ThinkingLevel};
use serde_json::{Value, json};

use super::family::Family;
use crate::llm::exchange::Fault;
use crate::llm::{FailureKind, ModelRequest};

/// Lets the model think as much as it likes.
const DYNAMIC: i64 = -1;

/// The levels that Gemini has names for.
const LEVELS: [ThinkingLevel; 4] =
    [ThinkingLevel::Minimal, ThinkingLevel::Low, ThinkingLevel::Medium, ThinkingLevel::High];

/// `thinkingConfig`; nothing for a model that cannot think.
pub(super) fn config(request: &ModelRequest) -> Result<Option<Value>, Fault> {
    let model = &request.model;
    if !model.reasoning {
        return Ok(None);
    }
    let family = Family::of(&model.id);
    if request.thinking == ThinkingLevel::Off {
        return Ok(Some(off(model, family)));
    }
    let level = resolved(model, request.thinking)?;
    Ok(Some(if family.has_thinking_levels() {
        json!({ "includeThoughts": true, "thinkingLevel": level.as_str().to_uppercase() })
    } else {
        json!({ "includeThoughts": true, "thinkingBudget": budget(request, level) })
    }))
}

/// A model that cannot stop thinking (`off` is mapped to `null`) thinks as little as it can.
fn off(model: &Model, family: Family) -> Value {
    if !family.has_thinking_levels() || model.mapped_level(ThinkingLevel::Off) != Some(&Value::Null) {
        return json!({ "thinkingBudget": 0 });
    }
    let least = LEVELS.iter().find(|level| model.mapped_level(**level) != Some(&Value::Null));
    json!({ "thinkingLevel": least.unwrap_or(&ThinkingLevel::High).as_str().to_uppercase() })
}

/// The level under Gemini's name for it, which the model's map may give.
fn resolved(model: &Model, level: ThinkingLevel) -> Result<ThinkingLevel, Fault> {
    match model.mapped_level(level).and_then(Value::as_str) {
        Some(name) => {
            let known = LEVELS.into_iter().find(|known| known.as_str().eq_ignore_ascii_case(name));
            known.ok_or_else(|| {
                let text = format!(
                    "Unsupported Google thinking level mapping for {}/{}: {level} -> {name}",
                    model.provider, model.id
                );
                Fault::of_kind(FailureKind::InvalidRequest, text)
            })
        }
        None => Ok(level.min(ThinkingLevel::High)),
    }
}

fn budget(request: &ModelRequest, level: ThinkingLevel) -> i64 {
    let budgets = &request.options.thinking_budgets;
    let own = match level {
        ThinkingLevel::Off => None,
        ThinkingLevel::Minimal => budgets.minimal,
        ThinkingLevel::Low => budgets.low,
        ThinkingLevel::Medium => budgets.medium,
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => budgets.high,
    };
    if let Some(tokens) = own {
        return i64::try_from(tokens).unwrap_or(i64::MAX);
    }
    // The bounds of the families, from Google's documentation.
    let id = request.model.id.as_str();
    let (least, most) = if id.contains("2.5-pro") {
        (128, 32_768)
    } else if id.contains("2.5-flash-lite") {
        (512, 24_576)
    } else if id.contains("2.5-flash") {
        (128, 24_576)
    } else {
        return DYNAMIC;
    };
    match level {
        ThinkingLevel::Off | ThinkingLevel::Minimal => least,
        ThinkingLevel::Low => 2048,
        ThinkingLevel::Medium => 8192,
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => most,
    }
}
