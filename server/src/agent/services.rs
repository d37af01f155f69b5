//! What an agent works with in one working directory: settings, models, tools, prompt, resources. A change
//! of session loads it anew, as a start does.

use std::path::PathBuf;
use std::sync::Arc;

use sampi_protocol::data::{Model, ThinkingLevel};

use super::queues::Queues;
use super::recovery::Recovery;
use super::{Agent, AgentError, SessionsRoot};
use crate::llm::CacheRetention;
use crate::resources::Resources;
use crate::resources::models::ModelRegistry;
use crate::resources::settings::{SettingChange, Settings};
use crate::resources::system_prompt::PromptSources;
use crate::session::Session;
use crate::tools::{Tool, ToolSet};

/// What an agent works with in the working directory of its session. Each part can be replaced.
pub struct Services {
    /// The models and their credentials.
    pub models: ModelRegistry,
    /// The user's settings.
    pub settings: Settings,
    /// How long providers should keep the prompt cache.
    pub cache_retention: CacheRetention,
    /// The tools that the model may call.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Every tool that there is.
    pub available_tools: ToolSet,
    /// True when a resumed session brings back the tools that it had.
    pub tools_follow_session: bool,
    /// What the user says instead of, and after, our own system prompt.
    pub prompt: PromptSources,
    /// Skills, prompt templates and instruction files.
    pub resources: Resources,
    /// The model to start with.
    pub model: Option<Model>,
    /// The thinking level to start with.
    pub thinking: ThinkingLevel,
    /// The models that cycling is limited to, each with its thinking level.
    pub scope: Vec<(Model, Option<ThinkingLevel>)>,
    /// Where new session files go; `None` keeps sessions in memory.
    pub sessions_root: Option<SessionsRoot>,
    /// The file that keeps settings which commands change; `None` keeps them in memory.
    pub settings_file: Option<PathBuf>,
    /// What is wrong with the configuration and does no harm, one line each.
    pub warnings: Vec<String>,
}

/// Loads what an agent works with in the working directory of a session.
pub trait LoadServices: Send + Sync {
    /// Loads it. `changes` are the settings that commands changed and no file has.
    fn load(&self, session: &Session, changes: &[SettingChange]) -> Result<Services, AgentError>;
}

impl Agent {
    /// Works with these services from now on. What they say of model, queues and recovery holds.
    pub(super) fn use_services(&mut self, services: Services) {
        let Services { mut models, settings, warnings, .. } = services;
        models.continue_from(&self.models);
        self.models = Arc::new(models);
        self.cache_retention = services.cache_retention;
        self.tools = services.tools.into();
        self.available_tools = services.available_tools;
        self.tools_follow_session = services.tools_follow_session;
        self.prompt = services.prompt;
        self.resources = services.resources;
        self.model = services.model;
        self.thinking = services.thinking;
        self.scope = services.scope;
        self.sessions_root = services.sessions_root;
        self.preferences.use_file(services.settings_file);
        self.queues = Queues::new(settings.steering_mode, settings.follow_up_mode);
        self.recovery = Recovery::new(&settings);
        self.auto_compaction = settings.compaction.enabled;
        self.settings = settings;
        self.warnings = warnings;
        self.adopt_session_tools();
    }

    /// What is wrong with the configuration and does no harm, one line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}
