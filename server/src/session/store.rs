//! An open session: opening, appending, saving, moving the leaf.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use sampi_protocol::Shared;
use sampi_protocol::data::{
    EntryBase, EntryId, Extra, SESSION_VERSION, SessionEntry, SessionHeader, SessionId, SessionTag,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::context::ContextCache;
use super::file::{Access, Fate, SessionFile};
use super::index::{Body, Index, Position};
use super::record::Head;
use super::scan::{Diagnostic, Notes, Place, each_line, repair, scan_entries};
use super::{NewEntry, SessionError, migrate, stamp};

/// What a new session may be given.
#[derive(Debug, Clone, Default)]
pub struct NewSessionOptions {
    /// Its id; a UUID when absent.
    pub id: Option<SessionId>,
    /// The file of the session that it comes from.
    pub parent: Option<String>,
}

/// An open session: where its entries are, its tree, and the leaf that the next entry continues.
#[derive(Debug)]
pub struct Session {
    pub(super) header: SessionHeader,
    pub(super) storage: Storage,
    pub(super) index: Index,
    pub(super) leaf: Option<Position>,
    pub(super) context: Option<ContextCache>,
    notes: Notes,
}

/// Where the entries live.
#[derive(Debug)]
pub(super) enum Storage {
    /// In memory, for good.
    Memory,
    /// In memory until the session is saved to this file.
    Unsaved { path: PathBuf },
    /// In a file.
    File(SessionFile),
    /// In a copy of version 3 while the original is still as it was.
    Migrated { original: SessionFile, copy: SessionFile, version: u64 },
}

impl Session {
    /// A new session whose file will be in `dir`. Nothing is written before [`Session::save`].
    pub fn create(dir: &Path, cwd: &Path, options: NewSessionOptions) -> Result<Self, SessionError> {
        let header = new_header(cwd, options)?;
        let path = dir.join(stamp::file_name(&header.timestamp, &header.id));
        Ok(Self::new(header, Storage::Unsaved { path }))
    }

    /// A new session that is never written.
    pub fn in_memory(cwd: &Path, options: NewSessionOptions) -> Self {
        Self::new(header_of(cwd, options), Storage::Memory)
    }

    /// Opens a session file for appending. A second opener is told who has it.
    pub fn open(path: &Path) -> Result<Self, SessionError> {
        Self::open_with(path, Access::Append).inspect(|session| session.warn_of(0))
    }

    /// Opens a session file for appending, or for reading when another process appends to it. The notes
    /// then say which one, and the session can be written once that process is done.
    pub fn open_or_read(path: &Path) -> Result<Self, SessionError> {
        let locked = match Self::open(path) {
            Err(error @ SessionError::Locked { .. }) => error,
            opened => return opened,
        };
        let mut session = Self::open_with(path, Access::Read)?;
        session.notes.add(0, format!("{locked}; until that is done it can be read here, but not continued"));
        session.warn_of(0);
        Ok(session)
    }

    /// Opens a session file for reading. That works while another process appends to it.
    pub fn open_read_only(path: &Path) -> Result<Self, SessionError> {
        Self::open_with(path, Access::Read).inspect(|session| session.warn_of(0))
    }

    /// Opens the file of this session anew, by this path, as [`Session::open_or_read`] does. The lock goes over
    /// to the new one, unless it cannot be opened or its working directory is gone.
    pub fn open_anew(&self, path: &Path) -> Result<Self, SessionError> {
        let locked = match &self.storage {
            Storage::File(file) | Storage::Migrated { original: file, .. } => Some(file),
            Storage::Memory | Storage::Unsaved { .. } => None,
        };
        let locked = locked.filter(|file| file.access() == Access::Append);
        locked.inspect(|file| file.unlock());
        let opened = Self::open_or_read(path).and_then(|new| new.check_cwd().map(|()| new));
        opened.inspect_err(|_| {
            locked.inspect(|file| file.lock_again());
        })
    }

    /// An error when a file cannot be opened as a session, as far as its header tells.
    pub fn check_file(path: &Path) -> Result<(), SessionError> {
        let (header, version) = read_header(&SessionFile::open(path, Access::Read)?)?;
        if version > SESSION_VERSION.into() {
            return Err(SessionError::Version { path: path.to_owned(), version });
        }
        Self::new(header, Storage::Unsaved { path: path.to_owned() }).check_cwd()
    }

    /// Opens a session file as [`Session::open_or_read`] does; a file that is empty or not there becomes a new session of
    /// `cwd`, written at the first [`Session::save`].
    pub fn open_or_start(path: &Path, cwd: &Path) -> Result<Self, SessionError> {
        let empty = match std::fs::metadata(path) {
            Ok(about) => about.is_file() && about.len() == 0,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
            Err(_) => false,
        };
        if !empty {
            return Self::open_or_read(path);
        }
        let header = new_header(cwd, NewSessionOptions::default())?;
        Ok(Self::new(header, Storage::Unsaved { path: path.to_owned() }))
    }

    pub(super) fn new(header: SessionHeader, storage: Storage) -> Self {
        Self { header, storage, index: Index::default(), leaf: None, context: None, notes: Notes::default() }
    }

    fn open_with(path: &Path, access: Access) -> Result<Self, SessionError> {
        let mut file = SessionFile::open(path, access)?;
        let (mut header, version) = read_header(&file)?;
        if header.cwd.is_empty() {
            // An old file does not tell; where the program runs is the best guess.
            header.cwd =
                std::env::current_dir().map(|dir| dir.to_string_lossy().into_owned()).unwrap_or_default();
        }
        let mut storage = match version {
            0..=2 => {
                header.version = Some(SESSION_VERSION);
                let copy = SessionFile::private(path, migrate::copy(&mut file, version)?);
                Storage::Migrated { original: file, copy, version }
            }
            3 => Storage::File(file),
            version => return Err(SessionError::Version { path: path.to_owned(), version }),
        };
        let mut index = Index::default();
        let mut notes = Notes::default();
        if let Storage::File(file) | Storage::Migrated { copy: file, .. } = &mut storage {
            let end = scan_entries(file.reader(0), Place::START, &mut index, &mut notes)
                .map_err(SessionError::io("read", path))?;
            file.set_end(end);
        }
        let leaf = index.last();
        Ok(Self { header, storage, index, leaf, context: None, notes })
    }

    /// Tells the log of notes from the given one on.
    fn warn_of(&self, from: usize) {
        let path = self.file().unwrap_or(Path::new("")).display().to_string();
        for Diagnostic { line, message } in self.notes.all().iter().skip(from) {
            match line {
                0 => tracing::warn!("session file {path}: {message}"),
                line => tracing::warn!("session file {path}, line {line}: {message}"),
            }
        }
    }

    /// The session's id.
    pub fn id(&self) -> &SessionId {
        &self.header.id
    }

    /// The session's working directory; empty when an old file does not tell.
    pub fn cwd(&self) -> &Path {
        Path::new(&self.header.cwd)
    }

    /// An error that names the working directory when it is gone.
    pub fn check_cwd(&self) -> Result<(), SessionError> {
        if self.header.cwd.is_empty() || self.cwd().is_dir() {
            return Ok(());
        }
        Err(SessionError::CwdMissing { cwd: self.cwd().to_owned(), path: self.file().map(Path::to_owned) })
    }

    /// The session's file, also while it is not written yet; `None` for a session in memory.
    pub fn file(&self) -> Option<&Path> {
        match &self.storage {
            Storage::Memory => None,
            Storage::Unsaved { path } => Some(path),
            Storage::File(file) | Storage::Migrated { original: file, .. } => Some(file.path()),
        }
    }

    /// The header.
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// True when the session has a file and every entry so far is in it.
    pub fn is_saved(&self) -> bool {
        matches!(self.storage, Storage::File(_) | Storage::Migrated { .. })
    }

    /// True when nothing can be appended because the session was opened for reading.
    pub fn is_read_only(&self) -> bool {
        match &self.storage {
            Storage::File(file) | Storage::Migrated { original: file, .. } => file.access() == Access::Read,
            Storage::Memory | Storage::Unsaved { .. } => false,
        }
    }

    /// What was found damaged in the file, and what became of it. It was logged once.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        self.notes.all()
    }

    /// The entry that the next one continues.
    pub fn leaf(&self) -> Option<&EntryId> {
        self.leaf.and_then(|leaf| self.index.node(leaf)).map(|node| &node.id)
    }

    /// Moves the leaf; with `None` the next entry becomes a root.
    pub fn set_leaf(&mut self, leaf: Option<&EntryId>) -> Result<(), SessionError> {
        let leaf = leaf.map(|id| self.position(id.as_str())).transpose()?;
        if leaf != self.leaf {
            self.leaf = leaf;
            self.context = None;
        }
        Ok(())
    }

    /// Appends an entry after the leaf and moves the leaf to it.
    ///
    /// Once the session is saved, the entry is in the file when this returns; on an error nothing changed.
    pub fn append(&mut self, entry: NewEntry) -> Result<Shared<SessionEntry>, SessionError> {
        if let Some(target) = entry.target() {
            self.position(target.as_str())?;
        }
        self.prepare_to_append()?;
        let base = EntryBase {
            id: stamp::entry_id(|id| self.index.find(id).is_some()).into(),
            parent_id: self.leaf().cloned(),
            timestamp: stamp::now(),
        };
        let entry = Shared::new(entry.into_entry(base));
        let json = entry.json()?;
        let body = match &mut self.storage {
            Storage::File(file) => {
                let offset = file.append(json.get(), 1)?;
                Body::File { offset, length: json.get().len(), repair: false }
            }
            _ => Body::Memory(json.to_owned()),
        };
        self.add(json, body)?;
        let leaf = self.leaf;
        if let (Some(context), Some(leaf)) = (&mut self.context, leaf)
            && !context.append(leaf, &entry)
        {
            self.context = None;
        }
        Ok(entry)
    }

    /// Puts an entry that is stored into the index and moves the leaf to it.
    pub(super) fn add(&mut self, json: &RawValue, body: Body) -> Result<(), SessionError> {
        let head: Head<'_> = serde_json::from_str(json.get())?;
        let id = head.id.as_deref().unwrap_or_default();
        let (position, _) = self.index.push(id, &head, body);
        self.leaf = Some(position);
        Ok(())
    }

    /// Writes the header and everything that is only in memory. Does nothing when that was done before,
    /// and for a session in memory.
    pub fn save(&mut self) -> Result<(), SessionError> {
        let Storage::Unsaved { path } = &self.storage else { return Ok(()) };
        let mut content = serde_json::to_string(&self.header)?;
        content.push('\n');
        let mut places = Vec::with_capacity(self.index.len());
        for node in self.index.nodes() {
            if let Body::Memory(json) = &node.body {
                places.push((content.len() as u64, json.get().len()));
                content.push_str(json.get());
                content.push('\n');
            }
        }
        let lines = places.len() as u64 + 1;
        let file = match std::fs::metadata(path) {
            Ok(about) if about.len() == 0 => {
                let mut file = SessionFile::open(path, Access::Append)?;
                // Nothing was acknowledged yet; half a file would only be in the way.
                file.append(content.trim_end_matches('\n'), lines).inspect_err(|_| file.empty_again())?;
                file
            }
            _ => SessionFile::create(path, content.as_bytes(), lines)?,
        };
        for (position, (offset, length)) in places.into_iter().enumerate() {
            self.index.set_body(position, Body::File { offset, length, repair: false });
        }
        self.storage = Storage::File(file);
        Ok(())
    }

    /// Waits until everything that was appended is on the disk.
    pub fn sync(&self) -> Result<(), SessionError> {
        match &self.storage {
            Storage::File(file) => file.sync(),
            _ => Ok(()),
        }
    }

    /// Makes sure that an append goes to the right file and loses nothing.
    fn prepare_to_append(&mut self) -> Result<(), SessionError> {
        if self.is_read_only() {
            return Err(SessionError::ReadOnly { path: self.file().unwrap_or(Path::new("")).to_owned() });
        }
        self.finish_migration()?;
        let noted = self.notes.all().len();
        let Storage::File(file) = &mut self.storage else { return Ok(()) };
        match file.fate()? {
            Fate::Same => return Ok(()),
            Fate::Grown => {
                let from = file.end();
                let before = self.index.len();
                let end = scan_entries(file.reader(from.offset), from, &mut self.index, &mut self.notes)
                    .map_err(SessionError::io("read", file.path()))?;
                file.set_end(end);
                let grown = self.index.len() - before;
                self.notes
                    .add(0, format!("another process appended {grown} entries; they are kept as a branch"));
            }
            Fate::Gone => {
                let path = file.path().to_owned();
                file.move_to(&path)?;
                self.notes.add(0, "the file had been deleted; it was written again from what was still open");
            }
            Fate::Replaced => {
                let path = free_path(file.path(), "recovered");
                file.move_to(&path)?;
                let message = format!(
                    "another file had been put in its place; the session goes on in {}",
                    path.display()
                );
                self.notes.add(0, message);
            }
            Fate::Truncated => self.recover_truncated()?,
        }
        self.warn_of(noted);
        Ok(())
    }

    /// Reads again what is left of a file that was cut, and appends again what memory still has.
    fn recover_truncated(&mut self) -> Result<(), SessionError> {
        let held = self.entries_in_memory();
        let leaf = self.leaf().cloned();
        let Storage::File(file) = &mut self.storage else { return Ok(()) };
        let mut index = Index::default();
        let end = scan_entries(file.reader(0), Place::START, &mut index, &mut self.notes)
            .map_err(SessionError::io("read", file.path()))?;
        file.set_end(end);
        if index.len() == 0 && read_header(file).is_err() {
            // What is left of a torn header would keep the file from being opened again.
            file.empty_again();
            file.append(&serde_json::to_string(&self.header)?, 1)?;
        }
        let lost = self.index.len().saturating_sub(index.len());
        self.index = index;
        self.leaf = None;
        self.context = None;
        let mut again = 0;
        for (id, entry) in held {
            if let Some(kept) = self.index.find(&id) {
                self.leaf = Some(kept);
                continue;
            }
            let base = EntryBase { id: id.into(), parent_id: self.leaf().cloned(), timestamp: stamp::now() };
            let json = serde_json::value::to_raw_value(&entry.into_entry(base))?;
            let Storage::File(file) = &mut self.storage else { break };
            let offset = file.append(json.get(), 1)?;
            self.add(&json, Body::File { offset, length: json.get().len(), repair: false })?;
            again += 1;
        }
        if let Some(leaf) = leaf.and_then(|leaf| self.index.find(leaf.as_str())) {
            self.leaf = Some(leaf);
        }
        self.leaf = self.leaf.or(self.index.last());
        self.notes.add(
            0,
            format!("the file had been cut: {lost} entries were missing, {again} of them were written again from memory"),
        );
        Ok(())
    }

    /// Puts the migrated copy in the place of the original, which stays beside it.
    fn finish_migration(&mut self) -> Result<(), SessionError> {
        let Storage::Migrated { original, copy, version } = &mut self.storage else { return Ok(()) };
        let path = original.path().to_owned();
        match original.fate()? {
            Fate::Same => copy.replace(&path, &free_path(&path, &format!("v{version}.bak")))?,
            Fate::Gone => copy.move_to(&path)?,
            // Someone else migrated or changed it meanwhile, and nothing of ours is in it yet.
            Fate::Grown | Fate::Truncated | Fate::Replaced => return self.open_again(),
        }
        if let Storage::Migrated { copy, .. } = std::mem::replace(&mut self.storage, Storage::Memory) {
            self.storage = Storage::File(copy);
        }
        Ok(())
    }

    /// Takes the lock of a session that was opened for reading, so that it can be appended to.
    pub fn lock_for_append(&mut self) -> Result<(), SessionError> {
        if self.is_read_only() { self.open_again() } else { Ok(()) }
    }

    /// Opens the file anew for appending and stays at the same leaf.
    fn open_again(&mut self) -> Result<(), SessionError> {
        let Some(path) = self.file().map(Path::to_owned) else { return Ok(()) };
        if let Storage::Migrated { original, .. } = &self.storage {
            // The lock that this session holds itself would be in the way.
            original.unlock();
        }
        let mut new = Self::open_with(&path, Access::Append)?;
        let known = self.notes.all().len();
        new.notes = std::mem::take(&mut self.notes).followed_by(new.notes);
        new.warn_of(known);
        if self.index.len() > 0 {
            let here = self.leaf().map(|leaf| new.index.find(leaf.as_str()));
            new.leaf = here.and_then(|found| found.or(new.leaf));
        }
        *self = new;
        Ok(())
    }

    pub(super) fn position(&self, id: &str) -> Result<Position, SessionError> {
        self.index.find(id).ok_or_else(|| SessionError::EntryNotFound(id.to_owned()))
    }

    /// The JSON of an entry. It is whole: the pass over the file saw to that.
    pub(super) fn text(&self, position: Position) -> Result<Cow<'_, str>, SessionError> {
        let not_found = || SessionError::EntryNotFound(position.to_string());
        match &self.index.node(position).ok_or_else(not_found)?.body {
            Body::Memory(json) => Ok(Cow::Borrowed(json.get())),
            Body::File { offset, length, repair: needs_repair } => {
                let file = self.open_file().ok_or_else(not_found)?;
                let bytes = file.read_at(*offset, *length).map_err(SessionError::io("read", file.path()))?;
                Ok(Cow::Owned(match String::from_utf8(bytes) {
                    Ok(text) if !needs_repair => text,
                    Ok(text) => repair(text.trim().as_bytes()).0.into_owned(),
                    Err(error) => repair(error.as_bytes()).0.trim().to_owned(),
                }))
            }
        }
    }

    /// The JSON of an entry, checked once more.
    pub(super) fn body(&self, position: Position) -> Result<Box<RawValue>, SessionError> {
        Ok(RawValue::from_string(self.text(position)?.into_owned())?)
    }

    pub(super) fn open_file(&self) -> Option<&SessionFile> {
        match &self.storage {
            Storage::File(file) | Storage::Migrated { copy: file, .. } => Some(file),
            Storage::Memory | Storage::Unsaved { .. } => None,
        }
    }
}

