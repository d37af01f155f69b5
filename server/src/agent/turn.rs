//! The beginning of a turn: what is delivered, and what the request is made of.

use std::sync::Arc;

use sampi_protocol::data::{Model, ThinkingLevel};
use sampi_protocol::events::TurnStart;

use super::Agent;
use super::link::TurnPlan;
use crate::branding::{PROCESS_MARKERS, session_variables};
use crate::images::{ImageLimit, Resize};
use crate::llm::{Attempts, Credentials, ModelRequest, Provider, RequestOptions};
use crate::tools::{ImageSettings, ShellSettings};

impl Agent {
    /// Begins a turn. An error text says why the run cannot go on.
    pub(super) fn begin_turn(&mut self) -> Result<Box<TurnPlan>, String> {
        self.emit(TurnStart {});
        self.turn_opened();
        let announced = self.run.as_mut().map(|run| std::mem::take(&mut run.announced_later));
        for message in announced.unwrap_or_default() {
            self.announce(message);
        }
        self.deliver_for_turn();
        if let Some(reason) = &self.recovery.broken {
            return Err(reason.clone());
        }
        self.plan_turn()
    }

    fn plan_turn(&mut self) -> Result<Box<TurnPlan>, String> {
        let (model, provider) = self.model_and_provider()?;
        let messages = self.session.context().messages.iter().map(|kept| kept.message.clone()).collect();
        let thinking = model.clamp_thinking(self.thinking);
        Ok(Box::new(TurnPlan {
            provider,
            models: self.models.clone(),
            tools: self.tools.clone(),
            cwd: self.session.cwd().to_owned(),
            env: self.shell_environment(thinking),
            shell: self.shell(),
            images: ImageSettings {
                resize: self.resize(Some(&model)),
                model_takes_images: model.takes_images(),
            },
            request: ModelRequest {
                messages,
                thinking,
                credentials: Credentials::default(),
                options: self.request_options(),
                model,
            },
        }))
    }

    /// Whether images that come now are made smaller, and how small this model wants them.
    pub(super) fn resize(&self, model: Option<&Model>) -> Resize {
        match self.settings.images.auto_resize {
            true => Resize::ToFit(model.map(ImageLimit::of).unwrap_or_default()),
            false => Resize::Never,
        }
    }

    /// The chosen model and what speaks its API.
    pub(super) fn model_and_provider(&self) -> Result<(Model, Arc<dyn Provider>), String> {
        let model = self.model.clone().ok_or_else(|| "no model is chosen".to_owned())?;
        let provider = self.providers.get(&model.api).ok_or_else(|| {
            format!("the API \"{}\" of {}/{} is not supported", model.api, model.provider, model.id)
        })?;
        Ok((model, provider))
    }

    /// The options of every request.
    pub(super) fn request_options(&self) -> RequestOptions {
        RequestOptions {
            session_id: Some(self.session.id().to_string()),
            max_tokens: None,
            idle_timeout: self.settings.http_idle_timeout,
            head_timeout: self.settings.retry.provider.timeout,
            attempts: Attempts {
                more: self.settings.retry.provider.max_retries,
                max_requested_delay: self.settings.retry.provider.max_retry_delay,
            },
            cache_retention: self.cache_retention,
            thinking_budgets: self.settings.thinking_budgets,
            block_images: self.settings.images.block_images,
        }
    }

    pub(super) fn shell(&self) -> ShellSettings {
        ShellSettings {
            path: self.settings.shell(&self.environment),
            command_prefix: self.settings.shell_command_prefix.clone(),
        }
    }

    /// The variables that describe the session to the commands that the model runs.
    fn shell_environment(&self, thinking: ThinkingLevel) -> Vec<(String, Option<String>)> {
        let model = self.model.as_ref();
        [
            (session_variables::ID, Some(self.session.id().to_string())),
            (session_variables::FILE, self.session_file()),
            (session_variables::PROVIDER, model.map(|model| model.provider.clone())),
            (session_variables::MODEL, model.map(|model| model.id.clone())),
            (session_variables::REASONING_LEVEL, Some(thinking.as_str().to_owned())),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .chain(agent_markers())
        .collect()
    }
}

/// The variables by which programs see that an agent started them.
pub(super) fn agent_markers() -> impl Iterator<Item = (String, Option<String>)> {
    PROCESS_MARKERS.into_iter().map(|(name, value)| (name.to_owned(), Some(value.to_owned())))
}
