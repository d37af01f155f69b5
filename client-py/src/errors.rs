//! From the client's errors to Python's. The exception classes are Python's own (`sampi/_errors.py`),
//! because the stable ABI of Python 3.10 cannot extend `Exception` with attributes.

use std::os::unix::process::ExitStatusExt;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use sampi_client::{ClientError, Exit, ExitReason, MalformedRecord};

static PROCESS_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static COMMAND_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static TIMEOUT_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static PROTOCOL_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static SAMPI_ERROR: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Why a call failed.
pub(crate) enum Failure {
    Client(ClientError),
    Malformed(Arc<MalformedRecord>),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl Failure {
    /// The Python exception.
    pub(crate) fn to_py_err(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::Client(error) => to_py_err(py, error),
            Self::Malformed(record) => malformed(py, record),
        }
    }
}

const MODULE: &str = "sampi._errors";

/// The Python exception for a failure of the client.
pub(crate) fn to_py_err(py: Python<'_>, error: &ClientError) -> PyErr {
    make(py, error).unwrap_or_else(|error| error)
}

/// The Python exception for a record that could not be read.
pub(crate) fn malformed(py: Python<'_>, record: &MalformedRecord) -> PyErr {
    let message = format!("the agent wrote a record that could not be read: {}", record.error);
    protocol(py, &message, Some(&record.text)).unwrap_or_else(|error| error)
}

/// The Python exception for a daemon that is gone.
pub(crate) fn exited(py: Python<'_>, exit: &Exit) -> PyErr {
    process(py, exit).unwrap_or_else(|error| error)
}

/// The failure of a call that waited when the interpreter or its client ended.
pub(crate) fn closing(py: Python<'_>) -> PyErr {
    sampi(py, "the interpreter is ending").unwrap_or_else(|error| error)
}

fn make(py: Python<'_>, error: &ClientError) -> PyResult<PyErr> {
    match error {
        ClientError::Command(failed) => {
            let class = COMMAND_ERROR.import(py, MODULE, "CommandError")?;
            let code = failed.code.as_ref().map(ToString::to_string);
            Ok(PyErr::from_value(class.call1((&failed.command, &failed.message, code))?))
        }
        ClientError::Exited(exit) => process(py, exit),
        ClientError::Timeout { command, after } => {
            let class = TIMEOUT_ERROR.import(py, MODULE, "TimeoutError")?;
            let message = format!("{command} was not answered within {} s", after.as_secs_f64());
            Ok(PyErr::from_value(class.call1((message,))?))
        }
        ClientError::FrameTooLong { .. } | ClientError::Protocol { .. } => {
            protocol(py, &error.to_string(), None)
        }
        ClientError::Spawn { .. } | ClientError::ProgramNotFound => {
            let class = PROCESS_ERROR.import(py, MODULE, "ProcessError")?;
            Ok(PyErr::from_value(class.call1((error.to_string(), py.None(), ""))?))
        }
        ClientError::Encode { .. } => Ok(PyValueError::new_err(error.to_string())),
        _ => sampi(py, &error.to_string()),
    }
}

fn process(py: Python<'_>, exit: &Exit) -> PyResult<PyErr> {
    let class = PROCESS_ERROR.import(py, MODULE, "ProcessError")?;
    Ok(PyErr::from_value(class.call1((exit.to_string(), exit_code(exit), &exit.stderr_tail))?))
}

fn protocol(py: Python<'_>, message: &str, record: Option<&str>) -> PyResult<PyErr> {
    let class = PROTOCOL_ERROR.import(py, MODULE, "ProtocolError")?;
    Ok(PyErr::from_value(class.call1((message, record))?))
}

fn sampi(py: Python<'_>, message: &str) -> PyResult<PyErr> {
    Ok(PyErr::from_value(SAMPI_ERROR.import(py, MODULE, "SampiError")?.call1((message,))?))
}

/// The exit code as Python's `subprocess` gives it: minus the signal's number when one ended the process.
pub(crate) fn exit_code(exit: &Exit) -> Option<i32> {
    let status = exit.status?;
    status.code().or_else(|| status.signal().map(|signal| -signal))
}

/// True when the caller asked for the end.
pub(crate) fn was_asked_for(exit: &Exit) -> bool {
    matches!(exit.reason, ExitReason::Stopped | ExitReason::Dropped)
}
