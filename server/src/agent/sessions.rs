//! Changing the session: new, switch, fork, clone.

use std::path::{Path, PathBuf};

use sampi_protocol::data::{EntryId, ThinkingLevel};

use super::{Agent, AgentError, Inbox, InboxMessage, Outcome, SessionChanged, SessionsRoot, Ticket};
use crate::extensions::SessionTransition;
use crate::paths::same_file;
use crate::session::{NewSessionOptions, Session, listing};
use crate::system_state::SystemState;

/// A change of session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChange {
    /// Start an empty session, with the file of the session that it follows.
    New {
        /// The file of the session that this one follows.
        parent: Option<String>,
    },
    /// Open another session file.
    Switch {
        /// The file.
        path: PathBuf,
    },
    /// Make a new session from what came before one of the user's messages.
    Fork {
        /// The entry of the message.
        entry: EntryId,
    },
    /// Make a new session from the active branch.
    Clone,
    /// Copy a session file to where the sessions of its working directory are kept, and open the copy.
    Import {
        /// The file.
        path: PathBuf,
    },
}

/// What an extension said of a change.
pub(super) struct Checked {
    ticket: Ticket,
    change: SessionChange,
    allowed: bool,
}

impl Agent {
    /// Changes the session. What is under way (a run, a compaction, a branch summary) is aborted first.
    pub fn change_session(&mut self, ticket: Ticket, change: SessionChange) {
        if !self.extension.is_active() {
            self.apply_when_idle(ticket, change);
            return;
        }
        let transition = match &change {
            SessionChange::New { .. } => SessionTransition::New,
            SessionChange::Switch { path } | SessionChange::Import { path } => {
                SessionTransition::Switch(path.to_string_lossy().into_owned())
            }
            SessionChange::Fork { entry } => SessionTransition::Fork(entry.to_string()),
            SessionChange::Clone => SessionTransition::Clone,
        };
        let (extension, inbox) = (self.extension.clone(), self.inbox_writer.clone());
        tokio::spawn(async move {
            let allowed = extension.session_before_change(&transition).await;
            let checked = Checked { ticket, change, allowed };
            inbox.send(Inbox(InboxMessage::SessionChecked(checked))).await.ok();
        });
    }

    pub(super) fn handle_session_checked(&mut self, checked: Checked) {
        if checked.allowed {
            self.apply_when_idle(checked.ticket, checked.change);
        } else {
            let prevented = SessionChanged { cancelled: true, text: None };
            self.done(checked.ticket, Outcome::SessionChanged(Ok(prevented)));
        }
    }

    fn apply_when_idle(&mut self, ticket: Ticket, change: SessionChange) {
        if !self.is_busy() {
            let result = self.apply(change);
            self.done(ticket, Outcome::SessionChanged(result));
            return;
        }
        // What cannot be done is no reason to abort anything.
        if let Err(error) = self.check_change(&change) {
            self.done(ticket, Outcome::SessionChanged(Err(error)));
            return;
        }
        self.waiting_changes.push_back((ticket, change));
        self.cancel_run();
    }

    fn check_change(&self, change: &SessionChange) -> Result<(), AgentError> {
        match change {
            SessionChange::Switch { path } | SessionChange::Import { path } => Session::check_file(path)?,
            SessionChange::Fork { entry } => self.session.check_fork(entry)?,
            SessionChange::New { .. } | SessionChange::Clone => {}
        }
        Ok(())
    }

    pub(super) fn start_waiting_session_change(&mut self) {
        while let Some((ticket, change)) = self.waiting_changes.pop_front() {
            let result = self.apply(change);
            self.done(ticket, Outcome::SessionChanged(result));
        }
    }

