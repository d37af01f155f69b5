//! What an embedded session starts with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sampi_protocol::data::ThinkingLevel;
use secrecy::SecretString;
use serde_json::{Map, Value};

use super::EmbedError;
use super::driver::Driver;
use super::runtime::AgentSessionRuntime;
use super::session::AgentSession;
use crate::agent::{Agent, AgentError};
use crate::assembly::{Assembly, Boundaries, ResourceSource, StartError};
use crate::branding::BRANDING;
use crate::cli::{Config, SessionChoice, ToolStart};
use crate::extensions::Extension;
use crate::llm::Providers;
use crate::resources::models::ModelRegistry;
use crate::resources::settings::{SettingsSource, TrustOverride};
use crate::resources::{Environment, Paths, Resources};
use crate::tools::Tool;

/// What a session starts with. What is not set is as on the command line without options. Relative paths start at
/// the session's working directory.
#[derive(Debug, Clone, Default)]
pub struct AgentSessionBuilder {
    cwd: Option<PathBuf>,
    environment: Option<Environment>,
    agent_dir: Option<PathBuf>,
    config: Config,
    boundaries: Boundaries,
}

impl AgentSessionBuilder {
    /// The working directory: of tools, of the project's configuration, of the session. The process's own when it is
    /// not set.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// The environment that configuration and credentials are looked for in. The process's own when it is not set.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// The user's configuration directory, with `settings.json`, `models.json`, `auth.json` and sessions.
    #[must_use]
    pub fn agent_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.agent_dir = Some(dir.into());
        self
    }

    /// Whether the project's own configuration counts. The user's saved decisions decide when it is not set.
    #[must_use]
    pub fn trust(mut self, trust: TrustOverride) -> Self {
        self.config.trust = trust;
        self
    }

    /// The model, as `provider/id` or a part of an id. It goes before the one that a resumed session names.
    #[must_use]
    pub fn model(mut self, pattern: impl Into<String>) -> Self {
        self.config.model = Some(pattern.into());
        self
    }

    /// The thinking level, clamped to what the model supports.
    #[must_use]
    pub fn thinking_level(mut self, level: ThinkingLevel) -> Self {
        self.config.thinking = Some(level);
        self
    }

    /// Patterns of the models to start with and to cycle through.
    #[must_use]
    pub fn scoped_models<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.config.models = Some(patterns.into_iter().map(Into::into).collect());
        self
    }

    /// A key of a provider, for this session alone. It goes before every other.
    #[must_use]
    pub fn api_key(mut self, provider: impl Into<String>, key: impl Into<SecretString>) -> Self {
        self.boundaries.api_keys.push((provider.into(), key.into()));
        self
    }

    /// Makes the models and their credentials, in place of the files in the agent directory. Called again whenever
    /// the session is replaced.
    #[must_use]
    pub fn models(
        mut self,
        make: impl Fn(&Environment, &Paths) -> ModelRegistry + Send + Sync + 'static,
    ) -> Self {
        self.boundaries.models = Arc::new(make);
        self
    }

    /// The APIs that requests go to.
    #[must_use]
    pub fn providers(mut self, providers: Providers) -> Self {
        self.boundaries.providers = providers;
        self
    }

    /// Where settings come from. Those in memory are never written.
    #[must_use]
    pub fn settings(mut self, settings: SettingsSource) -> Self {
        self.boundaries.settings = settings;
        self
    }

    /// Settings in the form of `settings.json` that are laid over all others.
    #[must_use]
    pub fn override_settings(mut self, settings: Map<String, Value>) -> Self {
        self.boundaries.setting_overrides = settings;
        self
    }

    /// The session to start with.
    #[must_use]
    pub fn session(mut self, choice: SessionChoice) -> Self {
        self.config.session = choice;
        self
    }

    /// A session that is never written.
    #[must_use]
    pub fn in_memory(self) -> Self {
        self.session(SessionChoice::InMemory { id: None })
    }

    /// The last session of the working directory, or a new one.
    #[must_use]
    pub fn continue_recent(self) -> Self {
        self.session(SessionChoice::Continue)
    }

    /// The session in this file.
    #[must_use]
    pub fn open_session(self, path: impl AsRef<Path>) -> Self {
        self.session(SessionChoice::Open(path_text(path.as_ref())))
    }

    /// A copy of the session in this file, for the working directory.
    #[must_use]
    pub fn fork_session(self, path: impl AsRef<Path>) -> Self {
        self.session(SessionChoice::Fork { source: path_text(path.as_ref()), id: None })
    }

    /// The folder for session files, which then lie directly in it.
    #[must_use]
    pub fn session_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.config.session_dir = Some(dir.as_ref().to_string_lossy().into_owned());
        self
    }

    /// The session's display name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.config.name = Some(name.into());
        self
    }

    /// A text in place of our own system prompt, as it is.
    #[must_use]
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.boundaries.prompt.custom = Some(text.into());
        self
    }

    /// A text after the system prompt, as it is.
    #[must_use]
    pub fn append_system_prompt(mut self, text: impl Into<String>) -> Self {
        self.boundaries.prompt.appended.push(text.into());
        self
    }

    /// Supplies all skills, prompt templates and instruction files. Nothing is looked for on disk, prompt files
    /// included.
    #[must_use]
    pub fn resources(mut self, resources: Resources) -> Self {
        self.boundaries.resources = ResourceSource::Supplied(resources);
        self
    }

    /// Changes what was found: filters it, adds to it.
    #[must_use]
    pub fn adjust_resources(mut self, adjust: impl Fn(&mut Resources) + Send + Sync + 'static) -> Self {
        self.boundaries.adjust_resources.push(Arc::new(adjust));
        self
    }

    /// A further file or folder with skills.
    #[must_use]
    pub fn skill_path(mut self, path: impl AsRef<Path>) -> Self {
        self.config.resources.skills.push(path.as_ref().to_string_lossy().into_owned());
        self
    }

    /// A further file or folder with prompt templates.
    #[must_use]
    pub fn template_path(mut self, path: impl AsRef<Path>) -> Self {
        self.config.resources.prompt_templates.push(path.as_ref().to_string_lossy().into_owned());
        self
    }

    /// The tools that the model may call, with `*` for any characters, in place of the default ones. With `+name` and
    /// `-name` the default ones are changed.
    #[must_use]
    pub fn tools<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.config.tools.list = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Tools that the model may not call, with `*` for any characters.
    #[must_use]
    pub fn exclude_tools<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.config.tools.exclude.extend(names.into_iter().map(Into::into));
        self
    }

    /// No tool, unless [`tools`](Self::tools) names some.
    #[must_use]
    pub fn no_tools(mut self) -> Self {
        self.config.tools.start = ToolStart::Nothing;
        self
    }

    /// No built-in tool, unless [`tools`](Self::tools) names some.
    #[must_use]
    pub fn no_builtin_tools(mut self) -> Self {
        self.config.tools.start = ToolStart::NoBuiltins;
        self
    }

    /// A tool of the host. It is on unless the selection leaves it out; a built-in one of the same name gives way.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.boundaries.tools.push(Arc::new(tool));
        self
    }

    /// Hooks into what the agent does.
    #[must_use]
    pub fn extension(mut self, extension: impl Extension + 'static) -> Self {
        self.boundaries.extension = Arc::new(extension);
        self
    }

    /// Makes the session and starts the task that drives it.
    pub async fn build(self) -> Result<AgentSession, EmbedError> {
        let made = tokio::task::spawn_blocking(|| self.make()).await;
        let agent = made.map_err(|error| StartError::Agent(AgentError::Failed(error.to_string())))??;
        Ok(Driver::start(agent))
    }

    /// The same, for a host that replaces the session later.
    pub async fn build_runtime(self) -> Result<AgentSessionRuntime, EmbedError> {
        Ok(AgentSessionRuntime::new(self.build().await?))
    }

    fn make(self) -> Result<Agent, StartError> {
        let cwd = match &self.cwd {
            Some(cwd) => std::path::absolute(cwd),
            None => std::env::current_dir(),
        };
        let cwd = cwd.map_err(|error| {
            StartError::Agent(AgentError::Io(format!("the working directory cannot be used: {error}")))
        })?;
        let mut environment = self.environment.unwrap_or_else(Environment::from_process);
        if let Some(dir) = &self.agent_dir {
            environment = environment.with(&BRANDING.agent_dir_variable(), dir.to_string_lossy());
        }
        let assembly = Assembly::new(self.config, environment, self.boundaries, &cwd);
        let mut warnings = Vec::new();
        let agent = assembly.start(&cwd, &mut warnings);
        if agent.is_err() {
            // They may be why; otherwise the session has them.
            warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        }
        agent
    }
}

/// A path as the session choice takes it: without a separator it would be an id.
fn path_text(path: &Path) -> String {
    Path::new(".").join(path).to_string_lossy().into_owned()
}
