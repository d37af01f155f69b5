use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::builder::Workspace;

/// Fields whose value is a matter of timing or of the machine.
const DROPPED: &[&str] = &["totalFromProvider", "durationMs", "diagnostics", "wall_time_seconds"];

/// Fields that hold an entry's id.
const ENTRY_IDS: &[&str] = &["id", "parentId", "entryId", "leafId", "firstKeptEntryId", "targetId", "fromId"];

/// Turns records into text that does not change from run to run: paths, ids and times get names, deltas of
/// one block are joined, tools that end side by side are sorted.
#[derive(Debug)]
pub struct Normaliser {
    roots: Vec<(String, &'static str)>,
    entries: HashMap<String, String>,
}

impl Normaliser {
    /// A normaliser for what a daemon in this workspace wrote.
    pub fn new(workspace: &Workspace) -> Self {
        let root = workspace.root().to_string_lossy().into_owned();
        let dashed = root.replace('/', "-");
        Self { roots: vec![(root, "<ROOT>"), (dashed, "-ROOT")], entries: HashMap::new() }
    }

    /// Events in order, a line each; then the responses in order.
    pub fn transcript(mut self, records: impl IntoIterator<Item = Value>) -> String {
        let (mut events, mut responses) = (Vec::new(), Vec::new());
        for record in records {
            let record = self.value("", record);
            match record["type"].as_str() {
                Some("response") => responses.push(record),
                Some("tool_execution_update") => {}
                _ => add_event(&mut events, record),
            }
        }
        for ends in events.chunk_by_mut(|a, b| is_tool_end(a) && is_tool_end(b)) {
            ends.sort_by_key(|event| event["toolCallId"].to_string());
        }
        let lines = |records: &[Value]| records.iter().map(|line| format!("{line}\n")).collect::<String>();
        format!("{}-- responses\n{}", lines(&events), lines(&responses))
    }

    fn value(&mut self, key: &str, value: Value) -> Value {
        match value {
            Value::Object(fields) if fields.get("role").is_some_and(|role| role == "system") => {
                let tools = fields.get("toolsAdded").and_then(Value::as_array).cloned().unwrap_or_default();
                let names: Vec<Value> = tools.into_iter().map(|tool| tool["name"].clone()).collect();
                json!({ "role": "system", "toolsAdded": names })
            }
            Value::Object(fields) => {
                let kept = fields.into_iter().filter(|(key, _)| !DROPPED.contains(&key.as_str()));
                let mut fields: Vec<(String, Value)> =
                    kept.map(|(key, value)| (key.clone(), self.value(&key, value))).collect();
                // The order of fields is no part of the protocol; `type` first reads best.
                fields.sort_by(|(a, _), (b, _)| (a != "type", a).cmp(&(b != "type", b)));
                Value::Object(Map::from_iter(fields))
            }
            Value::Array(items) => items.into_iter().map(|item| self.value(key, item)).collect(),
            Value::Number(_) if key == "timestamp" => json!("<MS>"),
            Value::Number(number) => rounded(number),
            Value::String(text) if ENTRY_IDS.contains(&key) && is_entry_id(&text) => {
                let next = format!("E{}", self.entries.len());
                json!(self.entries.entry(text).or_insert(next))
            }
            Value::String(text) => json!(self.text(text)),
            other => other,
        }
    }

