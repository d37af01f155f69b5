//! Values against JSON Schema, as far as tools use it.

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use serde_json::{Map, Value};

use super::number_text;

/// Adds a line for every place where the value differs from its schema.
pub(super) fn check(schema: &Value, value: &Value, path: &str, problems: &mut Vec<String>) {
    let Some(schema) = schema.as_object() else {
        if schema == &Value::Bool(false) {
            problems.push(line(path, "not allowed"));
        }
        return;
    };
    let types = type_names(schema);
    if !types.is_empty() && !types.iter().any(|name| has_type(value, name)) {
        let expected = types.join(" or ");
        problems.push(line(path, &format!("expected {expected}, got {}", type_of(value))));
        return;
    }
    check_choice(schema, value, path, problems);
    match value {
        Value::Object(fields) => check_fields(schema, fields, path, problems),
        Value::Array(items) => check_items(schema, items, path, problems),
        Value::String(text) => check_text(schema, text, path, problems),
        Value::Number(number) => check_range(schema, number.as_f64().unwrap_or(f64::NAN), path, problems),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Whether a value fits a schema.
pub(super) fn is_valid(schema: &Value, value: &Value) -> bool {
    let mut problems = Vec::new();
    check(schema, value, "", &mut problems);
    problems.is_empty()
}

/// The types that a schema allows; empty for any.
pub(super) fn type_names(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Whether a value has the type of this name.
pub(super) fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "integer" => type_of(value) == "integer",
        "number" => value.is_number(),
        name => type_of(value) == name,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() == 0.0) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn check_choice(schema: &Map<String, Value>, value: &Value, path: &str, problems: &mut Vec<String>) {
    if let Some(expected) = schema.get("const")
        && expected != value
    {
        problems.push(line(path, &format!("expected {expected}")));
    }
    if let Some(choices @ Value::Array(list)) = schema.get("enum")
        && !list.contains(value)
    {
        problems.push(line(path, &format!("expected one of {choices}")));
    }
    if let Some(Value::Array(branches)) = schema.get("anyOf").or_else(|| schema.get("oneOf"))
        && !branches.iter().any(|branch| is_valid(branch, value))
    {
        check_union(branches, value, path, problems);
    }
    if let Some(Value::Array(parts)) = schema.get("allOf") {
        parts.iter().for_each(|part| check(part, value, path, problems));
    }
    if let Some(unwanted) = schema.get("not")
        && is_valid(unwanted, value)
    {
        problems.push(line(path, "must not match the schema in not"));
    }
}

/// Tells what is wrong with the branch that is meant: the one whose constant field is the value's, else
/// the first.
fn check_union(branches: &[Value], value: &Value, path: &str, problems: &mut Vec<String>) {
    let constant = |branch: &Value, name: &str| branch.get("properties")?.get(name)?.get("const").cloned();
    let fields = value.as_object().into_iter().flatten();
    for (name, chosen) in fields {
        let choices: Vec<Value> = branches.iter().filter_map(|branch| constant(branch, name)).collect();
        if choices.len() < branches.len() {
            continue;
        }
        match branches.iter().find(|branch| constant(branch, name).as_ref() == Some(chosen)) {
            Some(branch) => check(branch, value, path, problems),
            None => {
                let choices = Value::Array(choices);
                problems.push(line(&join(path, name), &format!("expected one of {choices}")));
            }
        }
        return;
    }
    if let Some(branch) = branches.first() {
        check(branch, value, path, problems);
    }
}

fn check_fields(
    schema: &Map<String, Value>,
    fields: &Map<String, Value>,
    path: &str,
    problems: &mut Vec<String>,
) {
    let required = schema.get("required").and_then(Value::as_array);
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            problems.push(line(&join(path, name), "missing"));
        }
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if let Some(value) = fields.get(name) {
            check(property, value, &join(path, name), problems);
        }
    }
    if let Some(other) = schema.get("additionalProperties") {
        for (name, value) in fields {
            if !properties.is_some_and(|properties| properties.contains_key(name)) {
                match other {
                    Value::Bool(false) => problems.push(line(&join(path, name), "unknown field")),
                    other => check(other, value, &join(path, name), problems),
                }
            }
        }
    }
}

fn check_items(schema: &Map<String, Value>, items: &[Value], path: &str, problems: &mut Vec<String>) {
    let limit = |name: &str| schema.get(name).and_then(Value::as_u64);
    if let Some(least) = limit("minItems").filter(|least| (items.len() as u64) < *least) {
        problems.push(line(path, &format!("expected at least {least} items")));
    }
    if let Some(most) = limit("maxItems").filter(|most| items.len() as u64 > *most) {
        problems.push(line(path, &format!("expected at most {most} items")));
    }
    let is_repeated = |(index, item): (usize, &Value)| items.iter().take(index).any(|other| other == item);
    if schema.get("uniqueItems") == Some(&Value::Bool(true)) && items.iter().enumerate().any(is_repeated) {
        problems.push(line(path, "expected unique items"));
    }
    if let Some(item) = schema.get("items") {
        for (index, value) in items.iter().enumerate() {
            check(item, value, &join(path, &index.to_string()), problems);
        }
    }
}

fn check_text(schema: &Map<String, Value>, text: &str, path: &str, problems: &mut Vec<String>) {
    let limit = |name: &str| schema.get(name).and_then(Value::as_u64);
    let length = text.chars().count() as u64;
    if let Some(least) = limit("minLength").filter(|least| length < *least) {
        problems.push(line(path, &format!("expected at least {least} characters")));
    }
    if let Some(most) = limit("maxLength").filter(|most| length > *most) {
        problems.push(line(path, &format!("expected at most {most} characters")));
    }
    // A pattern of JavaScript that cannot be read here is left to the tool.
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && let Ok(matcher) = RegexMatcher::new(pattern)
        && !matcher.is_match(text.as_bytes()).unwrap_or(true)
    {
        problems.push(line(path, &format!("expected to match {pattern}")));
    }
}

fn check_range(schema: &Map<String, Value>, number: f64, path: &str, problems: &mut Vec<String>) {
    let limit = |name: &str| schema.get(name).and_then(Value::as_f64);
    let checks = [
        (limit("minimum").filter(|limit| number < *limit), ">="),
        (limit("maximum").filter(|limit| number > *limit), "<="),
        (limit("exclusiveMinimum").filter(|limit| number <= *limit), ">"),
        (limit("exclusiveMaximum").filter(|limit| number >= *limit), "<"),
        (limit("multipleOf").filter(|step| (number / step).fract() != 0.0), "a multiple of"),
    ];
    for (limit, sign) in checks {
        if let Some(limit) = limit {
            problems.push(line(path, &format!("expected {sign} {}", number_text(limit))));
        }
    }
}

fn line(path: &str, problem: &str) -> String {
    let path = if path.is_empty() { "root" } else { path };
    format!("{path}: {problem}")
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
