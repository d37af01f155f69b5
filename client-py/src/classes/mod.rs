//! The classes of events and results.
//!
//! An object holds the value as the client decoded it, behind a shared pointer; its attributes are made
//! when they are read. Families (events, messages, blocks, entries, dialogs) have a base class with one
//! subclass for each kind.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

mod assembler;
mod content;
mod declare;
mod delta;
mod dialog;
mod entry;
mod event;
mod message;
mod outcome;
mod record;
mod tree;
mod ui_event;

pub(crate) use event::event_to_py;
pub(crate) use outcome::Outcome;
pub(crate) use ui_event::{lagged_to_py, ui_event_to_py};

/// Registers the classes.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    event::register_kinds(module)?;
    delta::register_kinds(module)?;
    ui_event::register_kinds(module)?;
    module.add_class::<ui_event::Lagged>()?;
    message::register_kinds(module)?;
    content::register_kinds(module)?;
    entry::register_kinds(module)?;
    dialog::register_kinds(module)?;
    record::register_records(module)?;
    outcome::register_records(module)?;
    module.add_class::<tree::SessionTree>()?;
    module.add_class::<tree::TreeNode>()?;
    module.add_class::<assembler::MessageAssembler>()
}

/// Makes an object from its family or class and its JSON text. Pickles call it.
#[pyfunction]
#[pyo3(name = "_rebuild")]
pub(crate) fn rebuild<'py>(py: Python<'py>, name: &str, text: &str) -> PyResult<Bound<'py, PyAny>> {
    use crate::convert::from_json;
    match name {
        "Event" => event_to_py(py, &Arc::new(from_json(text)?)),
        "Message" => message::message_to_py(py, &from_json(text)?),
        "Block" => content::block_to_py(py, &Arc::new(from_json(text)?)),
        "Entry" => entry::entry_to_py(py, &from_json(text)?),
        "Dialog" => dialog::dialog_to_py(py, &Arc::new(from_json(text)?)),
        "SessionTree" => tree::rebuild_tree(py, text),
        class => record::rebuild_record(py, class, text)
            .or_else(|| outcome::rebuild_record(py, class, text))
            .unwrap_or_else(|| Err(PyValueError::new_err(format!("no class {class:?}")))),
    }
}
