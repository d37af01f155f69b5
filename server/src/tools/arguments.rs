//! Typed access to the arguments of a call, which have passed the schema.

use serde_json::{Map, Value, json};

use super::ToolError;

/// A text that has to be there.
pub(super) fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str, ToolError> {
    let text = optional_text(arguments, name);
    text.ok_or_else(|| ToolError::new(format!("argument {name} is missing or no string")))
}

/// A text that may be there.
pub(super) fn optional_text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    arguments.get(name)?.as_str()
}

/// A flag; false when it is not there.
pub(super) fn flag(arguments: &Map<String, Value>, name: &str) -> bool {
    arguments.get(name).and_then(Value::as_bool).unwrap_or(false)
}

/// A count that may be there: fractions are dropped, negative numbers are zero.
pub(super) fn count(arguments: &Map<String, Value>, name: &str) -> Option<u64> {
    // The conversion saturates, which is what is meant.
    arguments.get(name)?.as_f64().map(|number| number as u64)
}

/// The schema of a tool's arguments, in the order of Pi's: type, required, properties.
pub(super) fn schema(required: &[&str], properties: &[(&str, Value)]) -> Value {
    let mut schema = Map::new();
    schema.insert("type".into(), json!("object"));
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    let properties = properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone()));
    schema.insert("properties".into(), Value::Object(properties.collect()));
    Value::Object(schema)
}

/// The schema of one value.
pub(super) fn property(kind: &str, description: &str) -> Value {
    json!({ "type": kind, "description": description })
}
