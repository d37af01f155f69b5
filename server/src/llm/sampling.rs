//! Fields that the user adds to every request of a model, such as `temperature`.

use serde_json::{Map, Value};

use super::ModelRequest;

/// Adds `samplingParams`, then those of the thinking level; later values win.
pub(crate) fn add(request: &ModelRequest, body: &mut Map<String, Value>) {
    let extra = &request.model.extra;
    let by_level = extra.get("samplingParamsByThinkingLevel");
    let sampling =
        [extra.get("samplingParams"), by_level.and_then(|levels| levels.get(request.thinking.as_str()))];
    for (name, value) in sampling.into_iter().flatten().filter_map(Value::as_object).flatten() {
        body.insert(name.clone(), value.clone());
    }
}
