//! The life of a run: start, messages of its task, end, settling. Every run ends in [`Agent::settle`].

use std::time::Duration;

use sampi_protocol::Shared;
use sampi_protocol::data::{
    AgentMessage, AssistantMessage, CompactionReason, EntryId, StopReason, ToolCall, ToolResultMessage,
};
use sampi_protocol::events::{
    AgentEnd, AgentSettled, AgentStart, MessageEnd, MessageStart, MessageUpdate, SessionDiagnostic,
    ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate, TurnEnd,
};
use tokio_util::sync::CancellationToken;

use super::compaction::Then;
use super::link::{RunLink, RunMessage, TurnReply};
use super::queues::QueueKind;
use super::run::{First, run_agent};
use super::tool_calls::aborted_result;
use super::{Agent, Inbox, InboxMessage, Outcome, Ticket, now_millis};
use crate::extensions::Input;
use crate::llm::Failure;
use crate::session::SessionError;

/// How long an aborted run may take before it is ended from outside.
const ABORT_DEADLINE: Duration = Duration::from_millis(1800);

/// A run that is under way.
pub(super) struct ActiveRun {
    pub(super) id: u64,
    pub(super) cancel: CancellationToken,
    pub(super) task: Option<tokio::task::JoinHandle<()>>,
    /// Messages that are kept but whose events come with the first turn.
    pub(super) announced_later: Vec<Shared<AgentMessage>>,
    /// The messages of this low-level run, for `agent_end`.
    pub(super) messages: Vec<Shared<AgentMessage>>,
    /// What is open, for the case that the run must be ended from outside.
    open: Open,
    /// How the last answer ended.
    pub(super) last: Option<LastAnswer>,
    pub(super) aborted: bool,
}

/// The last answer of the model.
pub(super) struct LastAnswer {
    /// Its entry in the session.
    pub(super) entry: Option<EntryId>,
    pub(super) message: Shared<AgentMessage>,
    pub(super) failure: Option<Failure>,
}

#[derive(Default)]
struct Open {
    turn: bool,
    answer: Option<Box<AssistantMessage>>,
    ended_answer: Option<Shared<AgentMessage>>,
    calls: Vec<ToolCall>,
    results: Vec<Shared<AgentMessage>>,
}

impl Agent {
    /// Starts a run for this input; its first turn announces the messages.
    pub(super) fn start_run(&mut self, input: Input, announced_later: Vec<Shared<AgentMessage>>) {
        self.next_run += 1;
        self.run = Some(ActiveRun {
            id: self.next_run,
            cancel: CancellationToken::new(),
            task: None,
            announced_later,
            messages: Vec::new(),
            open: Open::default(),
            last: None,
            aborted: false,
        });
        self.start_task(Some(input));
    }

    /// Starts the next low-level run of the same run, for a retry.
    pub(super) fn restart_run(&mut self) {
        let Some(run) = &mut self.run else { return };
        run.messages.clear();
        run.last = None;
        self.start_task(None);
    }

    /// Begins the first turn at once, so that what is queued from now on waits for the next one, and
    /// starts the task. An extension is asked before the first turn.
    fn start_task(&mut self, input: Option<Input>) {
        self.emit(AgentStart {});
        let first = match input {
            Some(input) if self.extension.is_active() => First::AfterExtension(input),
            _ => match self.begin_turn() {
                Ok(plan) => First::Turn(plan),
                Err(reason) => return self.break_run(&reason),
            },
        };
        let Some(run) = &mut self.run else { return };
        let link = RunLink::new(run.id, self.inbox_writer.clone());
        let task = run_agent(link, self.extension.clone(), first, run.cancel.clone());
        run.task = Some(tokio::spawn(task));
    }

    /// Stops what is going on; the ticket is done once the session is idle.
    pub fn abort(&mut self, ticket: Ticket) {
        self.cancel_waiting_compactions();
        self.cancel_run();
        if self.is_busy() {
            self.waiting_for_idle.push(ticket);
        } else {
            self.done(ticket, Outcome::Idle);
        }
    }

