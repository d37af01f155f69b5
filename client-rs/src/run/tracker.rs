//! Following one run through the records of its connection.
//!
//! The reader calls the tracker for every record, in order, and never waits for it. So nothing that came
//! in the same chunk as the response is missed, and what a slow reader of the stream loses is still in
//! the outcome.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sampi_protocol::commands::{Disposition, StreamingBehavior};
use sampi_protocol::data::AgentMessage;
use sampi_protocol::events::{QueueUpdate, SessionEvent};
use tokio::sync::watch;

use super::RunOutcome;
use super::outcome::{Aborted, Collected};
use super::place::Place;
use crate::error::ClientError;
use crate::events::{EventItem, Queue};

/// Whether a tracker wants to see more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    Open,
    Done,
}

impl Interest {
    pub(crate) fn is_open(self) -> bool {
        self == Self::Open
    }
}

#[derive(Debug)]
enum Phase {
    /// The response has not come. What comes now may still belong to the run before.
    Sent {
        last_update: Option<QueueUpdate>,
    },
    /// The prompt started the run.
    Started,
    /// The prompt waits in a queue.
    Queued {
        place: Place,
    },
    /// The prompt has just left its queue: a user's message comes next if it is delivered.
    LeftQueue,
    /// The prompt is part of the run.
    Delivered,
    /// Somebody cleared the queue.
    Removed,
    Done,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Between `agent_start` and `agent_settled`.
    running: bool,
    collected: Collected,
    outcome: Option<Result<RunOutcome, ClientError>>,
}

#[derive(Debug)]
pub(crate) struct Tracker {
    behavior: Option<StreamingBehavior>,
    events: Arc<Queue>,
    state: Mutex<State>,
    done: watch::Sender<bool>,
}

impl Tracker {
    /// A tracker for a prompt that is about to be sent; it keeps `capacity` events for its reader.
    pub(crate) fn new(behavior: Option<StreamingBehavior>, capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            behavior,
            events: Queue::new(capacity),
            state: Mutex::new(State {
                phase: Phase::Sent { last_update: None },
                running: false,
                collected: Collected::default(),
                outcome: None,
            }),
            done: watch::Sender::new(false),
        })
    }

    pub(crate) fn events(&self) -> &Arc<Queue> {
        &self.events
    }

    /// The response came.
    pub(crate) fn accepted(&self, disposition: Disposition) {
        let mut state = self.lock();
        let Phase::Sent { last_update } = &mut state.phase else { return };
        match disposition {
            Disposition::Started => state.phase = Phase::Started,
            Disposition::Handled => {
                state.collected = Collected::default();
                self.finish(state, Disposition::Handled, Aborted(false));
            }
            Disposition::Queued => {
                let last_update = last_update.take();
                let place = self.behavior.and_then(|behavior| Place::last(behavior, last_update.as_ref()?));
                // Without a place nothing tells when it is delivered: it settles with the run.
                state.phase = place.map_or(Phase::Delivered, |place| Phase::Queued { place });
                state.running = true;
                state.collected = Collected::default();
            }
        }
    }

    /// Sees one record.
    pub(crate) fn observe(&self, item: &EventItem) -> Interest {
        self.events.push(item.clone());
        let EventItem::Event(event) = item else { return Interest::Open };
        let mut state = self.lock();
        match &**event {
            SessionEvent::AgentStart(_) => state.running = true,
            SessionEvent::MessageEnd(event) => state.collected.add(&event.message),
            _ => {}
        }
        state.phase = match std::mem::replace(&mut state.phase, Phase::Done) {
            Phase::Sent { last_update } => match &**event {
                SessionEvent::QueueUpdate(update) => Phase::Sent { last_update: Some(update.clone()) },
                SessionEvent::AgentSettled(_) => {
                    // The run before this one.
                    self.events.clear();
                    state.collected = Collected::default();
                    Phase::Sent { last_update }
                }
                _ => Phase::Sent { last_update },
            },
            Phase::Queued { place } => match &**event {
                SessionEvent::QueueUpdate(update) => {
                    place.follow(update).map_or(Phase::LeftQueue, |place| Phase::Queued { place })
                }
                _ => Phase::Queued { place },
            },
            Phase::LeftQueue => match &**event {
                SessionEvent::MessageStart(event) if matches!(*event.message, AgentMessage::User(_)) => {
                    state.collected = Collected::default();
                    Phase::Delivered
                }
                _ => Phase::Removed,
            },
            phase => phase,
        };
        let settled = match &**event {
            SessionEvent::AgentSettled(event) => {
                state.running = false;
                Some(Aborted(event.aborted))
            }
            _ => None,
        };
        match (&state.phase, settled) {
            (Phase::Started, Some(aborted)) => self.finish(state, Disposition::Started, aborted),
            (Phase::Delivered, Some(aborted)) => self.finish(state, Disposition::Queued, aborted),
            (Phase::Removed, _) if !state.running => self.finish_removed(state),
            (Phase::LeftQueue, _) if !state.running => self.finish_removed(state),
            (Phase::Done, _) => return Interest::Done,
            _ => return Interest::Open,
        }
        Interest::Done
    }

    /// The connection ended.
    pub(crate) fn fail(&self, error: ClientError) {
        let mut state = self.lock();
        if state.outcome.is_none() {
            state.outcome = Some(Err(error));
        }
        state.phase = Phase::Done;
        self.announce(state);
    }

    pub(crate) fn is_done(&self) -> bool {
        *self.done.borrow()
    }

    pub(crate) async fn outcome(&self) -> Result<RunOutcome, ClientError> {
        let mut done = self.done.subscribe();
        // The sender is part of self, so it cannot be gone.
        let _ = done.wait_for(|done| *done).await;
        self.lock().outcome.clone().unwrap_or(Err(ClientError::Stopping))
    }

    fn finish(&self, mut state: MutexGuard<'_, State>, disposition: Disposition, aborted: Aborted) {
        let collected = std::mem::take(&mut state.collected);
        state.outcome = Some(Ok(collected.into_outcome(disposition, aborted)));
        state.phase = Phase::Done;
        self.announce(state);
    }

    fn finish_removed(&self, mut state: MutexGuard<'_, State>) {
        state.outcome = Some(Ok(RunOutcome {
            error: Some("the queued message was removed before it was delivered".to_owned()),
            ..Collected::default().into_outcome(Disposition::Queued, Aborted(false))
        }));
        state.phase = Phase::Done;
        self.announce(state);
    }

    fn announce(&self, state: MutexGuard<'_, State>) {
        drop(state);
        self.events.end();
        self.done.send_replace(true);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
