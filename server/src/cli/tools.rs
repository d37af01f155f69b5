//! Which tools the command line selects.

use crate::resources::settings::{change_tools, is_change_list};

/// What the selection starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolStart {
    /// The default tools of the settings.
    #[default]
    Defaults,
    /// No built-in tool (`--no-builtin-tools`).
    NoBuiltins,
    /// No tool (`--no-tools`).
    Nothing,
}

/// The tool options of the command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolSelection {
    /// What the selection starts from.
    pub start: ToolStart,
    /// `--tools`, split. `None` when it was not given.
    pub list: Option<Vec<String>>,
    /// `--exclude-tools`, split.
    pub exclude: Vec<String>,
}

impl ToolSelection {
    /// True when the command line says nothing about tools, so that a resumed session keeps its own.
    pub fn follows_session(&self) -> bool {
        *self == Self::default()
    }

    /// The tools to enable, of those that are known, and the entries that name none of them.
    ///
    /// `defaults` are the default tools of the settings, `own` those that a host brings and that are on by
    /// default, `known` the names of all tools in their order.
    pub fn select(
        &self,
        defaults: &[String],
        own: &[String],
        known: &[String],
    ) -> (Vec<String>, Vec<String>) {
        let start = match self.start {
            ToolStart::Defaults => [defaults, own].concat(),
            ToolStart::NoBuiltins => own.to_vec(),
            ToolStart::Nothing => Vec::new(),
        };
        let mut unknown = Vec::new();
        let mut tools: Vec<String> = Vec::new();
        match &self.list {
            Some(list) if !is_change_list(list) => {
                for entry in list {
                    let matching: Vec<&str> =
                        known.iter().map(String::as_str).filter(|name| matches(entry, name)).collect();
                    if matching.is_empty() {
                        unknown.push(entry.clone());
                    }
                    tools.extend(matching.into_iter().map(str::to_owned));
                }
            }
            Some(list) => {
                let names = list.iter().filter_map(|entry| entry.strip_prefix('+'));
                let is_known = |name: &str| known.iter().any(|known| known == name);
                unknown.extend(names.filter(|name| !is_known(name)).map(str::to_owned));
                tools = change_tools(&start, list);
            }
            None => tools = start,
        }
        let mut selected: Vec<String> = Vec::new();
        for tool in tools {
            let excluded = self.exclude.iter().any(|pattern| matches(pattern, &tool));
            if known.contains(&tool) && !excluded && !selected.contains(&tool) {
                selected.push(tool);
            }
        }
        (selected, unknown)
    }
}

/// True when a name fits a pattern, in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}
