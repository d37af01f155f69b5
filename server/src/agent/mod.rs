//! The agent: one conversation, its model, its queues and the run that is under way.
//!
//! [`Agent`] is a state machine that a mode owns and drives: its methods change the state at once and
//! put what happened into an outbox; work that takes time runs in tasks that report back through the
//! inbox ([`Agent::receive`], [`Agent::handle`]). Nothing here knows of RPC records.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use sampi_protocol::Shared;
use sampi_protocol::commands::{BashResult, Disposition, ExportedHtml, Navigated, SessionList};
use sampi_protocol::data::{AgentMessage, CompactionResult, Model, SessionEntry, ThinkingLevel};
use sampi_protocol::events::{SessionDiagnostic, SessionEvent};
use tokio::sync::mpsc;

use crate::extensions::Extension;
use crate::llm::{CacheRetention, Providers};
use crate::resources::models::ModelRegistry;
use crate::resources::settings::Settings;
use crate::resources::system_prompt::PromptSources;
use crate::resources::{Environment, Resources};
use crate::session::{NewEntry, Session, SessionError};
use crate::tools::{Tool, ToolSet};

mod bash;
mod compaction;
mod context_usage;
mod export;
mod intake;
mod link;
mod log;
mod models;
mod preferences;
mod prompt;
mod queries;
mod queues;
mod recovery;
mod run;
mod services;
mod session_shelf;
mod sessions;
mod settle;
mod summaries;
mod tool_calls;
mod tree;
mod turn;

pub use bash::BashVisibility;
pub use intake::PromptMode;
use link::RunMessage;
use queues::Queues;
use recovery::Recovery;
pub use services::{LoadServices, Services};
pub use sessions::SessionChange;
use settle::ActiveRun;
pub use tree::{Leaving, Navigation};

/// Messages that may wait in the inbox before the tasks that write them are slowed down.
const INBOX_CAPACITY: usize = 256;

/// Names something that was asked for and is answered later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// What the agent has to say, in order.
#[derive(Debug)]
pub enum Output {
    /// Something happened.
    Event(SessionEvent),
    /// A shell command of the user wrote something.
    BashOutput(Ticket, String),
    /// What was asked for is done.
    Done(Ticket, Outcome),
}

/// How something that was asked for ended.
#[derive(Debug)]
pub enum Outcome {
    /// A prompt, steering or follow-up message was taken in, or refused.
    Accepted(Result<Disposition, AgentError>),
    /// The session is idle.
    Idle,
    /// A shell command ended.
    Bash(Result<BashResult, AgentError>),
    /// A compaction ended.
    Compacted(Result<CompactionResult, AgentError>),
    /// The session changed.
    SessionChanged(Result<SessionChanged, AgentError>),
    /// The session is at another point of its tree.
    Navigated(Result<Box<Navigated>, AgentError>),
    /// Sessions were listed.
    Listed(Result<SessionList, AgentError>),
    /// A session was deleted.
    Deleted(Result<(), AgentError>),
    /// The session was written as a page.
    Exported(Result<ExportedHtml, AgentError>),
}

/// How a change of session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionChanged {
    /// True when an extension prevented it.
    pub cancelled: bool,
    /// The text of the message that was forked from.
    pub text: Option<String>,
}

/// Why the agent refuses something. The texts that Pi has are Pi's.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// What is going on must end first.
    #[error("{0}")]
    Busy(String),
    /// No model is chosen, or it has no credentials.
    #[error("{0}")]
    NoModel(String),
    /// The credentials could not be had.
    #[error("{0}")]
    Auth(String),
    /// Something that was named does not exist.
    #[error("{0}")]
    NotFound(String),
    /// A value that was given cannot be used.
    #[error("{0}")]
    Invalid(String),
    /// It was stopped.
    #[error("{0}")]
    Cancelled(String),
    /// The model could not do what was asked.
    #[error("{0}")]
    Failed(String),
    /// The session could not be read or written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// A process could not be run.
    #[error("{0}")]
    Io(String),
}

