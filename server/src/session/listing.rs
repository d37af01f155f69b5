//! Finding sessions on disk: by folder, by age, by id. Reads headers and names, never whole sessions.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sampi_protocol::data::{AgentMessage, SessionEntry, SessionHeader, SessionId};
use sampi_protocol::wire::from_text;

use super::SessionError;
use super::file::{Access, SessionFile};
use super::record::Head;
use super::store::{parse_header, read_header};
use crate::paths::same_file;

/// How much of a file is read to find its header.
const HEADER_SIZE: usize = 64 * 1024;

/// How much of a file is read at a time to find names.
const CHUNK_SIZE: usize = 256 * 1024;

/// Longer lines are passed over when names and first messages are looked for.
const MAX_LINE_SIZE: usize = 1024 * 1024;

/// The folder of the sessions of a working directory, below the folder of all sessions.
pub fn sessions_dir(root: &Path, cwd: &Path) -> PathBuf {
    let cwd = cwd.to_string_lossy();
    let name = cwd.strip_prefix(['/', '\\']).unwrap_or(&cwd).replace(['/', '\\', ':'], "-");
    root.join(format!("--{name}--"))
}

/// What a list of sessions shows of one.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSummary {
    /// The session's file.
    pub path: PathBuf,
    /// The session's id.
    pub id: SessionId,
    /// Its working directory; empty when an old file does not tell.
    pub cwd: PathBuf,
    /// Its display name.
    pub name: Option<String>,
    /// When it was made, ISO 8601.
    pub created: String,
    /// When it was last appended to.
    pub modified: SystemTime,
    /// The file of the session that it was made from.
    pub parent: Option<String>,
    /// The text of the user's first message.
    pub first_message: Option<String>,
}

/// A session file and what its header says.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionStub {
    /// The session's file.
    pub path: PathBuf,
    /// When it was last appended to.
    pub modified: SystemTime,
    /// Its header.
    pub header: SessionHeader,
}

/// What a search by id found.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// One session.
    One(Box<SessionStub>),
    /// Several sessions whose ids start like this.
    Ambiguous(Vec<SessionStub>),
    /// None.
    Nothing,
}

/// The session files of a folder, the one appended to last first. A folder that does not exist has none.
pub fn files(dir: &Path) -> Vec<(PathBuf, SystemTime)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let session = path.extension().is_some_and(|extension| extension == "jsonl");
            let about = session.then(|| fs::metadata(&path).ok()).flatten().filter(fs::Metadata::is_file)?;
            Some((path, about.modified().ok()?))
        })
        .collect();
    sort(&mut files);
    files
}

/// The session files of every folder below the folder of all sessions, the one appended to last first.
pub fn all_files(root: &Path) -> Vec<(PathBuf, SystemTime)> {
    let folders = fs::read_dir(root).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<_> = folders.filter(|path| path.is_dir()).flat_map(|path| files(&path)).collect();
    sort(&mut files);
    files
}

fn sort(files: &mut [(PathBuf, SystemTime)]) {
    files.sort_by(|(a_path, a), (b_path, b)| b.cmp(a).then_with(|| b_path.cmp(a_path)));
}

/// The session of `cwd` in `dir` that was appended to last. Reads headers until it is found.
pub fn most_recent(dir: &Path, cwd: &Path) -> Option<PathBuf> {
    stubs(files(dir)).find(|stub| same_file(Path::new(&stub.header.cwd), cwd)).map(|stub| stub.path)
}

/// The session in `dir` with this id, or else the one whose id starts so.
pub fn find_by_id(dir: &Path, id: &str) -> Found {
    find(files(dir), id)
}

/// The session in any folder below the folder of all sessions with this id, or else the one whose id
/// starts so.
pub fn find_anywhere(root: &Path, id: &str) -> Found {
    find(all_files(root), id)
}

fn find(files: Vec<(PathBuf, SystemTime)>, id: &str) -> Found {
    let mut starting = Vec::new();
    for stub in stubs(files) {
        if stub.header.id == *id {
            return Found::One(Box::new(stub));
        }
        if !id.is_empty() && stub.header.id.as_str().starts_with(id) {
            starting.push(stub);
        }
    }
    match starting.len() {
        0 => Found::Nothing,
        1 => starting.pop().map_or(Found::Nothing, |stub| Found::One(Box::new(stub))),
        _ => Found::Ambiguous(starting),
    }
}

