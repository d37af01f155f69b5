//! Skills, prompt templates and instruction files of a run, together.

use sampi_protocol::commands::{SlashCommand, SourceInfo};

use super::context_files::load_context_files;
use super::discovery::{self, ResourceKind, ResourceSources};
use super::skills::{self, Skill, SkillError};
use super::system_prompt::ContextFile;
use super::templates::{self, PromptTemplate};
use super::{Environment, Paths};

/// What a run has besides its settings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resources {
    /// The skills, in the order of their places.
    pub skills: Vec<Skill>,
    /// The prompt templates, in the order of their places.
    pub templates: Vec<PromptTemplate>,
    /// The instruction files, the most general first.
    pub context_files: Vec<ContextFile>,
}

/// What to load.
#[derive(Debug, Clone, Copy)]
pub struct ResourceWish<'a> {
    /// Where skills come from.
    pub skills: ResourceSources<'a>,
    /// Where prompt templates come from.
    pub templates: ResourceSources<'a>,
    /// False to read no instruction files.
    pub context_files: bool,
}

impl Resources {
    /// Loads everything. What is wrong and does no harm becomes warnings, one line each.
    pub fn load(
        environment: &Environment,
        paths: &Paths,
        wish: &ResourceWish<'_>,
        warnings: &mut Vec<String>,
    ) -> Self {
        let skills = discovery::find(ResourceKind::Skills, &wish.skills, environment, paths, warnings);
        let templates =
            discovery::find(ResourceKind::Templates, &wish.templates, environment, paths, warnings);
        Self {
            skills: skills::load(skills, warnings),
            templates: templates::load(templates, warnings),
            context_files: match wish.context_files {
                true => load_context_files(paths, warnings),
                false => Vec::new(),
            },
        }
    }

    /// The commands that a prompt can name with a slash.
    pub fn commands(&self) -> Vec<SlashCommand> {
        let templates = self.templates.iter().map(PromptTemplate::command);
        templates.chain(self.skills.iter().map(Skill::command)).collect()
    }

    /// The text that a message stands for, when it names a skill or a template.
    pub fn expand(&self, text: &str) -> Result<Option<String>, SkillError> {
        if !text.starts_with('/') {
            return Ok(None);
        }
        match skills::expand(text, &self.skills)? {
            Some(message) => Ok(Some(message)),
            None => Ok(templates::expand(text, &self.templates)),
        }
    }
}

/// Where a resource comes from that a host program made.
pub(super) fn source_of_host(path: &std::path::Path) -> SourceInfo {
    SourceInfo {
        path: path.to_string_lossy().into_owned(),
        source: "host".to_owned(),
        scope: "temporary".to_owned(),
        origin: "top-level".to_owned(),
        base_dir: None,
    }
}
