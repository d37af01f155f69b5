//! The runtime, and waiting for it from Python.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::errors;

/// How often a blocked call looks whether a signal came (Ctrl-C) or the interpreter ends.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);

/// How long the interpreter's end waits for blocked calls to come back.
const SHUT_DOWN: Duration = Duration::from_secs(2);

/// Threads of the runtime. They only move bytes and decode JSON.
const WORKERS: usize = 2;

/// The runtime with the process that it belongs to. The lock is only held with the interpreter attached
/// and for a moment, so no other thread can hold it while this one forks.
static RUNTIME: Mutex<Option<(u32, Handle)>> = Mutex::new(None);

static ENDING: AtomicBool = AtomicBool::new(false);
static BLOCKED: AtomicUsize = AtomicUsize::new(0);

/// The runtime of this process; a child after `os.fork()` gets one of its own.
pub(crate) fn runtime() -> PyResult<Handle> {
    let mut slot = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    match &*slot {
        Some((owner, handle)) if *owner == process => Ok(handle.clone()),
        _ => {
            let runtime = Builder::new_multi_thread()
                .worker_threads(WORKERS)
                .thread_name("sampi-io")
                .enable_all()
                .build()
                .map_err(|error| PyRuntimeError::new_err(format!("no threads could be started: {error}")))?;
            let handle = runtime.handle().clone();
            keep_for_ever(runtime);
            *slot = Some((process, handle.clone()));
            Ok(handle)
        }
    }
}

/// The runtime lives as long as the process: dropping it would wait for its tasks, and in a forked child
/// for threads that do not exist.
fn keep_for_ever(runtime: Runtime) {
    std::mem::forget(runtime);
}

/// Where an object was made, to refuse it in a forked child, whose runtime knows nothing of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Home(u32);

impl Home {
    pub(crate) fn here() -> Self {
        Self(std::process::id())
    }

    pub(crate) fn check(self) -> PyResult<()> {
        if self.0 == std::process::id() {
            return Ok(());
        }
        Err(PyRuntimeError::new_err("this client was made before os.fork(): make a new one in the child"))
    }
}

/// Seconds as Python gives them, `timeout=2.5`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seconds(pub(crate) Duration);

impl FromPyObject<'_, '_> for Seconds {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let seconds: f64 = value.extract()?;
        Duration::try_from_secs_f64(seconds)
            .map(Self)
            .map_err(|error| PyValueError::new_err(format!("{seconds} is no number of seconds: {error}")))
    }
}

/// Waits for a future with the interpreter released. A signal handler that raises (Ctrl-C) ends the wait
/// with its exception, and the future is dropped.
pub(crate) fn wait<F>(py: Python<'_>, future: F) -> PyResult<F::Output>
where
    F: Future + Send,
    F::Output: Send,
{
    let handle = runtime()?;
    let mut future = pin!(future);
    let waker = thread_waker();
    loop {
        let _blocked = Blocked::new();
        let output = py.detach(|| {
            let _entered = handle.enter();
            let mut cx = Context::from_waker(&waker);
            let until = Instant::now() + SIGNAL_CHECK;
            loop {
                if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                    return Some(output);
                }
                match until.checked_duration_since(Instant::now()) {
                    Some(left) if !left.is_zero() => std::thread::park_timeout(left),
                    _ => return None,
                }
            }
        });
        if let Some(output) = output {
            return Ok(output);
        }
        py.check_signals()?;
        if ENDING.load(Ordering::Acquire) {
            return Err(errors::closing(py));
        }
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn thread_waker() -> Waker {
    Waker::from(Arc::new(Unpark(std::thread::current())))
}

struct Blocked;

impl Blocked {
    fn new() -> Self {
        BLOCKED.fetch_add(1, Ordering::AcqRel);
        Self
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        BLOCKED.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Called when the interpreter is about to end: blocked calls of other threads come back, so that none
/// of them asks for the interpreter while it is taken down.
#[pyfunction]
#[pyo3(name = "_shut_down")]
pub(crate) fn shut_down(py: Python<'_>) {
    ENDING.store(true, Ordering::Release);
    py.detach(|| {
        let until = Instant::now() + SHUT_DOWN;
        while BLOCKED.load(Ordering::Acquire) > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}
