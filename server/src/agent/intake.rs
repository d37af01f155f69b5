//! Messages of the user on their way in: prompts, steering, follow-ups.

use std::collections::VecDeque;

use sampi_protocol::Shared;
use sampi_protocol::commands::{Disposition, StreamingBehavior};
use sampi_protocol::data::{AgentMessage, CompactionReason, ImageContent};
use sampi_protocol::events::ExtensionError;

use super::compaction::Then;
use super::queues::{QueueKind, user_message};
use super::{Agent, AgentError, Inbox, InboxMessage, Outcome, Ticket};
use crate::extensions::{Input, InputVerdict};
use crate::images::{self, Resize};

/// How a message is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptMode {
    /// Start a run, or queue the message like this when one is under way.
    Prompt(Option<StreamingBehavior>),
    /// Queue it before the next request to the model.
    Steer,
    /// Queue it for when the agent would stop.
    FollowUp,
}

/// Messages that an extension looks at, or whose images are made ready, one at a time and in order.
#[derive(Default)]
pub(super) struct Intake {
    waiting: VecDeque<(Ticket, Input, PromptMode)>,
    checking: Option<(Ticket, PromptMode)>,
    start_cancelled: bool,
}

/// What an extension said of a message.
pub(super) struct Checked(InputVerdict);

impl Intake {
    pub(super) fn is_empty(&self) -> bool {
        self.checking.is_none() && self.waiting.is_empty()
    }

    /// True while a prompt is looked at that may start a run.
    pub(super) fn is_starting(&self) -> bool {
        !self.start_cancelled && matches!(self.checking, Some((_, PromptMode::Prompt(_))))
    }

    /// Cancels the prompts that may start a run. Those that were not looked at yet are given back.
    fn cancel_starts(&mut self) -> Vec<Ticket> {
        self.start_cancelled = self.checking.is_some();
        let is_start = |mode: &PromptMode| matches!(mode, PromptMode::Prompt(_));
        let (starts, others) =
            std::mem::take(&mut self.waiting).into_iter().partition(|(_, _, mode)| is_start(mode));
        self.waiting = others;
        let starts: VecDeque<_> = starts;
        starts.into_iter().map(|(ticket, ..)| ticket).collect()
    }
}

impl Agent {
    /// Takes a message in. The ticket is done once it is accepted or refused.
    pub fn submit(&mut self, ticket: Ticket, input: Input, mode: PromptMode) {
        // Work on images takes time, and what came first must stay first.
        if self.extension.is_active() || !input.images.is_empty() || !self.intake.is_empty() {
            self.intake.waiting.push_back((ticket, input, mode));
            self.check_next_input();
        } else {
            self.accept(ticket, input, mode);
        }
    }

    /// Cancels the prompts on their way in that may start a run.
    pub(super) fn cancel_starts(&mut self) {
        for ticket in self.intake.cancel_starts() {
            self.refuse_aborted_prompt(ticket);
        }
    }

    pub(super) fn refuse_aborted_prompt(&mut self, ticket: Ticket) {
        let error = AgentError::Cancelled("the prompt was aborted before it was accepted".to_owned());
        self.done(ticket, Outcome::Accepted(Err(error)));
    }

    fn check_next_input(&mut self) {
        if self.intake.checking.is_some() {
            return;
        }
        let Some((ticket, input, mode)) = self.intake.waiting.pop_front() else { return };
        self.intake.checking = Some((ticket, mode));
        self.intake.start_cancelled = false;
        let (extension, inbox) = (self.extension.clone(), self.inbox_writer.clone());
        let resize = self.resize(self.model.as_ref());
        tokio::spawn(async move {
            let verdict = match extension.input(input).await {
                InputVerdict::Continue(input) if !input.images.is_empty() => {
                    InputVerdict::Continue(prepare_images(input, resize).await)
                }
                verdict => verdict,
            };
            inbox.send(Inbox(InboxMessage::Intake(Checked(verdict)))).await.ok();
        });
    }

    pub(super) fn handle_checked_input(&mut self, Checked(verdict): Checked) {
        let Some((ticket, mode)) = self.intake.checking.take() else { return };
        let cancelled = std::mem::take(&mut self.intake.start_cancelled);
        match verdict {
            InputVerdict::Handled => self.done(ticket, Outcome::Accepted(Ok(Disposition::Handled))),
            InputVerdict::Continue(_) if cancelled && matches!(mode, PromptMode::Prompt(_)) => {
                self.refuse_aborted_prompt(ticket);
            }
            InputVerdict::Continue(input) => self.accept(ticket, input, mode),
        }
        self.note_idle();
        self.check_next_input();
    }

