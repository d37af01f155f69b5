//! Moving in the session's tree, and marks on its entries.

use std::collections::HashSet;

use sampi_protocol::Shared;
use sampi_protocol::commands::Navigated;
use sampi_protocol::data::{
    AgentMessage, BranchSummaryMessage, CustomMessage, EntryId, SessionEntry, UserMessage,
};
use sampi_protocol::events::EntryAppended;
use tokio_util::sync::CancellationToken;

use super::summaries::{Source, SummaryFailure};
use super::{Agent, AgentError, Inbox, InboxMessage, Outcome, Ticket};
use crate::extensions::SessionTransition;
use crate::session::NewEntry;
use crate::session::compaction::{FileOperations, Summary};

/// A move to another point of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Navigation {
    /// The entry to move to.
    pub target: EntryId,
    /// What becomes of the branch that is left.
    pub leaving: Leaving,
    /// A mark for the summary, or for the target when there is no summary.
    pub label: Option<String>,
}

/// What becomes of the branch that is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leaving {
    /// It stays in the tree, and nothing of it goes along.
    Silent,
    /// The model summarises it, with these instructions of the user.
    Summarised {
        /// What the summary should pay attention to.
        instructions: Option<String>,
    },
}

/// A summary of a branch that is being made.
pub(super) struct ActiveNavigation {
    ticket: Ticket,
    navigation: Navigation,
    old_leaf: EntryId,
    pub(super) cancel: CancellationToken,
}

/// A branch that is left.
struct LeftBranch {
    leaf: EntryId,
    messages: Vec<Shared<AgentMessage>>,
    /// The files of the summaries in it.
    files: FileOperations,
}

/// What the task of a navigation reports.
pub(super) enum NavigationMessage {
    Checked { ticket: Ticket, navigation: Navigation, allowed: bool },
    Summarised(Result<Summary, SummaryFailure>),
}

impl Agent {
    /// Moves to another point of the tree. The ticket is done when the session is there.
    pub fn navigate(&mut self, ticket: Ticket, navigation: Navigation) {
        if !self.extension.is_active() {
            self.start_navigation(ticket, navigation);
            return;
        }
        let (extension, inbox) = (self.extension.clone(), self.inbox_writer.clone());
        tokio::spawn(async move {
            let transition = SessionTransition::Navigate(navigation.target.to_string());
            let allowed = extension.session_before_change(&transition).await;
            let message = NavigationMessage::Checked { ticket, navigation, allowed };
            inbox.send(Inbox(InboxMessage::Navigation(message))).await.ok();
        });
    }

    pub(super) fn handle_navigation(&mut self, message: NavigationMessage) {
        match message {
            NavigationMessage::Checked { ticket, navigation, allowed: true } => {
                self.start_navigation(ticket, navigation);
            }
            NavigationMessage::Checked { ticket, allowed: false, .. } => {
                let leaf_id = self.session.leaf().cloned();
                let navigated = Navigated { leaf_id, cancelled: true, ..Navigated::default() };
                self.done(ticket, Outcome::Navigated(Ok(Box::new(navigated))));
            }
            NavigationMessage::Summarised(result) => {
                let Some(active) = self.navigation.take() else { return };
                let result = match result {
                    Ok(summary) => self.arrive(active.navigation, Some((active.old_leaf, summary))),
                    Err(SummaryFailure::Cancelled) => {
                        Err(AgentError::Cancelled("the navigation was aborted".to_owned()))
                    }
                    Err(SummaryFailure::Failed(text)) => {
                        Err(AgentError::Failed(format!("the branch could not be summarised: {text}")))
                    }
                };
                self.done(active.ticket, Outcome::Navigated(result.map(Box::new)));
                self.note_idle();
            }
        }
    }

    fn start_navigation(&mut self, ticket: Ticket, navigation: Navigation) {
        if self.is_busy() {
            let error =
                AgentError::Busy("the tree cannot be navigated while something is running".to_owned());
            self.done(ticket, Outcome::Navigated(Err(error)));
            return;
        }
        let result = match self.left_behind(&navigation) {
            Ok(Some(branch)) => {
                self.summarise_branch(ticket, navigation, branch);
                return;
            }
            Ok(None) => self.arrive(navigation, None),
            Err(error) => Err(error),
        };
        self.done(ticket, Outcome::Navigated(result.map(Box::new)));
    }

    /// What a summary would be made of; `None` when there is to be none.
    fn left_behind(&self, navigation: &Navigation) -> Result<Option<LeftBranch>, AgentError> {
        let target: HashSet<EntryId> =
            self.session.branch_to(navigation.target.as_str())?.into_iter().collect();
        let (Leaving::Summarised { .. }, Some(leaf)) = (&navigation.leaving, self.session.leaf()) else {
            return Ok(None);
        };
        let mut files = FileOperations::default();
        let mut messages = Vec::new();
        for id in self.session.branch().iter().filter(|id| !target.contains(*id)) {
            let Some(entry) = self.session.entry(id.as_str()) else { continue };
            if let SessionEntry::BranchSummaryEntry(summary) = &*entry
                && summary.from_hook != Some(true)
            {
                files.carry_on(summary.details.as_ref());
            }
            messages.extend(message_of(&entry));
        }
        Ok((!messages.is_empty()).then(|| LeftBranch { leaf: leaf.clone(), messages, files }))
    }

