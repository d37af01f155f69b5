//! One arm a command: what it asks of the agent, and how the answer is written.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;

use sampi_protocol::RequestId;
use sampi_protocol::commands::{
    AvailableModels, AvailableThinkingLevels, Command, CycledThinkingLevel, ForkMessage, ForkMessages,
    ForkResult, GetEntries, LabelSet, LastAssistantText, Messages, PromptResult, QueuedResult,
    SessionChange as SessionChangeResult,
};
use sampi_protocol::data::EntryId;
use sampi_protocol::events::{BashExecutionUpdate, SessionEvent};
use sampi_protocol::jsonl::Frame;
use sampi_protocol::response::{ErrorCode, ResponseTag};
use serde::Serialize;

use super::RpcLimits;
use super::dispatch::{Received, Refusal, read_frame};
use super::ui::Dialogs;
use crate::agent::{
    Agent, AgentError, BashVisibility, Leaving, Navigation, Outcome, Output, PromptMode, SessionChange,
    Ticket,
};
use crate::extensions::Input;
use crate::modes::outgoing::Outgoing;
use crate::session::SessionError;

/// The agent, and the commands that are not answered yet.
pub(super) struct Handlers {
    agent: Agent,
    limits: RpcLimits,
    pending: HashMap<Ticket, Pending>,
    next_ticket: u64,
    dialogs: Dialogs,
}

/// A command that is answered later.
struct Pending {
    id: Option<RequestId>,
    command: &'static str,
}

/// A response as it is written.
#[derive(Serialize)]
struct Reply<'a, T> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RequestId>,
    #[serde(rename = "type")]
    kind: ResponseTag,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a ErrorCode>,
}

impl Handlers {
    pub(super) fn new(agent: Agent, limits: RpcLimits) -> Self {
        Self { agent, limits, pending: HashMap::new(), next_ticket: 0, dialogs: Dialogs::default() }
    }

    pub(super) fn agent(&self) -> &Agent {
        &self.agent
    }

    pub(super) fn agent_mut(&mut self) -> &mut Agent {
        &mut self.agent
    }

    /// Writes what the agent has to say.
    pub(super) fn write_outputs(&mut self, out: &mut Outgoing) {
        while let Some(output) = self.agent.next_output() {
            match output {
                Output::Event(event) => out.write(&event),
                Output::BashOutput(ticket, delta) => {
                    let id = self.pending.get(&ticket).and_then(|pending| pending.id.clone());
                    out.write(&SessionEvent::from(BashExecutionUpdate { id, delta }));
                }
                Output::Done(ticket, outcome) => {
                    if let Some(pending) = self.pending.remove(&ticket) {
                        Answer { out, id: pending.id.as_ref(), command: pending.command }.outcome(outcome);
                    }
                }
            }
        }
    }

    /// Answers one frame, now or later.
    pub(super) fn handle_frame(&mut self, frame: Frame, out: &mut Outgoing) {
        match read_frame(frame, self.limits.frame) {
            Received::Refused(refusal) => refuse(out, &refusal),
            Received::UiResponse(response) => self.dialogs.answer(response),
            Received::Command { id, command } => {
                let name = command.name();
                let kept_id = id.clone();
                let first_ticket = self.next_ticket;
                let handled = std::panic::catch_unwind(AssertUnwindSafe(|| self.handle(id, command, out)));
                if handled.is_err() {
                    self.pending.retain(|ticket, _| ticket.0 < first_ticket);
                    refuse(
                        out,
                        &Refusal {
                            id: kept_id,
                            command: Some(name.to_owned()),
                            error: format!("a fault of the daemon stopped {name}"),
                            code: ErrorCode::Internal,
                        },
                    );
                }
            }
        }
    }

    fn later(&mut self, id: Option<RequestId>, command: &'static str) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.pending.insert(ticket, Pending { id, command });
        ticket
    }

