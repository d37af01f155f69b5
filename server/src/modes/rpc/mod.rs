//! RPC mode: commands on stdin, responses and events on stdout, one JSON record a line.
//!
//! One loop owns the agent: it takes a line, a report of one of the agent's tasks or a signal, applies
//! it, and hands what there is to say to the one writer. Reading never waits on work; what the host does
//! not read slows the model down, not the reading of commands.

use std::time::Duration;

use sampi_protocol::jsonl::{DEFAULT_FRAME_LIMIT, Frame};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::agent::Agent;
use crate::modes::signals::{Signal, Signals};

mod dispatch;
mod frame_head;
mod handlers;
mod incoming;
mod outgoing;
mod ui;

use handlers::Handlers;
use incoming::Incoming;
use outgoing::{Outgoing, Writer};

/// Unwritten output above which the reports of tasks wait: the model is slowed down.
const EVENT_BACKLOG: usize = 1024 * 1024;

/// Unwritten output above which commands wait too.
const COMMAND_BACKLOG: usize = 16 * 1024 * 1024;

/// How long the daemon waits at the end for what is going on to stop.
const STOP_DEADLINE: Duration = Duration::from_secs(4);

/// How long the daemon waits at the end for a host that does not read its output.
const FLUSH_DEADLINE: Duration = Duration::from_secs(10);

/// Limits of the RPC mode.
#[derive(Debug, Clone, Copy)]
pub struct RpcLimits {
    /// The longest record that is read, in bytes.
    pub frame: usize,
}

impl Default for RpcLimits {
    fn default() -> Self {
        Self { frame: DEFAULT_FRAME_LIMIT }
    }
}

enum Event {
    Line(Frame),
    EndOfInput,
    Agent(crate::agent::Inbox),
    Signal(Signal),
    Written,
    OutputClosed,
    DeadlinePassed,
}

/// Serves one host until its input ends or a signal comes; gives back the exit code.
pub async fn serve<R, W>(agent: Agent, input: R, output: W, mut signals: Signals, limits: RpcLimits) -> i32
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let mut incoming = Incoming::start(input, limits.frame);
    let (mut outgoing, writer) = Outgoing::start(output);
    let mut handlers = Handlers::new(agent, limits);
    let mut exit_code = None;
    let mut stop_at: Option<tokio::time::Instant> = None;
    loop {
        handlers.write_outputs(&mut outgoing);
        if stop_at.is_some() && handlers.agent().is_idle() && outgoing.is_empty() {
            break;
        }
        let backlog = outgoing.backlog();
        let event = tokio::select! {
            biased;
            signal = signals.next() => Event::Signal(signal),
            written = outgoing.hand_over(), if !outgoing.is_empty() => match written {
                Ok(()) => Event::Written,
                Err(outgoing::Closed) => Event::OutputClosed,
            },
            line = incoming.next(), if stop_at.is_none() && backlog < COMMAND_BACKLOG => match line {
                Some(frame) => Event::Line(frame),
                None => Event::EndOfInput,
            },
            Some(report) = handlers.agent_mut().receive(), if backlog < EVENT_BACKLOG => Event::Agent(report),
            () = sleep_until(stop_at) => Event::DeadlinePassed,
        };
        match event {
            Event::Line(frame) => handlers.handle_frame(frame, &mut outgoing),
            Event::Agent(report) => handlers.agent_mut().handle(report),
            Event::Written => {}
            Event::EndOfInput => {
                exit_code.get_or_insert(0);
                begin_stop(&mut handlers, &mut stop_at);
            }
            Event::Signal(signal) if exit_code.is_some_and(|code| code != 0) => return signal.exit_code(),
            Event::Signal(signal) => {
                exit_code = Some(signal.exit_code());
                begin_stop(&mut handlers, &mut stop_at);
            }
            Event::OutputClosed => {
                tracing::info!("the host no longer reads, stopping");
                handlers.agent_mut().stop();
                break;
            }
            Event::DeadlinePassed => {
                tracing::error!("what was going on did not stop in time");
                break;
            }
        }
    }
    flush(outgoing, writer).await;
    exit_code.unwrap_or(0)
}

fn begin_stop(handlers: &mut Handlers, stop_at: &mut Option<tokio::time::Instant>) {
    handlers.agent_mut().stop();
    stop_at.get_or_insert_with(|| tokio::time::Instant::now() + STOP_DEADLINE);
}

async fn sleep_until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn flush(outgoing: Outgoing, writer: Writer) {
    let flushed = async {
        // An output that is closed cannot be flushed, and nobody is left to be told.
        outgoing.finish().await.ok();
        writer.finish().await;
    };
    if tokio::time::timeout(FLUSH_DEADLINE, flushed).await.is_err() {
        tracing::error!("the host does not read; the rest of the output is lost");
    }
}
