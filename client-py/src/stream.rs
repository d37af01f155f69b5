//! Events on their way to Python.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::task::{Context, Poll, Waker};

use futures::Stream;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use sampi_client::protocol::commands::Disposition;
use sampi_client::{EventItem, Run, RunWaiter, Subscription};

use crate::bridge::Bridge;
use crate::call::Call;
use crate::classes::{Outcome, event_to_py, lagged_to_py, ui_event_to_py};
use crate::commands::limited;
use crate::convert::{IntoPython, ToPy};
use crate::errors;
use crate::wait::{Home, Seconds, wait};

/// A bounded stream of events: all of them, or those of one run.
///
/// A plain iterator for synchronous code; asyncio takes batches with `take` and waits with `arm`.
#[pyclass(frozen, module = "sampi._native")]
pub(crate) struct EventStream {
    reader: Mutex<Reader>,
    run: Option<StreamedRun>,
    /// Beside the reader, so that it can be asked while another thread reads.
    over: AtomicBool,
    home: Home,
}

struct StreamedRun {
    disposition: Disposition,
    waiter: RunWaiter,
}

struct Reader {
    events: Option<Subscription>,
    /// Came while somebody prepared to wait.
    early: Option<EventItem>,
    /// What the next read raises, because the items before it were good.
    failed: Option<PyErr>,
    over: bool,
}

/// The object of what happened; `None` for what is not told, such as the end of the connection.
pub(crate) fn item_to_py<'py>(py: Python<'py>, item: &EventItem) -> Option<PyResult<Bound<'py, PyAny>>> {
    match item {
        EventItem::Event(event) => Some(event_to_py(py, event)),
        EventItem::Ui(request) => Some(ui_event_to_py(py, request)),
        EventItem::Lagged(missed) => Some(lagged_to_py(py, *missed)),
        EventItem::Malformed(record) => Some(Err(errors::malformed(py, record))),
        _ => None,
    }
}

/// What is next.
enum Next<'py> {
    Event(Bound<'py, PyAny>),
    Nothing,
    End,
}

impl EventStream {
    /// A stream of everything that happens.
    pub(crate) fn all(events: Subscription) -> Self {
        Self::new(events, None)
    }

    /// A stream of one run.
    pub(crate) fn of_run(run: Run) -> Self {
        let disposition = run.disposition();
        let (events, waiter) = run.split();
        Self::new(events, Some(StreamedRun { disposition, waiter }))
    }

    fn new(events: Subscription, run: Option<StreamedRun>) -> Self {
        let reader = Reader { events: Some(events), early: None, failed: None, over: false };
        Self { reader: Mutex::new(reader), run, over: AtomicBool::new(false), home: Home::here() }
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, Reader>> {
        self.home.check()?;
        match self.reader.try_lock() {
            Ok(reader) => Ok(reader),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(PyRuntimeError::new_err("another thread is reading this stream"))
            }
        }
    }

    /// The next item without waiting for it.
    fn next_now<'py>(&self, py: Python<'py>, reader: &mut Reader) -> PyResult<Next<'py>> {
        if let Some(error) = reader.failed.take() {
            return Err(error);
        }
        let polled = match reader.early.take() {
            Some(item) => Poll::Ready(Some(item)),
            None => reader.poll(&mut Context::from_waker(Waker::noop())),
        };
        match polled {
            Poll::Ready(item) => self.convert(py, reader, item),
            Poll::Pending => Ok(Next::Nothing),
        }
    }

    fn convert<'py>(
        &self,
        py: Python<'py>,
        reader: &mut Reader,
        item: Option<EventItem>,
    ) -> PyResult<Next<'py>> {
        match item {
            Some(EventItem::Closed(exit)) => {
                reader.over = true;
                self.over.store(true, Ordering::Release);
                if errors::was_asked_for(&exit) { Ok(Next::End) } else { Err(errors::exited(py, &exit)) }
            }
            Some(item) => match item_to_py(py, &item) {
                Some(event) => event.map(Next::Event),
                None => Ok(Next::Nothing),
            },
            None => {
                let first = !std::mem::replace(&mut reader.over, true);
                self.over.store(true, Ordering::Release);
                // The outcome was there before the events ended.
                match &self.run {
                    Some(run) if first => match wait(py, run.waiter.outcome())? {
                        Ok(_) => Ok(Next::End),
                        Err(error) => Err(errors::to_py_err(py, &error)),
                    },
                    _ => Ok(Next::End),
                }
            }
        }
    }
}