    fn handle(&mut self, id: Option<RequestId>, command: Command, out: &mut Outgoing) {
        let name = command.name();
        match command {
            Command::Prompt(prompt) => {
                let ticket = self.later(id, name);
                let mode = PromptMode::Prompt(prompt.streaming_behavior);
                self.agent.submit(ticket, input(prompt.message, prompt.images), mode);
            }
            Command::Steer(steer) => {
                let ticket = self.later(id, name);
                self.agent.submit(ticket, input(steer.message, steer.images), PromptMode::Steer);
            }
            Command::FollowUp(follow_up) => {
                let ticket = self.later(id, name);
                self.agent.submit(ticket, input(follow_up.message, follow_up.images), PromptMode::FollowUp);
            }
            Command::Abort(_) => {
                let ticket = self.later(id, name);
                self.agent.abort(ticket);
            }
            Command::Bash(bash) => {
                let ticket = self.later(id, name);
                let visibility = match bash.exclude_from_context {
                    Some(true) => BashVisibility::ExcludedFromContext,
                    _ => BashVisibility::InContext,
                };
                self.agent.bash(ticket, bash.command, visibility);
            }
            Command::Compact(compact) => {
                let ticket = self.later(id, name);
                self.agent.compact(ticket, compact.custom_instructions);
            }
            Command::NewSession(new) => {
                self.change_session(id, name, SessionChange::New { parent: new.parent_session });
            }
            Command::SwitchSession(switch) => {
                let path = PathBuf::from(switch.session_path);
                self.change_session(id, name, SessionChange::Switch { path });
            }
            Command::Fork(fork) => {
                self.change_session(id, name, SessionChange::Fork { entry: fork.entry_id })
            }
            Command::CloneSession(_) => self.change_session(id, name, SessionChange::Clone),
            Command::NavigateTree(navigate) => {
                let ticket = self.later(id, name);
                let instructions = navigate.custom_instructions;
                let leaving = match navigate.summarize {
                    Some(true) => Leaving::Summarised { instructions },
                    _ => Leaving::Silent,
                };
                let navigation = Navigation { target: navigate.target_id, leaving, label: navigate.label };
                self.agent.navigate(ticket, navigation);
            }
            Command::GetEntries(GetEntries { since }) => {
                let session = self.agent.session();
                let since = since.as_ref().map(EntryId::as_str);
                let write = |out: &mut Vec<u8>| session.write_entries(since, out);
                Answer { out, id: id.as_ref(), command: name }.copied("entries", session.leaf(), write);
            }
            Command::GetTree(_) => {
                let session = self.agent.session();
                let write = |out: &mut Vec<u8>| session.write_tree(out);
                Answer { out, id: id.as_ref(), command: name }.copied("tree", session.leaf(), write);
            }
            Command::ListSessions(wish) => {
                let ticket = self.later(id, name);
                self.agent.list_sessions(ticket, wish);
            }
            Command::DeleteSession(delete) => {
                let ticket = self.later(id, name);
                self.agent.delete_session(ticket, PathBuf::from(delete.session_path));
            }
            Command::ExportHtml(export) => {
                let ticket = self.later(id, name);
                self.agent.export_html(ticket, export.output_path);
            }
            command => {
                let answer = answer_now(&mut self.agent, command);
                // What the command made happen is told before its answer.
                self.write_outputs(out);
                answer.write(&mut Answer { out, id: id.as_ref(), command: name });
            }
        }
    }

    fn change_session(&mut self, id: Option<RequestId>, name: &'static str, change: SessionChange) {
        let ticket = self.later(id, name);
        self.agent.change_session(ticket, change);
    }
}

/// An answer that is at hand.
enum Now {
    Nothing,
    Data(Box<dyn FnOnce(&mut Answer<'_>) + Send>),
    Failed(AgentError),
}

impl Now {
    fn data<T: Serialize + Send + 'static>(data: T) -> Self {
        Self::Data(Box::new(move |answer| answer.data(&data)))
    }

    fn from_result(result: Result<(), AgentError>) -> Self {
        result.map_or_else(Self::Failed, |()| Self::Nothing)
    }

    fn from_data<T: Serialize + Send + 'static>(result: Result<T, AgentError>) -> Self {
        result.map_or_else(Self::Failed, Self::data)
    }

    fn write(self, answer: &mut Answer<'_>) {
        match self {
            Self::Nothing => answer.success::<()>(None),
            Self::Data(write) => write(answer),
            Self::Failed(error) => answer.failure(&error),
        }
    }
}

