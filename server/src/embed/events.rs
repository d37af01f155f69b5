//! From what the agent says to what subscribers hear.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sampi_protocol::events::SessionEvent;
use tokio_util::sync::CancellationToken;

use super::message::{MessageLog, MessageProgress};
use super::queue::{Queue, Subscription};

/// What a subscription yields.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// The assistant message grew. Comes in place of `message_update`.
    Message(MessageProgress),
    /// Anything else that happened in the session.
    Session(Arc<SessionEvent>),
    /// The reader was too slow: this many events are missing here.
    Lagged(u64),
}

impl Event {
    /// The session event, if it is one.
    pub fn as_session(&self) -> Option<&SessionEvent> {
        match self {
            Self::Session(event) => Some(event),
            _ => None,
        }
    }

    /// The progress of a message, if it is one.
    pub fn as_message(&self) -> Option<&MessageProgress> {
        match self {
            Self::Message(progress) => Some(progress),
            _ => None,
        }
    }
}

/// Hands the events of one session to its subscribers, in order. It never waits for one.
pub(super) struct Hub {
    queues: Mutex<Vec<Weak<Queue>>>,
    /// The message that is being streamed.
    log: Mutex<Option<Arc<MessageLog>>>,
    ended: CancellationToken,
}

impl Hub {
    pub(super) fn new() -> Self {
        Self { queues: Mutex::default(), log: Mutex::default(), ended: CancellationToken::new() }
    }

    pub(super) fn subscribe(&self) -> Subscription {
        let queue = Arc::new(Queue::default());
        let mut queues = lock(&self.queues);
        if self.ended.is_cancelled() {
            queue.end();
        } else {
            queues.push(Arc::downgrade(&queue));
        }
        Subscription::new(queue)
    }

    pub(super) fn publish(&self, event: SessionEvent) {
        let mut log = lock(&self.log);
        let event = match event {
            SessionEvent::MessageUpdate(update) => {
                let log = log.get_or_insert_default();
                log.push(update);
                Event::Message(MessageProgress::last_of(log))
            }
            event => {
                match &event {
                    SessionEvent::MessageStart(start) if start.message.as_assistant().is_some() => {
                        *log = Some(Arc::new(MessageLog::new(event.clone())));
                    }
                    SessionEvent::MessageEnd(end) if end.message.as_assistant().is_some() => *log = None,
                    _ => {}
                }
                Event::Session(Arc::new(event))
            }
        };
        drop(log);
        lock(&self.queues).retain(|queue| match queue.upgrade() {
            Some(queue) => {
                queue.push(event.clone());
                true
            }
            None => false,
        });
    }

    /// Ends every subscription; what waits in them can still be read.
    pub(super) fn end(&self) {
        let queues = {
            let mut queues = lock(&self.queues);
            self.ended.cancel();
            std::mem::take(&mut *queues)
        };
        queues.iter().filter_map(Weak::upgrade).for_each(|queue| queue.end());
    }

    /// Waits for the end.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
