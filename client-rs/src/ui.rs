//! Dialogs of extensions: who answers them, and ready policies.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use sampi_protocol::ui::{UiMethod, UiRequest, UiResponse};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::connection::Link;

/// A question of an extension that waits for an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Dialog {
    /// The request's id.
    pub id: String,
    /// What is asked.
    pub question: Question,
    /// How long the daemon waits before it takes the default answer itself; `None` for ever. An answer
    /// that comes later is harmless.
    pub timeout: Option<Duration>,
}

/// What a dialog asks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Question {
    /// Choose one of several options.
    Select {
        /// What is asked.
        title: String,
        /// The options.
        options: Vec<String>,
    },
    /// Yes or no.
    Confirm {
        /// What is asked.
        title: String,
        /// More about it.
        message: String,
    },
    /// Enter a line of text.
    Input {
        /// What is asked.
        title: String,
        /// Text to show while nothing is entered.
        placeholder: Option<String>,
    },
    /// Edit a text of several lines.
    Editor {
        /// What is asked.
        title: String,
        /// The text to start from.
        prefill: Option<String>,
    },
}

impl Dialog {
    /// The dialog of a request; `None` when it expects no answer.
    pub fn from_request(request: UiRequest) -> Option<Self> {
        let (question, timeout) = match request.method {
            UiMethod::Select { title, options, timeout } => (Question::Select { title, options }, timeout),
            UiMethod::Confirm { title, message, timeout } => (Question::Confirm { title, message }, timeout),
            UiMethod::Input { title, placeholder, timeout } => {
                (Question::Input { title, placeholder }, timeout)
            }
            UiMethod::Editor { title, prefill } => (Question::Editor { title, prefill }, None),
            _ => return None,
        };
        Some(Self { id: request.id, question, timeout: timeout.map(Duration::from_millis) })
    }
}

impl Question {
    /// What is asked.
    pub fn title(&self) -> &str {
        match self {
            Self::Select { title, .. }
            | Self::Confirm { title, .. }
            | Self::Input { title, .. }
            | Self::Editor { title, .. } => title,
        }
    }

    /// The answer of somebody who agrees without looking closer: yes to a confirmation, the first option
    /// of a choice, the given text of an editor. An input, which has no such answer, is cancelled.
    pub fn approval(&self) -> Answer {
        match self {
            Self::Confirm { .. } => Answer::Confirmed(true),
            Self::Select { options, .. } => options.first().cloned().map_or(Answer::Cancelled, Answer::Value),
            Self::Editor { prefill, .. } => prefill.clone().map_or(Answer::Cancelled, Answer::Value),
            Self::Input { .. } => Answer::Cancelled,
        }
    }
}

/// An answer to a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// What was chosen or entered; answers a choice, an input or an editor.
    Value(String),
    /// Yes or no; answers a confirmation.
    Confirmed(bool),
    /// The dialog was dismissed. For a confirmation that means no.
    Cancelled,
}

/// Answers the dialogs of extensions.
///
/// Each dialog is handled in a task of its own, so a slow answer delays neither responses nor events nor
/// other dialogs. A handler that panics dismisses its dialog.
pub trait UiHandler: Send + Sync + 'static {
    /// Answers one dialog.
    fn answer(&self, dialog: Dialog) -> BoxFuture<'static, Answer>;
}

/// Dismisses every dialog at once, so that a run never hangs. The default.
#[derive(Debug, Clone, Copy, Default)]
pub struct DenyAll;

impl UiHandler for DenyAll {
    fn answer(&self, _: Dialog) -> BoxFuture<'static, Answer> {
        std::future::ready(Answer::Cancelled).boxed()
    }
}

/// Asks a function, which may take its time.
#[derive(Debug, Clone, Copy)]
pub struct Ask<F>(F);

impl<F, A> Ask<F>
where
    F: Fn(Dialog) -> A + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    /// A handler that calls `ask` for every dialog.
    pub fn new(ask: F) -> Self {
        Self(ask)
    }
}

impl<F, A> UiHandler for Ask<F>
where
    F: Fn(Dialog) -> A + Send + Sync + 'static,
    A: Future<Output = Answer> + Send + 'static,
{
    fn answer(&self, dialog: Dialog) -> BoxFuture<'static, Answer> {
        (self.0)(dialog).boxed()
    }
}

/// Approves the dialogs that a rule allows and dismisses the others, without asking anybody.
#[derive(Debug, Clone, Copy)]
pub struct ApproveWhen<F>(F);

impl<F: Fn(&Dialog) -> bool + Send + Sync + 'static> ApproveWhen<F> {
    /// A handler that gives [`Question::approval`] to each dialog for which `rule` is true.
    pub fn new(rule: F) -> Self {
        Self(rule)
    }
}

impl<F: Fn(&Dialog) -> bool + Send + Sync + 'static> UiHandler for ApproveWhen<F> {
    fn answer(&self, dialog: Dialog) -> BoxFuture<'static, Answer> {
        let answer = if (self.0)(&dialog) { dialog.question.approval() } else { Answer::Cancelled };
        std::future::ready(answer).boxed()
    }
}

/// What the reader hands to the dialogs' task.
pub(crate) enum DialogRequest {
    /// Let the handler answer it.
    Ask(UiRequest),
    /// Dismiss the dialog with this id.
    Dismiss(String),
}

/// Answers the dialogs of one connection until it ends.
pub(crate) async fn answer_dialogs(
    mut requests: mpsc::UnboundedReceiver<DialogRequest>,
    link: Arc<Link>,
    handler: Arc<dyn UiHandler>,
) {
    let mut open = JoinSet::new();
    loop {
        let request = tokio::select! {
            request = requests.recv() => request,
            Some(_) = open.join_next() => continue,
        };
        let dialog = match request {
            None => return,
            Some(DialogRequest::Dismiss(id)) => {
                link.answer_dialog(&UiResponse::cancelled(id)).await;
                continue;
            }
            Some(DialogRequest::Ask(request)) => match Dialog::from_request(request) {
                Some(dialog) => dialog,
                None => continue,
            },
        };
        let (link, handler) = (Arc::clone(&link), Arc::clone(&handler));
        open.spawn(async move {
            let id = dialog.id.clone();
            let answering = AssertUnwindSafe(async { handler.answer(dialog).await });
            let answer = answering.catch_unwind().await.unwrap_or_else(|_| {
                tracing::error!("a dialog handler panicked; its dialog is dismissed");
                Answer::Cancelled
            });
            link.answer_dialog(&match answer {
                Answer::Value(value) => UiResponse::value(id, value),
                Answer::Confirmed(confirmed) => UiResponse::confirmed(id, confirmed),
                Answer::Cancelled => UiResponse::cancelled(id),
            })
            .await;
        });
    }
}