fn answer_now(agent: &mut Agent, command: Command) -> Now {
    match command {
        Command::ClearQueue(_) => Now::data(agent.clear_queue()),
        Command::GetState(_) => Now::data(agent.state()),
        Command::GetMessages(_) => Now::data(Messages { messages: agent.messages() }),
        Command::SetModel(set) => Now::from_data(agent.set_model(&set.provider, &set.model_id)),
        Command::CycleModel(_) => Now::from_data(agent.cycle_model()),
        Command::GetAvailableModels(_) => Now::data(AvailableModels { models: agent.available_models() }),
        Command::SetThinkingLevel(set) => Now::from_result(agent.set_thinking_level(set.level)),
        Command::CycleThinkingLevel(_) => Now::from_data(
            agent.cycle_thinking_level().map(|level| level.map(|level| CycledThinkingLevel { level })),
        ),
        Command::GetAvailableThinkingLevels(_) => {
            Now::data(AvailableThinkingLevels { levels: agent.thinking_levels() })
        }
        Command::SetSteeringMode(set) => {
            agent.set_steering_mode(set.mode);
            Now::Nothing
        }
        Command::SetFollowUpMode(set) => {
            agent.set_follow_up_mode(set.mode);
            Now::Nothing
        }
        Command::SetAutoCompaction(set) => {
            agent.set_auto_compaction(set.enabled);
            Now::Nothing
        }
        Command::SetAutoRetry(set) => {
            agent.set_auto_retry(set.enabled);
            Now::Nothing
        }
        Command::AbortRetry(_) => {
            agent.abort_retry();
            Now::Nothing
        }
        Command::AbortBash(_) => {
            agent.abort_bash();
            Now::Nothing
        }
        Command::GetSessionStats(_) => Now::data(agent.stats()),
        Command::GetForkMessages(_) => {
            let points = agent.session().fork_points();
            let messages =
                points.into_iter().map(|(entry_id, text)| ForkMessage { entry_id, text }).collect();
            Now::data(ForkMessages { messages })
        }
        Command::GetLastAssistantText(_) => {
            Now::data(LastAssistantText { text: agent.last_assistant_text() })
        }
        Command::SetSessionName(set) => Now::from_result(agent.set_session_name(&set.name)),
        Command::GetCommands(_) => Now::data(agent.commands()),
        Command::SetLabel(set) => {
            Now::from_data(agent.set_label(set.entry_id, set.label).map(|entry| LabelSet { entry }))
        }
        Command::Prompt(_)
        | Command::Steer(_)
        | Command::FollowUp(_)
        | Command::Abort(_)
        | Command::Bash(_)
        | Command::Compact(_)
        | Command::NewSession(_)
        | Command::SwitchSession(_)
        | Command::Fork(_)
        | Command::CloneSession(_)
        | Command::GetEntries(_)
        | Command::GetTree(_)
        | Command::NavigateTree(_)
        | Command::ListSessions(_)
        | Command::DeleteSession(_)
        | Command::ExportHtml(_) => {
            Now::Failed(AgentError::Failed("this command is answered later".to_owned()))
        }
    }
}

fn input(text: String, images: Vec<sampi_protocol::commands::PromptImage>) -> Input {
    Input { text, images: images.into_iter().map(Into::into).collect(), notes: Vec::new() }
}

fn refuse(out: &mut Outgoing, refusal: &Refusal) {
    out.write(&Reply::<()> {
        id: refusal.id.as_ref(),
        kind: ResponseTag::Response,
        command: refusal.command.as_deref(),
        success: false,
        data: None,
        error: Some(&refusal.error),
        code: Some(&refusal.code),
    });
}

/// Where an answer goes.
struct Answer<'a> {
    out: &'a mut Outgoing,
    id: Option<&'a RequestId>,
    command: &'static str,
}