    fn text(&self, mut text: String) -> String {
        for (root, name) in &self.roots {
            text = text.replace(root, name);
        }
        replace_tokens(&text)
    }
}

fn add_event(events: &mut Vec<Value>, mut event: Value) {
    match event["type"].as_str() {
        Some("message_update") => {
            event.as_object_mut().map(|fields| fields.remove("usage"));
            let delta = &event["assistantMessageEvent"];
            let is_delta = delta["type"].as_str().is_some_and(|kind| kind.ends_with("_delta"));
            let last = events.last_mut().map(|last| &mut last["assistantMessageEvent"]);
            if is_delta && last.is_some_and(|last| join(last, delta, &["type", "contentIndex"])) {
                return;
            }
        }
        Some("message_start") if event["message"]["stopReason"] == "pending" => {
            event["message"]["content"] = json!([]);
        }
        Some("bash_execution_update")
            if events.last_mut().is_some_and(|last| join(last, &event, &["type", "id"])) =>
        {
            return;
        }
        _ => {}
    }
    events.push(event);
}

/// Appends the delta to the last one when both are about the same thing.
fn join(last: &mut Value, next: &Value, same: &[&str]) -> bool {
    let (Some(fields), Some(delta)) = (last.as_object_mut(), next["delta"].as_str()) else { return false };
    if same.iter().any(|key| fields.get(*key) != next.get(*key)) {
        return false;
    }
    let Some(Value::String(text)) = fields.get_mut("delta") else { return false };
    text.push_str(delta);
    true
}

fn is_tool_end(event: &Value) -> bool {
    event["type"] == "tool_execution_end"
}

fn rounded(number: serde_json::Number) -> Value {
    match number.as_f64() {
        // Nine digits, as the last ones depend on the order of additions; 1.0 and 1 are the same number.
        Some(float) if !number.is_i64() && !number.is_u64() => {
            let text = format!("{float:.8e}");
            let float: f64 = text.parse().unwrap_or(float);
            json!(float)
        }
        _ => Value::Number(number),
    }
}

fn is_entry_id(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(is_hex)
}

fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// Replaces UUIDs, ISO times, the model server's address and the names of output files.
fn replace_tokens(text: &str) -> String {
    const UUID: &str = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";
    const TIME: &str = "dddd-dd-ddTdd?dd?dd?dddZ";
    const HOST: &str = "127.0.0.1:";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, name) = if has_shape(rest, UUID) {
            (UUID.len(), "<UUID>")
        } else if has_shape(rest, TIME) {
            (TIME.len(), "<TS>")
        } else if let Some(port) = rest.strip_prefix(HOST) {
            (HOST.len() + port.bytes().take_while(u8::is_ascii_digit).count(), "<HOST>")
        } else if rest.starts_with("pi-bash-") {
            (
                rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(byte)).count(),
                "<LOG>",
            )
        } else {
            (first.len_utf8(), &rest[..first.len_utf8()])
        };
        out.push_str(name);
        rest = &rest[length..];
    }
    out
}

/// `h` is a hexadecimal digit, `d` a decimal one, `?` one of `-:.`; everything else is itself.
fn has_shape(text: &str, shape: &str) -> bool {
    text.len() >= shape.len()
        && text.bytes().zip(shape.bytes()).all(|(byte, shape)| match shape {
            b'h' => is_hex(byte),
            b'd' => byte.is_ascii_digit(),
            b'?' => b"-:.".contains(&byte),
            other => byte == other,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_times_and_addresses_get_names() {
        let text =
            "a 2026-01-02T03-04-05-678Z_01234567-89ab-cdef-0123-456789abcdef.jsonl é http://127.0.0.1:80/v1";
        assert_eq!(replace_tokens(text), "a <TS>_<UUID>.jsonl é http://<HOST>/v1");
    }

    #[test]
    fn deltas_of_one_block_are_joined_and_others_are_not() {
        let delta = |index: u32, text: &str| {
            let event = json!({ "type": "text_delta", "contentIndex": index, "delta": text });
            json!({ "type": "message_update", "usage": {}, "assistantMessageEvent": event })
        };
        let records = [delta(0, "a"), delta(0, "b"), delta(1, "c")];
        let text = Normaliser::new(&Workspace::new()).transcript(records);
        let deltas: Vec<String> = (text.lines().take_while(|line| *line != "-- responses"))
            .filter_map(|line| {
                serde_json::from_str::<Value>(line).unwrap()["assistantMessageEvent"]["delta"]
                    .as_str()
                    .map(str::to_owned)
            })
            .collect();
        assert_eq!(deltas, ["ab", "c"]);
    }
}