/// The files that are sessions, with their headers, read one by one.
pub fn stubs(files: Vec<(PathBuf, SystemTime)>) -> impl Iterator<Item = SessionStub> {
    files.into_iter().filter_map(|(path, modified)| {
        let (_, header) = open(&path)?;
        Some(SessionStub { path, modified, header })
    })
}

/// The files that are sessions with a header that is wanted, with name and first message, read one by one.
pub fn list(
    files: Vec<(PathBuf, SystemTime)>,
    is_wanted: impl Fn(&SessionHeader) -> bool,
) -> impl Iterator<Item = SessionSummary> {
    files.into_iter().filter_map(move |(path, modified)| {
        let (mut file, header) = open(&path)?;
        if !is_wanted(&header) {
            return None;
        }
        file.rewind().ok()?;
        let (name, first_message) = name_and_first_message(file);
        Some(SessionSummary {
            path,
            id: header.id,
            cwd: PathBuf::from(header.cwd),
            name,
            created: header.timestamp,
            modified,
            parent: header.parent_session,
            first_message,
        })
    })
}

/// Deletes a session's file. A file that is no session stays, and so does one that a process appends to.
pub fn delete(path: &Path) -> Result<(), SessionError> {
    let file = SessionFile::open(path, Access::Append)?;
    read_header(&file)?;
    fs::remove_file(path).map_err(SessionError::io("delete", path))
}

/// A session file and its header, if it is one.
fn open(path: &Path) -> Option<(File, SessionHeader)> {
    let file = File::open(path).ok()?;
    let mut bytes = Vec::new();
    (&file).take(HEADER_SIZE as u64).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.trim_start_matches('\u{feff}').lines().find(|line| !line.trim().is_empty())?;
    let (header, _) = parse_header(line.trim())?;
    Some((file, header))
}

/// The last name in a file and the text of its first user message.
fn name_and_first_message(file: File) -> (Option<String>, Option<String>) {
    let (mut name, mut first) = (None, None);
    let named = memchr::memmem::Finder::new("session_info");
    let user = memchr::memmem::Finder::new(r#""user""#);
    each_short_line(file, |line| {
        let about_name = named.find(line).is_some();
        if !about_name && (first.is_some() || user.find(line).is_none()) {
            return;
        }
        let text = String::from_utf8_lossy(line);
        let Ok(head) = serde_json::from_str::<Head<'_>>(&text) else { return };
        match head.kind.as_deref() {
            Some("session_info") => {
                name = head.name.as_deref().map(str::trim).filter(|n| !n.is_empty()).map(str::to_owned);
            }
            Some("message") if first.is_none() => {
                if let Ok(SessionEntry::MessageEntry(entry)) = from_text::<SessionEntry>(&text)
                    && let AgentMessage::User(message) = &*entry.message
                {
                    first = Some(message.content.text().into_owned());
                }
            }
            _ => {}
        }
    });
    (name, first)
}

/// Gives every line up to [`MAX_LINE_SIZE`] to `sink`; memory is bounded whatever the file has.
fn each_short_line(mut file: File, mut sink: impl FnMut(&[u8])) {
    let mut chunk = vec![0; CHUNK_SIZE];
    let mut carried = Vec::new();
    let mut too_long = false;
    loop {
        let length = match file.read(&mut chunk) {
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => 0,
        };
        if length == 0 {
            break;
        }
        let mut rest = chunk.get(..length).unwrap_or_default();
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            rest = after.get(1..).unwrap_or_default();
            if std::mem::take(&mut too_long) {
                carried.clear();
            } else if carried.is_empty() {
                sink(line);
            } else {
                carried.extend_from_slice(line);
                sink(&carried);
                carried.clear();
            }
        }
        if !too_long && carried.len() + rest.len() <= MAX_LINE_SIZE {
            carried.extend_from_slice(rest);
        } else {
            too_long = true;
            carried.clear();
        }
    }
    if !too_long && !carried.is_empty() {
        sink(&carried);
    }
}