    fn summarise_branch(&mut self, ticket: Ticket, navigation: Navigation, branch: LeftBranch) {
        let cancel = CancellationToken::new();
        let instructions = match &navigation.leaving {
            Leaving::Summarised { instructions } => instructions.clone(),
            Leaving::Silent => None,
        };
        let task = self.check_model().map_err(|error| error.to_string());
        let task = task.and_then(|()| self.summary_task(cancel.clone(), Source::BranchSummary));
        let LeftBranch { leaf: old_leaf, messages, files } = branch;
        self.navigation = Some(ActiveNavigation { ticket, navigation, old_leaf, cancel });
        let inbox = self.inbox_writer.clone();
        // Owned by `navigation`: cancelled by abort and stop, and its end is reported in any case.
        tokio::spawn(async move {
            let result = match task {
                Ok(task) => {
                    let work = async move { task.branch(&messages, files, instructions.as_deref()).await };
                    let joined = tokio::spawn(work).await;
                    joined.unwrap_or_else(|error| Err(SummaryFailure::Failed(error.to_string())))
                }
                Err(error) => Err(SummaryFailure::Failed(error)),
            };
            let message = NavigationMessage::Summarised(result);
            inbox.send(Inbox(InboxMessage::Navigation(message))).await.ok();
        });
    }

    /// Moves the leaf, and puts summary and mark there.
    fn arrive(
        &mut self,
        navigation: Navigation,
        summary: Option<(EntryId, Summary)>,
    ) -> Result<Navigated, AgentError> {
        self.make_writable()?;
        let target = self.session.entry(navigation.target.as_str());
        let target =
            target.ok_or_else(|| AgentError::NotFound(format!("Entry not found: {}", navigation.target)))?;
        let editor_text = said_by_user(&target);
        let leaf = match &editor_text {
            Some(_) => target.parent_id().map(EntryId::from),
            None => Some(navigation.target.clone()),
        };
        let before = self.session.leaf().cloned();
        self.session.set_leaf(leaf.as_ref())?;
        let summary = match summary {
            Some((from_id, summary)) => {
                let kept = self.append(NewEntry::BranchSummary {
                    from_id,
                    summary: summary.text,
                    details: Some(summary.details),
                    usage: Some(summary.usage),
                    from_hook: Some(false),
                });
                if kept.is_err() {
                    self.session.set_leaf(before.as_ref())?;
                }
                Some(kept?)
            }
            None => None,
        };
        if let Some(entry) = &summary {
            self.emit(EntryAppended { entry: entry.clone() });
        }
        if let Some(label) = navigation.label {
            let marked = summary.as_ref().map_or(navigation.target, |entry| EntryId::from(entry.id()));
            self.label(marked, Some(label))?;
        }
        if self.session.is_saved() || summary.is_some() {
            self.session.save()?;
        }
        self.adopt_session_state();
        Ok(Navigated { leaf_id: self.session.leaf().cloned(), editor_text, summary, cancelled: false })
    }

    /// Marks an entry; an empty mark, or none, takes it away.
    pub fn set_label(
        &mut self,
        entry: EntryId,
        label: Option<String>,
    ) -> Result<Shared<SessionEntry>, AgentError> {
        let label = label.map(|label| label.trim().to_owned()).filter(|label| !label.is_empty());
        self.label(entry, label)
    }

    fn label(
        &mut self,
        target_id: EntryId,
        label: Option<String>,
    ) -> Result<Shared<SessionEntry>, AgentError> {
        let entry = self.append(NewEntry::Label { target_id, label })?;
        self.emit(EntryAppended { entry: entry.clone() });
        Ok(entry)
    }
}

/// The text of a user message.
fn said_by_user(entry: &SessionEntry) -> Option<String> {
    match entry {
        SessionEntry::MessageEntry(entry) => match &*entry.message {
            AgentMessage::User(UserMessage { content, .. }) => Some(content.text().into_owned()),
            _ => None,
        },
        _ => None,
    }
}

/// The message that an entry stands for.
fn message_of(entry: &SessionEntry) -> Option<Shared<AgentMessage>> {
    match entry {
        SessionEntry::MessageEntry(entry) => Some(entry.message.clone()),
        SessionEntry::BranchSummaryEntry(entry) => {
            let summary = entry.summary.clone();
            Some(AgentMessage::BranchSummary(BranchSummaryMessage { summary, ..Default::default() }).into())
        }
        SessionEntry::CompactionEntry(entry) => {
            let summary = entry.summary.clone();
            Some(AgentMessage::BranchSummary(BranchSummaryMessage { summary, ..Default::default() }).into())
        }
        SessionEntry::CustomMessageEntry(entry) => {
            let content = entry.content.clone();
            Some(AgentMessage::Custom(CustomMessage { content, ..Default::default() }).into())
        }
        _ => None,
    }
}
