//! A call that has not been sent, for whoever wants to wait for it in one way or the other.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::bridge::{Bridge, Wait};
use crate::convert::Answer;
use crate::errors::Failure;
use crate::wait::{Home, wait};

/// What a call waits for.
pub(crate) type AnswerFuture = Pin<Box<dyn Future<Output = Result<Answer, Failure>> + Send>>;

/// A call. It is sent by `wait` or `start`, once.
#[pyclass(frozen, module = "sampi._native")]
pub(crate) struct Call {
    future: Mutex<Option<AnswerFuture>>,
    home: Home,
}

impl Call {
    pub(crate) fn new(future: impl Future<Output = Result<Answer, Failure>> + Send + 'static) -> Self {
        Self { future: Mutex::new(Some(Box::pin(future))), home: Home::here() }
    }

    fn take(&self) -> PyResult<AnswerFuture> {
        self.home.check()?;
        let future = self.future.lock().unwrap_or_else(PoisonError::into_inner).take();
        future.ok_or_else(|| PyRuntimeError::new_err("this call was sent already"))
    }
}

#[pymethods]
impl Call {
    /// Sends the command and waits for its answer, with the interpreter released.
    fn wait<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match wait(py, self.take()?)? {
            Ok(answer) => answer.into_python(py),
            Err(error) => Err(error.to_py_err(py)),
        }
    }

    /// Sends the command; the bridge's event loop gets the answer under this token.
    fn start(&self, bridge: &Bound<'_, Bridge>, token: u64) -> PyResult<Wait> {
        bridge.get().start(token, self.take()?)
    }
}
