//! The task that owns the agent of an embedded session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sampi_protocol::Shared;
use sampi_protocol::commands::Disposition;
use sampi_protocol::data::AgentMessage;
use sampi_protocol::events::SessionEvent;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::events::Hub;
use super::prompt::{Prompt, PromptOutcome};
use super::session::AgentSession;
use crate::agent::{Agent, AgentError, Inbox, Outcome, Output, SessionChange, SessionChanged, Ticket};

/// Commands that may wait before those who give them are slowed down.
const COMMAND_CAPACITY: usize = 64;

/// How long what is under way may take to stop when a session is disposed.
const STOP_DEADLINE: Duration = Duration::from_secs(5);

/// The place where the session that is active is found.
pub(super) type Slot = Arc<Mutex<AgentSession>>;

/// What is asked of the agent at once.
pub(super) type Work = Box<dyn FnOnce(&mut Agent) + Send>;

/// What is asked of the agent and answered later, under this ticket.
pub(super) type TicketedWork = Box<dyn FnOnce(&mut Agent, Ticket) + Send>;

/// Something to do with the agent.
pub(super) enum Command {
    /// Something that is done at once.
    Now(Work),
    /// Something whose outcome comes later.
    Later(TicketedWork, oneshot::Sender<Outcome>),
    /// A prompt, answered when its run has settled.
    Prompt(Prompt, oneshot::Sender<Result<PromptOutcome, AgentError>>),
    /// Answered when nothing is under way.
    WaitForIdle(oneshot::Sender<()>),
    /// Another session takes the place of this one.
    Replace(SessionChange, Slot, oneshot::Sender<Result<SessionChanged, AgentError>>),
}

/// A command and the session that it is meant for: one that was replaced meanwhile is not obeyed.
pub(super) struct Envelope {
    pub(super) generation: u64,
    pub(super) command: Command,
}

enum Pending {
    Later(oneshot::Sender<Outcome>),
    Prompt(oneshot::Sender<Result<PromptOutcome, AgentError>>),
    Replace(Slot, oneshot::Sender<Result<SessionChanged, AgentError>>),
}

/// A run that a prompt waits for.
struct AwaitedRun {
    reply: oneshot::Sender<Result<PromptOutcome, AgentError>>,
    messages: Vec<Shared<AgentMessage>>,
}

enum Step {
    Stop,
    Command(Envelope),
    Report(Inbox),
    DeadlinePassed,
}

/// Drives one agent for the handles of its session. Ends when the session is disposed.
pub(super) struct Driver {
    agent: Agent,
    commands: mpsc::Receiver<Envelope>,
    /// For the handles of the next session.
    sender: mpsc::WeakSender<Envelope>,
    generation: u64,
    hub: Arc<Hub>,
    stop: CancellationToken,
    next_ticket: u64,
    pending: HashMap<Ticket, Pending>,
    run: Option<AwaitedRun>,
    waiting_for_idle: Vec<oneshot::Sender<()>>,
    deadline: Option<Instant>,
}

impl Driver {
    /// Starts the task; gives the first handle.
    pub(super) fn start(agent: Agent) -> AgentSession {
        let (sender, commands) = mpsc::channel(COMMAND_CAPACITY);
        let driver = Self {
            agent,
            commands,
            sender: sender.downgrade(),
            generation: 0,
            hub: Arc::new(Hub::new()),
            stop: CancellationToken::new(),
            next_ticket: 0,
            pending: HashMap::new(),
            run: None,
            waiting_for_idle: Vec::new(),
            deadline: None,
        };
        let session =
            AgentSession::new(sender, driver.generation, Arc::clone(&driver.hub), driver.stop.clone());
        // Owned by the session's handles: the last one of them cancels `stop`. Its end is the hub's.
        tokio::spawn(driver.drive());
        session
    }

    async fn drive(mut self) {
        loop {
            self.take_outputs();
            if self.agent.is_idle() {
                for waiting in self.waiting_for_idle.drain(..) {
                    // Who waited may be gone.
                    waiting.send(()).ok();
                }
                if self.deadline.is_some() {
                    return;
                }
            }
            match self.next_step().await {
                Step::Command(envelope) if envelope.generation == self.generation => {
                    self.obey(envelope.command);
                }
                // Dropping the command tells the handle that its session is gone.
                Step::Command(_) => {}
                Step::Report(report) => self.agent.handle(report),
                Step::Stop => {
                    self.deadline = Some(Instant::now() + STOP_DEADLINE);
                    self.agent.stop();
                }
                Step::DeadlinePassed => {
                    tracing::error!("what was going on in a session did not stop in time");
                    return;
                }
            }
        }
    }