    fn apply(&mut self, change: SessionChange) -> Result<SessionChanged, AgentError> {
        let mut text = None;
        let made = match change {
            SessionChange::Fork { .. } | SessionChange::Clone | SessionChange::Import { .. } => Made::Copied,
            SessionChange::New { .. } | SessionChange::Switch { .. } => Made::Otherwise,
        };
        let session = match change {
            SessionChange::New { parent } => self.new_session(parent)?,
            SessionChange::Switch { path } => {
                if self.session.file().is_some_and(|open| same_file(open, &path)) {
                    // They belong into the file before it is read.
                    self.flush_bash_messages();
                    self.session.open_anew(&path)?
                } else {
                    let session = Session::open_or_read(&path)?;
                    session.check_cwd()?;
                    session
                }
            }
            SessionChange::Fork { entry } => {
                let (session, forked) = self.session.fork_before(&entry, &self.copies_dir())?;
                text = Some(forked);
                session
            }
            SessionChange::Clone => self.session.clone_branch(&self.copies_dir())?,
            SessionChange::Import { path } => self.import(&path)?,
        };
        let services = match self.loader.load(&session, &self.preferences.unwritten()) {
            Ok(services) => services,
            Err(error) => {
                discard(made, session);
                return Err(error);
            }
        };
        let news = services.warnings.iter().filter(|warning| !self.warnings.contains(warning));
        news.for_each(|warning| tracing::warn!("{warning}"));
        self.flush_bash_messages();
        self.drop_queued();
        self.session = session;
        if let Err(error) = self.make_writable() {
            tracing::debug!(%error, "the session can only be read for now");
        }
        self.reported_diagnostics = 0;
        self.report_diagnostics();
        self.use_services(services);
        if let Err(error) = self.note_in_new_session() {
            // The session is the other one already; the next prompt notes it, or is told what is wrong.
            tracing::warn!(%error, "model and thinking level could not be noted in the session");
        }
        Ok(SessionChanged { cancelled: false, text })
    }

    fn import(&self, path: &Path) -> Result<Session, AgentError> {
        let Some(root) = &self.sessions_root else {
            let text = "sessions are kept in memory, so no file can be imported; switch to it instead";
            return Err(AgentError::Invalid(text.to_owned()));
        };
        let original = Session::open_read_only(path)?;
        original.check_cwd()?;
        let dir = root.dir(original.cwd());
        drop(original);
        Ok(Session::import(path, &dir)?)
    }

    fn new_session(&self, parent: Option<String>) -> Result<Session, AgentError> {
        let cwd = self.session.cwd();
        let options = NewSessionOptions { id: None, parent };
        Ok(match self.session_dir() {
            Some(dir) => Session::create(&dir, cwd, options)?,
            None => Session::in_memory(cwd, options),
        })
    }

    /// The folder for new sessions of the working directory; `None` keeps them in memory.
    fn session_dir(&self) -> Option<PathBuf> {
        self.sessions_root.as_ref().map(|root| root.dir(self.session.cwd()))
    }

    /// The folder for copies of the session; they stand beside it when new sessions are kept in memory.
    fn copies_dir(&self) -> PathBuf {
        self.session_dir().or_else(|| self.session.dir().map(Path::to_owned)).unwrap_or_default()
    }

    /// A session brings back the tools that it had, unless the user chose others.
    pub(super) fn adopt_session_tools(&mut self) {
        if !self.tools_follow_session {
            return;
        }
        let state = SystemState::replay(&self.session.system_messages());
        if !state.is_empty() {
            let tools = state.tools().iter().filter_map(|tool| self.available_tools.get(&tool.name));
            self.tools = tools.cloned().collect();
        }
    }

    /// A session that names its model, its thinking level and its tools brings them along.
    pub(super) fn adopt_session_state(&mut self) {
        self.adopt_session_tools();
        let context = self.session.outline();
        let (model, level) = (context.model.clone(), context.thinking_level.clone());
        if let Some((provider, id)) = model
            && let Some(model) =
                self.models.find(&provider, &id).filter(|model| self.models.check(model).is_ok())
        {
            self.model = Some(model);
        }
        if let Some(level) = level.as_deref().and_then(ThinkingLevel::parse) {
            self.thinking =
                self.model.as_ref().map_or(ThinkingLevel::Off, |model| model.clamp_thinking(level));
        }
    }
}

/// Whether a session is a copy that was made just now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    Copied,
    Otherwise,
}

/// Takes a session back that cannot be used; a copy leaves no file.
fn discard(made: Made, session: Session) {
    let file = session.file().filter(|_| made == Made::Copied && session.is_saved()).map(Path::to_owned);
    drop(session);
    if let Some(file) = file
        && let Err(error) = std::fs::remove_file(&file)
    {
        tracing::warn!(%error, file = %file.display(), "the copy of a session could not be removed");
    }
}

impl SessionsRoot {
    /// The folder for sessions of this working directory.
    pub fn dir(&self, cwd: &Path) -> PathBuf {
        match self {
            Self::ByCwd(root) => listing::sessions_dir(root, cwd),
            Self::Fixed(dir) => dir.clone(),
        }
    }
}
