//! The daemon's process: starting it, watching over it, ending it.

use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::error::ClientError;

/// How much of what the process writes to stderr is kept, in bytes.
pub const STDERR_TAIL: usize = 8 * 1024;

/// The longest piece of a line of stderr that is handed to a sink at once, in bytes.
const STDERR_LINE: u64 = 64 * 1024;

/// Where what the daemon writes to stderr goes. The last of it is kept in any case.
#[derive(Clone, Default)]
pub enum StderrSink {
    /// Nowhere else.
    #[default]
    Keep,
    /// To the log (`tracing`, level info, target `sampi_client::stderr`).
    Log,
    /// Line by line to a function, called on a task of its own. A panic in it stays there: it is logged,
    /// and the function gets the next line.
    Lines(Arc<dyn Fn(&str) + Send + Sync>),
}

impl StderrSink {
    /// A sink that calls a function for each line.
    pub fn lines(sink: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self::Lines(Arc::new(sink))
    }

    fn take(&self, line: &str) {
        match self {
            Self::Keep => {}
            Self::Log => tracing::info!(target: "sampi_client::stderr", "{line}"),
            Self::Lines(sink) => {
                // The task goes on: a daemon whose stderr nobody reads would block once the pipe is full.
                if catch_unwind(AssertUnwindSafe(|| sink(line))).is_err() {
                    tracing::error!("a function for the agent's stderr panicked; it gets the next line");
                }
            }
        }
    }
}

impl std::fmt::Debug for StderrSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Keep => "Keep",
            Self::Log => "Log",
            Self::Lines(_) => "Lines(..)",
        })
    }
}

/// How patiently a process is stopped: first its input is closed, then it gets SIGTERM, then SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopDelays {
    /// How long to wait after its input was closed.
    pub after_close: Duration,
    /// How long to wait after SIGTERM.
    pub after_term: Duration,
    /// How long to wait after SIGKILL, which only a process stuck in the kernel outlives.
    pub after_kill: Duration,
}

impl Default for StopDelays {
    fn default() -> Self {
        Self {
            after_close: Duration::from_secs(5),
            after_term: Duration::from_secs(2),
            after_kill: Duration::from_secs(2),
        }
    }
}

/// What to start, and how. Kept so that it can be started again.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) program: Option<PathBuf>,
    pub(crate) args: Vec<OsString>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) env: HashMap<OsString, Option<OsString>>,
    pub(crate) stderr: StderrSink,
}

impl Launch {
    /// Starts the process in a group of its own.
    pub(crate) fn start(&self) -> Result<(Process, ProcessPipes), ClientError> {
        let program = match &self.program {
            Some(program) => program.clone(),
            None => find_program().ok_or(ClientError::ProgramNotFound)?,
        };
        let failed =
            |error: std::io::Error| ClientError::Spawn { program: program.clone(), error: Arc::new(error) };
        let mut command = Command::new(from_here(&program).map_err(failed)?);
        command
            .args(&self.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut child = command.spawn().map_err(failed)?;
        let pipes = match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => ProcessPipes { stdin, stdout, stderr },
            _ => return Err(failed(std::io::Error::other("its pipes are missing"))),
        };
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok((Process { child, group, reaped: false }, pipes))
    }
}

/// The ends of the process's pipes.
#[derive(Debug)]
pub(crate) struct ProcessPipes {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

/// A running process. Dropping it kills its whole group.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
    reaped: bool,
}

impl Process {
    /// The process's id.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the process has ended, then ends what is left of its group.
    pub(crate) async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        if !self.reaped {
            // Before anything else can get the group's id again.
            self.kill_group();
            self.reaped = true;
        }
        Ok(status)
    }

    /// Waits at most this long.
    pub(crate) async fn wait_for(&mut self, limit: Duration) -> Option<std::io::Result<ExitStatus>> {
        tokio::time::timeout(limit, self.wait()).await.ok()
    }

    /// Asks the process to end; what it started is its own affair.
    pub(crate) fn terminate(&self) {
        if let (Some(pid), false) = (self.group, self.reaped) {
            // It may have ended meanwhile.
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
    }

    /// Kills the process and everything in its group.
    pub(crate) fn kill_group(&self) {
        if let (Some(group), false) = (self.group, self.reaped) {
            // It may have ended meanwhile.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill_group();
    }
}

/// The last bytes of stderr.
#[derive(Debug, Clone, Default)]
pub(crate) struct StderrTail {
    bytes: Arc<Mutex<VecDeque<u8>>>,
}

impl StderrTail {
    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> =
            self.bytes.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        // A character that was cut at the start of the tail is left out.
        let cut = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
        String::from_utf8_lossy(&bytes[cut..]).into_owned()
    }

    fn add(&self, new: &[u8]) {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.extend(&new[new.len().saturating_sub(STDERR_TAIL)..]);
        let excess = bytes.len().saturating_sub(STDERR_TAIL);
        bytes.drain(..excess);
    }
}

/// Reads stderr until it ends: the tail is kept, each line goes to the sink.
pub(crate) async fn read_stderr(stderr: ChildStderr, tail: StderrTail, sink: StderrSink) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(STDERR_LINE).read_until(b'\n', &mut line).await {
            Ok(0) => return,
            Ok(_) => {
                tail.add(&line);
                sink.take(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
            }
            Err(error) => {
                tracing::warn!(%error, "reading the agent's stderr failed");
                return;
            }
        }
    }
}

/// Finds the daemon: `SAMPI_BIN`, else `sampi` beside the running program, else on `PATH`.
pub(crate) fn find_program() -> Option<PathBuf> {
    if let Some(program) = std::env::var_os("SAMPI_BIN").filter(|program| !program.is_empty()) {
        return Some(program.into());
    }
    let name = format!("sampi{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().ok().and_then(|exe| beside(&exe, &name));
    beside.or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join(&name)).find(|program| is_program(program))
    })
}

/// The program as the caller's working directory has it, whatever the daemon's will be. A bare name stays: it
/// is looked for on `PATH`.
fn from_here(program: &Path) -> std::io::Result<PathBuf> {
    match program.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => std::path::absolute(program),
        _ => Ok(program.to_owned()),
    }
}

/// The program of this name in the folder of `exe`. Cargo puts tests and examples one folder deeper.
fn beside(exe: &Path, name: &str) -> Option<PathBuf> {
    let folder = exe.parent()?;
    let cargo = folder.ends_with("deps") || folder.ends_with("examples");
    let folders = [Some(folder), folder.parent().filter(|_| cargo)];
    folders.into_iter().flatten().map(|folder| folder.join(name)).find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}