/// What an agent works with. Each part can be replaced.
pub struct AgentParts {
    /// The conversation.
    pub session: Session,
    /// What to work with in the session's working directory.
    pub services: Services,
    /// Loads that anew when the session changes.
    pub loader: Arc<dyn LoadServices>,
    /// The process's environment.
    pub environment: Environment,
    /// The APIs.
    pub providers: Providers,
    /// The seam for extensions.
    pub extension: Arc<dyn Extension>,
    /// The session's display name.
    pub name: Option<String>,
}

/// Where new session files go.
#[derive(Debug, Clone)]
pub enum SessionsRoot {
    /// Into a folder of their working directory below this one.
    ByCwd(PathBuf),
    /// Into this folder.
    Fixed(PathBuf),
}

/// One conversation, its model, its queues and the run that is under way.
pub struct Agent {
    session: Session,
    loader: Arc<dyn LoadServices>,
    environment: Environment,
    models: Arc<ModelRegistry>,
    providers: Providers,
    settings: Settings,
    cache_retention: CacheRetention,
    tools: Arc<[Arc<dyn Tool>]>,
    prompt: PromptSources,
    resources: Resources,
    extension: Arc<dyn Extension>,
    model: Option<Model>,
    thinking: ThinkingLevel,
    scope: Vec<(Model, Option<ThinkingLevel>)>,
    sessions_root: Option<SessionsRoot>,
    queues: Queues,
    recovery: Recovery,
    intake: intake::Intake,
    preferences: preferences::Preferences,
    run: Option<ActiveRun>,
    bash: bash::BashRuns,
    waiting_for_idle: Vec<Ticket>,
    waiting_changes: VecDeque<(Ticket, SessionChange)>,
    waiting_compactions: Vec<(Ticket, Option<String>)>,
    compaction: Option<compaction::ActiveCompaction>,
    next_compaction: u64,
    navigation: Option<tree::ActiveNavigation>,
    listing: usize,
    reported_diagnostics: usize,
    available_tools: ToolSet,
    tools_follow_session: bool,
    warnings: Vec<String>,
    auto_compaction: bool,
    next_run: u64,
    outbox: VecDeque<Output>,
    inbox: mpsc::Receiver<Inbox>,
    inbox_writer: mpsc::Sender<Inbox>,
}

/// What tasks report to the agent.
pub struct Inbox(InboxMessage);

enum InboxMessage {
    Run { run: u64, message: RunMessage },
    Intake(intake::Checked),
    Bash(bash::BashMessage),
    RetryDue { run: u64 },
    AbortDeadline { run: u64 },
    SessionChecked(sessions::Checked),
    Compacted(compaction::Compacted),
    Event(SessionEvent),
    PreferenceWritten(preferences::Written),
    Navigation(tree::NavigationMessage),
    Shelf(session_shelf::ShelfMessage),
}

impl Agent {
    /// An agent made of these parts. New sessions get the entries that name model and thinking level.
    pub fn new(parts: AgentParts) -> Result<Self, AgentError> {
        let (inbox_writer, inbox) = mpsc::channel(INBOX_CAPACITY);
        let settings = Settings::default();
        let mut agent = Self {
            queues: Queues::new(settings.steering_mode, settings.follow_up_mode),
            recovery: Recovery::new(&settings),
            auto_compaction: settings.compaction.enabled,
            session: parts.session,
            loader: parts.loader,
            environment: parts.environment,
            models: Arc::default(),
            providers: parts.providers,
            settings,
            cache_retention: CacheRetention::default(),
            tools: Arc::new([]),
            prompt: PromptSources::default(),
            resources: Resources::default(),
            extension: parts.extension,
            model: None,
            thinking: ThinkingLevel::Off,
            scope: Vec::new(),
            sessions_root: None,
            intake: intake::Intake::default(),
            preferences: preferences::Preferences::default(),
            run: None,
            bash: bash::BashRuns::default(),
            waiting_for_idle: Vec::new(),
            waiting_changes: VecDeque::new(),
            waiting_compactions: Vec::new(),
            compaction: None,
            next_compaction: 0,
            navigation: None,
            listing: 0,
            reported_diagnostics: 0,
            available_tools: ToolSet::default(),
            tools_follow_session: false,
            warnings: Vec::new(),
            next_run: 0,
            outbox: VecDeque::new(),
            inbox,
            inbox_writer,
        };
        agent.use_services(parts.services);
        if let Some(name) = &parts.name {
            agent.set_session_name(name)?;
        }
        agent.note_in_new_session()?;
        Ok(agent)
    }

