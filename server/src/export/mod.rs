//! A session as one HTML file that people read: conversation, branches, tool calls, usage.
//!
//! The page needs nothing but itself: style and script are inside, images are data, and its
//! content security policy allows neither connections nor any script but its own. Every byte of a session
//! is hostile: markup is written from constants (`Html::raw` in `html`), all else is escaped.
//!
//! | module | what it holds |
//! |---|---|
//! | `outline` | a first pass: which result belongs to which call, what the sidebar says |
//! | `page` | the frame of the page, and the second pass that writes entry after entry |
//! | `sidebar` | the tree |
//! | `entry`, `answer`, `tool` | what an entry looks like |
//! | `markdown`, `html`, `format` | Markdown, escaping, numbers and times |

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sampi_protocol::data::EntryId;

use crate::branding::BRANDING;
use crate::paths::same_file;
use crate::session::{Session, SessionError};

mod answer;
mod entry;
mod format;
mod html;
mod markdown;
mod outline;
mod page;
mod sidebar;
#[cfg(test)]
mod tests;
mod tool;

/// Why an export failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The session could not be read.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The page could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The page's file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The page would take the place of the session.
    #[error("{} is the session file itself; the export needs another place", _0.display())]
    OntoItself(PathBuf),
}

/// The file that a session file is exported to when the user names none, in the working directory.
pub fn default_path(session_file: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(BRANDING.page_prefix());
    name.push(session_file.file_stem().unwrap_or_default());
    name.push(".html");
    PathBuf::from(name)
}

/// Writes the session of a file as a page. The branch that ends in `leaf` is the one that is shown first,
/// the latest one if the file has no such entry.
///
/// A page that was there before is replaced once the new one is whole.
pub fn export_file(session_file: &Path, leaf: Leaf<'_>, target: &Path) -> Result<(), ExportError> {
    let mut session = Session::open_read_only(session_file)?;
    match leaf {
        Leaf::Latest => {}
        Leaf::Entry(id) => {
            if let Err(error) = session.set_leaf(Some(id)) {
                tracing::warn!("the export shows the latest branch: {error}");
            }
        }
    }
    let failed = |source| ExportError::Write { path: target.to_owned(), source };
    let target = match std::fs::canonicalize(target) {
        Ok(real) => real,
        Err(_) => target.to_owned(),
    };
    if same_file(session_file, &target) {
        return Err(ExportError::OntoItself(target));
    }
    // A pipe or a device cannot be replaced.
    if std::fs::metadata(&target).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        let file = File::options().write(true).open(&target).map_err(failed)?;
        return write_to(&session, file).map(drop).map_err(failed);
    }
    let folder = match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Its own errors name the new file, which nobody has heard of.
    let anonymous = |error: io::Error| failed(error.kind().into());
    let new = tempfile::Builder::new()
        .prefix(".export-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(anonymous)?;
    let (file, new) = new.into_parts();
    write_to(&session, file).map_err(failed)?;
    new.persist(&target).map_err(|error| failed(error.error))?;
    Ok(())
}

/// The branch that is shown first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaf<'a> {
    /// The one with the entry that was appended last.
    Latest,
    /// The one that ends in this entry.
    Entry(&'a EntryId),
}

/// Writes a session as a page.
pub fn write_page(session: &Session, out: &mut dyn Write) -> io::Result<()> {
    page::write(session, out)
}

fn write_to<W: Write>(session: &Session, file: W) -> io::Result<W> {
    let mut out = BufWriter::new(file);
    write_page(session, &mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}
