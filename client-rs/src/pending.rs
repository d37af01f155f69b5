//! Commands that wait for their answer.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sampi_protocol::response::ErrorCode;
use sampi_protocol::wire;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use crate::error::{ClientError, CommandError, Exit};
use crate::run::Tracker;

/// The answer to a command, its data still as text so that the caller's task decodes it, not the reader.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) success: bool,
    pub(crate) data: Option<Range<usize>>,
    pub(crate) error: Option<String>,
    pub(crate) code: Option<ErrorCode>,
}

impl Reply {
    /// The text of `data`; `null` when there is none.
    pub(crate) fn data_text(&self) -> &str {
        self.data.clone().and_then(|range| self.text.get(range)).unwrap_or("null")
    }

    /// The reply itself when the command succeeded, else its failure.
    pub(crate) fn succeeded(self, command: &str) -> Result<Self, ClientError> {
        if self.success {
            return Ok(self);
        }
        Err(ClientError::Command(CommandError {
            command: command.to_owned(),
            message: self.error.unwrap_or_else(|| "no reason given".to_owned()),
            code: self.code,
        }))
    }

    /// Reads `data` as the command's result.
    pub(crate) fn read<T: DeserializeOwned>(self, command: &str) -> Result<T, ClientError> {
        let reply = self.succeeded(command)?;
        read_repaired(reply.data_text())
            .map_err(|error| ClientError::Protocol { command: command.to_owned(), error })
    }
}

/// Reads a JSON text; lone surrogates, which serde_json refuses, are replaced when it fails.
pub(crate) fn read_repaired<T: DeserializeOwned>(text: &str) -> Result<T, sampi_protocol::WireError> {
    wire::from_text(text).or_else(|error| match wire::repair_lone_surrogates(text) {
        Some(repaired) => wire::from_text(&repaired),
        None => Err(error),
    })
}

/// Who waits for an answer.
pub(crate) struct Waiter {
    pub(crate) command: String,
    pub(crate) sender: oneshot::Sender<Result<Reply, ClientError>>,
    /// The run that the answer starts; it is told in order with the events.
    pub(crate) tracker: Option<Arc<Tracker>>,
}

#[derive(Default)]
struct State {
    waiters: HashMap<String, Waiter>,
    closed: Option<Arc<Exit>>,
}

/// The commands of one connection that wait for their answer.
#[derive(Default)]
pub(crate) struct Pending {
    state: Mutex<State>,
}

impl Pending {
    /// Registers a waiter. Fails when the connection has ended.
    pub(crate) fn register(self: &Arc<Self>, id: &str, waiter: Waiter) -> Result<Ticket, Arc<Exit>> {
        let mut state = self.lock();
        if let Some(exit) = &state.closed {
            return Err(Arc::clone(exit));
        }
        state.waiters.insert(id.to_owned(), waiter);
        Ok(Ticket { pending: Arc::clone(self), id: id.to_owned() })
    }

    /// Takes the waiter with this id out.
    pub(crate) fn take(&self, id: &str) -> Option<Waiter> {
        self.lock().waiters.remove(id)
    }

    /// Fails every waiter and whatever is registered from now on. Only the first reason counts.
    pub(crate) fn close(&self, exit: &Arc<Exit>) {
        let waiters = {
            let mut state = self.lock();
            state.closed.get_or_insert_with(|| Arc::clone(exit));
            std::mem::take(&mut state.waiters)
        };
        for waiter in waiters.into_values() {
            // The caller may be gone.
            let _ = waiter.sender.send(Err(ClientError::Exited(Arc::clone(exit))));
        }
    }

    /// How the connection ended, if it did.
    pub(crate) fn exit(&self) -> Option<Arc<Exit>> {
        self.lock().closed.clone()
    }

    /// How many commands wait.
    pub(crate) fn len(&self) -> usize {
        self.lock().waiters.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets its waiter when it is dropped.
pub(crate) struct Ticket {
    pending: Arc<Pending>,
    id: String,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.pending.take(&self.id);
    }
}
