//! Signals that end the daemon.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

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
pub struct Signals(Option<mpsc::Receiver<Signal>>);

impl Signals {
    /// No signal ever comes; for a mode that runs inside another program.
    pub fn none() -> Self {
        Self(None)
    }

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
        Ok(Self(Some(signals)))
    }

    /// The next signal. Cancel-safe.
    pub async fn next(&mut self) -> Signal {
        if let Some(signals) = &mut self.0
            && let Some(signal) = signals.recv().await
        {
            return signal;
        }
        std::future::pending().await
    }
}