impl Reader {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<EventItem>> {
        match &mut self.events {
            Some(events) if !self.over => Pin::new(events).poll_next(cx),
            _ => Poll::Ready(None),
        }
    }

    async fn next(&mut self) -> Option<EventItem> {
        std::future::poll_fn(|cx| self.poll(cx)).await
    }
}

#[pymethods]
impl EventStream {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut reader = self.lock()?;
        let mut next = self.next_now(py, &mut reader)?;
        loop {
            match next {
                Next::Event(event) => return Ok(Some(event)),
                Next::End => return Ok(None),
                Next::Nothing => {
                    let item = wait(py, reader.next())?;
                    next = self.convert(py, &mut reader, item)?;
                }
            }
        }
    }

    /// Takes what is there, at most `limit` items; `None` when there will be no more.
    fn take<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Option<Bound<'py, PyList>>> {
        let mut reader = self.lock()?;
        let events = PyList::empty(py);
        while events.len() < limit {
            match self.next_now(py, &mut reader) {
                Ok(Next::Event(event)) => events.append(event)?,
                Ok(Next::Nothing) => break,
                Ok(Next::End) if events.is_empty() => return Ok(None),
                Ok(Next::End) => break,
                Err(error) if events.is_empty() => return Err(error),
                Err(error) => {
                    reader.failed = Some(error);
                    break;
                }
            }
        }
        Ok(Some(events))
    }

    /// Has the bridge woken under this token when there is something to take; false when there is already.
    fn arm(&self, bridge: &Bound<'_, Bridge>, token: u64) -> PyResult<bool> {
        let mut reader = self.lock()?;
        if reader.early.is_some() || reader.failed.is_some() || reader.over {
            return Ok(false);
        }
        match reader.poll(&mut Context::from_waker(&bridge.get().waker(token))) {
            Poll::Pending => Ok(true),
            Poll::Ready(Some(item)) => {
                reader.early = Some(item);
                Ok(false)
            }
            // Reading it again gives the end again.
            Poll::Ready(None) => Ok(false),
        }
    }

    /// What became of the prompt; `None` for a stream of all events.
    #[getter]
    fn disposition<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.run.as_ref().map(|run| run.disposition).to_py(py)
    }

    /// True when everything was read or, read or not, the run has settled.
    #[getter]
    fn over(&self) -> PyResult<bool> {
        self.home.check()?;
        let settled = self.run.as_ref().is_some_and(|run| run.waiter.is_settled());
        Ok(settled || self.over.load(Ordering::Acquire))
    }

    /// Waits for the run's outcome.
    #[pyo3(signature = (timeout=None))]
    fn outcome(&self, timeout: Option<Seconds>) -> PyResult<Call> {
        self.home.check()?;
        let Some(run) = &self.run else { return Err(PyRuntimeError::new_err("this is no run")) };
        let (waiter, limit) = (run.waiter.clone(), timeout.map(|seconds| seconds.0));
        Ok(Call::new(async move {
            let outcome = limited("the run", limit, async { Ok(waiter.outcome().await?) }).await?;
            Ok(Box::new(Outcome::from(outcome)) as _)
        }))
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        if self.home.check().is_err() {
            // In a forked child: what the runtime shares with it must not be touched.
            if let Ok(reader) = self.reader.get_mut() {
                std::mem::forget(reader.events.take());
            }
            std::mem::forget(self.run.take());
        }
    }
}

/// A run that was accepted.
pub(crate) struct StartedRun(pub(crate) Run);

impl IntoPython for StartedRun {
    fn into_python<'py>(self: Box<Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(Bound::new(py, EventStream::of_run(self.0))?.into_any())
    }
}
