//! The session file: positioned reads, appends of one write each, the lock.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::SessionError;
use super::scan::Place;

/// How many bytes are copied at a time.
const COPY_SIZE: usize = 256 * 1024;

/// An open session file.
#[derive(Debug)]
pub(super) struct SessionFile {
    path: PathBuf,
    file: File,
    /// How far this process knows the file.
    end: Place,
    access: Access,
}

/// What may be done with a session file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Read and append; others are kept from appending.
    Append,
    /// Read only; no lock.
    Read,
}

/// What became of a file since it was last looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing.
    Same,
    /// Someone else appended to it.
    Grown,
    /// It is shorter than it was.
    Truncated,
    /// There is no file at the path any more.
    Gone,
    /// Another file stands at the path.
    Replaced,
}

impl SessionFile {
    /// Opens an existing file.
    pub(super) fn open(path: &Path, access: Access) -> Result<Self, SessionError> {
        let mut options = OpenOptions::new();
        options.read(true).append(access == Access::Append);
        let file = options.open(path).map_err(SessionError::io("open", path))?;
        let about = file.metadata().map_err(SessionError::io("read", path))?;
        if !about.is_file() {
            let reason = "it is no regular file".to_owned();
            return Err(SessionError::NotASession { path: path.to_owned(), reason });
        }
        if access == Access::Append {
            lock(&file, path)?;
        }
        tracing::debug!(path = %path.display(), bytes = about.len(), ?access, "session file opened");
        Ok(Self { path: path.to_owned(), file, end: Place::START, access })
    }

    /// Makes a new file with this content, and the folders that it needs.
    pub(super) fn create(path: &Path, content: &[u8], lines: u64) -> Result<Self, SessionError> {
        make_parent(path)?;
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .open(path)
            .map_err(SessionError::io("create", path))?;
        lock(&file, path)?;
        if let Err(source) = file.write_all(content) {
            // Nothing was acknowledged yet; half a file would only be in the way.
            let _ = fs::remove_file(path);
            return Err(SessionError::Io { action: "write", path: path.to_owned(), source });
        }
        tracing::debug!(path = %path.display(), "session file made");
        let end = Place { offset: content.len() as u64, lines, fresh_line: true };
        Ok(Self { path: path.to_owned(), file, end, access: Access::Append })
    }

    /// A file that only this process sees and only reads, such as a migrated copy.
    pub(super) fn private(path: &Path, file: File) -> Self {
        Self { path: path.to_owned(), file, end: Place::START, access: Access::Read }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn access(&self) -> Access {
        self.access
    }

    /// Lets go of the lock.
    pub(super) fn unlock(&self) {
        if let Err(error) = self.file.unlock() {
            tracing::warn!("cannot unlock {}: {error}", self.path.display());
        }
    }

    /// Takes the lock again.
    pub(super) fn lock_again(&self) {
        if let Err(error) = lock(&self.file, &self.path) {
            tracing::warn!("cannot lock {} again: {error}", self.path.display());
        }
    }

    pub(super) fn end(&self) -> Place {
        self.end
    }

    pub(super) fn set_end(&mut self, end: Place) {
        self.end = end;
    }

    /// The bytes from here to the end, as they are now.
    pub(super) fn reader(&self, offset: u64) -> impl Read + '_ {
        ReadFrom { file: &self.file, offset }
    }

    pub(super) fn read_at(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    }

