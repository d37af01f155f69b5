//! Mends values that models often send in a slightly wrong form.

use serde_json::{Map, Number, Value};

use super::check::{has_type, is_valid, type_names};
use super::number_text;

/// The value brought near to its schema. What cannot be mended stays as it is, for the check to tell.
pub(super) fn coerce(schema: &Value, value: Value) -> Value {
    let Some(schema) = schema.as_object() else {
        return value;
    };
    if let Some(branches) = union(schema) {
        return coerce_union(branches, value);
    }
    let parts = schema.get("allOf").and_then(Value::as_array);
    let value = parts.into_iter().flatten().fold(value, |value, part| coerce(part, value));
    let value = coerce_type(schema, value);
    match value {
        Value::Object(fields) => Value::Object(coerce_fields(schema, fields)),
        Value::Array(items) => match schema.get("items") {
            Some(item) => Value::Array(items.into_iter().map(|value| coerce(item, value)).collect()),
            None => Value::Array(items),
        },
        other => other,
    }
}

fn union(schema: &Map<String, Value>) -> Option<&Vec<Value>> {
    schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()
}

/// A branch that takes the value as it is goes before one that would change it.
fn coerce_union(branches: &[Value], value: Value) -> Value {
    if branches.iter().any(|branch| is_valid(branch, &value)) {
        return value;
    }
    let mended = branches.iter().map(|branch| (branch, coerce(branch, value.clone())));
    let mended = mended.filter(|(branch, mended)| is_valid(branch, mended)).map(|(_, mended)| mended).next();
    mended.unwrap_or(value)
}

fn coerce_fields(schema: &Map<String, Value>, fields: Map<String, Value>) -> Map<String, Value> {
    let required = |name: &str| {
        let names = schema.get("required").and_then(Value::as_array);
        names.is_some_and(|names| names.iter().any(|known| known == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let mended = fields.into_iter().filter_map(|(name, value)| {
        match properties.and_then(|properties| properties.get(&name)) {
            // Models send null for what they leave out.
            Some(property) if value.is_null() && !required(&name) && !is_valid(property, &value) => None,
            Some(property) => Some((name, coerce(property, value))),
            None => match schema.get("additionalProperties") {
                Some(other) => Some((name, coerce(other, value))),
                None => Some((name, value)),
            },
        }
    });
    mended.collect()
}

fn coerce_type(schema: &Map<String, Value>, value: Value) -> Value {
    let types = type_names(schema);
    if types.is_empty() {
        return coerce_choice(schema, value);
    }
    if types.iter().any(|name| has_type(&value, name)) {
        return value;
    }
    types.iter().find_map(|name| convert(name, &value)).unwrap_or(value)
}

/// One of several values, sent as text.
fn coerce_choice(schema: &Map<String, Value>, value: Value) -> Value {
    let choices = schema.get("enum").and_then(Value::as_array);
    let Some(choices) = choices.filter(|choices| !choices.contains(&value)) else {
        return value;
    };
    let same =
        choices.iter().find(|choice| text_of(choice).is_some_and(|text| Some(text) == text_of(&value)));
    same.cloned().unwrap_or(value)
}

fn convert(to: &str, value: &Value) -> Option<Value> {
    match (to, value) {
        ("string", value) => text_of(value).map(Value::from),
        ("number", value) => number_of(value).and_then(number_value),
        ("integer", value) => number_of(value).map(f64::trunc).and_then(number_value),
        ("boolean", Value::Null) => Some(Value::from(false)),
        ("boolean", Value::String(text)) if text.eq_ignore_ascii_case("true") || text == "1" => {
            Some(Value::from(true))
        }
        ("boolean", Value::String(text)) if text.eq_ignore_ascii_case("false") || text == "0" => {
            Some(Value::from(false))
        }
        ("boolean", Value::Number(number)) if number.as_f64() == Some(1.0) => Some(Value::from(true)),
        ("boolean", Value::Number(number)) if number.as_f64() == Some(0.0) => Some(Value::from(false)),
        ("null", Value::String(text)) if text.is_empty() || text == "null" => Some(Value::Null),
        ("null", Value::Bool(false)) => Some(Value::Null),
        ("null", Value::Number(number)) if number.as_f64() == Some(0.0) => Some(Value::Null),
        ("array", single) => Some(Value::Array(vec![single.clone()])),
        _ => None,
    }
}

/// A single value as text.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some("null".to_owned()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(match number.as_f64() {
            Some(float) if number.is_f64() => number_text(float),
            _ => number.to_string(),
        }),
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
    }
}

fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Null => Some(0.0),
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Value::Number(number) => number.as_f64(),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(1.0),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(0.0),
        Value::String(text) => parse_number(text),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// A finite number as JavaScript's `Number()` reads it: blanks around it, other bases, empty is zero.
fn parse_number(text: &str) -> Option<f64> {
    let text = text.trim();
    if text.is_empty() {
        return Some(0.0);
    }
    for (prefix, radix) in [("0x", 16), ("0X", 16), ("0o", 8), ("0O", 8), ("0b", 2), ("0B", 2)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return u64::from_str_radix(digits, radix).ok().map(|number| number as f64);
        }
    }
    let plain = text.chars().all(|character| character.is_ascii_digit() || "+-.eE".contains(character));
    text.parse::<f64>().ok().filter(|number| plain && number.is_finite())
}

fn number_value(number: f64) -> Option<Value> {
    // Whole numbers stay whole, as the schema and JavaScript see them.
    if number.fract() == 0.0 && number.abs() <= sampi_protocol::number::MAX_SAFE_INTEGER as f64 {
        Some(Value::from(number as i64))
    } else {
        Number::from_f64(number).map(Value::Number)
    }
}
