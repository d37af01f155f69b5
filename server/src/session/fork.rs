//! New sessions from parts of old ones.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use sampi_protocol::data::{EntryBase, EntryId, LabelEntry, SessionHeader, Untagged};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::file::make_parent;
use super::index::{Body, Kind, Label, Position, Role};
use super::store::{Storage, new_header};
use super::{NewSessionOptions, Session, SessionError, stamp};

impl Session {
    /// A new session of what came before a user message, and that message's text.
    ///
    /// When this session has a file, the new one gets one in `dir`, written at once if it has a
    /// conversation; a session in memory forks in memory.
    pub fn fork_before(&self, entry: &EntryId, dir: &Path) -> Result<(Self, String), SessionError> {
        let position = self.fork_point(entry)?;
        let text = self.user_text(position).ok_or(SessionError::NotForkable)?;
        let parent = self.index.node(position).and_then(|node| node.parent);
        Ok((self.copy_path(parent, dir)?, text))
    }

    /// An error when [`Session::fork_before`] would refuse the entry.
    pub fn check_fork(&self, entry: &EntryId) -> Result<(), SessionError> {
        self.fork_point(entry).map(drop)
    }

    fn fork_point(&self, entry: &EntryId) -> Result<Position, SessionError> {
        let is_user =
            |at: &Position| self.index.node(*at).is_some_and(|node| node.kind == Kind::Message(Role::User));
        self.index.find(entry.as_str()).filter(is_user).ok_or(SessionError::NotForkable)
    }

    /// A new session with the active branch.
    pub fn clone_branch(&self, dir: &Path) -> Result<Self, SessionError> {
        self.copy_path(self.leaf, dir)
    }

    /// A new session of `cwd` with everything that the session in `source` has.
    pub fn fork_from(
        source: &Path,
        cwd: &Path,
        dir: &Path,
        id: Option<sampi_protocol::data::SessionId>,
    ) -> Result<Self, SessionError> {
        let old = Self::open_read_only(source)?;
        let parent = Some(source.to_string_lossy().into_owned());
        let header = new_header(cwd, NewSessionOptions { id, parent })?;
        let path = dir.join(stamp::file_name(&header.timestamp, &header.id));
        write_new(&path, &header, |out| {
            for position in 0..old.index.len() {
                write_line(out, &path, &old.body(position)?)?;
            }
            Ok(())
        })?;
        Self::open(&path)
    }

    /// Copies a session file into `dir`, byte for byte and under its own name, and opens the copy. What has
    /// that name there already is left alone.
    pub fn import(source: &Path, dir: &Path) -> Result<Self, SessionError> {
        let name = source.file_name().ok_or_else(|| SessionError::NotFound { path: source.to_owned() })?;
        let path = dir.join(name);
        make_parent(&path)?;
        // The copy gets its name when it is whole.
        let mut copy = tempfile::NamedTempFile::new_in(dir).map_err(SessionError::io("create", &path))?;
        let mut original = File::open(source).map_err(SessionError::io("read", source))?;
        std::io::copy(&mut original, &mut copy).map_err(SessionError::io("write", &path))?;
        copy.persist_noclobber(&path).map_err(|error| SessionError::io("create", &path)(error.error))?;
        Self::open(&path)
    }

    fn copy_path(&self, leaf: Option<Position>, dir: &Path) -> Result<Self, SessionError> {
        if matches!(self.storage, Storage::Unsaved { .. }) {
            return Err(SessionError::NotSaved);
        }
        let parent = self.file().map(|path| path.to_string_lossy().into_owned());
        let header = new_header(self.cwd(), NewSessionOptions { id: None, parent })?;
        let plan = self.plan(leaf);
        let path = dir.join(stamp::file_name(&header.timestamp, &header.id));
        let has_conversation = plan.iter().any(|(position, _)| {
            let kind = self.index.node(*position).map(|node| node.kind);
            matches!(kind, Some(Kind::Message(Role::User | Role::Assistant)))
        });
        if self.file().is_some() && has_conversation {
            write_new(&path, &header, |out| self.each_copied(&plan, |json| write_line(out, &path, &json)))?;
            return Self::open(&path);
        }
        let storage = match self.file() {
            Some(_) => Storage::Unsaved { path },
            None => Storage::Memory,
        };
        let mut new = Self::new(header, storage);
        self.each_copied(&plan, |json| new.add(&json.clone(), Body::Memory(json)))?;
        Ok(new)
    }

