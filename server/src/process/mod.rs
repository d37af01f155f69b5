//! Child processes: shell commands in a process group of their own, with bounded output, whose whole
//! tree is killed when they end, time out, are cancelled, or when the daemon stops.

mod decode;
mod output;
mod sanitise;
mod tree;
pub mod truncation;

#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use rustix::fs::Access;
use rustix::process::Pid;
use sampi_protocol::commands::BashResult;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use decode::Utf8Decoder;
pub use output::{FullOutput, OutputCollector};
pub use sanitise::Sanitiser;
pub use tree::kill_all;

use crate::BoxFuture;
use tree::{ProcessTree, mark_variable, new_mark};

/// Bytes read from a command at once.
const READ_BYTES: usize = 64 * 1024;

/// After the shell has exited, how long its output may pause before whatever holds the pipe is cut off.
const IDLE_AFTER_EXIT: Duration = Duration::from_millis(100);

/// After the shell has exited, how long its children may go on writing without a pause.
const LONGEST_AFTER_EXIT: Duration = Duration::from_secs(2);

/// After the kill, how long the pipe may pause before it is dropped with a process that survived.
const IDLE_AFTER_KILL: Duration = Duration::from_millis(50);

/// After the kill, how long reading what is left in the pipe may take.
const LONGEST_AFTER_KILL: Duration = Duration::from_millis(500);

/// The program that starts another in a new session.
static SETSID: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    ["/usr/bin/setsid", "/bin/setsid"].into_iter().map(PathBuf::from).find(|path| path.is_file())
});

/// A shell command.
#[derive(Debug, Clone)]
pub struct ShellCommand {
    /// The command line.
    pub command: String,
    /// The working directory.
    pub cwd: PathBuf,
    /// Variables on top of the daemon's own; `None` removes one.
    pub env: Vec<(String, Option<String>)>,
    /// The shell.
    pub shell: ShellSettings,
    /// How long the command may run; forever when absent.
    pub timeout: Option<Duration>,
}

/// The shell that commands run in.
#[derive(Debug, Clone, Default)]
pub struct ShellSettings {
    /// The shell's path; found by itself when absent.
    pub path: Option<PathBuf>,
    /// Put before every command on a line of its own.
    pub command_prefix: Option<String>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShellEnd {
    /// It exited with this code; 128 and the signal's number when a signal ended it.
    Exited(i32),
    /// It was killed as its time was over.
    TimedOut,
    /// It was killed as it was cancelled.
    Cancelled,
}

/// Takes what a command writes. While it takes its time, the command is held up by its full pipe.
pub trait OutputSink: Send {
    /// Takes the next text.
    fn take<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()>;
}

/// Runs a command and hands its output, stdout and stderr in the order in which they were written, to
/// `output`. All its processes are gone or killed when this returns or is dropped.
///
/// Fails when the command cannot be started; the error names what is missing.
pub async fn run_shell(
    command: &ShellCommand,
    cancel: &CancellationToken,
    output: &mut dyn OutputSink,
) -> io::Result<ShellEnd> {
    if cancel.is_cancelled() {
        return Ok(ShellEnd::Cancelled);
    }
    let Running { mut child, tree, mut pipe } = spawn(command)?;
    let mut text = TextStream::new(output);
    let end = follow(command.timeout, cancel, &mut child, &mut pipe, &mut text).await?;
    // Looking through all processes of the machine may take a while.
    tokio::task::spawn_blocking(move || drop(tree)).await.map_err(io::Error::other)?;
    let deadline = Instant::now() + LONGEST_AFTER_KILL;
    drain(&mut pipe, &mut text, IDLE_AFTER_KILL, deadline).await?;
    text.finish().await;
    Ok(end)
}

/// Runs a command for the user: output without control sequences, bounded, the whole of it in a file
/// when it is long. `deltas` takes the output as it comes.
pub async fn execute_bash(
    command: &ShellCommand,
    cancel: &CancellationToken,
    deltas: &mut dyn OutputSink,
) -> io::Result<BashResult> {
    let collector = OutputCollector::default();
    let mut output = SanitisedOutput { collector, sanitiser: Sanitiser::default(), deltas };
    let end = run_shell(command, cancel, &mut output).await?;
    let collector = output.collector;
    let truncation = collector.truncation();
    Ok(BashResult {
        output: truncation.content,
        exit_code: match end {
            ShellEnd::Exited(code) => Some(code),
            ShellEnd::TimedOut | ShellEnd::Cancelled => None,
        },
        cancelled: end == ShellEnd::Cancelled,
        truncated: truncation.truncated,
        full_output_path: collector.full_output_path().map(|path| path.to_string_lossy().into_owned()),
    })
}

struct SanitisedOutput<'a> {
    collector: OutputCollector,
    sanitiser: Sanitiser,
    deltas: &'a mut dyn OutputSink,
}

impl OutputSink for SanitisedOutput<'_> {
    fn take<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let text = self.sanitiser.push(text);
            if !text.is_empty() {
                self.collector.push(&text);
                self.deltas.take(&text).await;
            }
        })
    }
}

struct Running {
    child: Child,
    tree: ProcessTree,
    pipe: Receiver,
}

