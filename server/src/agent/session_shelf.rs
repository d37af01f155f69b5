//! The sessions on disk: listing and deleting them.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sampi_protocol::commands::{ExportedHtml, ListSessions, ListedSession, MOST_LISTED, SessionList};
use sampi_protocol::data::SessionHeader;

use super::{Agent, AgentError, Inbox, InboxMessage, Outcome, SessionsRoot, Ticket};
use crate::paths::same_file;
use crate::session::listing::{self, SessionSummary};

/// Sessions that are listed when the host sets no limit.
const DEFAULT_LIMIT: u32 = 50;

/// What the task of a listing, a deletion or an export reports.
pub(super) enum ShelfMessage {
    Listed(Ticket, Result<SessionList, AgentError>),
    Deleted(Ticket, Result<(), AgentError>),
    Exported(Ticket, Result<ExportedHtml, AgentError>),
}

impl Agent {
    /// Lists sessions on disk.
    pub fn list_sessions(&mut self, ticket: Ticket, wish: ListSessions) {
        let after = match wish.cursor.as_deref().map(Cursor::read).transpose() {
            Ok(after) => after,
            Err(error) => {
                self.done(ticket, Outcome::Listed(Err(error)));
                return;
            }
        };
        let Some(root) = self.sessions_root.clone() else {
            let listed = Ok(SessionList::default());
            self.done(ticket, Outcome::Listed(listed));
            return;
        };
        self.on_disk(
            move || ShelfMessage::Listed(ticket, Ok(list(&root, &wish, after))),
            move |error| ShelfMessage::Listed(ticket, Err(error)),
        );
    }

    /// Deletes the file of a session that no process has open.
    pub fn delete_session(&mut self, ticket: Ticket, path: PathBuf) {
        let path = self.session.cwd().join(path);
        if self.session.file().is_some_and(|open| same_file(open, &path)) {
            let error = AgentError::Busy("the session is open; switch to another one first".to_owned());
            self.done(ticket, Outcome::Deleted(Err(error)));
            return;
        }
        self.on_disk(
            move || ShelfMessage::Deleted(ticket, listing::delete(&path).map_err(AgentError::from)),
            move |error| ShelfMessage::Deleted(ticket, Err(error)),
        );
    }

    pub(super) fn on_disk(
        &mut self,
        work: impl FnOnce() -> ShelfMessage + Send + 'static,
        broken: impl FnOnce(AgentError) -> ShelfMessage + Send + 'static,
    ) {
        self.listing += 1;
        let inbox = self.inbox_writer.clone();
        tokio::spawn(async move {
            let done = tokio::task::spawn_blocking(work).await;
            let message = done.unwrap_or_else(|error| broken(AgentError::Io(error.to_string())));
            inbox.send(Inbox(InboxMessage::Shelf(message))).await.ok();
        });
    }

    pub(super) fn handle_shelf(&mut self, message: ShelfMessage) {
        self.listing -= 1;
        match message {
            ShelfMessage::Listed(ticket, listed) => self.done(ticket, Outcome::Listed(listed)),
            ShelfMessage::Deleted(ticket, deleted) => self.done(ticket, Outcome::Deleted(deleted)),
            ShelfMessage::Exported(ticket, exported) => self.done(ticket, Outcome::Exported(exported)),
        }
    }
}

fn list(root: &SessionsRoot, wish: &ListSessions, after: Option<Cursor>) -> SessionList {
    let files = match (root, &wish.cwd) {
        (SessionsRoot::ByCwd(_), Some(cwd)) => listing::files(&root.dir(Path::new(cwd))),
        (SessionsRoot::ByCwd(root), None) => listing::all_files(root),
        (SessionsRoot::Fixed(dir), _) => listing::files(dir),
    };
    let limit = wish.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MOST_LISTED) as usize;
    let files = files.into_iter().filter(|(path, modified)| {
        after.as_ref().is_none_or(|last| (millis(*modified), path) < (last.modified, &last.path))
    });
    let search = wish.search.as_deref().map(str::to_lowercase);
    let mut files: Vec<_> = files.collect();
    // Files of the same millisecond are told apart by their paths, so that a cursor names one place.
    files.sort_by(|(a, at), (b, bt)| (millis(*bt), b).cmp(&(millis(*at), a)));
    let mut sessions = Vec::new();
    let mut next_cursor = None;
    let of_cwd =
        |header: &SessionHeader| wish.cwd.as_ref().is_none_or(|cwd| Path::new(&header.cwd) == Path::new(cwd));
    for summary in listing::list(files, of_cwd).filter(|summary| is_found(summary, search.as_deref())) {
        if sessions.len() == limit {
            next_cursor = sessions.last().map(Cursor::write);
            break;
        }
        sessions.push(listed(summary));
    }
    SessionList { sessions, next_cursor }
}

fn is_found(summary: &SessionSummary, search: Option<&str>) -> bool {
    let texts = [
        Some(summary.id.as_str()),
        summary.cwd.to_str(),
        summary.name.as_deref(),
        summary.first_message.as_deref(),
    ];
    search.is_none_or(|search| texts.into_iter().flatten().any(|text| text.to_lowercase().contains(search)))
}

fn listed(summary: SessionSummary) -> ListedSession {
    ListedSession {
        path: summary.path.to_string_lossy().into_owned(),
        id: summary.id,
        cwd: summary.cwd.to_string_lossy().into_owned(),
        name: summary.name,
        created: summary.created,
        modified: millis(summary.modified),
        parent_session: summary.parent,
        first_message: summary.first_message,
    }
}

fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The last session of a list that goes on.
struct Cursor {
    modified: u64,
    path: PathBuf,
}

impl Cursor {
    fn write(last: &ListedSession) -> String {
        format!("{}:{}", last.modified, last.path)
    }

    fn read(text: &str) -> Result<Self, AgentError> {
        let read = || {
            let (modified, path) = text.split_once(':')?;
            Some(Self { modified: modified.parse().ok()?, path: PathBuf::from(path) })
        };
        read().ok_or_else(|| {
            let expected = "expected the nextCursor of an earlier list";
            AgentError::Invalid(format!("Invalid parameters for list_sessions: cursor: {expected}"))
        })
    }
}
