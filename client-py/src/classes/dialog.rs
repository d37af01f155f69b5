//! Dialogs of extensions.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use sampi_client::protocol::ui::{UiMethod, UiRequest, UiRequestTag};
use sampi_client::{Answer, Question};

use super::declare::{Holds, family, kinds, mismatch, repr};
use crate::convert::{ToPy, from_json, loads, to_json};

family! {
    /// A question of an extension that waits for an answer. Match on the subclasses.
    Dialog(Arc<UiRequest>) of UiRequest, built by dialog_to_py {
        /// The request's id.
        #[getter]
        fn id(&self) -> &str {
            &self.value.id
        }

        /// What somebody who agrees without looking closer answers: yes to a confirmation, the first option of
        /// a choice, the given text of an editor; `None` for an input.
        #[getter]
        fn approval<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
            let dialog = sampi_client::Dialog::from_request((*self.value).clone());
            match dialog.map_or(Answer::Cancelled, |dialog| dialog.question.approval()) {
                Answer::Value(value) => value.to_py(py),
                Answer::Confirmed(confirmed) => confirmed.to_py(py),
                Answer::Cancelled => ().to_py(py),
            }
        }
    }
}

/// The object of a dialog.
pub(super) fn dialog_to_py<'py>(py: Python<'py>, request: &Arc<UiRequest>) -> PyResult<Bound<'py, PyAny>> {
    build_kind(py, request, PyClassInitializer::from(Dialog::new(Arc::clone(request))))
}

impl ToPy for sampi_client::Dialog {
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let timeout = self.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        let method = match self.question.clone() {
            Question::Select { title, options } => UiMethod::Select { title, options, timeout },
            Question::Confirm { title, message } => UiMethod::Confirm { title, message, timeout },
            Question::Input { title, placeholder } => UiMethod::Input { title, placeholder, timeout },
            Question::Editor { title, prefill } => UiMethod::Editor { title, prefill },
            _ => return Err(mismatch()),
        };
        dialog_to_py(py, &Arc::new(UiRequest { kind: UiRequestTag::default(), id: self.id.clone(), method }))
    }
}

/// Seconds of a timeout in milliseconds.
fn seconds(timeout: &Option<u64>) -> Option<f64> {
    timeout.map(|timeout| std::time::Duration::from_millis(timeout).as_secs_f64())
}

kinds! {
    Dialog, UiRequest {
        method: UiMethod::Notify { .. }
            | UiMethod::SetStatus { .. }
            | UiMethod::SetWidget { .. }
            | UiMethod::SetTitle { .. }
            | UiMethod::SetEditorText { .. },
        ..
    } => base;

    /// Choose one of several options.
    SelectDialog: UiRequest { method: UiMethod::Select { title, options, timeout }, .. } => {
        /// What is asked.
        title = title,
        /// The options.
        options = options,
        /// Seconds after which the daemon takes the dialog for cancelled; `None` for never.
        timeout = seconds(timeout),
    }

    /// Yes or no.
    ConfirmDialog: UiRequest { method: UiMethod::Confirm { title, message, timeout }, .. } => {
        /// What is asked.
        title = title,
        /// More about it.
        message = message,
        /// Seconds after which the daemon takes the answer for no; `None` for never.
        timeout = seconds(timeout),
    }

    /// Enter a line of text.
    InputDialog: UiRequest { method: UiMethod::Input { title, placeholder, timeout }, .. } => {
        /// What is asked.
        title = title,
        /// Text to show while nothing is entered.
        placeholder = placeholder,
        /// Seconds after which the daemon takes the dialog for cancelled; `None` for never.
        timeout = seconds(timeout),
    }

    /// Edit a text of several lines.
    EditorDialog: UiRequest { method: UiMethod::Editor { title, prefill }, .. } => {
        /// What is asked.
        title = title,
        /// The text to start from.
        prefill = prefill,
    }
}