/// A path beside `path` that nothing has: `name.suffix`, `name.2.suffix` and so on.
fn free_path(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (name, suffix) = match suffix {
        "recovered" => (name.trim_end_matches(".jsonl").to_owned(), "recovered.jsonl".to_owned()),
        suffix => (name, suffix.to_owned()),
    };
    let first = std::iter::once(format!("{name}.{suffix}"));
    let more = (2u64..).map(|number| format!("{name}.{number}.{suffix}"));
    let free = first.chain(more).map(|name| path.with_file_name(name)).find(|path| !path.exists());
    free.unwrap_or_else(|| path.to_owned())
}

pub(super) fn new_header(cwd: &Path, options: NewSessionOptions) -> Result<SessionHeader, SessionError> {
    match &options.id {
        Some(id) if !is_valid_id(id.as_str()) => Err(SessionError::InvalidId { id: id.as_str().to_owned() }),
        _ => Ok(header_of(cwd, options)),
    }
}

fn header_of(cwd: &Path, options: NewSessionOptions) -> SessionHeader {
    SessionHeader {
        kind: SessionTag::Session,
        version: Some(SESSION_VERSION),
        id: options.id.unwrap_or_else(stamp::session_id),
        timestamp: stamp::now(),
        cwd: cwd.to_string_lossy().into_owned(),
        parent_session: options.parent,
        extra: Extra::default(),
    }
}

