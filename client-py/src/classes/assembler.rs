//! Putting the message that is being streamed together.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

use super::event::Event;
use crate::convert::ToPy;

/// Keeps the assistant message that is being streamed, from the events of a session.
///
/// A reader that missed events is right again at the end of the block or message.
#[pyclass(frozen, module = "sampi")]
pub(crate) struct MessageAssembler {
    inner: Mutex<sampi_client::MessageAssembler>,
}

#[pymethods]
impl MessageAssembler {
    #[new]
    fn new() -> Self {
        Self { inner: Mutex::default() }
    }

    /// Takes the next event. True when it changed the message.
    fn apply(&self, event: &Bound<'_, Event>) -> bool {
        self.lock().apply(event.get().value()) != sampi_client::Assembled::Unchanged
    }

    /// The message as far as it is known; the last one when none is being streamed.
    #[getter]
    fn message<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let message = self.lock().message().cloned();
        message.to_py(py)
    }

    /// True between the start and the end of a message.
    #[getter]
    fn is_streaming(&self) -> bool {
        self.lock().is_streaming()
    }

    /// What the model has written of the arguments of the tool call with this block index; `None` once the
    /// call is complete.
    fn arguments_text(&self, index: usize) -> Option<String> {
        self.lock().arguments_text(index).map(str::to_owned)
    }
}

impl MessageAssembler {
    fn lock(&self) -> MutexGuard<'_, sampi_client::MessageAssembler> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
