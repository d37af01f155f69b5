//! Session events.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use sampi_client::protocol::events::SessionEvent;

use super::declare::{Holds, family, kinds, mismatch, repr};
use super::delta::delta_to_py;
use super::ui_event::from_unknown;
use crate::convert::{ToPy, from_json, loads, to_json};

family! {
    /// Something that happened in the session. Match on the subclasses.
    Event(Arc<SessionEvent>) of SessionEvent, built by event_to_py {
        /// The event's name on the wire, such as `tool_execution_start`.
        #[getter]
        fn kind(&self) -> &str {
            self.value.name()
        }
    }
}

impl Event {
    /// The event as the client decoded it.
    pub(crate) fn value(&self) -> &SessionEvent {
        &self.value
    }
}

/// The object of an event.
pub(crate) fn event_to_py<'py>(py: Python<'py>, event: &Arc<SessionEvent>) -> PyResult<Bound<'py, PyAny>> {
    let base = PyClassInitializer::from(Event::new(Arc::clone(event)));
    match &**event {
        SessionEvent::MessageUpdate(update) => delta_to_py(py, &update.assistant_message_event, base),
        SessionEvent::Unknown(raw) => match from_unknown(py, raw, base)? {
            Ok(object) => Ok(object),
            Err(base) => build_kind(py, event, base),
        },
        event => build_kind(py, event, base),
    }
}