    async fn next_step(&mut self) -> Step {
        let is_stopping = self.deadline.is_some();
        let deadline = self.deadline.unwrap_or_else(Instant::now);
        tokio::select! {
            biased;
            () = self.stop.cancelled(), if !is_stopping => Step::Stop,
            command = self.commands.recv(), if !is_stopping => command.map_or(Step::Stop, Step::Command),
            Some(report) = self.agent.receive() => Step::Report(report),
            () = tokio::time::sleep_until(deadline), if is_stopping => Step::DeadlinePassed,
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Now(work) => work(&mut self.agent),
            Command::Later(work, reply) => {
                let ticket = self.later(Pending::Later(reply));
                work(&mut self.agent, ticket);
            }
            Command::Prompt(prompt, reply) => {
                let ticket = self.later(Pending::Prompt(reply));
                let (input, mode) = prompt.into_parts();
                self.agent.submit(ticket, input, mode);
            }
            Command::WaitForIdle(reply) => self.waiting_for_idle.push(reply),
            Command::Replace(change, slot, reply) => {
                let ticket = self.later(Pending::Replace(slot, reply));
                self.agent.change_session(ticket, change);
            }
        }
    }

    fn later(&mut self, pending: Pending) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.pending.insert(ticket, pending);
        ticket
    }

    fn take_outputs(&mut self) {
        while let Some(output) = self.agent.next_output() {
            match output {
                Output::Event(event) => self.hear(event),
                // The result has the output too.
                Output::BashOutput(..) => {}
                Output::Done(ticket, outcome) => match self.pending.remove(&ticket) {
                    Some(Pending::Later(reply)) => drop(reply.send(outcome)),
                    Some(Pending::Prompt(reply)) => self.prompt_accepted(reply, outcome),
                    Some(Pending::Replace(slot, reply)) => self.session_changed(&slot, reply, outcome),
                    None => {}
                },
            }
        }
    }

    fn hear(&mut self, event: SessionEvent) {
        match &event {
            SessionEvent::MessageEnd(end) => {
                if let Some(run) = &mut self.run {
                    run.messages.push(end.message.clone());
                }
            }
            SessionEvent::AgentSettled(settled) => {
                let aborted = settled.aborted;
                // Subscribers learn of the end before the prompt does.
                self.hub.publish(event);
                if let Some(AwaitedRun { reply, messages }) = self.run.take() {
                    let outcome = PromptOutcome { disposition: Disposition::Started, messages, aborted };
                    drop(reply.send(Ok(outcome)));
                }
                return;
            }
            _ => {}
        }
        self.hub.publish(event);
    }

    fn prompt_accepted(
        &mut self,
        reply: oneshot::Sender<Result<PromptOutcome, AgentError>>,
        outcome: Outcome,
    ) {
        match outcome {
            Outcome::Accepted(Ok(Disposition::Started)) => {
                self.run = Some(AwaitedRun { reply, messages: Vec::new() });
            }
            Outcome::Accepted(Ok(disposition)) => {
                drop(reply.send(Ok(PromptOutcome::without_run(disposition))));
            }
            Outcome::Accepted(Err(error)) => drop(reply.send(Err(error))),
            _ => {}
        }
    }

    /// The handles of the session before are told that it is over, and the slot gets one of the new session.
    fn session_changed(
        &mut self,
        slot: &Slot,
        reply: oneshot::Sender<Result<SessionChanged, AgentError>>,
        outcome: Outcome,
    ) {
        let Outcome::SessionChanged(changed) = outcome else { return };
        if changed.as_ref().is_ok_and(|changed| !changed.cancelled)
            && let Some(sender) = self.sender.upgrade()
        {
            self.generation += 1;
            let before = std::mem::replace(&mut self.hub, Arc::new(Hub::new()));
            self.stop = CancellationToken::new();
            let session =
                AgentSession::new(sender, self.generation, Arc::clone(&self.hub), self.stop.clone());
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = session;
            before.end();
        }
        drop(reply.send(changed));
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.hub.end();
    }
}
