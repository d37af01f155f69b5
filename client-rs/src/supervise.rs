//! Watching over one connection from its start to its end.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::connection::{Link, LinkEnds, read_records, write_records};
use crate::error::{Exit, ExitReason};
use crate::events::Hub;
use crate::process::{Launch, Process, StderrTail, StopDelays, read_stderr};
use crate::ui::{UiHandler, answer_dialogs};

/// How long a process may linger after it closed its output or its input, before it is killed.
const LINGER: Duration = Duration::from_secs(1);

/// How long the output of a process that ended is still read. Only a process that escaped from its group
/// and holds the pipe open makes it last that long.
const DRAIN: Duration = Duration::from_secs(1);

/// One connection as its clients hold it. Dropping the last handle ends it at once.
pub(crate) struct Connection {
    pub(crate) link: Arc<Link>,
    stop: watch::Sender<Option<StopDelays>>,
    closed: watch::Receiver<Option<Arc<Exit>>>,
    process_id: Option<u32>,
    _dropped: DropGuard,
}

impl Connection {
    /// Starts a process and connects to it. Must be called on a runtime.
    pub(crate) fn spawn(
        launch: &Launch,
        frame_limit: usize,
        handler: Arc<dyn UiHandler>,
        hub: Hub,
    ) -> Result<Self, crate::ClientError> {
        let (process, pipes) = launch.start()?;
        let process_id = process.id();
        let tail = StderrTail::default();
        let stderr = tokio::spawn(read_stderr(pipes.stderr, tail.clone(), launch.stderr.clone()));
        let peer = Peer::Process { process: Box::new(process), stderr: Owned(stderr), tail };
        Ok(Self {
            process_id,
            ..Self::start(pipes.stdout, pipes.stdin, Link::new(frame_limit, hub), handler, peer)
        })
    }

    /// Connects to whatever is behind two streams. Must be called on a runtime.
    pub(crate) fn over<R, W>(
        reader: R,
        writer: W,
        frame_limit: usize,
        handler: Arc<dyn UiHandler>,
        hub: Hub,
    ) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        Self::start(reader, writer, Link::new(frame_limit, hub), handler, Peer::Streams)
    }

    fn start<R, W>(
        reader: R,
        writer: W,
        (link, LinkEnds { outgoing, dialogs }): (Arc<Link>, LinkEnds),
        handler: Arc<dyn UiHandler>,
        peer: Peer,
    ) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (stop, stop_end) = watch::channel(None);
        let (closed, closed_end) = watch::channel(None);
        let dropped = CancellationToken::new();
        let supervisor = Supervisor {
            link: Arc::clone(&link),
            reader: Owned(tokio::spawn(read_records(reader, Arc::clone(&link)))),
            writer: Owned(tokio::spawn(write_records(writer, outgoing))),
            dialogs: Owned(tokio::spawn(answer_dialogs(dialogs, Arc::clone(&link), handler))),
            peer,
            stop: stop_end,
            dropped: dropped.clone(),
        };
        // The supervisor owns the other tasks and ends when the connection does; it needs no owner but
        // the drop guard, which ends it.
        tokio::spawn(async move {
            let exit = supervisor.run().await;
            closed.send_replace(Some(exit));
        });
        Self { link, stop, closed: closed_end, process_id: None, _dropped: dropped.drop_guard() }
    }

    pub(crate) fn process_id(&self) -> Option<u32> {
        self.process_id
    }

    /// How the connection ended, if it did.
    pub(crate) fn exit(&self) -> Option<Arc<Exit>> {
        self.link.exit()
    }

    /// Waits until the connection has ended.
    pub(crate) async fn closed(&self) -> Arc<Exit> {
        let mut closed = self.closed.clone();
        let exit = closed.wait_for(Option::is_some).await.ok().and_then(|exit| exit.clone());
        // Without a supervisor the runtime is shutting down.
        exit.unwrap_or_else(|| {
            Arc::new(Exit { reason: ExitReason::Dropped, status: None, stderr_tail: String::new() })
        })
    }

    /// Ends the connection in an orderly way.
    pub(crate) async fn stop(&self, delays: StopDelays) -> Arc<Exit> {
        // The supervisor hangs up. It must know why first: a daemon may be gone before anybody looks.
        self.stop.send_replace(Some(delays));
        self.closed().await
    }
}

/// What is at the other end.
enum Peer {
    Streams,
    Process { process: Box<Process>, stderr: Owned<()>, tail: StderrTail },
}

/// A task that ends with its owner.
struct Owned<T>(JoinHandle<T>);

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why the supervisor woke up.
enum Cause {
    Exited(io::Result<ExitStatus>),
    Reader(Result<io::Result<()>, JoinError>),
    WriterFailed,
    Stop(StopDelays),
    Dropped,
}

