//! The model and the thinking level to start with.

use sampi_protocol::data::{Model, ThinkingLevel};

use super::{ModelRegistry, NO_MODELS, Resolved, ScopedModel, UNKNOWN, catalogue};
use crate::resources::settings::Settings;

/// The thinking level when nobody says anything.
const DEFAULT_THINKING: ThinkingLevel = ThinkingLevel::Medium;

/// What speaks for a model to start with, strongest first.
#[derive(Debug, Clone, Copy, Default)]
pub struct InitialWish<'a> {
    /// The model of the command line.
    pub requested: Option<&'a Resolved>,
    /// Provider and id of the resumed session's model.
    pub session: Option<(&'a str, &'a str)>,
    /// The scope, empty when there is none.
    pub scoped: &'a [ScopedModel],
}

/// The model to start with.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Initial {
    /// The model, if there is any.
    pub model: Option<Model>,
    /// The thinking level that came with it: the command line's suffix or the scope's.
    pub thinking: Option<ThinkingLevel>,
    /// Something that the user should know.
    pub warning: Option<String>,
}

/// What speaks for a thinking level, strongest first.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThinkingWish {
    /// `--thinking`, or the suffix of `--model`.
    pub command_line: Option<ThinkingLevel>,
    /// The suffix of the scope's pattern.
    pub scoped: Option<ThinkingLevel>,
    /// The resumed session's level.
    pub session: Option<ThinkingLevel>,
}

impl ModelRegistry {
    /// The model to start with: the command line's, the session's, the scope's (the default if it is in
    /// the scope, else the first), the default of the settings, the default of the first
    /// provider with credentials.
    pub fn initial(&self, wish: InitialWish<'_>, settings: &Settings) -> Initial {
        if let Some(resolved) = wish.requested {
            return Initial {
                model: Some(resolved.model.clone()),
                thinking: resolved.thinking,
                warning: None,
            };
        }
        let mut warning = None;
        if let Some((provider, id)) = wish.session {
            match self.find(provider, id).filter(|model| self.key_source(model).is_usable()) {
                Some(model) => return Initial { model: Some(model), ..Initial::default() },
                None => warning = Some(format!("Could not restore model {provider}/{id}.")),
            }
        }
        let default = settings.default_provider.as_deref().zip(settings.default_model.as_deref());
        let is_default = |model: &Model| {
            default.is_some_and(|(provider, id)| model.provider == provider && model.id == id)
        };
        let scoped =
            wish.scoped.iter().find(|scoped| is_default(&scoped.model)).or_else(|| wish.scoped.first());
        let (model, thinking) = match scoped {
            Some(scoped) => (Some(scoped.model.clone()), scoped.thinking),
            None => {
                let configured = default.and_then(|(provider, id)| self.find_available(provider, id));
                (configured.or_else(|| self.first_choice()), None)
            }
        };
        let warning = warning.map(|warning| match &model {
            Some(model) => format!("{warning} Using {}/{}", model.provider, model.id),
            None => warning,
        });
        let warning = warning.or_else(|| model.is_none().then(|| NO_MODELS.to_owned()));
        Initial { model, thinking, warning }
    }

    /// The default model of the first provider in the order of preference that has credentials, else the
    /// first model that is available.
    fn first_choice(&self) -> Option<Model> {
        let defaults = catalogue::DEFAULT_MODELS.iter();
        defaults
            .filter_map(|(provider, id)| self.find_available(provider, id))
            .next()
            .or_else(|| self.available_models().next().cloned())
    }

    fn find_available(&self, provider: &str, id: &str) -> Option<Model> {
        let is_available = self.is_offered(provider) && self.is_usable(provider);
        is_available.then(|| self.find(provider, id)).flatten()
    }
}

/// The thinking level for a model, one that it supports.
pub fn default_thinking(model: &Model, settings: &Settings, wish: ThinkingWish) -> ThinkingLevel {
    let wanted = wish
        .command_line
        .or(wish.scoped)
        .or(wish.session)
        .or_else(|| settings.thinking_level_of(&model.provider, &model.id))
        .or(settings.default_thinking_level)
        .unwrap_or(DEFAULT_THINKING);
    model.clamp_thinking(wanted)
}

/// The model that stands for having none, as hosts see it.
pub fn unknown_model() -> Model {
    Model {
        id: UNKNOWN.to_owned(),
        name: UNKNOWN.to_owned(),
        api: UNKNOWN.to_owned(),
        provider: UNKNOWN.to_owned(),
        ..Model::default()
    }
}