    pub(super) fn cancel_run(&mut self) {
        self.cancel_starts();
        if let Some(compaction) = &self.compaction {
            compaction.cancel.cancel();
        }
        if let Some(navigation) = &self.navigation {
            navigation.cancel.cancel();
        }
        let Some(run) = &mut self.run else { return };
        run.aborted = true;
        run.cancel.cancel();
        let id = run.id;
        if self.recovery.is_waiting() {
            self.end_retry_wait();
            return;
        }
        let inbox = self.inbox_writer.clone();
        // Ends by itself at the deadline; a run that is over by then ignores it.
        tokio::spawn(async move {
            tokio::time::sleep(ABORT_DEADLINE).await;
            inbox.send(Inbox(InboxMessage::AbortDeadline { run: id })).await.ok();
        });
    }

    pub(super) fn handle_run(&mut self, id: u64, message: RunMessage) {
        if self.run.as_ref().is_none_or(|run| run.id != id) {
            return;
        }
        match message {
            RunMessage::Inject(messages) => self.inject(messages),
            RunMessage::BeginTurn { reply } => match self.begin_turn() {
                // Nobody waits for the answer of a task that is gone: that it is gone is reported too.
                Ok(plan) => drop(reply.send(plan)),
                Err(error) => self.break_run(&error),
            },
            RunMessage::AssistantStart(message) => {
                let shared = Shared::new(AgentMessage::Assistant((*message).clone()));
                self.open(|open| open.answer = Some(message));
                self.emit(MessageStart { message: shared });
            }
            RunMessage::Update { event, usage } => {
                self.emit(MessageUpdate { usage, assistant_message_event: event });
            }
            RunMessage::AssistantEnd { message, failure, started, reply } => {
                match self.end_answer(*message, failure, started) {
                    Ok(message) => drop(reply.send(message)),
                    Err(error) => self.break_run(&error.to_string()),
                }
            }
            RunMessage::ToolStart(call) => {
                self.emit(ToolExecutionStart {
                    tool_call_id: call.id.clone(),
                    tool_name: call.name.clone(),
                    args: call.arguments.clone(),
                });
                self.open(|open| open.calls.push(call));
            }
            RunMessage::ToolProgress { call, output } => self.emit(ToolExecutionUpdate {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                args: call.arguments.clone(),
                partial_result: output,
            }),
            RunMessage::ToolEnd { call, output, is_error, duration_ms } => self.emit(ToolExecutionEnd {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                result: output,
                is_error,
                duration_ms,
            }),
            RunMessage::ToolResults { results, reply } => {
                let kept: Result<Vec<_>, SessionError> =
                    results.into_iter().map(|result| self.keep_result(result)).collect();
                match kept {
                    Ok(results) => drop(reply.send(results)),
                    Err(error) => self.break_run(&error.to_string()),
                }
            }
            RunMessage::EndTurn { message, results, reply } => {
                if !self.end_turn(message, results) {
                    drop(reply.send(None));
                    return;
                }
                let reply = if self.over_threshold() {
                    match self.try_compaction(CompactionReason::Threshold, None, Then::NextTurn(reply)) {
                        Err(Then::NextTurn(reply)) => reply,
                        _ => return,
                    }
                } else {
                    reply
                };
                self.begin_next_turn(reply);
            }
            RunMessage::Finished { broken: None } => self.end_run(),
            RunMessage::Finished { broken: Some(reason) } => self.break_run(&reason),
        }
    }

    pub(super) fn begin_next_turn(&mut self, reply: TurnReply) {
        match self.begin_turn() {
            Ok(plan) => drop(reply.send(Some(plan))),
            Err(error) => self.break_run(&error),
        }
    }

