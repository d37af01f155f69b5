//! From what is asked for to an agent: the configuration is read, the session is opened, the parts are put
//! together. The command line and a host program that embeds the agent take the same way.

use std::path::Path;
use std::sync::Arc;

use sampi_protocol::data::ThinkingLevel;

use crate::agent::{Agent, AgentError, AgentParts, LoadServices, Services, SessionsRoot};
use crate::branding::BRANDING;
use crate::cli::{Config, SessionChoice};
use crate::resources::discovery::ResourceSources;
use crate::resources::paths::SessionsDir;
use crate::resources::settings::{SettingChange, SettingsSource};
use crate::resources::{Environment, Paths, ResourceWish, Resources};
use crate::session::{Session, SessionError};
use crate::tools::{Tool, ToolSet};

mod boundaries;
mod session;
mod startup;

pub use boundaries::{AdjustResources, Boundaries, MakeModels, ResourceSource};
use session::open_session;
pub use startup::{SessionWish, Startup, StartupError};

/// Why there is no agent.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Options, settings or models do not fit.
    #[error(transparent)]
    Startup(#[from] StartupError),
    /// The session could not be opened or made.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The agent could not be made.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The session that an option names cannot be used.
    #[error("{0}")]
    SessionChoice(String),
}

/// What an agent is made of: options, an environment, and the parts that a host replaces. It makes the agent,
/// and what the agent works with whenever the session changes.
#[derive(Debug, Clone)]
pub struct Assembly {
    config: Config,
    environment: Environment,
    boundaries: Boundaries,
}

impl Assembly {
    /// Relative paths of options and variables start at `cwd`, also when the session belongs elsewhere.
    pub fn new(config: Config, environment: Environment, boundaries: Boundaries, cwd: &Path) -> Self {
        let config = config.anchored(&environment, cwd);
        let anchor = |environment: Environment, name: String| match environment.get(&name) {
            Some(path) => {
                let path = environment.resolve_path(cwd, path).to_string_lossy().into_owned();
                environment.with(&name, path)
            }
            None => environment,
        };
        let environment = [BRANDING.agent_dir_variable(), BRANDING.session_dir_variable()]
            .into_iter()
            .fold(environment, anchor);
        Self { config, environment, boundaries }
    }

    /// Makes the agent. `warnings` gets what is wrong and does no harm, one line each, also when this fails.
    pub fn start(self, cwd: &Path, warnings: &mut Vec<String>) -> Result<Agent, StartError> {
        let mut paths = Paths::new(&self.environment, cwd);
        let mut startup = Startup::prepare(&self, &paths, &[], warnings)?;
        let session = open_session(&self.config.session, &startup.sessions, cwd)?;
        session.check_cwd()?;
        if session.cwd() != cwd {
            // A session is resumed in its own working directory, with the configuration that holds there.
            paths = Paths::new(&self.environment, session.cwd());
            warnings.clear();
            startup = Startup::prepare(&self, &paths, &[], warnings)?;
        }
        let services = self.services(startup, &paths, &session, warnings);
        let name = self.config.name.clone().filter(|name| {
            if session.is_read_only() {
                warnings.push(format!("the session belongs to another process, so it was not named {name}"));
            }
            !session.is_read_only()
        });
        let mut agent = Agent::new(AgentParts {
            session,
            services: Services { warnings: warnings.clone(), ..services },
            environment: self.environment.clone(),
            providers: self.boundaries.providers.clone(),
            extension: Arc::clone(&self.boundaries.extension),
            loader: Arc::new(self),
            name,
        })?;
        // What happened before anybody could listen is in the state that can be asked for.
        while agent.next_output().is_some() {}
        agent.report_diagnostics();
        Ok(agent)
    }

