//! The reader: bytes from the host, cut into frames by a task of its own.

use sampi_protocol::jsonl::{Frame, LineSplitter};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;

/// Frames that may wait for the loop. Small, because each can be large.
const FRAME_CAPACITY: usize = 16;

/// Bytes that are read at once.
const READ_SIZE: usize = 64 * 1024;

/// The frames that the host sends.
pub(super) struct Incoming {
    frames: mpsc::Receiver<Frame>,
}

impl Incoming {
    /// Starts the reader. It ends with its input, or when nobody takes the frames any more.
    pub(super) fn start<R: AsyncRead + Send + Unpin + 'static>(mut input: R, limit: usize) -> Self {
        let (sender, frames) = mpsc::channel(FRAME_CAPACITY);
        tokio::spawn(async move {
            let mut splitter = LineSplitter::new(limit);
            let mut bytes = vec![0; READ_SIZE];
            loop {
                let read = match input.read(&mut bytes).await {
                    Ok(0) => break,
                    Ok(read) => read,
                    Err(error) => {
                        tracing::error!(%error, "the input could not be read");
                        break;
                    }
                };
                let mut frames = Vec::new();
                splitter.push(&bytes[..read], |frame| frames.push(frame));
                for frame in frames {
                    if sender.send(frame).await.is_err() {
                        return;
                    }
                }
            }
            if let Some(last) = splitter.finish() {
                sender.send(last).await.ok();
            }
        });
        Self { frames }
    }

    /// The next frame; `None` once the input has ended. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Frame> {
        self.frames.recv().await
    }
}
