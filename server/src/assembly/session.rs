//! The session to start with.

use std::path::{Path, PathBuf};

use sampi_protocol::data::SessionId;

use super::StartError;
use crate::cli::SessionChoice;
use crate::resources::paths::SessionsDir;
use crate::session::listing::{self, Found};
use crate::session::{NewSessionOptions, Session};

/// Opens or makes the session.
pub(super) fn open_session(
    choice: &SessionChoice,
    sessions: &SessionsDir,
    cwd: &Path,
) -> Result<Session, StartError> {
    let dir = match sessions {
        SessionsDir::ByProject(root) => listing::sessions_dir(root, cwd),
        SessionsDir::Flat(dir) => dir.clone(),
    };
    let with_id = |id: &Option<String>| NewSessionOptions {
        id: id.as_deref().map(SessionId::from),
        ..NewSessionOptions::default()
    };
    Ok(match choice {
        SessionChoice::New => Session::create(&dir, cwd, NewSessionOptions::default())?,
        SessionChoice::InMemory { id } => Session::in_memory(cwd, with_id(id)),
        SessionChoice::Continue => match listing::most_recent(&dir, cwd) {
            Some(path) => Session::open_or_read(&path)?,
            None => Session::create(&dir, cwd, NewSessionOptions::default())?,
        },
        SessionChoice::Open(text) => match find_session(text, sessions, &dir, cwd)? {
            Place::Here(path) => Session::open_or_start(&path, cwd)?,
            Place::Elsewhere { path, cwd } => {
                return Err(StartError::SessionChoice(format!(
                    "session {text} belongs to another working directory ({}): start there, or use --fork {}",
                    cwd.display(),
                    path.display()
                )));
            }
        },
        SessionChoice::WithId(id) => match listing::find_by_id(&dir, id) {
            Found::One(stub) if stub.header.id.as_str() == id => Session::open_or_read(&stub.path)?,
            _ => Session::create(&dir, cwd, with_id(&Some(id.clone())))?,
        },
        SessionChoice::Fork { source, id } => {
            let (Place::Here(path) | Place::Elsewhere { path, .. }) =
                find_session(source, sessions, &dir, cwd)?;
            Session::fork_from(&path, cwd, &dir, id.as_deref().map(SessionId::from))?
        }
    })
}

enum Place {
    Here(PathBuf),
    Elsewhere { path: PathBuf, cwd: PathBuf },
}

/// The session file that a text names: a path, or the start of an id.
fn find_session(text: &str, sessions: &SessionsDir, dir: &Path, cwd: &Path) -> Result<Place, StartError> {
    if text.contains(['/', '\\']) || text.ends_with(".jsonl") {
        return Ok(Place::Here(cwd.join(text)));
    }
    let found = match listing::find_by_id(dir, text) {
        Found::Nothing => match sessions {
            SessionsDir::ByProject(root) => listing::find_anywhere(root, text),
            SessionsDir::Flat(_) => Found::Nothing,
        },
        found => found,
    };
    match found {
        Found::One(stub) if stub.path.parent() == Some(dir) => Ok(Place::Here(stub.path)),
        Found::One(stub) => Ok(Place::Elsewhere { cwd: PathBuf::from(&stub.header.cwd), path: stub.path }),
        Found::Ambiguous(stubs) => {
            let ids: Vec<&str> = stubs.iter().map(|stub| stub.header.id.as_str()).collect();
            Err(StartError::SessionChoice(format!("session id {text} is ambiguous: {}", ids.join(", "))))
        }
        Found::Nothing => Err(StartError::SessionChoice(format!("No session found matching '{text}'"))),
    }
}