    fn run_is_aborted(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.aborted)
    }

    fn inject(&mut self, messages: Vec<AgentMessage>) {
        for message in messages {
            match self.record(message) {
                Ok(message) => {
                    if let Some(run) = &mut self.run {
                        run.announced_later.push(message);
                    }
                }
                Err(error) => return self.break_run(&error.to_string()),
            }
        }
    }

    fn open(&mut self, change: impl FnOnce(&mut Open)) {
        if let Some(run) = &mut self.run {
            change(&mut run.open);
        }
    }

    /// Opens a turn: the task's `turn_start` has been announced.
    pub(super) fn turn_opened(&mut self) {
        self.open(|open| *open = Open { turn: true, ..Open::default() });
    }

    /// Keeps a message of the run and announces it.
    pub(super) fn keep(&mut self, message: AgentMessage) -> Result<Shared<AgentMessage>, SessionError> {
        let message = self.record(message)?;
        self.announce(message.clone());
        Ok(message)
    }

    /// Keeps the result of a tool call: the call is answered.
    fn keep_result(&mut self, result: ToolResultMessage) -> Result<Shared<AgentMessage>, SessionError> {
        let id = result.tool_call_id.clone();
        let kept = self.keep(AgentMessage::ToolResult(result))?;
        let result = kept.clone();
        self.open(|open| {
            if let Some(at) = open.calls.iter().position(|call| call.id == id) {
                open.calls.remove(at);
            }
            open.results.push(result);
        });
        Ok(kept)
    }

    /// Announces a message that is already kept.
    pub(super) fn announce(&mut self, message: Shared<AgentMessage>) {
        if let Some(run) = &mut self.run {
            run.messages.push(message.clone());
        }
        self.emit(MessageStart { message: message.clone() });
        self.emit(MessageEnd { message });
    }

    fn end_answer(
        &mut self,
        message: AssistantMessage,
        failure: Option<Failure>,
        started: bool,
    ) -> Result<Shared<AgentMessage>, SessionError> {
        let message = self.record(AgentMessage::Assistant(message))?;
        if !started {
            self.emit(MessageStart { message: message.clone() });
        }
        self.emit(MessageEnd { message: message.clone() });
        if let Some(run) = &mut self.run {
            run.messages.push(message.clone());
            run.open.answer = None;
            run.open.ended_answer = Some(message.clone());
            run.last =
                Some(LastAnswer { entry: self.session.leaf().cloned(), message: message.clone(), failure });
        }
        self.note_answer_for_retry();
        Ok(message)
    }

    /// Ends a turn and tells whether another one follows.
    fn end_turn(&mut self, message: Shared<AgentMessage>, tool_results: Vec<Shared<AgentMessage>>) -> bool {
        let had_results = !tool_results.is_empty();
        let stop_reason = message.as_assistant().map(|answer| answer.stop_reason.clone());
        self.emit(TurnEnd { message, tool_results });
        self.open(|open| *open = Open::default());
        if self.recovery.broken.is_some() {
            return false;
        }
        match stop_reason {
            Some(StopReason::Error | StopReason::Aborted) | None => false,
            // After an abort one more turn ends the run with an answer that says so.
            _ => had_results || (!self.run_is_aborted() && self.queues.len() > 0),
        }
    }

    /// Which queue feeds the next turn: follow-ups only when the agent would stop.
    pub(super) fn deliver_for_turn(&mut self) {
        let Some(run) = &self.run else { return };
        if run.aborted {
            return;
        }
        let would_stop = run.last.as_ref().is_some_and(|last| {
            last.message.as_assistant().is_some_and(|answer| answer.tool_calls().next().is_none())
        });
        if !self.queues.steering.is_empty() {
            self.deliver_queued(QueueKind::Steering);
        } else if would_stop {
            self.deliver_queued(QueueKind::FollowUp);
        }
    }

    /// The low-level run is over.
    pub(super) fn end_run(&mut self) {
        let Some(run) = &mut self.run else { return };
        run.task = None;
        let messages = std::mem::take(&mut run.messages);
        let aborted = run.aborted;
        let will_retry = !aborted && self.will_retry();
        let extension = self.extension.clone();
        let ended = messages.clone();
        // The extension learns of the end; nothing waits for it.
        tokio::spawn(async move { extension.agent_end(&ended).await });
        self.emit(AgentEnd { messages, will_retry });
        self.flush_bash_messages();
        if will_retry {
            self.wait_for_retry();
        } else {
            self.finish_retries();
            if !aborted && self.recover_from_overflow() {
                return;
            }
            self.settle();
        }
    }

    /// The one end of every run.
    pub(super) fn settle(&mut self) {
        let Some(run) = self.run.take() else { return };
        if let Err(error) = self.session.sync() {
            tracing::error!(%error, "the session could not be synced to disk");
        }
        let extension = self.extension.clone();
        // The extension learns of the end; nothing waits for it.
        tokio::spawn(async move { extension.settled().await });
        self.emit(AgentSettled { aborted: run.aborted });
        self.note_idle();
    }

    pub(super) fn handle_abort_deadline(&mut self, id: u64) {
        if self.run.as_ref().is_some_and(|run| run.id == id && run.aborted) {
            self.break_run("the run did not stop by itself when it was aborted");
        }
    }

    /// Ends a run from outside: what is open is closed, so that nothing is left unanswered.
    pub(super) fn break_run(&mut self, reason: &str) {
        let Some(run) = &mut self.run else { return };
        if let Some(task) = run.task.take() {
            task.abort();
        }
        // What the task still has to say belongs to no run.
        self.next_run += 1;
        run.id = self.next_run;
        let aborted = run.aborted;
        let open = std::mem::take(&mut run.open);
        if !aborted {
            tracing::error!(reason, "the run was ended");
        }
        let message = match open.ended_answer {
            Some(message) => message,
            None => self.close_answer(open.answer, reason, aborted),
        };
        let mut results = open.results;
        for call in &open.calls {
            match self.keep_result(aborted_result(call)) {
                Ok(result) => results.push(result),
                Err(error) => tracing::error!(%error, "the result of a tool call could not be kept"),
            }
        }
        if open.turn {
            self.emit(TurnEnd { message, tool_results: results });
        }
        self.end_run();
    }

    fn close_answer(
        &mut self,
        partial: Option<Box<AssistantMessage>>,
        reason: &str,
        aborted: bool,
    ) -> Shared<AgentMessage> {
        let started = partial.is_some();
        let mut message = partial.map_or_else(|| self.blank_answer(), |message| *message);
        message.stop_reason = if aborted { StopReason::Aborted } else { StopReason::Error };
        message.error_message = Some(reason.to_owned());
        match self.end_answer(message.clone(), None, started) {
            Ok(message) => message,
            Err(error) => self.end_answer_unkept(message, &error, started),
        }
    }

    /// The host learns how a run ended also when the session's file takes nothing more.
    fn end_answer_unkept(
        &mut self,
        message: AssistantMessage,
        error: &SessionError,
        started: bool,
    ) -> Shared<AgentMessage> {
        tracing::error!(%error, "the end of the run could not be kept");
        let path = self.session_file().unwrap_or_default();
        let what = format!("the last answer is not in the file: {error}");
        self.emit(SessionDiagnostic { path, line: None, message: what });
        let message = Shared::new(AgentMessage::Assistant(message));
        if !started {
            self.emit(MessageStart { message: message.clone() });
        }
        self.emit(MessageEnd { message: message.clone() });
        if let Some(run) = &mut self.run {
            run.messages.push(message.clone());
            run.last = Some(LastAnswer { entry: None, message: message.clone(), failure: None });
        }
        message
    }

    fn blank_answer(&self) -> AssistantMessage {
        let model = self.model.clone().unwrap_or_default();
        AssistantMessage {
            api: model.api,
            provider: model.provider,
            model: model.id,
            timestamp: now_millis(),
            thinking_level: Some(self.thinking.as_str().to_owned()),
            ..AssistantMessage::default()
        }
    }
}
