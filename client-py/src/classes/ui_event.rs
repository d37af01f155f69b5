//! What extensions show without asking, and the mark of events that were lost.
//!
//! Neither is a session event on the wire, but both come in the same stream. Their base part holds them
//! as unknown events, so that they are compared, pickled and read like all others.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use sampi_client::protocol::Unknown;
use sampi_client::protocol::events::SessionEvent;
use sampi_client::protocol::ui::{UiMethod, UiRequest};
use serde_json::{Value, json};

use super::declare::{Holds, kinds, mismatch};
use super::event::{Event, event_to_py};
use crate::convert::ToPy;

/// The name of the mark of lost events. No daemon writes it.
const LAGGED: &str = "sampi.lagged";

/// An extension wants something shown and expects no answer. Match on the subclasses.
#[pyclass(frozen, subclass, extends = Event, module = "sampi")]
pub(crate) struct UiEvent {
    request: UiRequest,
}

#[pymethods]
impl UiEvent {
    #[classattr]
    fn __match_args__(py: Python<'_>) -> Py<PyTuple> {
        PyTuple::empty(py).unbind()
    }
}

impl Holds for UiEvent {
    type Value = UiMethod;

    fn held<'a>(object: &'a Bound<'_, Self>) -> PyResult<&'a UiMethod> {
        Ok(&object.get().request.method)
    }

    fn made<'a>(object: &'a Bound<'_, Self>) -> &'a PyOnceLock<Py<PyAny>> {
        Event::made(object.as_super())
    }
}

kinds! {
    UiEvent,
        UiMethod::Select { .. } | UiMethod::Confirm { .. } | UiMethod::Input { .. } | UiMethod::Editor { .. } => base;

    /// Show a message.
    Notify: UiMethod::Notify { message, notify_type } => {
        /// The message.
        message = message,
        /// How grave it is: `info`, `warning` or `error`.
        level = notify_type.unwrap_or_default(),
    }

    /// Set or clear a line of status.
    SetStatus: UiMethod::SetStatus { status_key, status_text } => {
        /// Which line.
        key = status_key,
        /// The text; `None` clears the line.
        text = status_text,
    }

    /// Set or clear a widget.
    SetWidget: UiMethod::SetWidget { widget_key, widget_lines, widget_placement } => {
        /// Which widget.
        key = widget_key,
        /// The lines; `None` clears the widget.
        lines = widget_lines,
        /// Where to show it: `aboveEditor` or `belowEditor`.
        placement = widget_placement.unwrap_or_default(),
    }

    /// Set the window's title.
    SetTitle: UiMethod::SetTitle { title } => {
        /// The title.
        title = title,
    }

    /// Put text into the host's editor.
    SetEditorText: UiMethod::SetEditorText { text } => {
        /// The text.
        text = text,
    }
}

/// The reader was too slow: events were dropped here, the oldest ones.
#[pyclass(frozen, extends = Event, module = "sampi")]
pub(crate) struct Lagged {
    missed: u64,
}

#[pymethods]
impl Lagged {
    #[classattr]
    fn __match_args__() -> (&'static str,) {
        ("missed",)
    }

    /// How many were dropped.
    #[getter]
    fn missed(&self) -> u64 {
        self.missed
    }
}

/// The object of a request that expects no answer.
pub(crate) fn ui_event_to_py<'py>(py: Python<'py>, request: &UiRequest) -> PyResult<Bound<'py, PyAny>> {
    let raw = serde_json::to_value(request).unwrap_or_default();
    build_ui(py, request.clone(), PyClassInitializer::from(unknown(raw)))
}

/// The object that marks where events were lost.
pub(crate) fn lagged_to_py(py: Python<'_>, missed: u64) -> PyResult<Bound<'_, PyAny>> {
    event_to_py(
        py,
        &Arc::new(SessionEvent::Unknown(Unknown::new(json!({ "type": LAGGED, "missed": missed })))),
    )
}

/// The object of an unknown event that is one of these after all; else the base part comes back.
pub(super) fn from_unknown<'py>(
    py: Python<'py>,
    raw: &Unknown,
    base: PyClassInitializer<Event>,
) -> PyResult<Result<Bound<'py, PyAny>, PyClassInitializer<Event>>> {
    match raw.str_field("type") {
        Some("extension_ui_request") => match serde_json::from_value::<UiRequest>(raw.value().clone()) {
            Ok(request) if !request.method.is_dialog() => build_ui(py, request, base).map(Ok),
            _ => Ok(Err(base)),
        },
        Some(LAGGED) => {
            let missed = raw.value().get("missed").and_then(Value::as_u64).unwrap_or_default();
            Ok(Ok(Bound::new(py, base.add_subclass(Lagged { missed }))?.into_any()))
        }
        _ => Ok(Err(base)),
    }
}

fn unknown(raw: Value) -> Event {
    Event::new(Arc::new(SessionEvent::Unknown(Unknown::new(raw))))
}

fn build_ui<'py>(
    py: Python<'py>,
    request: UiRequest,
    base: PyClassInitializer<Event>,
) -> PyResult<Bound<'py, PyAny>> {
    let method = request.method.clone();
    build_kind(py, &method, base.add_subclass(UiEvent { request }))
}
