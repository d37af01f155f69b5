//! The command line.

mod auth;
mod help;
mod options;
mod parse;
#[cfg(test)]
mod tests;
mod tools;

use std::path::Path;

use sampi_protocol::data::ThinkingLevel;
use secrecy::SecretString;

pub use auth::{
    AuthCommand, AuthUsage, Browser, CheckForm, LoginWay, Refreshing, Shown, Subject, auth_help, parse_auth,
};
pub use help::{help_text, version_text};
pub use parse::parse;
pub use tools::{ToolSelection, ToolStart};

use crate::resources::Environment;
use crate::resources::settings::TrustOverride;

/// Exit code of a command line that cannot be used, as in Pi.
pub const EXIT_USAGE: u8 = 1;

/// What the command line asks for.
#[derive(Debug)]
pub enum Invocation {
    /// A run.
    Run(Box<Config>),
    /// The help.
    Help,
    /// The version, as this text.
    Version(String),
    /// The table of models that can be used.
    ListModels {
        /// Only those that this finds, unless it is empty.
        search: String,
        /// The rest of the command line, whose resource and trust options count.
        config: Box<Config>,
    },
    /// The JSON Schema of the protocol.
    Schema,
    /// Something with credentials, as these arguments after `auth` say.
    Auth(Vec<String>),
    /// A session file as an HTML page.
    Export {
        /// The session file.
        session: String,
        /// The page's file; named after the session file when absent.
        output: Option<String>,
    },
    /// Something of Pi that this version does not do, by its name.
    NotYet(&'static str),
}

/// A command line that cannot be used. The text says what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CliError(pub(crate) String);

/// What speaks over stdin and stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Text for people.
    #[default]
    Text,
    /// One run, its events as JSON lines.
    Json,
    /// The RPC protocol.
    Rpc,
}

/// The session to start with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SessionChoice {
    /// A new one.
    #[default]
    New,
    /// The last one of the working directory.
    Continue,
    /// The one with this path, or the start of this id.
    Open(String),
    /// The working directory's one with exactly this id, else a new one with it.
    WithId(String),
    /// A copy of another, under a new id or this one.
    Fork {
        /// Path, or the start of the id.
        source: String,
        /// The new id.
        id: Option<String>,
    },
    /// One that is not kept.
    InMemory {
        /// Its id.
        id: Option<String>,
    },
}

/// Options of resources, most of which come later.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceOptions {
    /// `--extension`
    pub extensions: Vec<String>,
    /// `--no-extensions`
    pub no_extensions: bool,
    /// `--no-mcp`
    pub no_mcp: bool,
    /// `--skill`
    pub skills: Vec<String>,
    /// `--no-skills`
    pub no_skills: bool,
    /// `--prompt-template`
    pub prompt_templates: Vec<String>,
    /// `--no-prompt-templates`
    pub no_prompt_templates: bool,
    /// `--theme`
    pub themes: Vec<String>,
    /// `--no-themes`
    pub no_themes: bool,
    /// `--no-context-files`
    pub no_context_files: bool,
}

/// The options of a run.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// `--mode`
    pub mode: Mode,
    /// `--print`
    pub print: bool,
    /// `--provider`
    pub provider: Option<String>,
    /// `--model`
    pub model: Option<String>,
    /// `--models`, split. `None` when it was not given.
    pub models: Option<Vec<String>>,
    /// `--api-key`
    pub api_key: Option<SecretString>,
    /// `--thinking`
    pub thinking: Option<ThinkingLevel>,
    /// `--system-prompt`: a text or a path.
    pub system_prompt: Option<String>,
    /// `--append-system-prompt`, each a text or a path.
    pub append_system_prompt: Vec<String>,
    /// The session to start with.
    pub session: SessionChoice,
    /// `--session-dir`, as written.
    pub session_dir: Option<String>,
    /// `--name`
    pub name: Option<String>,
    /// The tool options.
    pub tools: ToolSelection,
    /// `--offline`, or the environment's word for it.
    pub offline: bool,
    /// Prompts.
    pub messages: Vec<String>,
    /// `@path` arguments, without the sign.
    pub files: Vec<String>,
    /// The resource options.
    pub resources: ResourceOptions,
    /// `--approve` and `--no-approve`
    pub trust: TrustOverride,
    /// What was wrong and does no harm, one line each.
    pub warnings: Vec<String>,
}

impl Config {
    /// The same options, with relative paths starting at `cwd`.
    pub(crate) fn anchored(mut self, environment: &Environment, cwd: &Path) -> Self {
        let anchor = |text: &mut String| {
            *text = environment.resolve_path(cwd, text).to_string_lossy().into_owned();
        };
        // A text stays what it is unless it names a file; see `PromptSources::load`.
        let anchor_file = |text: &mut String| {
            if !text.is_empty() && !text.contains('\n') && environment.resolve_path(cwd, text).is_file() {
                anchor(text);
            }
        };
        self.resources.skills.iter_mut().for_each(anchor);
        self.resources.prompt_templates.iter_mut().for_each(anchor);
        self.session_dir.iter_mut().filter(|dir| !dir.is_empty()).for_each(anchor);
        self.system_prompt.iter_mut().for_each(anchor_file);
        self.append_system_prompt.iter_mut().for_each(anchor_file);
        self
    }
}
