//! Signals that end the daemon.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How long the daemon waits at the end for what is going on to stop.
const STOP_DEADLINE: Duration = Duration::from_secs(4);

/// A signal that ends the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGHUP
    Hangup,
    /// SIGINT
    Interrupt,
    /// SIGTERM
    Terminate,
}

impl Signal {
    /// The exit code that tells of the signal: 128 and its number.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Hangup => 129,
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }
}

/// The signals that come.
pub struct Signals(mpsc::Receiver<Signal>);

impl Signals {
    /// The signals of the process.
    pub fn of_process() -> std::io::Result<Self> {
        let (sender, signals) = mpsc::channel(4);
        let kinds = [
            (SignalKind::hangup(), Signal::Hangup),
            (SignalKind::interrupt(), Signal::Interrupt),
            (SignalKind::terminate(), Signal::Terminate),
        ];
        for (kind, name) in kinds {
            let mut stream = signal(kind)?;
            let sender = sender.clone();
            // Lives as long as the process.
            tokio::spawn(async move {
                while stream.recv().await.is_some() {
                    if sender.send(name).await.is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Self(signals))
    }

    /// The next signal. Cancel-safe.
    pub async fn next(&mut self) -> Signal {
        match self.0.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }
}

/// The end of a mode, once it has begun: what is going on may take a while to stop.
#[derive(Debug, Default)]
pub(super) struct Stop(Option<Instant>);

impl Stop {
    /// Begins the end, unless it has begun.
    pub(super) fn begin(&mut self) {
        self.0.get_or_insert_with(|| Instant::now() + STOP_DEADLINE);
    }

    pub(super) fn has_begun(&self) -> bool {
        self.0.is_some()
    }

    /// Waits until what is going on should have stopped; for ever while the end has not begun. Cancel-safe.
    pub(super) async fn deadline(&self) {
        match self.0 {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }
}
