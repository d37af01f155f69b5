//! Shell commands that the user runs directly.

use std::collections::BTreeMap;

use sampi_protocol::commands::BashResult;
use sampi_protocol::data::{AgentMessage, BashExecutionMessage};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::turn::agent_markers;
use super::{Agent, AgentError, Inbox, InboxMessage, Outcome, Output, Ticket, now_millis};
use crate::BoxFuture;
use crate::process::{self, OutputSink, ShellCommand};

/// The shell commands that are running, and the messages that wait for the end of the run.
#[derive(Default)]
pub(super) struct BashRuns {
    running: BTreeMap<Ticket, RunningBash>,
    waiting: Vec<AgentMessage>,
}

struct RunningBash {
    cancel: CancellationToken,
    command: String,
    exclude_from_context: bool,
}

/// Hands output to the agent, and waits while the host does not read.
struct Deltas {
    ticket: Ticket,
    inbox: mpsc::Sender<Inbox>,
}

impl OutputSink for Deltas {
    fn take<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let message = InboxMessage::Bash(BashMessage::Output(self.ticket, text.to_owned()));
            // The agent is gone only when the daemon stops, and then nobody wants to know.
            self.inbox.send(Inbox(message)).await.ok();
        })
    }
}

/// What the task of a shell command reports.
pub(super) enum BashMessage {
    Output(Ticket, String),
    Ended(Ticket, Result<BashResult, String>),
}

/// Whether the model sees the output of a shell command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BashVisibility {
    /// It does, with the next prompt.
    InContext,
    /// It does not.
    ExcludedFromContext,
}

impl BashRuns {
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }
}

impl Agent {
    /// Runs a shell command; its output becomes part of the conversation.
    pub fn bash(&mut self, ticket: Ticket, command: String, visibility: BashVisibility) {
        let cancel = CancellationToken::new();
        let running = RunningBash {
            cancel: cancel.clone(),
            command: command.clone(),
            exclude_from_context: visibility == BashVisibility::ExcludedFromContext,
        };
        self.bash.running.insert(ticket, running);
        let shell = ShellCommand {
            command,
            cwd: self.session.cwd().to_owned(),
            env: agent_markers().collect(),
            shell: self.shell(),
            timeout: None,
        };
        let inbox = self.inbox_writer.clone();
        // Owned by `running`: cancelled by abort_bash and stop, and its end is reported in any case.
        tokio::spawn(async move {
            let writer = inbox.clone();
            let mut task = tokio::spawn(async move {
                let mut deltas = Deltas { ticket, inbox: writer };
                process::execute_bash(&shell, &cancel, &mut deltas).await.map_err(|error| error.to_string())
            });
            let result = (&mut task).await.unwrap_or_else(|error| Err(error.to_string()));
            inbox.send(Inbox(InboxMessage::Bash(BashMessage::Ended(ticket, result)))).await.ok();
        });
    }

    /// Stops the shell commands that are running.
    pub fn abort_bash(&mut self) {
        for running in self.bash.running.values() {
            running.cancel.cancel();
        }
    }

    pub(super) fn handle_bash(&mut self, message: BashMessage) {
        match message {
            BashMessage::Output(ticket, text) => self.outbox.push_back(Output::BashOutput(ticket, text)),
            BashMessage::Ended(ticket, result) => {
                let Some(running) = self.bash.running.remove(&ticket) else { return };
                let outcome = result.map_err(AgentError::Io).and_then(|result| {
                    self.keep_bash(running, &result)?;
                    Ok(result)
                });
                self.done(ticket, Outcome::Bash(outcome));
            }
        }
    }

    fn keep_bash(&mut self, running: RunningBash, result: &BashResult) -> Result<(), AgentError> {
        let message = AgentMessage::BashExecution(BashExecutionMessage {
            command: running.command,
            output: result.output.clone(),
            exit_code: result.exit_code,
            cancelled: result.cancelled,
            truncated: result.truncated,
            full_output_path: result.full_output_path.clone(),
            timestamp: now_millis(),
            exclude_from_context: running.exclude_from_context.then_some(true),
            ..BashExecutionMessage::default()
        });
        // Between a tool call and its result there is no place for another message.
        if self.run.is_some() {
            self.bash.waiting.push(message);
            return Ok(());
        }
        self.record(message)?;
        self.session.save()?;
        Ok(())
    }

    /// Appends the messages of shell commands that ran during a run.
    pub(super) fn flush_bash_messages(&mut self) {
        for message in std::mem::take(&mut self.bash.waiting) {
            if let Err(error) = self.record(message.clone()) {
                tracing::error!(%error, "the output of a shell command could not be kept, it is tried again");
                self.bash.waiting.push(message);
            }
        }
    }
}