fn is_valid_id(id: &str) -> bool {
    let word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = id.as_bytes();
    word(bytes.first())
        && word(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

/// Reads the header of a session file and its version, whatever that is.
pub(super) fn read_header(file: &SessionFile) -> Result<(SessionHeader, u64), SessionError> {
    let refuse =
        |reason: &str| SessionError::NotASession { path: file.path().to_owned(), reason: reason.to_owned() };
    let mut first = None;
    each_line(file.reader(0), Place::START, |line| {
        let text = line.text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return true;
        }
        first = Some(parse_header(text));
        false
    })
    .map_err(SessionError::io("read", file.path()))?;
    match first {
        None => Err(refuse("it is empty")),
        Some(None) => Err(refuse("its first line is no session header ({\"type\":\"session\",...})")),
        Some(Some(header)) => Ok(header),
    }
}

/// The header in a line, if its first record is one. Missing fields of old files are filled in.
pub(super) fn parse_header(line: &str) -> Option<(SessionHeader, u64)> {
    let mut stream = serde_json::Deserializer::from_str(line).into_iter::<Map<String, Value>>();
    let mut fields = stream.next()?.ok()?;
    if fields.get("type")? != "session" || !fields.get("id")?.is_string() {
        return None;
    }
    let version = match fields.get("version") {
        None | Some(Value::Null) => 1,
        Some(version) => version.as_u64().or_else(|| version.as_f64().map(|v| v as u64))?,
    };
    for name in ["timestamp", "cwd"] {
        if !fields.get(name).is_some_and(Value::is_string) {
            fields.insert(name.to_owned(), "".into());
        }
    }
    if !fields.get("parentSession").is_some_and(Value::is_string) {
        fields.shift_remove("parentSession");
    }
    fields.insert("version".to_owned(), version.min(u64::from(u32::MAX)).into());
    serde_json::from_value(Value::Object(fields)).ok().map(|header| (header, version))
}