    /// The entries of the path without its labels, each with its new parent.
    fn plan(&self, leaf: Option<Position>) -> Vec<(Position, Option<Position>)> {
        let mut before = None;
        let mut plan = Vec::new();
        for position in self.index.path(leaf) {
            if self.index.node(position).is_some_and(|node| node.kind != Kind::Label) {
                plan.push((position, before));
                before = Some(position);
            }
        }
        plan
    }

    /// Gives the JSON of each entry of the plan to `sink`, then that of the labels on them. An entry
    /// whose parent stays the same is copied byte for byte.
    fn each_copied(
        &self,
        plan: &[(Position, Option<Position>)],
        mut sink: impl FnMut(Box<RawValue>) -> Result<(), SessionError>,
    ) -> Result<(), SessionError> {
        let id_of = |at: Option<Position>| at.and_then(|at| self.index.node(at)).map(|node| node.id.clone());
        for (position, parent) in plan {
            let json = self.body(*position)?;
            let same = self.index.node(*position).is_some_and(|node| node.parent == *parent);
            sink(if same { json } else { with_parent(&json, id_of(*parent))? })?;
        }
        let mut parent_id = id_of(plan.last().map(|(position, _)| *position));
        for (position, _) in plan {
            let Some(node) = self.index.node(*position) else { continue };
            let Some(Label { text, timestamp }) = self.index.label(node.id.as_str()) else { continue };
            let id = EntryId::from(stamp::entry_id(|id| self.index.find(id).is_some()));
            let label = LabelEntry {
                base: EntryBase { id: id.clone(), parent_id, timestamp: timestamp.clone() },
                target_id: node.id.clone(),
                label: Some(text.clone()),
                extra: Untagged::default(),
            };
            let entry = sampi_protocol::data::SessionEntry::from(label);
            sink(serde_json::value::to_raw_value(&entry)?)?;
            parent_id = Some(id);
        }
        Ok(())
    }
}

fn with_parent(json: &RawValue, parent: Option<EntryId>) -> Result<Box<RawValue>, SessionError> {
    let mut entry: Map<String, Value> = serde_json::from_str(json.get())?;
    entry.insert("parentId".to_owned(), parent.map_or(Value::Null, |id| id.as_str().into()));
    Ok(serde_json::value::to_raw_value(&entry)?)
}

fn write_line(out: &mut dyn Write, path: &Path, json: &RawValue) -> Result<(), SessionError> {
    let written = out.write_all(json.get().as_bytes()).and_then(|()| out.write_all(b"\n"));
    written.map_err(SessionError::io("write", path))
}

/// Writes a new session file; after an error there is none.
fn write_new(
    path: &PathBuf,
    header: &SessionHeader,
    body: impl FnOnce(&mut dyn Write) -> Result<(), SessionError>,
) -> Result<(), SessionError> {
    make_parent(path)?;
    let file = File::create_new(path).map_err(SessionError::io("create", path))?;
    let mut out = BufWriter::new(file);
    let written = serde_json::value::to_raw_value(header)
        .map_err(SessionError::Json)
        .and_then(|json| write_line(&mut out, path, &json))
        .and_then(|()| body(&mut out))
        .and_then(|()| out.flush().map_err(SessionError::io("write", path)));
    if written.is_err() {
        let _ = std::fs::remove_file(path);
    }
    written
}
