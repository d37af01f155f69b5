//! What waits for one subscriber.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures::Stream;
use sampi_protocol::events::SessionEvent;

use super::events::Event;
use super::message::MessageProgress;

/// How many events wait for a subscriber that is behind. What is new of one message is one event.
pub const EVENT_CAPACITY: usize = 1024;

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    lagged: u64,
    ended: bool,
    /// The newest event of a message: the next one of the same message goes on there.
    progress: Option<MessageProgress>,
    waker: Option<Waker>,
}

impl State {
    fn note_progress(&mut self, event: &mut Event) {
        match event {
            Event::Message(progress) => {
                if let Some(earlier) = &self.progress {
                    progress.continue_from(earlier);
                }
                self.progress = Some(progress.clone());
            }
            // The message is over, or none was under way.
            _ => self.progress = None,
        }
    }
}

/// A bounded queue between the session and one subscriber. The session never waits: events of one message, and
/// results so far of one tool call, become one; when the queue is full, the oldest event makes room and is counted.
#[derive(Default)]
pub(super) struct Queue(Mutex<State>);

impl Queue {
    pub(super) fn push(&self, mut event: Event) {
        self.change(|state| {
            state.note_progress(&mut event);
            if state.ended || state.events.back_mut().is_some_and(|last| merge(last, &event)) {
                return;
            }
            if state.events.len() >= EVENT_CAPACITY {
                state.events.pop_front();
                state.lagged += 1;
            }
            state.events.push_back(event);
        });
    }

    pub(super) fn end(&self) {
        self.change(|state| state.ended = true);
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let waker = {
            let mut state = self.lock();
            change(&mut state);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut state = self.lock();
        if state.lagged > 0 {
            return Poll::Ready(Some(Event::Lagged(std::mem::take(&mut state.lagged))));
        }
        if let Some(event) = state.events.pop_front() {
            return Poll::Ready(Some(event));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts the new event into the one that waits last, where both speak of the same; false otherwise.
fn merge(last: &mut Event, new: &Event) -> bool {
    match (last, new) {
        (Event::Message(last), Event::Message(new)) => last.extend(new),
        (Event::Session(last), Event::Session(new)) => match (&**last, &**new) {
            (SessionEvent::ToolExecutionUpdate(old), SessionEvent::ToolExecutionUpdate(newer))
                if old.tool_call_id == newer.tool_call_id =>
            {
                *last = Arc::clone(new);
                true
            }
            _ => false,
        },
        _ => false,
    }
}

/// The events of a session, from the moment of subscribing on. It ends when the session is disposed or replaced.
/// Dropping it unsubscribes.
pub struct Subscription {
    queue: Arc<Queue>,
}

impl Subscription {
    pub(super) fn new(queue: Arc<Queue>) -> Self {
        Self { queue }
    }

    /// Waits for the next event; `None` after the last one. Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.queue.poll_next(cx)).await
    }
}

impl Stream for Subscription {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        self.queue.poll_next(cx)
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").field("waiting", &self.queue.lock().events.len()).finish()
    }
}
