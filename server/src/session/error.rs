//! What can go wrong with a session.

use std::io;
use std::path::{Path, PathBuf};

/// Why a session could not be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// There is no such file.
    #[error("session file not found: {}", path.display())]
    NotFound {
        /// The file that was asked for.
        path: PathBuf,
    },
    /// The file is something else.
    #[error("{} is not a session file: {reason}", path.display())]
    NotASession {
        /// The file.
        path: PathBuf,
        /// What a session file would have there.
        reason: String,
    },
    /// The file was written by a later version.
    #[error(
        "{} has session version {version}; this program reads versions 1 to {}",
        path.display(),
        sampi_protocol::data::SESSION_VERSION
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u64,
    },
    /// The system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, such as `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// No entry has this id.
    #[error("Entry not found: {0}")]
    EntryNotFound(String),
    /// Only a user message can be forked from.
    #[error("Invalid entry ID for forking")]
    NotForkable,
    /// The session has no file yet.
    #[error("This session has not been saved yet. Send a message before cloning or forking it.")]
    NotSaved,
    /// The session's working directory is gone.
    #[error("the working directory of the session does not exist: {}{}", cwd.display(), of_file(path.as_deref()))]
    CwdMissing {
        /// The working directory.
        cwd: PathBuf,
        /// The session's file.
        path: Option<PathBuf>,
    },
    /// Another process appends to the file.
    #[error("session file {} is in use by {}", path.display(), holder(*pid))]
    Locked {
        /// The file.
        path: PathBuf,
        /// The process that holds it, where the system tells.
        pid: Option<u32>,
    },
    /// The session was opened for reading.
    #[error("the session was opened for reading only: {}", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// An id that cannot be part of a file name.
    #[error(
        "Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', and start and end with an alphanumeric character"
    )]
    InvalidId {
        /// The id.
        id: String,
    },
    /// An entry could not be turned into JSON.
    #[error("cannot write the entry as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl SessionError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::NotFound if action == "open" => Self::NotFound { path: path.to_owned() },
            _ => Self::Io { action, path: path.to_owned(), source },
        }
    }
}

fn of_file(path: Option<&Path>) -> String {
    path.map(|path| format!(" (session file: {})", path.display())).unwrap_or_default()
}

fn holder(pid: Option<u32>) -> String {
    match pid {
        Some(pid) if pid == std::process::id() => format!("this process (pid {pid})"),
        Some(pid) => format!("another process (pid {pid})"),
        None => "another process".to_owned(),
    }
}
