//! The only writer of a mode's output.
//!
//! Records are serialised into one buffer; whenever the writing task is free it takes all that is there
//! and writes it at once.

use std::time::Duration;

use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use sampi_protocol::jsonl;

/// Unwritten output above which the reports of tasks wait: the model is slowed down.
pub(super) const EVENT_BACKLOG: usize = 1024 * 1024;

/// How long the daemon waits at the end for a host that does not read its output.
const FLUSH_DEADLINE: Duration = Duration::from_secs(10);

/// The output can no longer be written.
#[derive(Debug)]
pub(super) struct Closed;

/// The output that is not written yet.
pub(super) struct Outgoing {
    buffer: Vec<u8>,
    writer: mpsc::Sender<Vec<u8>>,
}

/// The task that writes.
pub(super) struct Writer(JoinHandle<()>);

impl Outgoing {
    /// Starts the writing task.
    pub(super) fn start<W: AsyncWrite + Send + Unpin + 'static>(mut output: W) -> (Self, Writer) {
        let (writer, mut batches) = mpsc::channel::<Vec<u8>>(1);
        let task = tokio::spawn(async move {
            while let Some(batch) = batches.recv().await {
                let written = async {
                    output.write_all(&batch).await?;
                    output.flush().await
                };
                if let Err(error) = written.await {
                    tracing::info!(%error, "the output could not be written");
                    return;
                }
            }
        });
        (Self { buffer: Vec::new(), writer }, Writer(task))
    }

    /// Adds one record.
    pub(super) fn write<T: Serialize + ?Sized>(&mut self, record: &T) {
        if let Err(error) = jsonl::encode(record, &mut self.buffer) {
            tracing::error!(%error, "a record could not be serialised");
        }
    }

    /// Adds one record that is written piece by piece; on an error nothing of it stays.
    pub(super) fn write_pieces<E>(
        &mut self,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.buffer.len();
        let written = write(&mut self.buffer);
        match written {
            Ok(()) => self.buffer.push(b'\n'),
            Err(_) => self.buffer.truncate(start),
        }
        written
    }

    /// Adds text as it is.
    pub(super) fn write_text(&mut self, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
    }

    /// True when everything has been handed to the writing task.
    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Bytes that wait for the writing task.
    pub(super) fn backlog(&self) -> usize {
        self.buffer.len()
    }

    /// Waits until the writing task is free and gives it all that is there. Cancel-safe.
    pub(super) async fn hand_over(&mut self) -> Result<(), Closed> {
        let permit = self.writer.reserve().await.map_err(|_| Closed)?;
        permit.send(std::mem::take(&mut self.buffer));
        Ok(())
    }

    /// Hands over what is left, ends the writing task and waits until everything is written, but not
    /// for ever: a host that does not read loses the rest.
    pub(super) async fn finish(mut self, writer: Writer) {
        let flushed = async {
            if !self.buffer.is_empty() {
                // An output that is closed cannot be flushed, and nobody is left to be told.
                self.hand_over().await.ok();
            }
            drop(self);
            writer.finish().await;
        };
        if tokio::time::timeout(FLUSH_DEADLINE, flushed).await.is_err() {
            tracing::error!("the host does not read; the rest of the output is lost");
        }
    }
}

impl Writer {
    async fn finish(self) {
        if let Err(error) = self.0.await {
            tracing::error!(%error, "the writing task failed");
        }
    }
}