struct Supervisor {
    link: Arc<Link>,
    reader: Owned<io::Result<()>>,
    writer: Owned<io::Result<()>>,
    dialogs: Owned<()>,
    peer: Peer,
    stop: watch::Receiver<Option<StopDelays>>,
    dropped: CancellationToken,
}

impl Supervisor {
    /// Waits for the end, reads what the daemon had written until then, and tells everybody.
    async fn run(mut self) -> Arc<Exit> {
        let cause = self.cause().await;
        let mut reader_done = matches!(cause, Cause::Reader(_));
        let mut status = None;
        let reason = match cause {
            Cause::Exited(exited) => {
                status = exited.ok();
                ExitReason::Exited
            }
            Cause::Reader(result) => {
                let reason = match result {
                    Ok(Ok(())) => ExitReason::OutputClosed,
                    Ok(Err(error)) => ExitReason::ReadFailed(error.to_string()),
                    Err(error) => ExitReason::ReadFailed(error.to_string()),
                };
                self.link.hang_up();
                self.end_lingering(reason, &mut status).await
            }
            Cause::WriterFailed => self.end_lingering(ExitReason::InputClosed, &mut status).await,
            Cause::Stop(delays) => {
                reader_done = self.end_orderly(delays, &mut status).await;
                ExitReason::Stopped
            }
            Cause::Dropped => {
                if let Peer::Process { process, .. } = &mut self.peer {
                    process.kill_group();
                    // Nobody else would reap it.
                    status = process.wait_for(LINGER).await.and_then(Result::ok);
                }
                ExitReason::Dropped
            }
        };
        if !reader_done && reason != ExitReason::Dropped {
            // Everything that the daemon had written counts.
            let _ = tokio::time::timeout(DRAIN, &mut self.reader.0).await;
        }
        let stderr_tail = match &mut self.peer {
            Peer::Streams => String::new(),
            Peer::Process { stderr, tail, .. } => {
                let _ = tokio::time::timeout(DRAIN, &mut stderr.0).await;
                tail.text()
            }
        };
        let exit = Arc::new(Exit { reason, status, stderr_tail });
        self.dialogs.0.abort();
        self.link.close(&exit);
        exit
    }

    async fn cause(&mut self) -> Cause {
        let exited = async {
            match &mut self.peer {
                Peer::Streams => std::future::pending().await,
                Peer::Process { process, .. } => process.wait().await,
            }
        };
        let writer_failed = async {
            // A writer that ends well closed the daemon's input because the link hung up.
            if let Ok(Ok(())) = (&mut self.writer.0).await {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            // In this order: a daemon that was asked to end and has ended was stopped.
            biased;
            _ = self.dropped.cancelled() => Cause::Dropped,
            Ok(delays) = wait_for_stop(&mut self.stop) => Cause::Stop(delays),
            status = exited => Cause::Exited(status),
            result = &mut self.reader.0 => Cause::Reader(result),
            () = writer_failed => Cause::WriterFailed,
        }
    }

    /// A daemon that does not talk any more gets a moment to end by itself. If it does, that is the
    /// reason; else it is killed for `reason`.
    async fn end_lingering(&mut self, reason: ExitReason, status: &mut Option<ExitStatus>) -> ExitReason {
        let Peer::Process { process, .. } = &mut self.peer else { return reason };
        match process.wait_for(LINGER).await {
            Some(exited) => {
                *status = exited.ok();
                ExitReason::Exited
            }
            None => {
                process.kill_group();
                *status = process.wait_for(LINGER).await.and_then(Result::ok);
                reason
            }
        }
    }

    /// Closes the input, then TERM, then KILL. True when the reader has ended.
    async fn end_orderly(&mut self, delays: StopDelays, status: &mut Option<ExitStatus>) -> bool {
        self.link.hang_up();
        let Peer::Process { process, .. } = &mut self.peer else {
            return tokio::time::timeout(delays.after_close, &mut self.reader.0).await.is_ok();
        };
        let mut exited = process.wait_for(delays.after_close).await;
        if exited.is_none() {
            process.terminate();
            exited = process.wait_for(delays.after_term).await;
        }
        if exited.is_none() {
            process.kill_group();
            exited = process.wait_for(delays.after_kill).await;
        }
        *status = exited.and_then(Result::ok);
        false
    }
}

async fn wait_for_stop(
    stop: &mut watch::Receiver<Option<StopDelays>>,
) -> Result<StopDelays, watch::error::RecvError> {
    loop {
        if let Some(delays) = *stop.borrow_and_update() {
            return Ok(delays);
        }
        stop.changed().await?;
    }
}