    fn services(
        &self,
        startup: Startup,
        paths: &Paths,
        session: &Session,
        warnings: &mut Vec<String>,
    ) -> Services {
        let resumed = session.outline();
        let wish = SessionWish {
            model: resumed.model.as_ref().map(|(provider, id)| (provider.as_str(), id.as_str())),
            thinking: resumed.thinking_level.as_deref().and_then(ThinkingLevel::parse),
        };
        let (initial, thinking) = startup.initial(&self.config, wish);
        warnings.extend(initial.warning);
        let mut available_tools = ToolSet::builtin();
        self.boundaries.tools.iter().cloned().for_each(|tool| available_tools.insert(tool));
        let tools = self.select_tools(&startup, &available_tools, warnings);
        let resources = self.load_resources(&startup, paths, warnings);
        let sessions_root = match (&self.config.session, startup.sessions) {
            (SessionChoice::InMemory { .. }, _) => None,
            (_, SessionsDir::ByProject(root)) => Some(SessionsRoot::ByCwd(root)),
            (_, SessionsDir::Flat(dir)) => Some(SessionsRoot::Fixed(dir)),
        };
        Services {
            models: startup.registry,
            settings: startup.settings,
            cache_retention: startup.cache_retention,
            tools,
            available_tools,
            tools_follow_session: self.config.tools.follows_session() && self.boundaries.tools.is_empty(),
            prompt: startup.prompt,
            resources,
            model: initial.model,
            thinking,
            scope: startup.scoped.into_iter().map(|scoped| (scoped.model, scoped.thinking)).collect(),
            sessions_root,
            settings_file: match self.boundaries.settings {
                SettingsSource::Files => Some(paths.user_settings()),
                SettingsSource::Memory(_) => None,
            },
            warnings: Vec::new(),
        }
    }

    fn load_resources(&self, startup: &Startup, paths: &Paths, warnings: &mut Vec<String>) -> Resources {
        let mut resources = match &self.boundaries.resources {
            ResourceSource::Discovered => self.discover_resources(startup, paths, warnings),
            ResourceSource::Supplied(resources) => resources.clone(),
        };
        self.boundaries.adjust_resources.iter().for_each(|adjust| adjust(&mut resources));
        resources
    }

    fn discover_resources(&self, startup: &Startup, paths: &Paths, warnings: &mut Vec<String>) -> Resources {
        let options = &self.config.resources;
        let Startup { user_resources: user, project_resources: project, project_trusted, .. } = startup;
        let wish = ResourceWish {
            skills: ResourceSources {
                command_line: &options.skills,
                user: &user.skills,
                project: &project.skills,
                discover: !options.no_skills,
                project_trusted: *project_trusted,
            },
            templates: ResourceSources {
                command_line: &options.prompt_templates,
                user: &user.prompts,
                project: &project.prompts,
                discover: !options.no_prompt_templates,
                project_trusted: *project_trusted,
            },
            context_files: !options.no_context_files,
        };
        Resources::load(&self.environment, paths, &wish, warnings)
    }

    fn select_tools(
        &self,
        startup: &Startup,
        available: &ToolSet,
        warnings: &mut Vec<String>,
    ) -> Vec<Arc<dyn Tool>> {
        let names = |tools: &mut dyn Iterator<Item = &Arc<dyn Tool>>| -> Vec<String> {
            tools.map(|tool| tool.definition().name.clone()).collect()
        };
        let known = names(&mut available.iter());
        let own = names(&mut self.boundaries.tools.iter());
        let (names, unknown) = self.config.tools.select(&startup.settings.default_tools, &own, &known);
        warnings.extend(unknown.iter().map(|name| format!("there is no tool {name}")));
        names.iter().filter_map(|name| available.get(name)).cloned().collect()
    }
}

impl LoadServices for Assembly {
    fn load(&self, session: &Session, changes: &[SettingChange]) -> Result<Services, AgentError> {
        let paths = Paths::new(&self.environment, session.cwd());
        let mut warnings = Vec::new();
        let startup = Startup::prepare(self, &paths, changes, &mut warnings)?;
        let services = self.services(startup, &paths, session, &mut warnings);
        Ok(Services { warnings, ..services })
    }
}

impl From<StartupError> for AgentError {
    fn from(error: StartupError) -> Self {
        match error {
            StartupError::Model(_) => Self::NotFound(error.to_string()),
            StartupError::Prompt(_) => Self::Io(error.to_string()),
            StartupError::KeyWithoutModel => Self::Invalid(error.to_string()),
        }
    }
}