    /// Compares the open file and what stands at its path with what is known.
    pub(super) fn fate(&self) -> Result<Fate, SessionError> {
        let open = self.file.metadata().map_err(SessionError::io("read", &self.path))?;
        let fate = match fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Fate::Gone,
            Err(source) => return Err(SessionError::Io { action: "read", path: self.path.clone(), source }),
            Ok(there) if (there.dev(), there.ino()) != (open.dev(), open.ino()) => Fate::Replaced,
            Ok(_) if open.len() < self.end.offset => Fate::Truncated,
            Ok(_) if open.len() > self.end.offset => Fate::Grown,
            Ok(_) => Fate::Same,
        };
        Ok(fate)
    }

    /// Appends lines of JSON with one write. Returns where they start.
    pub(super) fn append(&mut self, lines: &str, count: u64) -> Result<u64, SessionError> {
        if self.access == Access::Read {
            return Err(SessionError::ReadOnly { path: self.path.clone() });
        }
        let break_first = !self.end.fresh_line;
        let mut bytes = Vec::with_capacity(lines.len() + 2);
        if break_first {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(lines.as_bytes());
        bytes.push(b'\n');
        if let Err(source) = self.file.write_all(&bytes) {
            // Whatever part was written stays as a torn line; the next append starts on a fresh one.
            self.end.fresh_line = false;
            if let Ok(about) = self.file.metadata() {
                self.end.offset = self.end.offset.max(about.len());
            }
            return Err(SessionError::Io { action: "write", path: self.path.clone(), source });
        }
        let end = self.file.stream_position().map_err(SessionError::io("read", &self.path))?;
        self.end =
            Place { offset: end, lines: self.end.lines + count + u64::from(break_first), fresh_line: true };
        Ok(end - lines.len() as u64 - 1)
    }

    /// Empties a file in which nothing whole is left.
    pub(super) fn empty_again(&mut self) {
        if self.file.set_len(0).is_ok() {
            self.end = Place::START;
        }
    }

    /// Waits until everything that was appended is on the disk.
    pub(super) fn sync(&self) -> Result<(), SessionError> {
        self.file.sync_data().map_err(SessionError::io("sync", &self.path))
    }

    /// Puts a copy of the open file at `path`, where nothing stands, and goes on with the copy.
    pub(super) fn move_to(&mut self, path: &Path) -> Result<(), SessionError> {
        make_parent(path)?;
        let (copy, file) = self.locked_copy(path)?;
        copy.persist_noclobber(path).map_err(|error| SessionError::Io {
            action: "create",
            path: path.to_owned(),
            source: error.error,
        })?;
        self.become_file(path, file)
    }

    /// Puts a copy of the open file over the one at `path`, after that one got the second name `kept`.
    pub(super) fn replace(&mut self, path: &Path, kept: &Path) -> Result<(), SessionError> {
        let (copy, file) = self.locked_copy(path)?;
        if let Ok(about) = fs::metadata(path) {
            let _ = fs::set_permissions(copy.path(), about.permissions());
        }
        if fs::hard_link(path, kept).is_err() {
            fs::copy(path, kept).map_err(SessionError::io("create", kept))?;
        }
        copy.persist(path).map_err(|error| SessionError::Io {
            action: "replace",
            path: path.to_owned(),
            source: error.error,
        })?;
        self.become_file(path, file)
    }

    fn become_file(&mut self, path: &Path, file: File) -> Result<(), SessionError> {
        self.path = path.to_owned();
        self.file = file;
        self.access = Access::Append;
        self.end.offset = self.file.metadata().map_err(SessionError::io("read", path))?.len();
        Ok(())
    }

    /// A copy of the open file in the folder of `path`, opened for appending and locked.
    fn locked_copy(&self, path: &Path) -> Result<(tempfile::NamedTempFile, File), SessionError> {
        let copy = self.copy_beside(path)?;
        let opened = OpenOptions::new().read(true).append(true).open(copy.path());
        let file = opened.map_err(SessionError::io("open", path))?;
        lock(&file, path)?;
        Ok((copy, file))
    }

    fn copy_beside(&self, path: &Path) -> Result<tempfile::NamedTempFile, SessionError> {
        use std::os::unix::fs::PermissionsExt;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut copy = tempfile::Builder::new()
            .prefix(".session-")
            .suffix(".tmp")
            .permissions(fs::Permissions::from_mode(0o644))
            .tempfile_in(folder)
            .map_err(SessionError::io("create", path))?;
        let mut bytes = vec![0; COPY_SIZE];
        let mut from = self.reader(0);
        let written = loop {
            match from.read(&mut bytes) {
                Ok(0) => break copy.as_file().sync_all(),
                Ok(length) => match copy.write_all(bytes.get(..length).unwrap_or_default()) {
                    Ok(()) => {}
                    Err(error) => break Err(error),
                },
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        written.map_err(SessionError::io("write", path))?;
        Ok(copy)
    }
}

/// Reads a file from a place on without moving its cursor.
struct ReadFrom<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for ReadFrom<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read_at(buffer, self.offset)?;
        self.offset += length as u64;
        Ok(length)
    }
}

pub(super) fn make_parent(path: &Path) -> Result<(), SessionError> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => {
            fs::create_dir_all(folder).map_err(SessionError::io("create", folder))
        }
        _ => Ok(()),
    }
}

/// Takes the advisory lock that keeps other Sampi processes from appending. It ends with the process,
/// however that ends; Pi does not look at it.
fn lock(file: &File, path: &Path) -> Result<(), SessionError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            Err(SessionError::Locked { path: path.to_owned(), pid: lock_holder(file) })
        }
        Err(TryLockError::Error(error)) => {
            tracing::warn!("no lock on {}: {error}", path.display());
            Ok(())
        }
    }
}

/// The process that holds the lock, as /proc/locks tells it.
fn lock_holder(file: &File) -> Option<u32> {
    let about = file.metadata().ok()?;
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let inode = format!(":{}", about.ino());
    locks.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1).filter(|field| *field != "->");
        let (kind, _, _, pid, place) =
            (fields.next()?, fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        (kind == "FLOCK" && place.ends_with(&inode)).then(|| pid.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_failed_write_the_next_append_starts_on_a_fresh_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let mut file = SessionFile::create(&path, b"{}\n", 1).unwrap();
        // As a full disk does it: part of the line is there, and the write is an error.
        let whole = std::mem::replace(&mut file.file, File::open(&path).unwrap());
        let before = file.end();
        let error = file.append("[1]", 1).unwrap_err().to_string();
        assert!(error.starts_with("cannot write ") && error.contains("s.jsonl"), "{error}");
        assert_eq!((file.end().offset, file.end().fresh_line), (before.offset, false));
        file.file = whole;
        file.file.write_all(b"[1").unwrap();
        file.end.offset += 2;
        let offset = file.append("[2]", 1).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n[1\n[2]\n");
        assert_eq!(file.read_at(offset, 3).unwrap(), b"[2]");
        assert_eq!(file.fate().unwrap(), Fate::Same);
    }
}
