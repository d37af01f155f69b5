//! Describing a client before it is started.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use sampi_protocol::data::ThinkingLevel;
use sampi_protocol::jsonl::DEFAULT_FRAME_LIMIT;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::client::RpcClient;
use crate::error::ClientError;
use crate::events::{EventItem, Listeners};
use crate::process::{Launch, StderrSink};
use crate::supervise::Connection;
use crate::ui::{DenyAll, UiHandler};

/// Which session the daemon opens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SessionChoice {
    /// A new session in a file.
    #[default]
    New,
    /// A new session that is kept in memory and never written.
    InMemory,
    /// The most recent session of the working directory.
    Continue,
    /// The session with this path or id.
    Open(String),
    /// The session with exactly this id in the project, made if it is missing.
    Id(String),
    /// A new session that starts as a copy of the one with this path or id.
    Fork(String),
}

/// Describes a client to start.
///
/// ```no_run
/// # async fn example() -> Result<(), sampi_client::ClientError> {
/// use sampi_client::{RpcClient, SessionChoice};
///
/// let agent = RpcClient::builder().cwd("/some/project").session(SessionChoice::InMemory).spawn().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "nothing is started before `spawn` or `connect`"]
pub struct RpcClientBuilder {
    program: Option<PathBuf>,
    program_args: Vec<OsString>,
    cwd: Option<PathBuf>,
    env: HashMap<OsString, Option<OsString>>,
    provider: Option<String>,
    model: Option<String>,
    thinking: Option<ThinkingLevel>,
    session: SessionChoice,
    session_dir: Option<PathBuf>,
    name: Option<String>,
    args: Vec<OsString>,
    stderr: StderrSink,
    frame_limit: usize,
    handler: Arc<dyn UiHandler>,
    listeners: Vec<Arc<dyn Fn(EventItem) + Send + Sync>>,
}

impl Default for RpcClientBuilder {
    fn default() -> Self {
        Self {
            program: None,
            program_args: Vec::new(),
            cwd: None,
            env: HashMap::new(),
            provider: None,
            model: None,
            thinking: None,
            session: SessionChoice::New,
            session_dir: None,
            name: None,
            args: Vec::new(),
            stderr: StderrSink::Keep,
            frame_limit: DEFAULT_FRAME_LIMIT,
            handler: Arc::new(DenyAll),
            listeners: Vec::new(),
        }
    }
}

