use serde_json::Value;

/// True when `value` has all that `pattern` has: objects may have more fields, everything else is equal.
pub fn matches(pattern: &Value, value: &Value) -> bool {
    match (pattern, value) {
        (Value::Object(wanted), Value::Object(given)) => {
            wanted.iter().all(|(key, wanted)| given.get(key).is_some_and(|given| matches(wanted, given)))
        }
        (Value::Array(wanted), Value::Array(given)) => {
            wanted.len() == given.len()
                && wanted.iter().zip(given).all(|(wanted, given)| matches(wanted, given))
        }
        _ => pattern == value,
    }
}
