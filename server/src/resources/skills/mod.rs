//! Skills: instructions in folders that the model loads when a task calls for them.

mod section;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use sampi_protocol::commands::{SlashCommand, SlashCommandSource, SourceInfo};

pub use section::skills_section;

use super::discovery::Candidate;
use super::front_matter::{Markdown, read_text};
use super::library::source_of_host;

/// Most characters of a name, by the Agent Skills specification.
const MAX_NAME: usize = 64;

/// Most characters of a description, by the Agent Skills specification.
const MAX_DESCRIPTION: usize = 1024;

/// What a command that loads a skill starts with.
const COMMAND_PREFIX: &str = "skill:";

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// The field `name`, else the name of the folder.
    pub name: String,
    /// What it is for, and when.
    pub description: String,
    /// True when only the user may load it.
    pub disable_model_invocation: bool,
    /// The file.
    pub path: PathBuf,
    /// Where it comes from.
    pub source_info: SourceInfo,
}

/// A skill whose file cannot be read any more.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub struct SkillError {
    /// The file.
    pub path: String,
    /// Why.
    pub reason: String,
}

impl Skill {
    /// A skill of a host program. The text is read from the file when the skill is used.
    pub fn new(name: impl Into<String>, description: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self {
            name: name.into(),
            description: description.into(),
            disable_model_invocation: false,
            source_info: source_of_host(&path),
            path,
        }
    }

    /// The folder that the skill's own paths start at.
    pub fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// The command that loads the skill.
    pub fn command(&self) -> SlashCommand {
        SlashCommand {
            name: format!("{COMMAND_PREFIX}{}", self.name),
            description: Some(self.description.clone()),
            source: SlashCommandSource::Skill,
            source_info: self.source_info.clone(),
        }
    }

    /// The message that loads the skill, with what the user wants of it.
    fn message(&self, request: &str) -> Result<String, SkillError> {
        let fail = |reason: String| SkillError { path: self.path.to_string_lossy().into_owned(), reason };
        // Read anew: the skill may have been edited since the start.
        let text =
            read_text(&self.path).map_err(|error| fail(format!("the skill cannot be read: {error}")))?;
        let markdown = Markdown::parse(&text).map_err(|error| fail(error.to_string()))?;
        let (name, file, dir) = (&self.name, self.path.display(), self.dir().display());
        let mut message = format!(
            "<skill name=\"{name}\" location=\"{file}\">\nReferences are relative to {dir}.\n\n{}\n</skill>",
            markdown.body.trim()
        );
        if !request.is_empty() {
            message.push_str("\n\n");
            message.push_str(request);
        }
        Ok(message)
    }
}

/// Reads the skills. Of two with one name the first is kept.
pub(super) fn load(candidates: Vec<Candidate>, warnings: &mut Vec<String>) -> Vec<Skill> {
    let mut skills: Vec<Skill> = Vec::new();
    let mut names: HashMap<String, usize> = HashMap::new();
    for candidate in candidates {
        let Some(skill) = read(candidate, warnings) else { continue };
        match names.get(&skill.name).and_then(|at| skills.get(*at)) {
            Some(winner) => warnings.push(format!(
                "{}: ignored, {} is the skill {} already",
                skill.path.display(),
                winner.path.display(),
                skill.name
            )),
            None => {
                names.insert(skill.name.clone(), skills.len());
                skills.push(skill);
            }
        }
    }
    skills
}

/// The message that `/skill:name request` stands for. `None` when the text names no skill.
pub(super) fn expand(text: &str, skills: &[Skill]) -> Result<Option<String>, SkillError> {
    let Some(line) = text.strip_prefix('/').and_then(|line| line.strip_prefix(COMMAND_PREFIX)) else {
        return Ok(None);
    };
    let (name, request) = line.split_once(' ').unwrap_or((line, ""));
    match skills.iter().find(|skill| skill.name == name) {
        Some(skill) => skill.message(request.trim()).map(Some),
        None => Ok(None),
    }
}

fn read(candidate: Candidate, warnings: &mut Vec<String>) -> Option<Skill> {
    let Candidate { path, declared, source_info } = candidate;
    // A Markdown file beside the skills, such as a README, need not be one.
    let mut refuse = |why: &dyn std::fmt::Display| {
        if declared {
            warnings.push(format!("{}: {why}; the skill is not loaded", path.display()));
        }
    };
    let markdown = match read_text(&path) {
        Ok(text) => match Markdown::parse(&text) {
            Ok(markdown) => markdown,
            Err(error) => {
                refuse(&error);
                return None;
            }
        },
        Err(error) => {
            refuse(&error);
            return None;
        }
    };
    let description = markdown.text("description").unwrap_or_default().to_owned();
    if description.trim().is_empty() {
        refuse(&"description is required");
        return None;
    }
    let folder =
        || path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    let name = markdown.text("name").filter(|name| !name.is_empty()).map_or_else(folder, str::to_owned);
    warnings.extend(
        name_faults(&name)
            .into_iter()
            .chain(description_fault(&description))
            .map(|fault| format!("{}: {fault}", path.display())),
    );
    Some(Skill {
        name,
        description,
        disable_model_invocation: markdown.flag("disable-model-invocation"),
        path,
        source_info,
    })
}

/// What is wrong with a name; such a skill is loaded all the same.
fn name_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let length = name.chars().count();
    if length > MAX_NAME {
        faults.push(format!("name exceeds {MAX_NAME} characters ({length})"));
    }
    if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
        faults.push("name contains invalid characters (must be lowercase a-z, 0-9, hyphens only)".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        faults.push("name must not start or end with a hyphen".to_owned());
    }
    if name.contains("--") {
        faults.push("name must not contain consecutive hyphens".to_owned());
    }
    faults
}

fn description_fault(description: &str) -> Option<String> {
    let length = description.chars().count();
    (length > MAX_DESCRIPTION).then(|| format!("description exceeds {MAX_DESCRIPTION} characters ({length})"))
}
