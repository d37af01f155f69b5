//! Which tools there are, and which of them are on.

use std::sync::Arc;

use super::{BashTool, EditTool, FindTool, GrepTool, LsTool, ReadTool, Tool, WriteTool};

/// The tools that are on unless something else is asked for.
pub const DEFAULT_TOOLS: [&str; 4] = ["read", "bash", "edit", "write"];

/// Where a tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSource {
    /// It is part of the daemon.
    Builtin,
    /// An extension or a host brought it. On by default.
    Extension,
}

/// Tools by name, in a fixed order.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: Vec<(ToolSource, Arc<dyn Tool>)>,
}

impl ToolSet {
    /// The tools that are part of the daemon.
    pub fn builtin() -> Self {
        let tools: [Arc<dyn Tool>; 7] = [
            Arc::new(ReadTool::default()),
            Arc::new(BashTool::default()),
            Arc::new(EditTool::default()),
            Arc::new(WriteTool::default()),
            Arc::new(GrepTool::default()),
            Arc::new(FindTool::default()),
            Arc::new(LsTool::default()),
        ];
        Self { tools: tools.into_iter().map(|tool| (ToolSource::Builtin, tool)).collect() }
    }

    /// Adds a tool; one of the same name gives way, in its place.
    pub fn insert(&mut self, source: ToolSource, tool: Arc<dyn Tool>) {
        let name = &tool.definition().name;
        match self.tools.iter_mut().find(|(_, known)| known.definition().name == *name) {
            Some(known) => *known = (source, tool),
            None => self.tools.push((source, tool)),
        }
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().map(|(_, tool)| tool).find(|tool| tool.definition().name == name)
    }

    /// All tools.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter().map(|(_, tool)| tool)
    }

    /// The tools that a selection turns on, in its order.
    pub fn select(&self, selection: &Selection) -> Result<Vec<Arc<dyn Tool>>, SelectionError> {
        let available: Vec<(&str, ToolSource)> =
            self.tools.iter().map(|(source, tool)| (tool.definition().name.as_str(), *source)).collect();
        let names = select(&available, &DEFAULT_TOOLS, selection)?;
        Ok(names.iter().filter_map(|name| self.get(name)).cloned().collect())
    }
}

impl std::fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|tool| &tool.definition().name)).finish()
    }
}

/// What is on before lists of names change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartWith {
    /// The default tools, and those of extensions.
    #[default]
    Defaults,
    /// Only those of extensions (`--no-builtin-tools`).
    NoBuiltins,
    /// Nothing (`--no-tools`).
    Nothing,
}

/// What the command line and the settings say about tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// What is on before `tools` changes it.
    pub start_with: StartWith,
    /// The lists `defaultTools` of the settings, the user's before the project's.
    pub default_tools: Vec<Vec<String>>,
    /// The list of `--tools`: names and patterns, or only `+name` and `-name`.
    pub tools: Option<Vec<String>>,
    /// The list of `--exclude-tools`: names and patterns.
    pub exclude: Vec<String>,
}

/// A list that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// Names and changes in one list.
    #[error("--tools: tool names cannot be mixed with +name or -name entries")]
    Mixed,
    /// A change of a pattern.
    #[error("--tools: +name and -name entries take exact tool names, not patterns: {0}")]
    Pattern(String),
}

/// Splits a list of the command line at its commas.
pub fn parse_list(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}

/// The names of the tools that are on: `defaults` changed by the selection, only those that exist.
pub fn select(
    available: &[(&str, ToolSource)],
    defaults: &[&str],
    selection: &Selection,
) -> Result<Vec<String>, SelectionError> {
    let mut selected = match &selection.tools {
        Some(entries) if !is_change_list(entries)? => allowed(available, entries),
        changes => {
            let mut selected = start(available, defaults, selection);
            apply(&mut selected, changes.as_deref().unwrap_or_default());
            selected
        }
    };
    selected.retain(|name| available.iter().any(|(known, _)| known == name));
    selected.retain(|name| !selection.exclude.iter().any(|pattern| matches(pattern, name)));
    Ok(selected)
}

fn start(available: &[(&str, ToolSource)], defaults: &[&str], selection: &Selection) -> Vec<String> {
    let mut selected = Vec::new();
    if selection.start_with == StartWith::Defaults {
        selected.extend(defaults.iter().map(|name| (*name).to_owned()));
        for list in &selection.default_tools {
            if list.is_empty() || list.iter().any(|entry| change(entry).is_none()) {
                selected.clear();
                list.iter().filter(|entry| change(entry).is_none()).for_each(|name| add(&mut selected, name));
            }
            apply(&mut selected, list);
        }
    }
    if selection.start_with != StartWith::Nothing {
        let extensions = available.iter().filter(|(_, source)| *source == ToolSource::Extension);
        extensions.for_each(|(name, _)| add(&mut selected, name));
    }
    selected
}

/// Names first, in their order, then what the patterns match, in the order of the tools.
fn allowed(available: &[(&str, ToolSource)], entries: &[String]) -> Vec<String> {
    let (patterns, names): (Vec<&String>, Vec<&String>) =
        entries.iter().partition(|entry| entry.contains('*'));
    let mut selected = Vec::new();
    names.into_iter().for_each(|name| add(&mut selected, name));
    for (name, _) in available {
        if patterns.iter().any(|pattern| matches(pattern, name)) {
            add(&mut selected, name);
        }
    }
    selected
}

