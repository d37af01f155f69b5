//! What a host program can put in place of the daemon's own parts.

use std::fmt;
use std::sync::Arc;

use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::extensions::{Extension, NoExtensions};
use crate::llm::{Providers, demo_models};
use crate::resources::models::ModelRegistry;
use crate::resources::settings::SettingsSource;
use crate::resources::system_prompt::PromptSources;
use crate::resources::{Environment, Paths, Resources};
use crate::tools::Tool;

/// Makes the registry of models and credentials for a working directory.
pub type MakeModels = Arc<dyn Fn(&Environment, &Paths) -> ModelRegistry + Send + Sync>;

/// Changes the resources that were found for a working directory.
pub type AdjustResources = Arc<dyn Fn(&mut Resources) + Send + Sync>;

/// Where skills, prompt templates, instruction files and prompt files come from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ResourceSource {
    /// From their places on disk.
    #[default]
    Discovered,
    /// From the host. Nothing is looked for.
    Supplied(Resources),
}

/// The parts that a host can replace. The default is the daemon's own.
#[derive(Clone)]
pub struct Boundaries {
    /// Where settings come from, and whether changes of them are written.
    pub settings: SettingsSource,
    /// Settings that are laid over all others.
    pub setting_overrides: Map<String, Value>,
    /// Makes the models and their credentials.
    pub models: MakeModels,
    /// Keys of providers. They go before every other key.
    pub api_keys: Vec<(String, SecretString)>,
    /// The APIs.
    pub providers: Providers,
    /// Where resources come from.
    pub resources: ResourceSource,
    /// Changes of what was found, in order.
    pub adjust_resources: Vec<AdjustResources>,
    /// Texts that replace and follow the system prompt, as they are.
    pub prompt: PromptSources,
    /// Tools of the host. They are on unless the selection says otherwise.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The seam for extensions.
    pub extension: Arc<dyn Extension>,
}

impl Default for Boundaries {
    fn default() -> Self {
        Self {
            settings: SettingsSource::Files,
            setting_overrides: Map::new(),
            models: Arc::new(|environment, paths| ModelRegistry::load(environment, paths, demo_models())),
            api_keys: Vec::new(),
            providers: Providers::new(),
            resources: ResourceSource::Discovered,
            adjust_resources: Vec::new(),
            prompt: PromptSources::default(),
            tools: Vec::new(),
            extension: Arc::new(NoExtensions),
        }
    }
}

impl fmt::Debug for Boundaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Boundaries")
            .field("settings", &self.settings)
            .field("resources", &self.resources)
            .field("tools", &self.tools.iter().map(|tool| &tool.definition().name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