    /// Waits for the next report of a task. Cancel-safe.
    pub async fn receive(&mut self) -> Option<Inbox> {
        self.inbox.recv().await
    }

    /// Applies the report of a task.
    pub fn handle(&mut self, Inbox(message): Inbox) {
        match message {
            InboxMessage::Run { run, message } => self.handle_run(run, message),
            InboxMessage::Intake(checked) => self.handle_checked_input(checked),
            InboxMessage::Bash(message) => self.handle_bash(message),
            InboxMessage::RetryDue { run } => self.handle_retry_due(run),
            InboxMessage::AbortDeadline { run } => self.handle_abort_deadline(run),
            InboxMessage::SessionChecked(checked) => self.handle_session_checked(checked),
            InboxMessage::Compacted(compacted) => self.handle_compacted(compacted),
            InboxMessage::Event(event) => self.emit(event),
            InboxMessage::PreferenceWritten(written) => self.handle_preference_written(written),
            InboxMessage::Navigation(message) => self.handle_navigation(message),
            InboxMessage::Shelf(message) => self.handle_shelf(message),
        }
    }

    /// The next thing that the agent has to say.
    pub fn next_output(&mut self) -> Option<Output> {
        self.outbox.pop_front()
    }

    /// True while a run is under way, or a prompt is being taken in.
    pub fn is_streaming(&self) -> bool {
        self.run.is_some() || self.intake.is_starting()
    }

    /// True while something is under way that `abort` stops.
    fn is_busy(&self) -> bool {
        self.is_streaming() || self.compaction.is_some() || self.navigation.is_some()
    }

    /// True when nothing is under way: no run, no compaction, no shell command, no input being checked.
    pub fn is_idle(&self) -> bool {
        !self.is_busy()
            && self.bash.is_empty()
            && self.intake.is_empty()
            && self.preferences.is_idle()
            && self.listing == 0
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Stops everything: the run, shell commands, retries. What is under way still reports its end.
    pub fn stop(&mut self) {
        self.queues.take_all();
        self.cancel_waiting_compactions();
        self.cancel_run();
        self.abort_bash();
    }

    fn emit(&mut self, event: impl Into<SessionEvent>) {
        let event = event.into();
        log::log(&event);
        self.outbox.push_back(Output::Event(event));
    }

    fn done(&mut self, ticket: Ticket, outcome: Outcome) {
        self.outbox.push_back(Output::Done(ticket, outcome));
    }

    /// Appends a message to the session.
    fn record(&mut self, message: AgentMessage) -> Result<Shared<AgentMessage>, SessionError> {
        let message = Shared::new(message);
        self.append(NewEntry::Message(message.clone()))?;
        Ok(message)
    }

    fn append(&mut self, entry: NewEntry) -> Result<Shared<SessionEntry>, SessionError> {
        self.make_writable()?;
        let appended = self.session.append(entry);
        self.report_diagnostics();
        appended
    }

    /// A session that another process had when it was opened can be written once that process is done.
    fn make_writable(&mut self) -> Result<(), SessionError> {
        if self.session.is_read_only() { self.session.lock_for_append() } else { Ok(()) }
    }

    /// Tells the host what was found wrong with the session's file, each once.
    pub fn report_diagnostics(&mut self) {
        let path = self.session_file().unwrap_or_default();
        let news: Vec<SessionDiagnostic> = self
            .session
            .diagnostics()
            .iter()
            .skip(self.reported_diagnostics)
            .map(|diagnostic| SessionDiagnostic {
                path: path.clone(),
                line: (diagnostic.line > 0).then_some(diagnostic.line),
                message: diagnostic.message.clone(),
            })
            .collect();
        self.reported_diagnostics += news.len();
        news.into_iter().for_each(|diagnostic| self.emit(diagnostic));
    }
}

/// The current time as messages have it, in Unix milliseconds.
fn now_millis() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default()
}