    fn accept(&mut self, ticket: Ticket, input: Input, mode: PromptMode) {
        if mode == PromptMode::Prompt(None) && self.is_busy() {
            let text = "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') \
                        to queue the message.";
            self.done(ticket, Outcome::Accepted(Err(AgentError::Busy(text.to_owned()))));
            return;
        }
        let input = self.expand(input);
        let queue = match mode {
            PromptMode::Steer => QueueKind::Steering,
            PromptMode::FollowUp => QueueKind::FollowUp,
            PromptMode::Prompt(Some(StreamingBehavior::Steer)) if self.is_busy() => QueueKind::Steering,
            PromptMode::Prompt(Some(StreamingBehavior::FollowUp)) if self.is_busy() => QueueKind::FollowUp,
            PromptMode::Prompt(_) => {
                self.start_prompt(ticket, input);
                return;
            }
        };
        self.enqueue(queue, input);
        self.done(ticket, Outcome::Accepted(Ok(Disposition::Queued)));
    }

    /// Puts in what a message stands for that names a skill or a prompt template.
    fn expand(&mut self, input: Input) -> Input {
        match self.resources.expand(&input.text) {
            Ok(None) => input,
            Ok(Some(text)) => Input { text, ..input },
            Err(error) => {
                self.emit(ExtensionError {
                    extension_path: error.path.clone(),
                    event: "skill_expansion".to_owned(),
                    error: error.to_string(),
                });
                input
            }
        }
    }

    fn start_prompt(&mut self, ticket: Ticket, input: Input) {
        if self.check_model().is_ok() && self.over_threshold() {
            let then = Then::Prompt(ticket, input);
            if let Err(Then::Prompt(ticket, input)) =
                self.try_compaction(CompactionReason::Threshold, None, then)
            {
                self.start_prompt_now(ticket, input);
            }
            return;
        }
        self.start_prompt_now(ticket, input);
    }

    pub(super) fn start_prompt_now(&mut self, ticket: Ticket, input: Input) {
        let before = self.session.leaf().cloned();
        match self.keep_prompt(&input) {
            Ok(messages) => {
                self.done(ticket, Outcome::Accepted(Ok(Disposition::Started)));
                self.start_run(input, messages);
            }
            Err(error) => {
                if let Err(error) = self.session.set_leaf(before.as_ref()) {
                    tracing::error!(%error, "a refused prompt could not be taken back");
                }
                self.done(ticket, Outcome::Accepted(Err(error)));
                self.note_idle();
            }
        }
    }

    /// Puts the prompt and everything before it where it can no longer be lost.
    fn keep_prompt(&mut self, input: &Input) -> Result<Vec<Shared<AgentMessage>>, AgentError> {
        self.check_model()?;
        self.make_writable()?;
        self.note_model_and_thinking()?;
        self.recovery.reset();
        self.flush_bash_messages();
        let mut messages = Vec::new();
        if let Some(system) = self.system_change() {
            messages.push(self.record(system)?);
        }
        messages.push(self.record(user_message(input.clone()))?);
        self.session.save()?;
        Ok(messages)
    }
}

/// Makes the images of a message ready to be sent; what is no image is left out with a note.
async fn prepare_images(input: Input, resize: Resize) -> Input {
    let Input { text, images, mut notes } = input;
    let prepared = tokio::task::spawn_blocking(move || -> Vec<_> {
        images.iter().map(|image| images::prepare(&image.data, resize)).collect()
    });
    let mut ready = Vec::new();
    match prepared.await {
        Ok(prepared) => {
            for image in prepared {
                match image {
                    Ok(image) => {
                        notes.extend(image.notes);
                        let mime_type = image.mime_type.to_owned();
                        ready.push(ImageContent { data: image.data, mime_type, ..ImageContent::default() });
                    }
                    Err(note) => notes.push(note),
                }
            }
        }
        Err(error) => {
            tracing::error!(%error, "the images of a message could not be read");
            notes.push("[Images omitted: they could not be read.]".to_owned());
        }
    }
    Input { text, images: ready, notes }
}