fn spawn(command: &ShellCommand) -> io::Result<Running> {
    let shell = find_shell(command.shell.path.as_deref())?;
    if !command.cwd.is_dir() {
        let message = format!("working directory does not exist: {}", command.cwd.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    let script = match &command.shell.command_prefix {
        Some(prefix) => format!("{prefix}\n{}", command.command),
        None => command.command.clone(),
    };
    // One pipe for both streams keeps the order in which they were written.
    let (reader, writer) = io::pipe()?;
    let mark = new_mark();
    let mut builder = own_session(&shell)?;
    builder
        .arg("-c")
        .arg(script)
        .current_dir(&command.cwd)
        .env(mark_variable(), &mark)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    for (name, value) in &command.env {
        match value {
            Some(value) => builder.env(name, value),
            None => builder.env_remove(name),
        };
    }
    let child = builder
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("cannot run {}: {error}", shell.display())))?;
    // Closes the daemon's ends for writing.
    drop(builder);
    let leader = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let leader = leader.ok_or_else(|| io::Error::other(format!("{} has no process id", shell.display())))?;
    let tree = ProcessTree::new(mark, leader);
    let pipe = Receiver::from_owned_fd(reader.into())?;
    Ok(Running { child, tree, pipe })
}

/// The start of a command that runs `program` in a session of its own, without a terminal that it could
/// ask for passwords and that would stop it for asking; in a group of its own where no `setsid` is installed.
fn own_session(program: &Path) -> io::Result<Command> {
    let Some(setsid) = SETSID.as_deref() else {
        let mut builder = Command::new(program);
        builder.process_group(0);
        return Ok(builder);
    };
    // Told here, as `setsid` would tell it to the model as output of the command.
    if program.is_absolute() {
        rustix::fs::access(program, Access::EXEC_OK).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cannot run {}: {}", program.display(), io::Error::from(error)),
            )
        })?;
    }
    // A child that leads no group keeps its process id in there.
    let mut builder = Command::new(setsid);
    builder.arg(program);
    Ok(builder)
}

/// The configured shell, else /bin/bash, else bash of the path, else sh.
fn find_shell(configured: Option<&Path>) -> io::Result<PathBuf> {
    if let Some(path) = configured {
        if path.exists() {
            return Ok(path.to_owned());
        }
        let message = format!("Custom shell path not found: {}", path.display());
        return Err(io::Error::new(io::ErrorKind::NotFound, message));
    }
    let bash = PathBuf::from("/bin/bash");
    if bash.exists() {
        return Ok(bash);
    }
    let folders: OsString = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).map(|folder| folder.join("bash")).find(|path| path.is_file());
    Ok(found.unwrap_or_else(|| PathBuf::from(OsStr::new("sh"))))
}

/// Reads output until the command has ended or has to.
async fn follow(
    timeout: Option<Duration>,
    cancel: &CancellationToken,
    child: &mut Child,
    pipe: &mut Receiver,
    text: &mut TextStream<'_>,
) -> io::Result<ShellEnd> {
    let expired = async {
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    let ended = async {
        let mut buffer = vec![0; READ_BYTES];
        let mut open = true;
        let status = loop {
            tokio::select! {
                status = child.wait() => break status?,
                length = pipe.read(&mut buffer), if open => match length? {
                    0 => open = false,
                    length => text.push(buffer.get(..length).unwrap_or_default()).await,
                },
            }
        };
        if open {
            let deadline = Instant::now() + LONGEST_AFTER_EXIT;
            drain(pipe, text, IDLE_AFTER_EXIT, deadline).await?;
        }
        io::Result::Ok(status)
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => Ok(ShellEnd::Cancelled),
        () = expired => Ok(ShellEnd::TimedOut),
        status = ended => Ok(ShellEnd::Exited(exit_code(status?))),
    }
}

/// Reads until the pipe ends, pauses for `idle`, or `deadline` is over.
async fn drain(
    pipe: &mut Receiver,
    text: &mut TextStream<'_>,
    idle: Duration,
    deadline: Instant,
) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let limit = deadline.min(Instant::now() + idle);
        match tokio::time::timeout_at(limit, pipe.read(&mut buffer)).await {
            Err(_) => return Ok(()),
            Ok(length) => match length? {
                0 => return Ok(()),
                length => text.push(buffer.get(..length).unwrap_or_default()).await,
            },
        }
        if Instant::now() >= deadline {
            return Ok(());
        }
    }
}

fn exit_code(status: ExitStatus) -> i32 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        // Neither exited nor killed by a signal: a failure whose code nobody knows.
        (None, None) => 1,
    }
}

/// Bytes in, text out.
struct TextStream<'a> {
    decoder: Utf8Decoder,
    started: bool,
    sink: &'a mut dyn OutputSink,
}

impl<'a> TextStream<'a> {
    fn new(sink: &'a mut dyn OutputSink) -> Self {
        Self { decoder: Utf8Decoder::default(), started: false, sink }
    }

    async fn push(&mut self, bytes: &[u8]) {
        let mut text = String::new();
        self.decoder.push(bytes, &mut text);
        self.emit(&text).await;
    }

    async fn finish(&mut self) {
        let mut text = String::new();
        self.decoder.finish(&mut text);
        self.emit(&text).await;
    }

    async fn emit(&mut self, text: &str) {
        let text = if self.started { text } else { text.strip_prefix('\u{feff}').unwrap_or(text) };
        if !text.is_empty() {
            self.started = true;
            self.sink.take(text).await;
        }
    }
}
