//! From the runtime's threads to an asyncio event loop.
//!
//! The runtime never attaches to the interpreter. What is done goes into a queue, and one byte on a
//! socket wakes the loop, which takes everything that is there at once.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use pyo3::prelude::*;
use tokio::task::AbortHandle;

use crate::call::AnswerFuture;
use crate::convert::Answer;
use crate::errors::Failure;
use crate::wait::runtime;

/// What one wait gave: its token, its result, its exception.
type Done<'py> = (u64, Option<Bound<'py, PyAny>>, Option<PyErr>);

enum Completion {
    Answer(u64, Result<Answer, Failure>),
    Woken(u64),
}

/// What one event loop waits for.
#[pyclass(frozen, module = "sampi._native")]
pub(crate) struct Bridge {
    shared: Arc<Shared>,
    reader: UnixStream,
    next: AtomicU64,
}

struct Shared {
    done: Mutex<Vec<Completion>>,
    /// True from the first thing that is done until the loop fetches it.
    rung: AtomicBool,
    writer: UnixStream,
}

impl Shared {
    // Unbounded: it holds at most one completion for each call and each stream that waits.
    fn push(&self, completion: Completion) {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push(completion);
        if !self.rung.swap(true, Ordering::AcqRel) {
            // A loop that is gone needs no waking.
            let _ = (&self.writer).write(&[1]);
        }
    }
}

#[pymethods]
impl Bridge {
    #[new]
    fn new() -> PyResult<Self> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        let shared = Shared { done: Mutex::default(), rung: AtomicBool::new(false), writer };
        Ok(Self { shared: Arc::new(shared), reader, next: AtomicU64::new(1) })
    }

    /// The file descriptor that becomes readable when something is done.
    fn fileno(&self) -> i32 {
        self.reader.as_raw_fd()
    }

    /// A token for something to wait for.
    fn token(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes all that is done: `(token, result, exception)` each.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Vec<Done<'py>>> {
        let mut bytes = [0; 16];
        while matches!((&self.reader).read(&mut bytes), Ok(length) if length == bytes.len()) {}
        self.shared.rung.store(false, Ordering::Release);
        let done = std::mem::take(&mut *self.shared.done.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(done
            .into_iter()
            .map(|completion| match completion {
                Completion::Woken(token) => (token, None, None),
                Completion::Answer(token, Ok(answer)) => match answer.into_python(py) {
                    Ok(value) => (token, Some(value), None),
                    Err(error) => (token, None, Some(error)),
                },
                Completion::Answer(token, Err(error)) => (token, None, Some(error.to_py_err(py))),
            })
            .collect())
    }
}

impl Bridge {
    /// Starts a future whose result the loop gets under this token.
    ///
    /// It is polled once here, so that commands are sent in the order in which they were called.
    pub(crate) fn start(&self, token: u64, mut future: AnswerFuture) -> PyResult<Wait> {
        let handle = runtime()?;
        let _entered = handle.enter();
        if let Poll::Ready(result) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            self.shared.push(Completion::Answer(token, result));
            return Ok(Wait { task: None });
        }
        let shared = Arc::clone(&self.shared);
        let task = handle.spawn(async move {
            let result = future.await;
            shared.push(Completion::Answer(token, result));
        });
        Ok(Wait { task: Some(task.abort_handle()) })
    }

    /// A waker that wakes the loop for this token.
    pub(crate) fn waker(&self, token: u64) -> Waker {
        Waker::from(Arc::new(Ring { shared: Arc::clone(&self.shared), token }))
    }
}

struct Ring {
    shared: Arc<Shared>,
    token: u64,
}

impl Wake for Ring {
    fn wake(self: Arc<Self>) {
        self.shared.push(Completion::Woken(self.token));
    }
}

/// A call on its way.
#[pyclass(frozen, module = "sampi._native")]
pub(crate) struct Wait {
    task: Option<AbortHandle>,
}

#[pymethods]
impl Wait {
    /// Abandons the wait. A command that was sent has its effect.
    fn cancel(&self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
