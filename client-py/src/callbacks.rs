//! What Python functions are asked or told: dialogs, lines of stderr, events.
//!
//! The runtime must not call them. They wait here until a Python thread or an event loop fetches them.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker};

use futures::FutureExt;
use futures::future::BoxFuture;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString};
use sampi_client::{Answer, Dialog, EventItem, Question, StderrSink, UiHandler};
use tokio::sync::{mpsc, oneshot};

use crate::bridge::Bridge;
use crate::convert::ToPy;
use crate::stream::item_to_py;
use crate::wait::wait;

/// How many callbacks of one queue may wait. Beyond that lines of stderr are lost and dialogs are dismissed:
/// neither may hold the daemon up.
const CAPACITY: usize = 4096;

/// The end of the queue that the runtime has.
#[derive(Clone)]
pub(crate) struct CallbackSender(mpsc::Sender<Callback>);

pub(crate) enum Callback {
    Dialog(Dialog, oneshot::Sender<Answer>),
    Stderr(String),
    Event(EventItem),
}

impl CallbackSender {
    /// A sink that hands lines over.
    pub(crate) fn stderr(&self) -> StderrSink {
        let sender = self.0.clone();
        StderrSink::lines(move |line| {
            // Full or closed: the tail that errors carry is kept in any case.
            let _ = sender.try_send(Callback::Stderr(line.to_owned()));
        })
    }

    /// A listener that hands events over. It waits while the queue is full, on the thread that the client has
    /// for it; what it misses meanwhile the client tells as for any listener.
    pub(crate) fn listener(self) -> impl Fn(EventItem) + Send + Sync {
        move |item| {
            // Closed: the Python client is gone.
            let _ = self.0.blocking_send(Callback::Event(item));
        }
    }
}

impl UiHandler for CallbackSender {
    fn answer(&self, dialog: Dialog) -> BoxFuture<'static, Answer> {
        let (sender, answer) = oneshot::channel();
        let sent = self.0.try_send(Callback::Dialog(dialog, sender));
        async move {
            match sent {
                Ok(()) => answer.await.unwrap_or(Answer::Cancelled),
                Err(_) => Answer::Cancelled,
            }
        }
        .boxed()
    }
}

/// The end of the queue that Python has.
#[pyclass(frozen, module = "sampi._native")]
pub(crate) struct Callbacks {
    queue: Mutex<Queue>,
}

struct Queue {
    receiver: mpsc::Receiver<Callback>,
    /// Came while somebody prepared to wait.
    early: Option<Callback>,
}

/// A queue of callbacks.
pub(crate) fn callbacks() -> (CallbackSender, Callbacks) {
    let (sender, receiver) = mpsc::channel(CAPACITY);
    (CallbackSender(sender), Callbacks { queue: Mutex::new(Queue { receiver, early: None }) })
}

impl Callbacks {
    fn lock(&self) -> PyResult<MutexGuard<'_, Queue>> {
        match self.queue.try_lock() {
            Ok(queue) => Ok(queue),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err("another thread is reading")),
        }
    }
}

#[pymethods]
impl Callbacks {
    /// Waits for the next callback, a `PendingDialog`, a line, an event or the `ProtocolError` of one that
    /// could not be read; `None` when there will be no more.
    fn next<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut queue = self.lock()?;
        loop {
            let callback = match queue.early.take() {
                Some(callback) => Some(callback),
                None => wait(py, queue.receiver.recv())?,
            };
            let Some(callback) = callback else { return Ok(None) };
            if let Some(object) = callback.into_python(py)? {
                return Ok(Some(object));
            }
        }
    }

    /// Takes what is there, at most `limit` callbacks; `None` when there will be no more.
    fn take<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Option<Bound<'py, PyList>>> {
        let mut queue = self.lock()?;
        let taken = PyList::empty(py);
        while taken.len() < limit {
            let callback = match queue.early.take() {
                Some(callback) => callback,
                None => match queue.receiver.try_recv() {
                    Ok(callback) => callback,
                    Err(mpsc::error::TryRecvError::Disconnected) if taken.is_empty() => return Ok(None),
                    Err(_) => break,
                },
            };
            if let Some(object) = callback.into_python(py)? {
                taken.append(object)?;
            }
        }
        Ok(Some(taken))
    }

    /// Has the bridge woken under this token when there is something to take; false when there is already.
    fn arm(&self, bridge: &Bound<'_, Bridge>, token: u64) -> PyResult<bool> {
        let mut queue = self.lock()?;
        if queue.early.is_some() {
            return Ok(false);
        }
        let waker: Waker = bridge.get().waker(token);
        match queue.receiver.poll_recv(&mut Context::from_waker(&waker)) {
            Poll::Pending => Ok(true),
            Poll::Ready(callback) => {
                queue.early = callback;
                Ok(false)
            }
        }
    }
}

impl Callback {
    /// The object that Python gets; `None` when it is nothing to tell.
    fn into_python(self, py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
        match self {
            Self::Stderr(line) => line.to_py(py).map(Some),
            Self::Dialog(dialog, sender) => {
                let pending = PendingDialog { dialog, sender: Mutex::new(Some(sender)) };
                Ok(Some(Bound::new(py, pending)?.into_any()))
            }
            Self::Event(item) => match item_to_py(py, &item) {
                Some(Err(error)) => Ok(Some(error.into_value(py).into_bound(py).into_any())),
                event => event.transpose(),
            },
        }
    }
}

/// A dialog that waits for its answer. Dropping it dismisses the dialog.
#[pyclass(frozen, module = "sampi._native")]
pub(crate) struct PendingDialog {
    dialog: Dialog,
    sender: Mutex<Option<oneshot::Sender<Answer>>>,
}

#[pymethods]
impl PendingDialog {
    /// What is asked.
    #[getter]
    fn dialog<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.dialog.to_py(py)
    }

    /// Answers: a bool for a confirmation, a string for the others, `None` to dismiss it.
    fn answer(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let answer = self.read(value)?;
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            // The connection may have ended meanwhile.
            let _ = sender.send(answer);
        }
        Ok(())
    }
}

impl PendingDialog {
    fn read(&self, value: &Bound<'_, PyAny>) -> PyResult<Answer> {
        let confirm = matches!(self.dialog.question, Question::Confirm { .. });
        if value.is_none() {
            return Ok(Answer::Cancelled);
        }
        if let (true, Ok(value)) = (confirm, value.cast::<PyBool>()) {
            return Ok(Answer::Confirmed(value.is_true()));
        }
        if let (false, Ok(value)) = (confirm, value.cast::<PyString>()) {
            return Ok(Answer::Value(value.to_string_lossy().into_owned()));
        }
        let expected = if confirm { "a bool" } else { "a str" };
        let got = value.get_type().name()?.to_string_lossy().into_owned();
        Err(PyTypeError::new_err(format!("the answer to this dialog is {expected} or None, not {got}")))
    }
}
