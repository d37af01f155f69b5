//! RPC mode: commands on stdin, responses and events on stdout, one JSON record a line.
//!
//! One loop owns the agent: it takes a line, a report of one of the agent's tasks or a signal, applies
//! it, and hands what there is to say to the one writer. Reading never waits on work; what the host does
//! not read slows the model down, not the reading of commands.

use sampi_protocol::jsonl::{DEFAULT_FRAME_LIMIT, Frame};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::agent::Agent;
use crate::modes::outgoing::{Closed, EVENT_BACKLOG, Outgoing};
use crate::modes::signals::{Signal, Signals, Stop};

mod dispatch;
mod frame_head;
mod handlers;
mod incoming;
mod ui;

use handlers::Handlers;
use incoming::Incoming;

/// Unwritten output above which commands wait too.
const COMMAND_BACKLOG: usize = 16 * 1024 * 1024;

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
    let mut stop = Stop::default();
    loop {
        handlers.write_outputs(&mut outgoing);
        if stop.has_begun() && handlers.agent().is_idle() && outgoing.is_empty() {
            break;
        }
        let backlog = outgoing.backlog();
        let event = tokio::select! {
            biased;
            signal = signals.next() => Event::Signal(signal),
            written = outgoing.hand_over(), if !outgoing.is_empty() => match written {
                Ok(()) => Event::Written,
                Err(Closed) => Event::OutputClosed,
            },
            line = incoming.next(), if !stop.has_begun() && backlog < COMMAND_BACKLOG => match line {
                Some(frame) => Event::Line(frame),
                None => Event::EndOfInput,
            },
            Some(report) = handlers.agent_mut().receive(), if backlog < EVENT_BACKLOG => Event::Agent(report),
            () = stop.deadline() => Event::DeadlinePassed,
        };
        match event {
            Event::Line(frame) => handlers.handle_frame(frame, &mut outgoing),
            Event::Agent(report) => handlers.agent_mut().handle(report),
            Event::Written => {}
            Event::EndOfInput => {
                exit_code.get_or_insert(0);
                handlers.agent_mut().stop();
                stop.begin();
            }
            Event::Signal(signal) if exit_code.is_some_and(|code| code != 0) => return signal.exit_code(),
            Event::Signal(signal) => {
                exit_code = Some(signal.exit_code());
                handlers.agent_mut().stop();
                stop.begin();
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
    outgoing.finish(writer).await;
    exit_code.unwrap_or(0)
}