impl Answer<'_> {
    fn outcome(mut self, outcome: Outcome) {
        match outcome {
            Outcome::Idle => self.success::<()>(None),
            Outcome::Accepted(Ok(disposition)) if self.command == "prompt" => {
                self.data(&PromptResult { disposition });
            }
            Outcome::Accepted(Ok(disposition)) => self.data(&QueuedResult { disposition }),
            Outcome::Bash(Ok(result)) => self.data(&result),
            Outcome::Compacted(Ok(result)) => self.data(&result),
            Outcome::SessionChanged(Ok(changed)) if self.command == "fork" => {
                self.data(&ForkResult { text: changed.text, cancelled: changed.cancelled });
            }
            Outcome::SessionChanged(Ok(changed)) => {
                self.data(&SessionChangeResult { cancelled: changed.cancelled });
            }
            Outcome::Navigated(Ok(navigated)) => self.data(&navigated),
            Outcome::Listed(Ok(listed)) => self.data(&listed),
            Outcome::Exported(Ok(exported)) => self.data(&exported),
            Outcome::Deleted(Ok(())) => self.success::<()>(None),
            Outcome::Accepted(Err(error))
            | Outcome::Navigated(Err(error))
            | Outcome::Listed(Err(error))
            | Outcome::Deleted(Err(error))
            | Outcome::Exported(Err(error))
            | Outcome::Bash(Err(error))
            | Outcome::Compacted(Err(error))
            | Outcome::SessionChanged(Err(error)) => self.failure(&error),
        }
    }

    /// Answers with an array that the session copies from its file, and the leaf.
    fn copied(
        &mut self,
        field: &str,
        leaf: Option<&EntryId>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), SessionError>,
    ) {
        let (id, command) = (self.id, self.command);
        let written = self.out.write_pieces(|out| {
            out.push(b'{');
            if let Some(id) = id {
                out.extend_from_slice(b"\"id\":");
                serde_json::to_writer(&mut *out, id)?;
                out.push(b',');
            }
            let head = format!(
                "\"type\":\"response\",\"command\":\"{command}\",\"success\":true,\"data\":{{\"{field}\":"
            );
            out.extend_from_slice(head.as_bytes());
            write(out)?;
            out.extend_from_slice(b",\"leafId\":");
            serde_json::to_writer(&mut *out, &leaf)?;
            out.extend_from_slice(b"}}");
            Ok(())
        });
        if let Err(error) = written {
            self.failure(&AgentError::Session(error));
        }
    }

    fn data<T: Serialize>(&mut self, data: &T) {
        self.success(Some(data));
    }

    fn success<T: Serialize>(&mut self, data: Option<&T>) {
        self.out.write(&Reply {
            id: self.id,
            kind: ResponseTag::Response,
            command: Some(self.command),
            success: true,
            data,
            error: None,
            code: None,
        });
    }

    fn failure(&mut self, error: &AgentError) {
        self.out.write(&Reply::<()> {
            id: self.id,
            kind: ResponseTag::Response,
            command: Some(self.command),
            success: false,
            data: None,
            error: Some(&error.to_string()),
            code: Some(&error_code(error)),
        });
    }
}

fn error_code(error: &AgentError) -> ErrorCode {
    match error {
        AgentError::Busy(_) => ErrorCode::Busy,
        AgentError::NoModel(_) => ErrorCode::NoModel,
        AgentError::Auth(_) => ErrorCode::Auth,
        AgentError::NotFound(_) => ErrorCode::NotFound,
        AgentError::Invalid(_) => ErrorCode::InvalidParams,
        AgentError::Cancelled(_) => ErrorCode::Cancelled,
        AgentError::Io(_) => ErrorCode::Io,
        AgentError::Failed(_) => ErrorCode::Internal,
        AgentError::Session(error) => match error {
            SessionError::NotFound { .. }
            | SessionError::EntryNotFound(_)
            | SessionError::NotForkable
            | SessionError::CwdMissing { .. } => ErrorCode::NotFound,
            SessionError::NotASession { .. }
            | SessionError::Version { .. }
            | SessionError::NotSaved
            | SessionError::InvalidId { .. } => ErrorCode::InvalidParams,
            SessionError::Locked { .. } => ErrorCode::Busy,
            SessionError::Io { .. } | SessionError::ReadOnly { .. } => ErrorCode::Io,
            SessionError::Json(_) => ErrorCode::Internal,
        },
    }
}
