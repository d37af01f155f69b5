//! From the protocol's types to Python objects, when they are touched.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple};
use sampi_client::protocol::commands::*;
use sampi_client::protocol::data::*;
use sampi_client::protocol::response::ErrorCode;
use sampi_client::protocol::ui::{NotifyType, WidgetPlacement};
use sampi_client::protocol::{RequestId, Shared};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Makes a Python object of a value of the protocol.
pub(crate) trait ToPy {
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
}

/// What a call gives, until a Python thread takes it.
pub(crate) type Answer = Box<dyn IntoPython>;

/// A value that a Python thread makes an object of.
pub(crate) trait IntoPython: Send {
    fn into_python<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
}

impl<T: ToPy + Send> IntoPython for T {
    fn into_python<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        (*self).to_py(py)
    }
}

/// A Python value (a dict, say) as JSON.
pub(crate) fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    pythonize::depythonize(value).map_err(|error| PyValueError::new_err(format!("not JSON: {error}")))
}

/// The JSON text of a value.
pub(crate) fn to_json<T: Serialize + ?Sized>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A value from its JSON text; the error names the field.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> PyResult<T> {
    sampi_client::protocol::wire::from_text(text).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// JSON text as Python's own `json` reads it.
pub(crate) fn loads<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (text,))
}

/// A tuple of the things that a list holds.
pub(crate) fn tuple<'py, T: ToPy>(py: Python<'py>, items: &[T]) -> PyResult<Bound<'py, PyAny>> {
    let items = items.iter().map(|item| item.to_py(py)).collect::<PyResult<Vec<_>>>()?;
    Ok(PyTuple::new(py, items)?.into_any())
}

impl<T: ToPy + ?Sized> ToPy for &T {
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        (**self).to_py(py)
    }
}

impl<T: ToPy> ToPy for Option<T> {
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Some(value) => value.to_py(py),
            None => Ok(py.None().into_bound(py)),
        }
    }
}

impl<T: ToPy> ToPy for Vec<T> {
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        tuple(py, self)
    }
}

impl ToPy for RequestId {
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loads(py, self.json())
    }
}

impl ToPy for () {
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(py.None().into_bound(py))
    }
}

impl ToPy for str {
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyString::new(py, self).into_any())
    }
}

impl ToPy for String {
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.as_str().to_py(py)
    }
}

impl ToPy for bool {
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyBool::new(py, *self).to_owned().into_any())
    }
}

impl ToPy for f64 {
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyFloat::new(py, *self).into_any())
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {
        $(impl ToPy for $integer {
            fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                Ok(PyInt::new(py, *self).into_any())
            }
        })*
    };
}
integers!(u64, u32, i32, usize);

/// JSON becomes plain dicts and lists, made anew for whoever asks.
impl ToPy for Value {
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pythonize::pythonize(py, self)?)
    }
}

impl ToPy for Map<String, Value> {
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pythonize::pythonize(py, self)?)
    }
}

macro_rules! as_str {
    ($($id:ty),*) => {
        $(impl ToPy for $id {
            fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                self.as_str().to_py(py)
            }
        })*
    };
}
as_str!(ToolCallId, EntryId, SessionId, ThinkingLevel);

/// Enums of names become their wire names.
macro_rules! by_name {
    ($($name:ty),*) => {
        $(impl ToPy for $name {
            fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                Ok(pythonize::pythonize(py, self)?)
            }
        })*
    };
}
by_name!(
    StopReason,
    Disposition,
    QueueMode,
    CompactionReason,
    SlashCommandSource,
    NotifyType,
    WidgetPlacement,
    ErrorCode
);

/// Results that are one thing become that thing.
macro_rules! unwrapped {
    ($($result:ty: $value:ident => $inner:expr;)*) => {
        $(impl ToPy for $result {
            fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                let $value = self;
                $inner.to_py(py)
            }
        })*
    };
}
unwrapped! {
    PromptResult: result => result.disposition;
    QueuedResult: result => result.disposition;
    SessionChange: result => !result.cancelled;
    Messages: result => result.messages;
    AvailableModels: result => result.models;
    CycledThinkingLevel: result => result.level;
    AvailableThinkingLevels: result => result.levels;
    ExportedHtml: result => result.path;
    ForkMessages: result => result.messages;
    LastAssistantText: result => result.text;
    SlashCommands: result => result.commands;
    LabelSet: result => result.entry;
}

impl<T> ToPy for Shared<T>
where
    Self: FromShared,
{
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.build(py)
    }
}

/// Shared values whose Python object keeps the shared value itself.
pub(crate) trait FromShared {
    fn build<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
}