impl RpcClientBuilder {
    /// The program to run: a path, or a name to find on `PATH`. `pi` works too. A relative path is one from
    /// the caller's working directory, not from that of [`cwd`](Self::cwd).
    ///
    /// By default it is what `SAMPI_BIN` names, else `sampi` beside the running program, else `sampi` on
    /// `PATH`.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Arguments that come before all others, such as the script when the program is an interpreter.
    pub fn program_args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.program_args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The working directory of the agent; by default the caller's.
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = Some(cwd.into());
        self
    }

    /// Sets an environment variable of the daemon, which otherwise has the caller's environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.insert(name.as_ref().to_owned(), Some(value.as_ref().to_owned()));
        self
    }

    /// Takes an environment variable away from the daemon.
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.env.insert(name.as_ref().to_owned(), None);
        self
    }

    /// The provider to use.
    pub fn provider(mut self, provider: impl Into<String>) -> Self {
        self.provider = Some(provider.into());
        self
    }

    /// The model to use: an id, a pattern, or `provider/id`.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// The thinking level to start with.
    pub fn thinking(mut self, level: ThinkingLevel) -> Self {
        self.thinking = Some(level);
        self
    }

    /// Which session to open; by default a new one.
    pub fn session(mut self, session: SessionChoice) -> Self {
        self.session = session;
        self
    }

    /// The folder of session files.
    pub fn session_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.session_dir = Some(folder.into());
        self
    }

    /// The session's display name.
    pub fn session_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds an argument after all others.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments after all others.
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Where what the daemon writes to stderr goes; by default only its tail is kept, for errors.
    pub fn stderr(mut self, sink: StderrSink) -> Self {
        self.stderr = sink;
        self
    }

    /// The longest record that is read, in bytes; 64 MiB by default. A longer answer fails its call, a
    /// longer event is reported as malformed, and the connection lives on.
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.frame_limit = bytes;
        self
    }

    /// Who answers the dialogs of extensions; by default nobody: they are dismissed at once.
    pub fn ui_handler(mut self, handler: impl UiHandler) -> Self {
        self.handler = Arc::new(handler);
        self
    }

    /// Calls a function for everything that happens, from the daemon's first record on, also after a
    /// restart. What [`RpcClient::on_event`] misses is what a daemon writes before it is asked anything,
    /// such as `session_diagnostic`.
    ///
    /// The function runs on a thread of its own for each client that is started; what is said there about
    /// blocking, panics and falling behind holds here too. It stays as long as the client.
    pub fn on_event(mut self, listener: impl Fn(EventItem) + Send + Sync + 'static) -> Self {
        self.listeners.push(Arc::new(listener));
        self
    }

    /// Starts the daemon. Fails when the program is missing or cannot be run, or when the thread of a
    /// listener cannot be started; a daemon that starts and dies fails the calls that follow, with its exit
    /// status and what it wrote to stderr.
    pub async fn spawn(self) -> Result<RpcClient, ClientError> {
        let launch = self.launch();
        let listeners = Listeners::start(self.listeners)?;
        let hub = listeners.hub();
        let connection = Connection::spawn(&launch, self.frame_limit, Arc::clone(&self.handler), hub)?;
        Ok(RpcClient::start(connection, Some(launch), self.frame_limit, self.handler, listeners))
    }

    /// Connects to a daemon behind two streams, such as a socket or the pipes of a process that somebody
    /// else started. Only the frame limit, the UI handler and the listeners count. Fails when the thread of a
    /// listener cannot be started. Must be called on a tokio runtime.
    pub fn connect<R, W>(self, reader: R, writer: W) -> Result<RpcClient, ClientError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let listeners = Listeners::start(self.listeners)?;
        let hub = listeners.hub();
        let connection = Connection::over(reader, writer, self.frame_limit, Arc::clone(&self.handler), hub);
        Ok(RpcClient::start(connection, None, self.frame_limit, self.handler, listeners))
    }

    fn launch(&self) -> Launch {
        let mut args = self.program_args.clone();
        let mut add = |parts: &[&OsStr]| args.extend(parts.iter().map(|&part| part.to_owned()));
        add(&["--mode".as_ref(), "rpc".as_ref()]);
        if let Some(provider) = &self.provider {
            add(&["--provider".as_ref(), provider.as_ref()]);
        }
        if let Some(model) = &self.model {
            add(&["--model".as_ref(), model.as_ref()]);
        }
        if let Some(level) = self.thinking {
            add(&["--thinking".as_ref(), level.as_str().as_ref()]);
        }
        match &self.session {
            SessionChoice::New => {}
            SessionChoice::InMemory => add(&["--no-session".as_ref()]),
            SessionChoice::Continue => add(&["--continue".as_ref()]),
            SessionChoice::Open(session) => add(&["--session".as_ref(), session.as_ref()]),
            SessionChoice::Id(id) => add(&["--session-id".as_ref(), id.as_ref()]),
            SessionChoice::Fork(session) => add(&["--fork".as_ref(), session.as_ref()]),
        }
        if let Some(folder) = &self.session_dir {
            add(&["--session-dir".as_ref(), folder.as_ref()]);
        }
        if let Some(name) = &self.name {
            add(&["--name".as_ref(), name.as_ref()]);
        }
        args.extend(self.args.iter().cloned());
        Launch {
            program: self.program.clone(),
            args,
            cwd: self.cwd.clone(),
            env: self.env.clone(),
            stderr: self.stderr.clone(),
        }
    }
}

impl std::fmt::Debug for RpcClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the environment, which may hold keys.
        f.debug_struct("RpcClientBuilder")
            .field("program", &self.program)
            .field("args", &self.launch().args)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}
