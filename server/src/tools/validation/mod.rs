//! Arguments of tool calls against the tool's schema: small mistakes of models are mended, the others
//! are told in a text that the model can act on.

mod check;
mod coerce;

#[cfg(test)]
mod tests;

use sampi_protocol::data::ToolDefinition;
use serde_json::{Map, Value};

use super::Tool;
use check::check;
use coerce::coerce;

/// Brings the arguments of a call into the form that the tool takes, or tells what is wrong with them.
pub fn prepare_call(tool: &dyn Tool, arguments: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    validate_arguments(tool.definition(), &tool.prepare_arguments(arguments.clone()))
}

/// Mends and checks arguments against the definition's schema. The keys keep their order.
pub fn validate_arguments(
    definition: &ToolDefinition,
    arguments: &Map<String, Value>,
) -> Result<Map<String, Value>, String> {
    let received = Value::Object(arguments.clone());
    let value = coerce(&definition.parameters, received.clone());
    let mut problems = Vec::new();
    check(&definition.parameters, &value, "", &mut problems);
    match value {
        Value::Object(arguments) if problems.is_empty() => Ok(arguments),
        _ => {
            let problems: String = problems.iter().map(|problem| format!("  - {problem}\n")).collect();
            let name = &definition.name;
            let received = to_json(&received);
            Err(format!(
                "Validation failed for tool \"{name}\":\n{problems}\nReceived arguments:\n{received}"
            ))
        }
    }
}

/// What a call whose arguments are no JSON object is answered.
pub fn invalid_arguments(name: &str, arguments_error: &str) -> String {
    format!("Invalid arguments for tool \"{name}\": {arguments_error}")
}

/// What a call of a tool that does not exist is answered.
pub fn tool_not_found(name: &str) -> String {
    format!("Tool {name} not found")
}

/// A number as JavaScript prints it.
pub(super) fn number_text(number: f64) -> String {
    if number == 0.0 {
        "0".to_owned()
    } else if number.abs() >= 1e21 || number.abs() < 1e-6 {
        let text = format!("{number:e}");
        if text.contains("e-") { text } else { text.replace('e', "e+") }
    } else {
        number.to_string()
    }
}

/// JSON as `JSON.stringify(value, null, 2)` writes it.
fn to_json(value: &Value) -> String {
    let mut text = String::new();
    write_json(value, 0, &mut text);
    text
}

fn write_json(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => text.push_str(&number_text(float)),
            _ => text.push_str(&number.to_string()),
        },
        Value::Array(items) if !items.is_empty() => {
            write_block(['[', ']'], items.iter(), depth, text, |item, text| {
                write_json(item, depth + 1, text)
            });
        }
        Value::Object(fields) if !fields.is_empty() => {
            write_block(['{', '}'], fields.iter(), depth, text, |(key, field), text| {
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push_str(": ");
                write_json(field, depth + 1, text);
            });
        }
        other => text.push_str(&other.to_string()),
    }
}

fn write_block<T>(
    brackets: [char; 2],
    items: impl Iterator<Item = T>,
    depth: usize,
    text: &mut String,
    mut write: impl FnMut(T, &mut String),
) {
    text.push(brackets[0]);
    for (index, item) in items.enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.push_str(&"  ".repeat(depth + 1));
        write(item, text);
    }
    text.push('\n');
    text.push_str(&"  ".repeat(depth));
    text.push(brackets[1]);
}
