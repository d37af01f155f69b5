//! One connection to a daemon: a writer task, a reader task, and what they share.
//!
//! The reader never waits for anybody but the daemon. Answers are handed over undecoded, events go to
//! bounded queues, dialogs to a task of their own; so a slow caller, listener or dialog delays nobody.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use sampi_protocol::WireError;
use sampi_protocol::events::SessionEvent;
use sampi_protocol::jsonl::{Frame, LineSplitter};
use sampi_protocol::response::ErrorCode;
use sampi_protocol::ui::{UiRequest, UiResponse};
use sampi_protocol::wire;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

use crate::error::{ClientError, Exit};
use crate::events::{EventItem, Hub, MalformedRecord};
use crate::pending::{Pending, Reply, Ticket, Waiter, read_repaired};
use crate::run::Tracker;
use crate::scan::CutRecord;
use crate::ui::DialogRequest;

/// How many bytes are read at once.
const READ_BUFFER: usize = 64 * 1024;

/// How much of a line that is no record is logged.
const LOGGED_LINE: usize = 200;

/// What the tasks and the callers of one connection share.
pub(crate) struct Link {
    outgoing: Mutex<Option<mpsc::UnboundedSender<Vec<u8>>>>,
    dialogs: mpsc::UnboundedSender<DialogRequest>,
    pending: Arc<Pending>,
    hub: Hub,
    frame_limit: usize,
}

/// The ends of a link's channels, one for each of its tasks.
pub(crate) struct LinkEnds {
    pub(crate) outgoing: mpsc::UnboundedReceiver<Vec<u8>>,
    pub(crate) dialogs: mpsc::UnboundedReceiver<DialogRequest>,
}

