//! When the conversation is compacted, and what happens around it.

use std::sync::Arc;

use sampi_protocol::Shared;
use sampi_protocol::data::{
    AgentMessage, CompactionReason, CompactionResult, Content, EntryId, StopReason, SystemMessage,
    UserMessage,
};
use sampi_protocol::events::{CompactionEnd, CompactionStart};
use tokio_util::sync::CancellationToken;

use super::summaries::{SummaryFailure, SummaryTask};
use super::{Agent, AgentError, Inbox, InboxMessage, Outcome, Ticket, now_millis};
use crate::session::compaction::estimate::{context_tokens, estimate_tokens};
use crate::session::compaction::{self, CutInput, Preparation, Summary};
use crate::session::{NewEntry, SessionError};
use crate::system_state::SystemState;

const NOTHING_TO_COMPACT: &str = "Nothing to compact (session too small)";
const ALREADY_COMPACTED: &str = "Already compacted";
const CANCELLED: &str = "Compaction cancelled";

/// A compaction that is under way.
pub(super) struct ActiveCompaction {
    id: u64,
    reason: CompactionReason,
    preparation: Arc<Preparation>,
    tokens_before: u64,
    pub(super) cancel: CancellationToken,
    then: Then,
}

/// What goes on when the compaction is over.
pub(super) enum Then {
    /// The command is answered.
    Answer(Ticket),
    /// The run's next turn begins.
    NextTurn(super::link::TurnReply),
    /// The prompt is taken in.
    Prompt(Ticket, crate::extensions::Input),
    /// The prompt is refused: it was aborted.
    Refuse(Ticket),
    /// The request that was too long is sent again.
    Retry,
}

/// What the task of a compaction reports.
pub(super) struct Compacted {
    id: u64,
    result: Result<Summary, SummaryFailure>,
}

impl Agent {
    /// Compacts the conversation. A run that is under way is aborted first.
    pub fn compact(&mut self, ticket: Ticket, instructions: Option<String>) {
        if self.compaction.is_some() {
            let error = AgentError::Busy("a compaction is already running".to_owned());
            self.done(ticket, Outcome::Compacted(Err(error)));
            return;
        }
        if self.navigation.is_some() {
            let error = AgentError::Busy("the tree is being navigated".to_owned());
            self.done(ticket, Outcome::Compacted(Err(error)));
            return;
        }
        if self.run.is_some() {
            self.waiting_compactions.push((ticket, instructions));
            self.cancel_run();
            return;
        }
        self.emit(CompactionStart { reason: CompactionReason::Manual });
        let prepared = self.check_model().and_then(|()| {
            self.prepare_compaction(None).map_err(|text| AgentError::NotFound(text.to_owned()))
        });
        match prepared {
            Ok(preparation) => {
                let then = Then::Answer(ticket);
                self.start_compaction(CompactionReason::Manual, preparation, instructions, then);
            }
            Err(error) => {
                self.emit_compaction_failed(CompactionReason::Manual, &error.to_string());
                self.done(ticket, Outcome::Compacted(Err(error)));
            }
        }
    }

    /// Takes back the compactions that wait for the end of a run.
    pub(super) fn cancel_waiting_compactions(&mut self) {
        for (ticket, _) in std::mem::take(&mut self.waiting_compactions) {
            let error = AgentError::Cancelled(CANCELLED.to_owned());
            self.done(ticket, Outcome::Compacted(Err(error)));
        }
    }

    pub(super) fn start_waiting_compactions(&mut self) {
        for (ticket, instructions) in std::mem::take(&mut self.waiting_compactions) {
            self.compact(ticket, instructions);
        }
    }

    /// True when the context is so full that it must be compacted first.
    pub(super) fn over_threshold(&mut self) -> bool {
        if !self.auto_compaction || self.compaction.is_some() {
            return false;
        }
        let Some(model) = &self.model else { return false };
        let reserve = self.settings.compaction_of(&model.provider, &model.id).reserve_tokens;
        let window = model.context_window;
        if window == 0 {
            return false;
        }
        let context = self.session.context();
        context_tokens(&context) > window.saturating_sub(reserve)
    }

