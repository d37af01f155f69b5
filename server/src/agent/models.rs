//! The model and the thinking level.

use sampi_protocol::commands::CycledModel;
use sampi_protocol::data::{Model, ThinkingLevel};
use sampi_protocol::events::ThinkingLevelChanged;

use super::{Agent, AgentError};
use crate::resources::auth::AuthError;
use crate::session::NewEntry;

impl Agent {
    /// The chosen model.
    pub fn model(&self) -> Option<&Model> {
        self.model.as_ref()
    }

    /// The models that have credentials.
    pub fn available_models(&self) -> Vec<Model> {
        self.models.available()
    }

    /// Chooses a model; the thinking level is clamped to what it supports.
    pub fn set_model(&mut self, provider: &str, id: &str) -> Result<Model, AgentError> {
        let model = self
            .models
            .find(provider, id)
            .filter(|model| self.models.check(model).is_ok())
            .ok_or_else(|| AgentError::NotFound(format!("Model not found: {provider}/{id}")))?;
        self.use_model(model.clone())?;
        Ok(model)
    }

    /// Chooses the next model; `None` when there is no other.
    pub fn cycle_model(&mut self) -> Result<Option<CycledModel>, AgentError> {
        let is_scoped = !self.scope.is_empty();
        let choices: Vec<(Model, Option<ThinkingLevel>)> = if is_scoped {
            self.scope.clone()
        } else {
            self.models.available().into_iter().map(|model| (model, None)).collect()
        };
        if choices.len() < 2 {
            return Ok(None);
        }
        let current = self.model.as_ref().and_then(|current| {
            choices.iter().position(|(model, _)| model.provider == current.provider && model.id == current.id)
        });
        let next = current.map_or(0, |at| (at + 1) % choices.len());
        let Some((model, thinking)) = choices.into_iter().nth(next) else { return Ok(None) };
        self.use_model(model.clone())?;
        if let Some(level) = thinking {
            self.set_thinking_level(level)?;
        }
        Ok(Some(CycledModel { model, thinking_level: self.thinking, is_scoped }))
    }

    fn use_model(&mut self, model: Model) -> Result<(), AgentError> {
        self.append(NewEntry::ModelChange { provider: model.provider.clone(), model_id: model.id.clone() })?;
        self.model = Some(model);
        self.set_thinking_level(self.thinking)
    }

    /// The thinking level in force.
    pub fn thinking_level(&self) -> ThinkingLevel {
        self.thinking
    }

    /// The thinking levels that the model supports.
    pub fn thinking_levels(&self) -> Vec<ThinkingLevel> {
        self.model.as_ref().map_or_else(|| vec![ThinkingLevel::Off], Model::thinking_levels)
    }

    /// Sets the thinking level, clamped to what the model supports.
    pub fn set_thinking_level(&mut self, wanted: ThinkingLevel) -> Result<(), AgentError> {
        let level = self.model.as_ref().map_or(ThinkingLevel::Off, |model| model.clamp_thinking(wanted));
        if level == self.thinking {
            return Ok(());
        }
        self.append(NewEntry::ThinkingLevelChange { thinking_level: level.as_str().to_owned() })?;
        self.thinking = level;
        self.emit(ThinkingLevelChanged { level });
        Ok(())
    }

    /// Chooses the next thinking level; `None` when the model cannot think.
    pub fn cycle_thinking_level(&mut self) -> Result<Option<ThinkingLevel>, AgentError> {
        let levels = self.thinking_levels();
        // A map of levels can leave none.
        if levels.is_empty() || !self.model.as_ref().is_some_and(|model| model.reasoning) {
            return Ok(None);
        }
        let next = levels.iter().position(|level| *level == self.thinking).map_or(0, |at| at + 1);
        let level = levels[next % levels.len()];
        self.set_thinking_level(level)?;
        Ok(Some(level))
    }

    /// Notes model and thinking level in a session without a file. One that has a file stays as it is until
    /// something is said in it.
    pub(super) fn note_in_new_session(&mut self) -> Result<(), AgentError> {
        if self.session.is_saved() { Ok(()) } else { self.note_model_and_thinking() }
    }

    /// Notes model and thinking level in a session that does not have them yet.
    pub(super) fn note_model_and_thinking(&mut self) -> Result<(), AgentError> {
        let Some(model) = self.model.as_ref().filter(|_| !self.session.is_read_only()) else { return Ok(()) };
        let wanted = (model.provider.clone(), model.id.clone());
        let level = self.thinking.as_str();
        let context = self.session.outline();
        // Where a session was resumed with another model, its next answer tells.
        let model_noted = context.model.is_some();
        let level_noted = context.thinking_level.as_deref() == Some(level);
        if !model_noted {
            self.append(NewEntry::ModelChange { provider: wanted.0, model_id: wanted.1 })?;
        }
        if !level_noted {
            self.append(NewEntry::ThinkingLevelChange { thinking_level: level.to_owned() })?;
        }
        Ok(())
    }

    /// Whether a prompt can be sent at all.
    pub(super) fn check_model(&self) -> Result<(), AgentError> {
        let checked = match &self.model {
            Some(model) => self.models.check(model),
            None => Err(AuthError::NoModel),
        };
        checked.map_err(|error| AgentError::NoModel(error.to_string()))
    }
}
