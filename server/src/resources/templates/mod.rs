//! Prompt templates: Markdown files that become `/name` commands.

mod arguments;

use std::collections::HashMap;
use std::path::PathBuf;

use sampi_protocol::commands::{SlashCommand, SlashCommandSource, SourceInfo};

pub use arguments::{split_arguments, substitute};

use super::discovery::Candidate;
use super::front_matter::{Markdown, read_text};
use super::library::source_of_host;
use crate::ecmascript::is_space;

/// Most UTF-16 units of a description that is taken from the text; what is longer is cut, as in Pi.
const MAX_DERIVED_DESCRIPTION: usize = 60;

/// A prompt template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptTemplate {
    /// The command without the slash: the file's name without `.md`.
    pub name: String,
    /// What it is for: the field `description`, else the first line that is not blank.
    pub description: String,
    /// The field `argument-hint`.
    pub argument_hint: Option<String>,
    /// The text with its placeholders.
    pub content: String,
    /// Where it comes from.
    pub source_info: SourceInfo,
    /// The file.
    pub path: PathBuf,
}

impl PromptTemplate {
    /// A template of a host program, which has no file.
    pub fn new(name: impl Into<String>, description: impl Into<String>, content: impl Into<String>) -> Self {
        let path = PathBuf::new();
        Self {
            name: name.into(),
            description: description.into(),
            argument_hint: None,
            content: content.into(),
            source_info: source_of_host(&path),
            path,
        }
    }

    /// The command that the template is.
    pub fn command(&self) -> SlashCommand {
        SlashCommand {
            name: self.name.clone(),
            description: Some(self.description.clone()),
            source: SlashCommandSource::Prompt,
            source_info: self.source_info.clone(),
        }
    }
}

/// Reads the templates. Of two with one name the first is kept.
pub(super) fn load(candidates: Vec<Candidate>, warnings: &mut Vec<String>) -> Vec<PromptTemplate> {
    let mut templates: Vec<PromptTemplate> = Vec::new();
    let mut names: HashMap<String, usize> = HashMap::new();
    for candidate in candidates {
        let Some(template) = read(candidate, warnings) else { continue };
        match names.get(&template.name).and_then(|at| templates.get(*at)) {
            Some(winner) => warnings.push(format!(
                "{}: ignored, {} is the prompt template /{} already",
                template.path.display(),
                winner.path.display(),
                template.name
            )),
            None => {
                names.insert(template.name.clone(), templates.len());
                templates.push(template);
            }
        }
    }
    templates
}

/// The text that a command line stands for. `None` when it names no template.
pub(super) fn expand(text: &str, templates: &[PromptTemplate]) -> Option<String> {
    let line = text.strip_prefix('/')?;
    let end = line.find(is_space).unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let template = templates.iter().find(|template| template.name == name)?;
    Some(substitute(&template.content, &split_arguments(rest)))
}

fn read(candidate: Candidate, warnings: &mut Vec<String>) -> Option<PromptTemplate> {
    let Candidate { path, source_info, .. } = candidate;
    let mut refuse = |why: &dyn std::fmt::Display| warnings.push(format!("{}: {why}", path.display()));
    let text = match read_text(&path) {
        Ok(text) => text,
        Err(error) => {
            refuse(&error);
            return None;
        }
    };
    let markdown = match Markdown::parse(&text) {
        Ok(markdown) => markdown,
        Err(error) => {
            refuse(&error);
            return None;
        }
    };
    let own = |field| markdown.text(field).filter(|text| !text.is_empty()).map(str::to_owned);
    Some(PromptTemplate {
        name: path.file_stem()?.to_string_lossy().into_owned(),
        description: own("description").unwrap_or_else(|| first_line(&markdown.body)),
        argument_hint: own("argument-hint"),
        content: markdown.body,
        source_info,
        path,
    })
}

fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let mut units = 0;
    for (at, c) in line.char_indices() {
        units += c.len_utf16();
        if units > MAX_DERIVED_DESCRIPTION {
            return format!("{}...", line.get(..at).unwrap_or_default());
        }
    }
    line.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(name: &str, content: &str) -> PromptTemplate {
        let source_info = SourceInfo {
            path: String::new(),
            source: "auto".into(),
            scope: "user".into(),
            origin: "top-level".into(),
            base_dir: None,
        };
        PromptTemplate {
            name: name.into(),
            description: String::new(),
            argument_hint: None,
            content: content.into(),
            source_info,
            path: PathBuf::new(),
        }
    }

    #[test]
    fn a_template_is_named_by_the_whole_first_word_of_the_text() {
        let templates = [template("all", "[$1|$@]"), template("skill:x", "sx"), template("empty", "")];
        for (text, expected) in [
            ("/all", Some("[|]")),
            ("/all a b", Some("[a|a b]")),
            ("/all\nx y", Some("[x|x y]")),
            ("/all\u{a0}x", Some("[x|x]")),
            ("/skill:x y", Some("sx")),
            ("/empty", Some("")),
            ("/ALL x", None),
            ("/all/x", None),
            ("/alll", None),
            (" /all x", None),
            ("/ all", None),
            ("//all", None),
            ("all", None),
            ("/", None),
        ] {
            assert_eq!(expand(text, &templates).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_derived_description_is_the_first_line_that_is_not_blank_cut_after_60_units() {
        for (text, expected) in [
            ("\n\n  \n  first  \nsecond".to_owned(), "  first  ".to_owned()),
            (String::new(), String::new()),
            ("b".repeat(60), "b".repeat(60)),
            ("b".repeat(61), format!("{}...", "b".repeat(60))),
            ("😀".repeat(40), format!("{}...", "😀".repeat(30))),
        ] {
            assert_eq!(first_line(&text), expected);
        }
    }
}
