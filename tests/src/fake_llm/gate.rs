use tokio_util::sync::CancellationToken;

use crate::harness::within_timeout;

/// A point in a reply that the server does not pass until the test opens it.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    reached: CancellationToken,
    opened: CancellationToken,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the reply go on. Stays open.
    pub fn open(&self) {
        self.opened.cancel();
    }

    /// Ends when a reply stands before the gate: all that comes before it has been handed to the socket.
    pub async fn reached(&self) {
        within_timeout("the gate to be reached", self.reached.cancelled()).await;
    }

    pub(super) async fn pass(&self) {
        self.reached.cancel();
        self.opened.cancelled().await;
    }
}
