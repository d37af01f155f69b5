//! Print mode and JSON mode: the prompts of the command line are run one after the other, then the
//! program ends.
//!
//! One loop drives the agent for both. JSON mode writes every event as it comes, print mode the text of the
//! last answer.

use std::collections::VecDeque;

use sampi_protocol::Shared;
use sampi_protocol::data::{AgentMessage, AssistantMessage, ContentBlock, StopReason};
use sampi_protocol::events::SessionEvent;
use tokio::io::AsyncWrite;

use crate::agent::{Agent, Outcome, Output, PromptMode, Ticket};
use crate::extensions::Input;
use crate::modes::outgoing::{Closed, EVENT_BACKLOG, Outgoing};
use crate::modes::signals::{Signal, Signals, Stop};

mod prompts;
#[cfg(test)]
mod tests;

pub use prompts::{PromptError, PromptSources, read_prompts};

/// Exit code when something failed.
const FAILED: i32 = 1;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The text of the last answer.
    Text,
    /// The session's header, then every event, one JSON record a line.
    Json,
}

/// What an answer that failed does to the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedAnswer {
    /// It makes the program fail.
    Fails,
    /// Nothing: the events tell.
    IsTold,
}

/// How the prompts ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ended {
    /// The exit code.
    pub code: i32,
    /// What to say on stderr.
    pub complaint: Option<String>,
}

enum Event {
    Agent(crate::agent::Inbox),
    Signal(Signal),
    Written,
    OutputClosed,
    DeadlinePassed,
}

/// Runs the prompts one after the other.
pub async fn run<W>(
    mut agent: Agent,
    prompts: Vec<Input>,
    form: Form,
    failed_answer: FailedAnswer,
    output: W,
    signals: &mut Signals,
) -> Ended
where
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (mut outgoing, writer) = Outgoing::start(output);
    if form == Form::Json {
        outgoing.write(agent.session().header());
    }
    let mut conversation = Conversation::new(form, prompts);
    let mut stop = Stop::default();
    let mut signalled = None;
    loop {
        conversation.note_outputs(&mut agent, &mut outgoing);
        if agent.is_idle() {
            if conversation.go_on(&mut agent) {
                continue;
            }
            if outgoing.is_empty() {
                break;
            }
        }
        let backlog = outgoing.backlog();
        let event = tokio::select! {
            biased;
            signal = signals.next() => Event::Signal(signal),
            written = outgoing.hand_over(), if !outgoing.is_empty() => match written {
                Ok(()) => Event::Written,
                Err(Closed) => Event::OutputClosed,
            },
            Some(report) = agent.receive(), if backlog < EVENT_BACKLOG => Event::Agent(report),
            () = stop.deadline() => Event::DeadlinePassed,
        };
        match event {
            Event::Agent(report) => agent.handle(report),
            Event::Written => {}
            Event::Signal(signal) if signalled.is_some() => {
                return Ended { code: signal.exit_code(), complaint: None };
            }
            Event::Signal(signal) => {
                signalled = Some(signal);
                conversation.waiting.clear();
                agent.stop();
                stop.begin();
            }
            Event::OutputClosed => {
                agent.stop();
                return Ended { code: FAILED, complaint: Some("the output was closed".to_owned()) };
            }
            Event::DeadlinePassed => {
                tracing::error!("what was going on did not stop in time");
                break;
            }
        }
    }
    let mut ended = conversation.end(failed_answer, &mut outgoing);
    outgoing.finish(writer).await;
    if let Some(signal) = signalled {
        ended.code = signal.exit_code();
    }
    ended
}

/// The prompts that wait, and what came of those before.
struct Conversation {
    form: Form,
    waiting: VecDeque<Input>,
    submitted: u64,
    refusal: Option<String>,
    last_answer: Option<Shared<AgentMessage>>,
}

impl Conversation {
    fn new(form: Form, prompts: Vec<Input>) -> Self {
        Self { form, waiting: prompts.into(), submitted: 0, refusal: None, last_answer: None }
    }

    fn note_outputs(&mut self, agent: &mut Agent, outgoing: &mut Outgoing) {
        while let Some(output) = agent.next_output() {
            match output {
                Output::Event(event) => {
                    if let SessionEvent::MessageEnd(end) = &event
                        && end.message.as_assistant().is_some()
                    {
                        self.last_answer = Some(end.message.clone());
                    }
                    if self.form == Form::Json {
                        outgoing.write(&event);
                    }
                }
                Output::Done(_, Outcome::Accepted(Err(error))) => {
                    self.refusal = Some(error.to_string());
                    self.waiting.clear();
                }
                Output::Done(..) | Output::BashOutput(..) => {}
            }
        }
    }

    /// Starts the next prompt; false when there is none.
    fn go_on(&mut self, agent: &mut Agent) -> bool {
        let Some(input) = self.waiting.pop_front() else { return false };
        self.submitted += 1;
        agent.submit(Ticket(self.submitted), input, PromptMode::Prompt(None));
        true
    }

    /// What the last answer means for the end; in print mode its text is written.
    fn end(&self, failed_answer: FailedAnswer, outgoing: &mut Outgoing) -> Ended {
        if let Some(refusal) = &self.refusal {
            return Ended { code: FAILED, complaint: Some(refusal.clone()) };
        }
        let Some(answer) = self.last_answer.as_ref().and_then(|message| message.as_assistant()) else {
            return Ended::default();
        };
        let complaint = complaint(answer);
        let is_usable = !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted);
        if self.form == Form::Text && is_usable {
            for text in answer.content.iter().filter_map(ContentBlock::as_text) {
                outgoing.write_text(text);
                outgoing.write_text("\n");
            }
        }
        let fails = complaint.is_some() && failed_answer == FailedAnswer::Fails;
        Ended { code: if fails { FAILED } else { 0 }, complaint }
    }
}

/// What is wrong with the last answer.
fn complaint(answer: &AssistantMessage) -> Option<String> {
    let said = answer.error_message.clone().filter(|said| !said.is_empty());
    match answer.stop_reason {
        StopReason::Error => Some(said.unwrap_or_else(|| "the request to the model failed".to_owned())),
        StopReason::Aborted => {
            Some(said.unwrap_or_else(|| "the request to the model was aborted".to_owned()))
        }
        StopReason::Length => Some("Warning: the answer was cut off at the model's output limit".to_owned()),
        _ => None,
    }
}
