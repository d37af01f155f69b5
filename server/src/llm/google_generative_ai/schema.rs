//! The parameters of tools as Gemini reads them.

use serde_json::{Value, json};

/// How deep a schema is rewritten; what lies deeper is sent as it stands.
const MAX_DEPTH: usize = 64;

/// Gemini takes JSON Schema, but ignores `const`: for strings and numbers `enum` says the same.
pub(super) fn sanitized(schema: &Value) -> Value {
    rewrite(schema, Place::Schema, MAX_DEPTH)
}

/// What a value is: a schema, a map of names to schemas, or neither.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Schema,
    Names,
    Data,
}

fn rewrite(value: &Value, place: Place, depth: usize) -> Value {
    let Some(deeper) = depth.checked_sub(1).filter(|_| place != Place::Data) else { return value.clone() };
    match value {
        Value::Object(fields) => {
            let has_enum = fields.contains_key("enum");
            let rewritten = fields.iter().map(|(name, value)| match (place, name.as_str()) {
                (Place::Schema, "const") if !has_enum && (value.is_string() || value.is_number()) => {
                    ("enum".to_owned(), json!([value]))
                }
                (Place::Schema, _) => (name.clone(), rewrite(value, below(name), deeper)),
                _ => (name.clone(), rewrite(value, Place::Schema, deeper)),
            });
            Value::Object(rewritten.collect())
        }
        Value::Array(values) => values.iter().map(|value| rewrite(value, place, deeper)).collect(),
        other => other.clone(),
    }
}

fn below(keyword: &str) -> Place {
    match keyword {
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => Place::Names,
        "const" | "enum" | "default" | "examples" | "required" => Place::Data,
        _ => Place::Schema,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_becomes_a_list_of_one_and_a_property_of_that_name_stays() {
        let schema = json!({
            "$defs": { "q": { "const": "a" } },
            "properties": {
                "a": { "const": "one" },
                "b": { "anyOf": [{ "const": 1 }, { "type": "null" }] },
                "c": { "const": true },
                "const": { "type": "string", "default": { "const": "x" } },
                "g": { "enum": ["a"], "const": "a" },
            },
        });
        assert_eq!(
            sanitized(&schema),
            json!({
                "$defs": { "q": { "enum": ["a"] } },
                "properties": {
                    "a": { "enum": ["one"] },
                    "b": { "anyOf": [{ "enum": [1] }, { "type": "null" }] },
                    "c": { "const": true },
                    "const": { "type": "string", "default": { "const": "x" } },
                    "g": { "enum": ["a"], "const": "a" },
                },
            })
        );
    }
}