/// True for a list of only `+name` and `-name`.
fn is_change_list(entries: &[String]) -> Result<bool, SelectionError> {
    let changes: Vec<&String> = entries.iter().filter(|entry| change(entry).is_some()).collect();
    if changes.is_empty() {
        return Ok(false);
    }
    if changes.len() < entries.len() {
        return Err(SelectionError::Mixed);
    }
    match changes.into_iter().find(|entry| entry.contains('*')) {
        Some(entry) => Err(SelectionError::Pattern(entry.clone())),
        None => Ok(true),
    }
}

enum Change<'a> {
    Add(&'a str),
    Remove(&'a str),
}

fn change(entry: &str) -> Option<Change<'_>> {
    match (entry.strip_prefix('+'), entry.strip_prefix('-')) {
        (Some(name), _) => Some(Change::Add(name)),
        (None, Some(name)) => Some(Change::Remove(name)),
        (None, None) => None,
    }
}

fn apply(selected: &mut Vec<String>, entries: &[String]) {
    for entry in entries {
        match change(entry) {
            Some(Change::Add(name)) => add(selected, name),
            Some(Change::Remove(name)) => selected.retain(|known| known != name),
            None => {}
        }
    }
}

fn add(selected: &mut Vec<String>, name: &str) {
    if !selected.iter().any(|known| known == name) {
        selected.push(name.to_owned());
    }
}

/// Whether a name matches a pattern in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        parse_list(text)
    }

    fn names(selection: Selection) -> Result<String, String> {
        let tools = ToolSet::builtin().select(&selection).map_err(|error| error.to_string())?;
        Ok(tools.iter().map(|tool| tool.definition().name.clone()).collect::<Vec<_>>().join(" "))
    }

    fn cli(tools: &str) -> Result<String, String> {
        names(Selection { tools: Some(list(tools)), ..Selection::default() })
    }

    fn settings(lists: &[&str]) -> String {
        let default_tools = lists.iter().map(|text| list(text)).collect();
        names(Selection { default_tools, ..Selection::default() }).unwrap()
    }

    #[test]
    fn names_and_patterns_replace_the_defaults() {
        assert_eq!(cli("grep,read").unwrap(), "grep read");
        assert_eq!(cli("r*,ls").unwrap(), "ls read");
        assert_eq!(cli("*").unwrap(), "read bash edit write grep find ls");
        assert_eq!(cli(" read , ls ,read").unwrap(), "read ls");
        assert_eq!(cli("nosuch").unwrap(), "");
        assert_eq!(cli("READ").unwrap(), "");
        assert_eq!(cli("").unwrap(), "");
    }

    #[test]
    fn changes_change_the_defaults_in_order() {
        assert_eq!(cli("+grep,-write").unwrap(), "read bash edit grep");
        assert_eq!(cli("-read,+read").unwrap(), "bash edit write read");
        assert_eq!(cli("+nosuch").unwrap(), "read bash edit write");
        let mixed = "--tools: tool names cannot be mixed with +name or -name entries";
        assert_eq!(cli("grep,+ls").unwrap_err(), mixed);
        let pattern = "--tools: +name and -name entries take exact tool names, not patterns: -*";
        assert_eq!(cli("-*").unwrap_err(), pattern);
    }

    #[test]
    fn settings_apply_in_layers() {
        assert_eq!(settings(&["read,grep"]), "read grep");
        assert_eq!(settings(&["+ls,-bash"]), "read edit write ls");
        assert_eq!(settings(&["ls,+grep,-ls"]), "grep");
        assert_eq!(settings(&[""]), "");
        assert_eq!(settings(&["r*"]), "");
        assert_eq!(settings(&["read,grep", "+ls"]), "read grep ls");
        assert_eq!(settings(&["+ls", "bash"]), "bash");
        let default_tools = vec![list("read,grep")];
        let both = Selection { default_tools, tools: Some(list("+ls")), ..Selection::default() };
        assert_eq!(names(both).unwrap(), "read grep ls");
    }

    #[test]
    fn the_start_and_the_exclusions_count() {
        for start_with in [StartWith::NoBuiltins, StartWith::Nothing] {
            let with = |tools: Option<&str>| {
                names(Selection { start_with, tools: tools.map(list), ..Selection::default() }).unwrap()
            };
            assert_eq!(with(None), "");
            assert_eq!(with(Some("read")), "read");
            assert_eq!(with(Some("+ls")), "ls");
        }
        let without =
            |exclude: &str| names(Selection { exclude: list(exclude), ..Selection::default() }).unwrap();
        assert_eq!(without("b*,edit"), "read write");
        assert_eq!(without("*"), "");
        assert_eq!(without("r"), "read bash edit write");
        assert_eq!(without("*i*e"), "read bash edit");
    }

    #[test]
    fn tools_of_extensions_are_on_unless_left_out() {
        let available = [("read", ToolSource::Builtin), ("mine", ToolSource::Extension)];
        let select = |selection| select(&available, &["read"], &selection).unwrap().join(" ");
        assert_eq!(select(Selection::default()), "read mine");
        assert_eq!(select(Selection { default_tools: vec![vec![]], ..Selection::default() }), "mine");
        assert_eq!(select(Selection { start_with: StartWith::NoBuiltins, ..Selection::default() }), "mine");
        assert_eq!(select(Selection { start_with: StartWith::Nothing, ..Selection::default() }), "");
        assert_eq!(select(Selection { tools: Some(list("read")), ..Selection::default() }), "read");
    }
}