impl Link {
    /// A link whose events go to this hub.
    pub(crate) fn new(frame_limit: usize, hub: Hub) -> (Arc<Self>, LinkEnds) {
        // Unbounded, so that calls are sent in the order in which they were first polled. While the daemon
        // does not read it grows by what callers send, those included who do not wait for the answer any more.
        let (outgoing, outgoing_end) = mpsc::unbounded_channel();
        // Unbounded, because the reader must not wait, and bounded in effect: each dialog blocks the
        // extension that asked until it is answered.
        let (dialogs, dialogs_end) = mpsc::unbounded_channel();
        let link =
            Self { outgoing: Mutex::new(Some(outgoing)), dialogs, pending: Arc::default(), hub, frame_limit };
        (Arc::new(link), LinkEnds { outgoing: outgoing_end, dialogs: dialogs_end })
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    pub(crate) fn exit(&self) -> Option<Arc<Exit>> {
        self.pending.exit()
    }

    pub(crate) fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// Sends a command and gives its answer. The waiter is there before the command is sent; dropping
    /// the future forgets it.
    pub(crate) async fn request(
        &self,
        id: &str,
        command: &str,
        record: Vec<u8>,
        tracker: Option<Arc<Tracker>>,
    ) -> Result<Reply, ClientError> {
        let (sender, answer) = oneshot::channel();
        if let Some(tracker) = &tracker {
            self.hub.track(tracker);
        }
        let waiter = Waiter { command: command.to_owned(), sender, tracker };
        let _ticket: Ticket = self.pending.register(id, waiter)?;
        let Some(outgoing) = self.outgoing() else { return Err(ClientError::Stopping) };
        // When the writer is gone the connection is about to end, and ending it answers the waiter.
        let _ = outgoing.send(record);
        drop(outgoing);
        answer.await.unwrap_or(Err(ClientError::Stopping))
    }

    /// Sends the answer to a dialog.
    pub(crate) async fn answer_dialog(&self, answer: &UiResponse) {
        let mut record = Vec::new();
        if let Err(error) = sampi_protocol::jsonl::encode(answer, &mut record) {
            tracing::error!(%error, "an answer to a dialog could not be encoded");
            return;
        }
        if let Some(outgoing) = self.outgoing() {
            // A connection that ends meanwhile has no use for the answer.
            let _ = outgoing.send(record);
        }
    }

    /// Takes no more records; the writer closes the daemon's input once it has written what it has.
    pub(crate) fn hang_up(&self) {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Ends the connection: every waiter, run and subscription learns why.
    pub(crate) fn close(&self, exit: &Arc<Exit>) {
        self.hang_up();
        self.pending.close(exit);
        self.hub.close(exit);
    }

    fn outgoing(&self) -> Option<mpsc::UnboundedSender<Vec<u8>>> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn receive(&self, frame: Frame) {
        match frame {
            Frame::Line(bytes) => {
                let text = String::from_utf8(bytes)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
                self.receive_line(text);
            }
            Frame::TooLong { length, start } => self.receive_start(length, &String::from_utf8_lossy(&start)),
        }
    }

    fn receive_line(&self, text: String) {
        if self.receive_event(&text) {
            return;
        }
        let Some((kind, record)) = Record::read(&text) else {
            tracing::warn!(line = cut(&text), "the agent wrote a line that is no record; it is skipped");
            return;
        };
        match kind.as_ref() {
            "response" => {
                let Some(id) = record.id.and_then(|id| serde_json::from_str::<String>(id.get()).ok()) else {
                    tracing::warn!(line = cut(&text), "the agent answered a command that has no id of ours");
                    return;
                };
                let Some(waiter) = self.pending.take(&id) else {
                    tracing::debug!(line = cut(&text), "the agent answered a command that nobody waits for");
                    return;
                };
                let reply = Reply {
                    success: record.success.is_some_and(|success| success.get() == "true"),
                    data: record.data.map(|data| range_in(&text, data)),
                    error: record.error.and_then(|error| read_repaired(error.get()).ok()),
                    code: record.code.and_then(|code| serde_json::from_str::<ErrorCode>(code.get()).ok()),
                    text,
                };
                answer(waiter, reply);
            }
            "extension_ui_request" => match read_repaired::<UiRequest>(&text) {
                Ok(request) if request.method.is_dialog() => {
                    // Without its task the connection is ending, and the dialog with it.
                    let _ = self.dialogs.send(DialogRequest::Ask(request));
                }
                Ok(request) => self.hub.publish(&EventItem::Ui(Arc::new(request))),
                Err(error) => {
                    if let Some(id) = record.id.and_then(|id| serde_json::from_str(id.get()).ok()) {
                        self.dismiss(id);
                    }
                    self.malformed(text, error);
                }
            },
            _ if self.hub.is_deaf() => {}
            kind => match read_event(kind, &text) {
                Ok(event) => self.hub.publish(&EventItem::Event(Arc::new(event))),
                Err(error) => self.malformed(text, error),
            },
        }
    }

    /// Takes the line if it is an event that starts with its tag, as nearly all do: they are read once
    /// and, when nobody listens, not even that. What cannot be read is left to the thorough way.
    fn receive_event(&self, text: &str) -> bool {
        match wire::leading_tag(text) {
            None | Some("response" | "extension_ui_request") => false,
            Some(_) if self.hub.is_deaf() => true,
            Some(kind) => match SessionEvent::read_as(kind, text) {
                Ok(event) => {
                    self.hub.publish(&EventItem::Event(Arc::new(event)));
                    true
                }
                Err(_) => false,
            },
        }
    }

    fn receive_start(&self, length: usize, start: &str) {
        let limit = self.frame_limit;
        let record = CutRecord::read(start);
        let is_kind = |name| record.kind.as_deref().is_none_or(|kind| kind == name);
        let waiter =
            record.id.as_deref().filter(|_| is_kind("response")).and_then(|id| self.pending.take(id));
        if let Some(Waiter { command, sender, .. }) = waiter {
            // The caller may be gone.
            let _ = sender.send(Err(ClientError::FrameTooLong { command, length, limit }));
            return;
        }
        let mut error = format!("{length} bytes, more than the frame limit of {limit}");
        match record.id {
            Some(id) if is_kind("extension_ui_request") => self.dismiss(id),
            None if record.kind.as_deref() == Some("extension_ui_request") => {
                error.push_str(
                    "; its id is not at its start: if it is a dialog, it waits for an answer for ever",
                );
            }
            _ => {}
        }
        self.malformed(start.to_owned(), WireError::new(error));
    }

    /// Dismisses what may be a dialog and cannot be read: nobody must wait for it.
    fn dismiss(&self, id: String) {
        // Without the dialogs' task the connection is ending, and the dialog with it.
        let _ = self.dialogs.send(DialogRequest::Dismiss(id));
    }

    fn malformed(&self, text: String, error: WireError) {
        tracing::warn!(%error, line = cut(&text), "the agent wrote a record that could not be read");
        self.hub.publish(&EventItem::Malformed(Arc::new(MalformedRecord { text, error })));
    }
}

/// Gives a waiter its answer; the run that the answer starts learns of it first.
fn answer(waiter: Waiter, reply: Reply) {
    if let Some(tracker) = waiter.tracker.filter(|_| reply.success) {
        match read_repaired::<sampi_protocol::commands::PromptResult>(reply.data_text()) {
            Ok(result) => tracker.accepted(result.disposition),
            Err(error) => tracing::warn!(%error, "the answer to a prompt does not say what became of it"),
        }
    }
    // The caller may be gone.
    let _ = waiter.sender.send(Ok(reply));
}

/// The fields of a record that route it. Other kinds of records may use the same names for other things,
/// so all are read as they are.
#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow, rename = "type")]
    kind: &'a RawValue,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    success: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    code: Option<&'a RawValue>,
}

impl<'a> Record<'a> {
    fn read(text: &'a str) -> Option<(Cow<'a, str>, Self)> {
        if !text.trim_start().starts_with('{') {
            return None;
        }
        let record: Self = serde_json::from_str(text).ok()?;
        let kind = record.kind.get();
        let kind = match kind.strip_prefix('"').and_then(|kind| kind.strip_suffix('"')) {
            Some(plain) if !plain.contains('\\') => Cow::Borrowed(plain),
            _ => Cow::Owned(serde_json::from_str(kind).ok()?),
        };
        Some((kind, record))
    }
}

fn read_event(kind: &str, text: &str) -> Result<SessionEvent, WireError> {
    SessionEvent::read_as(kind, text).or_else(|error| match wire::repair_lone_surrogates(text) {
        Some(repaired) => SessionEvent::read_as(kind, &repaired),
        None => Err(error),
    })
}

/// Where a part that was borrowed from `text` is in it.
fn range_in(text: &str, part: &RawValue) -> Range<usize> {
    let start = (part.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    start..start + part.get().len()
}

fn cut(line: &str) -> &str {
    let mut end = line.len().min(LOGGED_LINE);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    &line[..end]
}

/// Reads records until the daemon's output ends.
pub(crate) async fn read_records(
    mut reader: impl AsyncRead + Unpin,
    link: Arc<Link>,
) -> Result<(), std::io::Error> {
    let mut splitter = LineSplitter::new(link.frame_limit);
    let mut buffer = vec![0; READ_BUFFER];
    loop {
        let length = reader.read(&mut buffer).await?;
        if length == 0 {
            if let Some(frame) = splitter.finish() {
                link.receive(frame);
            }
            return Ok(());
        }
        splitter.push(&buffer[..length], |frame| link.receive(frame));
    }
}

/// Writes records until the link hangs up, then closes the daemon's input.
pub(crate) async fn write_records(
    mut writer: impl AsyncWrite + Unpin,
    mut records: mpsc::UnboundedReceiver<Vec<u8>>,
) -> Result<(), std::io::Error> {
    while let Some(record) = records.recv().await {
        writer.write_all(&record).await?;
        if records.is_empty() {
            writer.flush().await?;
        }
    }
    writer.shutdown().await
}
