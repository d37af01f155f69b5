//! The parts of an assistant message as they come.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use sampi_client::protocol::events::SessionEvent;
use sampi_client::protocol::stream::AssistantMessageEvent;

use super::declare::{Holds, kinds, mismatch};
use super::event::Event;
use crate::convert::ToPy;

/// The assistant message grew. Match on the subclasses; a plain `MessageUpdate` is of a kind that this
/// version does not know.
///
/// Deltas are for showing progress: the content of the end of a block and, above it, the message of
/// `MessageEnd` is what counts.
#[pyclass(frozen, subclass, extends = Event, module = "sampi")]
pub(crate) struct MessageUpdate;

#[pymethods]
impl MessageUpdate {
    #[classattr]
    fn __match_args__(py: Python<'_>) -> Py<PyTuple> {
        PyTuple::empty(py).unbind()
    }

    /// The usage so far, as the provider reports it.
    #[getter]
    fn usage<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        match slf.as_super().get().value() {
            SessionEvent::MessageUpdate(update) => update.usage.to_py(slf.py()),
            _ => Err(mismatch()),
        }
    }
}

impl Holds for MessageUpdate {
    type Value = AssistantMessageEvent;

    fn held<'a>(object: &'a Bound<'_, Self>) -> PyResult<&'a AssistantMessageEvent> {
        match object.as_super().get().value() {
            SessionEvent::MessageUpdate(update) => Ok(&update.assistant_message_event),
            _ => Err(mismatch()),
        }
    }

    fn made<'a>(object: &'a Bound<'_, Self>) -> &'a PyOnceLock<Py<PyAny>> {
        Event::made(object.as_super())
    }
}

/// The object of an update.
pub(super) fn delta_to_py<'py>(
    py: Python<'py>,
    delta: &AssistantMessageEvent,
    base: PyClassInitializer<Event>,
) -> PyResult<Bound<'py, PyAny>> {
    build_kind(py, delta, base.add_subclass(MessageUpdate))
}

kinds! {
    MessageUpdate, AssistantMessageEvent::Unknown(_) => base;

    /// The provider's stream began.
    StreamStart: AssistantMessageEvent::Start(v) => {}

    /// A text block began.
    TextStart: AssistantMessageEvent::TextStart(v) => {
        /// The block's place in the message's content.
        content_index = v.content_index,
    }

    /// Text was added.
    TextDelta: AssistantMessageEvent::TextDelta(v) => {
        /// What was added.
        text = v.delta,
        /// The block's place in the message's content.
        content_index = v.content_index,
    }

    /// A text block ended.
    TextEnd: AssistantMessageEvent::TextEnd(v) => {
        /// The whole text of the block.
        text = v.content,
        /// The block's place in the message's content.
        content_index = v.content_index,
    }

    /// A thinking block began.
    ThinkingStart: AssistantMessageEvent::ThinkingStart(v) => {
        /// The block's place in the message's content.
        content_index = v.content_index,
    }

    /// Thinking was added.
    ThinkingDelta: AssistantMessageEvent::ThinkingDelta(v) => {
        /// What was added.
        text = v.delta,
        /// The block's place in the message's content.
        content_index = v.content_index,
    }

    /// A thinking block ended.
    ThinkingEnd: AssistantMessageEvent::ThinkingEnd(v) => {
        /// The whole text of the block.
        text = v.content,
        /// The block's place in the message's content.
        content_index = v.content_index,
    }

    /// A tool call began.
    ToolCallStart: AssistantMessageEvent::ToolCallStart(v) => {
        /// The tool's name.
        tool_name = v.tool_name,
        /// The call's id.
        tool_call_id = v.id,
        /// The block's place in the message's content.
        content_index = v.content_index,
    }

    /// Text was added to a tool call's arguments.
    ToolCallDelta: AssistantMessageEvent::ToolCallDelta(v) => {
        /// What was added, a piece of JSON.
        text = v.delta,
        /// The block's place in the message's content.
        content_index = v.content_index,
    }

    /// A tool call is complete.
    ToolCallEnd: AssistantMessageEvent::ToolCallEnd(v) => {
        /// The block's place in the message's content.
        content_index = v.content_index,
        ;
        /// The whole call.
        tool_call = v.tool_call
    }

    /// The provider's stream ended well.
    StreamDone: AssistantMessageEvent::Done(v) => {
        /// Why it ended.
        reason = v.reason,
        ;
        /// The whole message.
        message = v.message
    }

    /// The provider's stream failed or was aborted.
    StreamError: AssistantMessageEvent::Error(v) => {
        /// `error` or `aborted`.
        reason = v.reason,
        ;
        /// What there is of the message.
        message = v.error
    }
}