    /// Starts an automatic compaction; `then` comes back when there is nothing to compact.
    pub(super) fn try_compaction(
        &mut self,
        reason: CompactionReason,
        omitted: Option<&EntryId>,
        then: Then,
    ) -> Result<(), Then> {
        match self.prepare_compaction(omitted) {
            Ok(preparation) => {
                self.emit(CompactionStart { reason });
                self.start_compaction(reason, preparation, None, then);
                Ok(())
            }
            Err(reason) => {
                tracing::debug!(reason, "no automatic compaction");
                Err(then)
            }
        }
    }

    fn prepare_compaction(&mut self, omitted: Option<&EntryId>) -> Result<Preparation, &'static str> {
        let Some(model) = &self.model else { return Err(NOTHING_TO_COMPACT) };
        let keep = self.settings.compaction_of(&model.provider, &model.id).keep_recent_tokens;
        let last = self.session.last_compaction();
        if last.as_ref().is_some_and(|last| self.session.leaf() == Some(&last.base.id)) {
            return Err(ALREADY_COMPACTED);
        }
        let details = last.filter(|last| last.from_hook != Some(true)).and_then(|last| last.details);
        let context = self.session.context();
        let input = CutInput {
            context: &context.messages,
            omitted_answer: omitted,
            previous_details: details.as_ref(),
            keep_recent_tokens: keep,
        };
        compaction::prepare(input).ok_or(NOTHING_TO_COMPACT)
    }

    fn start_compaction(
        &mut self,
        reason: CompactionReason,
        preparation: Preparation,
        instructions: Option<String>,
        then: Then,
    ) {
        let tokens_before = {
            let context = self.session.context();
            context_tokens(&context)
        };
        self.next_compaction += 1;
        let id = self.next_compaction;
        let cancel = match &self.run {
            Some(run) => run.cancel.child_token(),
            None => CancellationToken::new(),
        };
        let preparation = Arc::new(preparation);
        self.compaction = Some(ActiveCompaction {
            id,
            reason,
            preparation: preparation.clone(),
            tokens_before,
            cancel: cancel.clone(),
            then,
        });
        let task = self.summary_task(cancel, super::summaries::Source::Compaction(reason));
        let inbox = self.inbox_writer.clone();
        // Owned by `compaction`: cancelled by abort and stop, and its end is reported in any case.
        tokio::spawn(async move {
            let result = match task {
                Ok(task) => run_caught(task, preparation, instructions).await,
                Err(error) => Err(SummaryFailure::Failed(error)),
            };
            inbox.send(Inbox(InboxMessage::Compacted(Compacted { id, result }))).await.ok();
        });
    }

    pub(super) fn handle_compacted(&mut self, Compacted { id, result }: Compacted) {
        if self.compaction.as_ref().is_none_or(|active| active.id != id) {
            return;
        }
        let Some(active) = self.compaction.take() else { return };
        let kept = result.and_then(|summary| {
            self.keep_compaction(&active, summary).map_err(|error| SummaryFailure::Failed(error.to_string()))
        });
        let reason = active.reason;
        // An abort that came when the summary was there already counts for the prompt behind it.
        let then = match active.then {
            Then::Prompt(ticket, _) if active.cancel.is_cancelled() => Then::Refuse(ticket),
            then => then,
        };
        let error = match kept {
            Ok(result) => {
                let will_retry = matches!(then, Then::Retry);
                self.emit(CompactionEnd {
                    reason,
                    result: Some(result.clone()),
                    aborted: false,
                    will_retry,
                    error_message: None,
                });
                self.after_compaction(then, Ok(result));
                return;
            }
            Err(SummaryFailure::Cancelled) => {
                self.emit(CompactionEnd {
                    reason,
                    result: None,
                    aborted: true,
                    will_retry: false,
                    error_message: None,
                });
                AgentError::Cancelled(CANCELLED.to_owned())
            }
            Err(SummaryFailure::Failed(text)) => {
                self.emit_compaction_failed(reason, &text);
                AgentError::Failed(text)
            }
        };
        self.after_compaction(then, Err(error));
    }

    fn emit_compaction_failed(&mut self, reason: CompactionReason, error: &str) {
        self.emit(CompactionEnd {
            reason,
            result: None,
            aborted: false,
            will_retry: false,
            error_message: Some(format!("Compaction failed: {error}")),
        });
    }

    fn keep_compaction(
        &mut self,
        active: &ActiveCompaction,
        summary: Summary,
    ) -> Result<CompactionResult, SessionError> {
        let first_kept = active.preparation.first_kept.clone();
        let system_message = self.system_checkpoint();
        self.append(NewEntry::Compaction {
            summary: summary.text.clone(),
            first_kept_entry_id: Some(first_kept.clone()),
            tokens_before: active.tokens_before,
            details: Some(summary.details.clone()),
            usage: Some(summary.usage.clone()),
            from_hook: Some(false),
            system_message,
        })?;
        let context = self.session.context();
        let after = context.messages.iter().map(|kept| estimate_tokens(&kept.message)).sum();
        Ok(CompactionResult {
            summary: summary.text,
            first_kept_entry_id: first_kept,
            tokens_before: active.tokens_before,
            estimated_tokens_after: Some(after),
            usage: Some(summary.usage),
            details: Some(summary.details),
        })
    }

    /// The whole prompt and tool state, for the entry.
    fn system_checkpoint(&mut self) -> Option<SystemMessage> {
        let context = self.session.context();
        let state = SystemState::replay(context.messages.iter().map(|kept| &*kept.message));
        (!state.is_empty()).then(|| state.to_message(now_millis()))
    }

    fn after_compaction(&mut self, then: Then, result: Result<CompactionResult, AgentError>) {
        match then {
            Then::Answer(ticket) => {
                self.done(ticket, Outcome::Compacted(result));
                self.note_idle();
            }
            // A run that was ended from outside meanwhile has no next turn.
            Then::NextTurn(reply) if reply.is_closed() => self.note_idle(),
            Then::NextTurn(reply) => self.begin_next_turn(reply),
            Then::Prompt(ticket, input) => self.start_prompt_now(ticket, input),
            Then::Refuse(ticket) => {
                self.refuse_aborted_prompt(ticket);
                self.note_idle();
            }
            Then::Retry => match result {
                Ok(_) => self.restart_run(),
                Err(_) => self.settle(),
            },
        }
    }

    /// Tells those who wait for the session to be idle that it is, and starts what waits for that.
    pub(super) fn note_idle(&mut self) {
        if self.is_busy() {
            return;
        }
        for ticket in std::mem::take(&mut self.waiting_for_idle) {
            self.done(ticket, Outcome::Idle);
        }
        self.start_waiting_session_change();
        self.start_waiting_compactions();
    }

    /// Recovers once from a context that is too long, or an answer that hit the context's end.
    pub(super) fn recover_from_overflow(&mut self) -> bool {
        let Some(last) = self.run.as_ref().and_then(|run| run.last.as_ref()) else { return false };
        let overflow =
            last.failure.as_ref().is_some_and(|failure| failure.kind == crate::llm::FailureKind::Overflow);
        let cut_off = self.was_cut_off_early();
        if !overflow && !cut_off {
            return false;
        }
        let Some(entry) = last.entry.clone() else { return false };
        let first_time = !std::mem::replace(&mut self.recovery.overflow_tried, true);
        if !first_time && overflow {
            return false;
        }
        self.leave_out(entry.clone());
        first_time
            && self.auto_compaction
            && self.try_compaction(CompactionReason::Overflow, Some(&entry), Then::Retry).is_ok()
    }

    /// True when the last answer hit the context's end rather than its own output limit.
    fn was_cut_off_early(&self) -> bool {
        let last = self.run.as_ref().and_then(|run| run.last.as_ref());
        let Some(answer) = last.and_then(|last| last.message.as_assistant()) else { return false };
        let limit = self.model.as_ref().map_or(0, |model| model.max_tokens);
        answer.stop_reason == StopReason::Length && answer.usage.output < limit
    }
}

async fn run_caught(
    task: SummaryTask,
    preparation: Arc<Preparation>,
    instructions: Option<String>,
) -> Result<Summary, SummaryFailure> {
    let work = tokio::spawn(async move { task.compaction(&preparation, instructions.as_deref()).await });
    work.await.unwrap_or_else(|error| Err(SummaryFailure::Failed(error.to_string())))
}

/// The context of one request for a summary.
pub(super) fn summary_context(system: &str, prompt: String) -> Vec<Shared<AgentMessage>> {
    let timestamp = now_millis();
    let system =
        SystemMessage { content: Content::Text(system.to_owned()), timestamp, ..SystemMessage::default() };
    let user = UserMessage { content: Content::Text(prompt), timestamp, ..UserMessage::default() };
    vec![Shared::new(AgentMessage::System(system)), Shared::new(AgentMessage::User(user))]
}
