//! What goes into a session, and what came of it.

use sampi_protocol::Shared;
use sampi_protocol::commands::{Disposition, StreamingBehavior};
use sampi_protocol::data::{AgentMessage, AssistantMessage, ImageContent, StopReason};

use crate::agent::PromptMode;
use crate::extensions::Input;

/// A message of the user: a text, perhaps images, and what to do with it during a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    input: Input,
    during_run: Option<StreamingBehavior>,
}

impl Prompt {
    /// A text. One that begins with a slash may name a prompt template or a skill.
    pub fn new(text: impl Into<String>) -> Self {
        Self { input: Input { text: text.into(), ..Input::default() }, during_run: None }
    }

    /// Adds an image.
    #[must_use]
    pub fn image(mut self, image: ImageContent) -> Self {
        self.input.images.push(image);
        self
    }

    /// What to do when a run is under way. Without it such a prompt is refused.
    #[must_use]
    pub fn during_run(self, behavior: StreamingBehavior) -> Self {
        Self { during_run: Some(behavior), ..self }
    }

    pub(super) fn into_input(self) -> Input {
        self.input
    }

    pub(super) fn into_parts(self) -> (Input, PromptMode) {
        (self.input, PromptMode::Prompt(self.during_run))
    }
}

impl<T: Into<String>> From<T> for Prompt {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// What came of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptOutcome {
    /// What became of it. Only with [`Disposition::Started`] there was a run to wait for.
    pub disposition: Disposition,
    /// The messages that ended during the run, in order. Failed attempts that were retried are among them.
    pub messages: Vec<Shared<AgentMessage>>,
    /// True when the run was aborted.
    pub aborted: bool,
}

impl PromptOutcome {
    pub(super) fn without_run(disposition: Disposition) -> Self {
        Self { disposition, messages: Vec::new(), aborted: false }
    }

    /// The last answer of the model.
    pub fn answer(&self) -> Option<&AssistantMessage> {
        self.messages.iter().rev().find_map(|message| message.as_assistant())
    }

    /// The text of the last answer that has any.
    pub fn text(&self) -> String {
        let answers = self.messages.iter().rev().filter_map(|message| message.as_assistant());
        answers.map(AssistantMessage::text).find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// Why the last answer failed.
    pub fn error(&self) -> Option<&str> {
        let answer = self.answer().filter(|answer| answer.stop_reason == StopReason::Error)?;
        Some(answer.error_message.as_deref().unwrap_or("the request to the model failed"))
    }

    /// True when the run neither failed nor was aborted.
    pub fn is_ok(&self) -> bool {
        !self.aborted && self.error().is_none()
    }
}
