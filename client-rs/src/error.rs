//! What can go wrong.

use std::fmt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use sampi_protocol::WireError;
use sampi_protocol::response::ErrorCode;

/// Why a call, a run or a start failed. Cheap to clone: one death fails every pending call.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The daemon answered that the command failed.
    #[error(transparent)]
    Command(CommandError),
    /// The daemon is gone, or the connection to it is.
    #[error(transparent)]
    Exited(Arc<Exit>),
    /// The call's own time limit ran out. The command may still have its effect.
    #[error("{command} was not answered within {after:?}")]
    Timeout {
        /// The command.
        command: String,
        /// The limit.
        after: Duration,
    },
    /// The answer is longer than the client's frame limit. The connection lives on.
    #[error("the answer to {command} has {length} bytes, more than the frame limit of {limit}")]
    FrameTooLong {
        /// The command.
        command: String,
        /// The length of the answer in bytes.
        length: usize,
        /// The client's frame limit in bytes.
        limit: usize,
    },
    /// The daemon's answer is not what the protocol says.
    #[error("the answer to {command} could not be read: {error}")]
    Protocol {
        /// The command.
        command: String,
        /// What is wrong with it.
        error: WireError,
    },
    /// The command could not be written as JSON.
    #[error("{command} could not be encoded: {reason}")]
    Encode {
        /// The command.
        command: String,
        /// Why.
        reason: String,
    },
    /// The daemon could not be started.
    #[error("could not start {}: {error}", program.display())]
    Spawn {
        /// The program.
        program: PathBuf,
        /// Why.
        error: Arc<std::io::Error>,
    },
    /// No program was named and none was found.
    #[error(
        "no agent program found: SAMPI_BIN is not set, and `sampi` is neither beside this program nor on PATH"
    )]
    ProgramNotFound,
    /// The thread of an event listener could not be started.
    #[error("could not start the thread of an event listener: {0}")]
    Listener(Arc<std::io::Error>),
    /// The client is being stopped and takes no more commands.
    #[error("the client is being stopped")]
    Stopping,
    /// The client was made by [`connect`](crate::RpcClient::connect), so there is nothing to start again.
    #[error("a client over a given connection cannot start a process")]
    NotSpawned,
}

impl ClientError {
    /// The failure that the daemon answered, if it is one.
    pub fn as_command(&self) -> Option<&CommandError> {
        match self {
            Self::Command(error) => Some(error),
            _ => None,
        }
    }

    /// How the daemon ended, if that is the reason.
    pub fn as_exit(&self) -> Option<&Exit> {
        match self {
            Self::Exited(exit) => Some(exit),
            _ => None,
        }
    }
}

impl From<Arc<Exit>> for ClientError {
    fn from(exit: Arc<Exit>) -> Self {
        Self::Exited(exit)
    }
}

/// A failure that the daemon answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{command} failed: {message}")]
pub struct CommandError {
    /// The command.
    pub command: String,
    /// The daemon's text.
    pub message: String,
    /// The kind of failure, when the daemon tells; Pi does not.
    pub code: Option<ErrorCode>,
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Why it ended.
    pub reason: ExitReason,
    /// The process's exit status; `None` without a process.
    pub status: Option<ExitStatus>,
    /// The last of what the process wrote to stderr, at most [`STDERR_TAIL`](crate::STDERR_TAIL) bytes.
    pub stderr_tail: String,
}

impl Exit {
    /// The exit code; `None` when a signal ended the process or there was none.
    pub fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)?;
        if let Some(status) = self.status {
            write!(f, " ({status})")?;
        }
        match self.stderr_tail.trim() {
            "" => Ok(()),
            tail => write!(f, "; stderr: {tail}"),
        }
    }
}

impl std::error::Error for Exit {}

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExitReason {
    /// The process ended by itself.
    #[error("the agent exited")]
    Exited,
    /// The client was asked to stop.
    #[error("the agent was stopped")]
    Stopped,
    /// The daemon closed its output; a process that lingered after that was killed.
    #[error("the agent closed its output")]
    OutputClosed,
    /// The daemon stopped reading its input; a process that lingered after that was killed.
    #[error("the agent closed its input")]
    InputClosed,
    /// Reading what the daemon writes failed.
    #[error("reading from the agent failed: {0}")]
    ReadFailed(String),
    /// The last handle of the client was dropped.
    #[error("the client was dropped")]
    Dropped,
}