kinds! {
    Event, SessionEvent::MessageUpdate(_) => base;

    /// The agent began to work.
    AgentStart: SessionEvent::AgentStart(v) => {}

    /// The agent stopped. It may go on by itself: only `AgentSettled` says that it does not.
    AgentEnd: SessionEvent::AgentEnd(v) => {
        /// True when a retry follows.
        will_retry = v.will_retry,
        ;
        /// The messages of this run, in order.
        messages = v.messages
    }

    /// Nothing more happens by itself. The last event of every run.
    AgentSettled: SessionEvent::AgentSettled(v) => {
        /// True when the run was aborted.
        aborted = v.aborted,
    }

    /// A turn began: one answer of the model and the tool calls in it.
    TurnStart: SessionEvent::TurnStart(v) => {}

    /// A turn ended.
    TurnEnd: SessionEvent::TurnEnd(v) => {
        /// The results of its tool calls.
        tool_results = v.tool_results,
        ;
        /// The assistant message.
        message = v.message
    }

    /// A message began. An assistant message comes with the stop reason `pending`.
    MessageStart: SessionEvent::MessageStart(v) => {
        ;
        /// The message so far.
        message = v.message
    }

    /// A message ended.
    MessageEnd: SessionEvent::MessageEnd(v) => {
        ;
        /// The whole message.
        message = v.message
    }

    /// A tool call is about to run.
    ToolExecutionStart: SessionEvent::ToolExecutionStart(v) => {
        /// The tool's name.
        tool_name = v.tool_name,
        /// The arguments, a dict of the caller's own.
        args = v.args,
        /// The call's id.
        tool_call_id = v.tool_call_id,
    }

    /// A tool reports what it has so far.
    ToolExecutionUpdate: SessionEvent::ToolExecutionUpdate(v) => {
        /// The tool's name.
        tool_name = v.tool_name,
        /// The result so far.
        partial_result = v.partial_result,
        /// The arguments, a dict of the caller's own.
        args = v.args,
        /// The call's id.
        tool_call_id = v.tool_call_id,
    }

    /// A tool call is done.
    ToolExecutionEnd: SessionEvent::ToolExecutionEnd(v) => {
        /// The tool's name.
        tool_name = v.tool_name,
        /// The result.
        result = v.result,
        /// True when the tool failed.
        is_error = v.is_error,
        /// How long it ran, in milliseconds; `None` when it did not run.
        duration_ms = v.duration_ms,
        /// The call's id.
        tool_call_id = v.tool_call_id,
    }

    /// The queues changed.
    QueueUpdate: SessionEvent::QueueUpdate(v) => {
        /// The texts of all steering messages that wait, oldest first.
        steering = v.steering,
        /// The texts of all follow-up messages that wait, oldest first.
        follow_up = v.follow_up,
    }

    /// An entry other than a message was appended to the session.
    EntryAppended: SessionEvent::EntryAppended(v) => {
        ;
        /// The entry.
        entry = v.entry
    }

    /// The session's display name changed.
    SessionInfoChanged: SessionEvent::SessionInfoChanged(v) => {
        /// The name; `None` when it was taken away.
        name = v.name,
    }

    /// The thinking level changed.
    ThinkingLevelChanged: SessionEvent::ThinkingLevelChanged(v) => {
        /// The level that is now in force.
        level = v.level,
    }

    /// A compaction began.
    CompactionStart: SessionEvent::CompactionStart(v) => {
        /// Why: `manual`, `threshold` or `overflow`.
        reason = v.reason,
    }

    /// A compaction ended.
    CompactionEnd: SessionEvent::CompactionEnd(v) => {
        /// Why it ran.
        reason = v.reason,
        /// What it made; `None` when it failed or was stopped.
        result = v.result,
        /// True when it was stopped.
        aborted = v.aborted,
        /// True when the request that was too long is sent again.
        will_retry = v.will_retry,
        /// What went wrong.
        error_message = v.error_message,
    }

    /// A failed request is sent again after a delay.
    AutoRetryStart: SessionEvent::AutoRetryStart(v) => {
        /// The attempt that follows, from 1.
        attempt = v.attempt,
        /// How many attempts there are at most.
        max_attempts = v.max_attempts,
        /// The delay in milliseconds.
        delay_ms = v.delay_ms,
        /// Why the request failed.
        error_message = v.error_message,
    }

    /// The retrying ended.
    AutoRetryEnd: SessionEvent::AutoRetryEnd(v) => {
        /// True when an attempt succeeded.
        success = v.success,
        /// The last attempt.
        attempt = v.attempt,
        /// Why the last attempt failed.
        final_error = v.final_error,
    }

    /// A failed summary is asked for again after a delay.
    SummarizationRetryScheduled: SessionEvent::SummarizationRetryScheduled(v) => {
        /// The attempt that follows, from 1.
        attempt = v.attempt,
        /// How many attempts there are at most.
        max_attempts = v.max_attempts,
        /// The delay in milliseconds.
        delay_ms = v.delay_ms,
        /// Why the request failed.
        error_message = v.error_message,
    }

    /// A summary is asked for again.
    SummarizationRetryAttemptStart: SessionEvent::SummarizationRetryAttemptStart(v) => {
        /// `compaction` or `branchSummary`.
        source = v.source,
        /// Why the compaction runs; `None` for a branch summary.
        reason = v.reason,
    }

    /// The retrying of a summary ended.
    SummarizationRetryFinished: SessionEvent::SummarizationRetryFinished(v) => {}

    /// A shell command that the user runs wrote something.
    BashExecutionUpdate: SessionEvent::BashExecutionUpdate(v) => {
        /// What it wrote.
        text = v.delta,
        /// The id of the `bash` command.
        id = v.id,
    }

    /// Something is wrong with the session's file, and what became of it. Sampi only.
    SessionDiagnostic: SessionEvent::SessionDiagnostic(v) => {
        /// What is wrong, and what became of it.
        message = v.message,
        /// The file.
        path = v.path,
        /// The line, from 1; `None` when it concerns the file as a whole.
        line = v.line,
    }

    /// A handler of an extension failed.
    ExtensionError: SessionEvent::ExtensionError(v) => {
        /// The extension's path.
        extension_path = v.extension_path,
        /// The event that it handled.
        event = v.event,
        /// What went wrong.
        error = v.error,
    }

    /// An event of a kind that this version does not know. `kind` has its name and `raw()` all of it.
    UnknownEvent: SessionEvent::Unknown(v) => {
        /// The event's name on the wire.
        kind = v.str_field("type"),
    }
}
