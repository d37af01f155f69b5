//! Lists of tools that replace a selection or change it.

use serde_json::Value;

/// The tools that are on when nothing else is said.
pub const DEFAULT_TOOLS: [&str; 4] = ["read", "bash", "edit", "write"];

/// True when a list has only `+name` and `-name` entries, so that it changes a selection.
pub fn is_change_list(list: &[String]) -> bool {
    !list.is_empty() && list.iter().all(|entry| entry.starts_with(['+', '-']))
}

/// Applies a list to a selection: plain names replace it, then `+name` and `-name` apply in order.
/// An empty list leaves no tool.
pub fn change_tools(selection: &[String], list: &[String]) -> Vec<String> {
    let mut tools: Vec<String> = Vec::new();
    let add = |tools: &mut Vec<String>, name: &str| {
        if !name.is_empty() && !tools.iter().any(|tool| tool == name) {
            tools.push(name.to_owned());
        }
    };
    let start = if is_change_list(list) { selection } else { list };
    for name in start.iter().filter(|name| !name.starts_with(['+', '-'])) {
        add(&mut tools, name);
    }
    for entry in list {
        if let Some(name) = entry.strip_prefix('+') {
            add(&mut tools, name);
        } else if let Some(name) = entry.strip_prefix('-') {
            tools.retain(|tool| tool != name);
        }
    }
    tools
}

/// One `defaultTools` list that stands for the user's and the project's, where both have one.
pub(super) fn merge(user: Option<&Value>, project: Option<&Value>) -> Option<Value> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (user, project) = (texts(user?), texts(project?));
    if !is_change_list(&project) {
        return None;
    }
    let selection = change_tools(&DEFAULT_TOOLS.map(str::to_owned), &user);
    Some(change_tools(&selection, &project).into())
}
