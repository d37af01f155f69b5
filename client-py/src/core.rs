//! The client as the Python classes `Client` and `AsyncClient` use it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use sampi_client::protocol::commands::Prompt;
use sampi_client::protocol::data::ThinkingLevel;
use sampi_client::{EventItem, RpcClient, SessionChoice, StderrSink, StopDelays};

use crate::call::Call;
use crate::callbacks::{Callbacks, callbacks};
use crate::classes::Outcome;
use crate::commands::{self, limited};
use crate::convert::from_python;
use crate::errors::{self, Failure};
use crate::stream::{EventStream, StartedRun};
use crate::wait::{Home, Seconds, wait};

/// How many events of a run are kept while `run` waits for its end. It reads them all, without Python.
const RUN_CAPACITY: usize = 65_536;

/// One client of one daemon.
#[pyclass(frozen, module = "sampi._native")]
pub(crate) struct Core {
    /// Always there; an option so that a forked child can leave it alone.
    client: Option<RpcClient>,
    home: Home,
}

#[pymethods]
impl Core {
    /// Starts the daemon. Gives the client, the queue of what Python functions are asked, and the queue of the
    /// events that one is told, which is of its own so that it delays no answers.
    #[staticmethod]
    #[pyo3(signature = (
        *, program, program_args, cwd, env, provider, model, thinking, session, session_dir, session_name,
        args, frame_limit, stderr, asks, listens
    ))]
    #[allow(clippy::too_many_arguments, reason = "they are the options of the Python constructor")]
    fn spawn(
        py: Python<'_>,
        program: PathBuf,
        program_args: Vec<OsString>,
        cwd: Option<PathBuf>,
        env: HashMap<OsString, Option<OsString>>,
        provider: Option<String>,
        model: Option<String>,
        thinking: Option<String>,
        session: (String, Option<String>),
        session_dir: Option<PathBuf>,
        session_name: Option<String>,
        args: Vec<OsString>,
        frame_limit: Option<usize>,
        stderr: &str,
        asks: bool,
        listens: bool,
    ) -> PyResult<(Self, Callbacks, Callbacks)> {
        let mut builder = RpcClient::builder().program(program).program_args(program_args).args(args);
        if let Some(cwd) = cwd {
            builder = builder.cwd(cwd);
        }
        for (name, value) in env {
            builder = match value {
                Some(value) => builder.env(name, value),
                None => builder.env_remove(name),
            };
        }
        if let Some(provider) = provider {
            builder = builder.provider(provider);
        }
        if let Some(model) = model {
            builder = builder.model(model);
        }
        if let Some(level) = thinking {
            let level = ThinkingLevel::parse(&level)
                .ok_or_else(|| PyValueError::new_err(format!("no thinking level {level:?}")))?;
            builder = builder.thinking(level);
        }
        builder = builder.session(session_choice(session)?);
        if let Some(folder) = session_dir {
            builder = builder.session_dir(folder);
        }
        if let Some(name) = session_name {
            builder = builder.session_name(name);
        }
        if let Some(limit) = frame_limit {
            builder = builder.frame_limit(limit);
        }
        let (sender, queue) = callbacks();
        builder = builder.stderr(match stderr {
            "keep" => StderrSink::Keep,
            "inherit" => StderrSink::lines(|line| {
                // When stderr is gone there is nobody to tell.
                let _ = writeln!(std::io::stderr(), "{line}");
            }),
            _ => sender.stderr(),
        });
        if asks {
            builder = builder.ui_handler(sender);
        }
        let (sender, events) = callbacks();
        if listens {
            builder = builder.on_event(sender.listener());
        }
        let client = wait(py, builder.spawn())?.map_err(|error| errors::to_py_err(py, &error))?;
        Ok((Self { client: Some(client), home: Home::here() }, queue, events))
    }

    /// A call of the command with this wire name.
    #[pyo3(signature = (name, parameters, timeout))]
    fn call(&self, name: &str, parameters: &Bound<'_, PyDict>, timeout: Option<Seconds>) -> PyResult<Call> {
        let parameters = from_python(parameters)?;
        Ok(Call::new(commands::call(self.client()?, name, parameters, limit(timeout))?))
    }

    /// A prompt whose run is waited for; gives its outcome.
    #[pyo3(signature = (prompt, timeout))]
    fn run(&self, prompt: &Bound<'_, PyDict>, timeout: Option<Seconds>) -> PyResult<Call> {
        let (client, prompt) = (self.client()?.clone(), read_prompt(prompt)?);
        Ok(Call::new(async move {
            let running = async {
                let mut run = client.run_prompt_with_capacity(prompt, RUN_CAPACITY).await?;
                let mut malformed = None;
                while let Some(item) = run.next().await {
                    if let EventItem::Malformed(record) = item {
                        malformed.get_or_insert(record);
                    }
                }
                let outcome = run.outcome().await?;
                match malformed {
                    Some(record) => Err(Failure::Malformed(record)),
                    None => Ok(outcome),
                }
            };
            let outcome = limited("the run", limit(timeout), running).await?;
            Ok(Box::new(Outcome::from(outcome)) as _)
        }))
    }

    /// A prompt whose run is streamed; gives an `EventStream`.
    #[pyo3(signature = (prompt, capacity, timeout))]
    fn start_run(
        &self,
        prompt: &Bound<'_, PyDict>,
        capacity: usize,
        timeout: Option<Seconds>,
    ) -> PyResult<Call> {
        let (client, prompt) = (self.client()?.clone(), read_prompt(prompt)?);
        Ok(Call::new(async move {
            let starting = async { Ok(client.run_prompt_with_capacity(prompt, capacity).await?) };
            Ok(Box::new(StartedRun(limited("prompt", limit(timeout), starting).await?)) as _)
        }))
    }

    /// A stream of everything that happens from now on.
    fn subscribe(&self, capacity: usize) -> PyResult<EventStream> {
        Ok(EventStream::all(self.client()?.subscribe_with_capacity(capacity)))
    }

    /// Waits until the session is idle.
    #[pyo3(signature = (timeout))]
    fn wait_for_idle(&self, timeout: Option<Seconds>) -> PyResult<Call> {
        let client = self.client()?.clone();
        Ok(Call::new(async move {
            limited("the run", limit(timeout), async { Ok(client.wait_for_idle().await?) }).await?;
            Ok(Box::new(()) as _)
        }))
    }

    /// Stops the daemon in an orderly way; gives its exit code.
    fn stop(&self, after_close: Seconds, after_term: Seconds, after_kill: Seconds) -> PyResult<Call> {
        let client = self.client()?.clone();
        let delays =
            StopDelays { after_close: after_close.0, after_term: after_term.0, after_kill: after_kill.0 };
        Ok(Call::new(async move {
            let exit = client.stop_with(delays).await;
            Ok(Box::new(errors::exit_code(&exit)) as _)
        }))
    }

    /// Starts the daemon again.
    fn restart(&self) -> PyResult<Call> {
        let client = self.client()?.clone();
        Ok(Call::new(async move {
            client.restart().await?;
            Ok(Box::new(()) as _)
        }))
    }

    /// The daemon's process id.
    #[getter]
    fn process_id(&self) -> PyResult<Option<u32>> {
        Ok(self.client()?.process_id())
    }

    /// The daemon's exit code once it has ended.
    #[getter]
    fn exit_code(&self) -> PyResult<Option<i32>> {
        Ok(self.client()?.exit().and_then(|exit| errors::exit_code(&exit)))
    }

    /// True while the daemon lives.
    #[getter]
    fn is_alive(&self) -> PyResult<bool> {
        Ok(self.client()?.exit().is_none())
    }

    /// How many calls wait for their answer.
    #[getter]
    fn pending_calls(&self) -> PyResult<usize> {
        Ok(self.client()?.pending_calls())
    }
}

impl Core {
    fn client(&self) -> PyResult<&RpcClient> {
        self.home.check()?;
        self.client.as_ref().ok_or_else(|| PyRuntimeError::new_err("there is no client"))
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if self.home.check().is_err() {
            // In a forked child: the daemon is the parent's.
            std::mem::forget(self.client.take());
        }
    }
}

fn limit(timeout: Option<Seconds>) -> Option<Duration> {
    timeout.map(|seconds| seconds.0)
}

fn read_prompt(prompt: &Bound<'_, PyDict>) -> PyResult<Prompt> {
    commands::parameters(from_python(prompt)?)
}

fn session_choice((kind, value): (String, Option<String>)) -> PyResult<SessionChoice> {
    match (kind.as_str(), value) {
        ("new", None) => Ok(SessionChoice::New),
        ("memory", None) => Ok(SessionChoice::InMemory),
        ("continue", None) => Ok(SessionChoice::Continue),
        ("open", Some(session)) => Ok(SessionChoice::Open(session)),
        ("id", Some(id)) => Ok(SessionChoice::Id(id)),
        ("fork", Some(session)) => Ok(SessionChoice::Fork(session)),
        _ => Err(PyValueError::new_err(format!("no session choice {kind:?}"))),
    }
}
