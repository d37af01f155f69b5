//! Events of a connection and who listens to them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};

use futures::Stream;
use sampi_protocol::WireError;
use sampi_protocol::events::SessionEvent;
use sampi_protocol::ui::UiRequest;

use crate::error::{ClientError, Exit};
use crate::run::Tracker;

/// How many items a subscription keeps for a reader that is behind, unless it says otherwise.
pub const DEFAULT_EVENT_CAPACITY: usize = 4096;

/// What a subscription yields.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum EventItem {
    /// Something happened in the session. A kind that this version does not know is
    /// [`SessionEvent::Unknown`].
    Event(Arc<SessionEvent>),
    /// An extension wants something shown and expects no answer (`notify`, `setStatus`, `setWidget`,
    /// `setTitle`, `set_editor_text`).
    Ui(Arc<UiRequest>),
    /// The daemon wrote an event or a dialog of a known kind that is not as the protocol says, or one that is
    /// longer than the frame limit. A dialog is dismissed, unless its id cannot be known: then the error says
    /// so, and only an abort or the dialog's own timeout ends the daemon's wait.
    Malformed(Arc<MalformedRecord>),
    /// The reader was too slow: this many items were dropped here, the oldest ones.
    Lagged(u64),
    /// The connection ended. Nothing more comes from this process.
    Closed(Arc<Exit>),
}

impl EventItem {
    /// The session event, if it is one.
    pub fn as_event(&self) -> Option<&SessionEvent> {
        match self {
            Self::Event(event) => Some(event),
            _ => None,
        }
    }
}

/// A record that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedRecord {
    /// The record, or the start of it when it is too long.
    pub text: String,
    /// What is wrong with it.
    pub error: WireError,
}

#[derive(Debug, Default)]
struct QueueState {
    items: VecDeque<EventItem>,
    lagged: u64,
    ended: bool,
    waker: Option<Waker>,
}

/// A bounded queue between the reader and one subscriber. The reader never waits: when the queue is
/// full, the oldest item makes room and is counted.
#[derive(Debug)]
pub(crate) struct Queue {
    capacity: usize,
    state: Mutex<QueueState>,
}

impl Queue {
    pub(crate) fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self { capacity, state: Mutex::default() })
    }

    /// A queue for a subscriber who reads nothing.
    pub(crate) fn is_mute(&self) -> bool {
        self.capacity == 0
    }

    pub(crate) fn push(&self, item: EventItem) {
        if self.is_mute() {
            return;
        }
        self.change(|state| {
            if state.ended {
                return;
            }
            if state.items.len() >= self.capacity {
                state.items.pop_front();
                state.lagged += 1;
            }
            state.items.push_back(item);
        });
    }

    /// Forgets what has not been read.
    pub(crate) fn clear(&self) {
        let mut state = self.lock();
        state.items.clear();
        state.lagged = 0;
    }

    /// Nothing is added after this; what is there can still be read.
    pub(crate) fn end(&self) {
        self.change(|state| state.ended = true);
    }

    fn change(&self, change: impl FnOnce(&mut QueueState)) {
        let waker = {
            let mut state = self.lock();
            change(&mut state);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<EventItem>> {
        let mut state = self.lock();
        if state.lagged > 0 {
            return Poll::Ready(Some(EventItem::Lagged(std::mem::take(&mut state.lagged))));
        }
        if let Some(item) = state.items.pop_front() {
            return Poll::Ready(Some(item));
        }
        if state.ended {
            return Poll::Ready(None);
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A bounded stream of events.
///
/// A reader that is too slow loses the oldest items and is told how many with [`EventItem::Lagged`]. The
/// stream ends with [`EventItem::Closed`] when the connection ends, also when the client is started
/// again: subscribe anew then.
#[derive(Debug)]
pub struct Subscription {
    queue: Arc<Queue>,
}

impl Subscription {
    pub(crate) fn new(queue: Arc<Queue>) -> Self {
        Self { queue }
    }

    /// Waits for the next item; `None` after the last one.
    pub async fn next(&mut self) -> Option<EventItem> {
        std::future::poll_fn(|cx| self.queue.poll_next(cx)).await
    }

    /// Waits for the next session event, past all other items; `None` when the connection ended.
    pub async fn next_event(&mut self) -> Option<Arc<SessionEvent>> {
        loop {
            if let EventItem::Event(event) = self.next().await? {
                return Some(event);
            }
        }
    }

    /// Waits for the next item and blocks the thread meanwhile. Not for async code.
    pub fn blocking_next(&mut self) -> Option<EventItem> {
        struct Unpark(std::thread::Thread);
        impl Wake for Unpark {
            fn wake(self: Arc<Self>) {
                self.0.unpark();
            }
        }
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut cx = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(item) = self.queue.poll_next(&mut cx) {
                return item;
            }
            std::thread::park();
        }
    }
}

impl Stream for Subscription {
    type Item = EventItem;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<EventItem>> {
        self.queue.poll_next(cx)
    }
}

enum Sink {
    /// A subscription: it ends with the connection.
    Queue(Weak<Queue>),
    /// A listener's queue: it outlives the connection.
    Listener(Weak<Queue>),
    Run(Weak<Tracker>),
}

impl Sink {
    fn is_gone(&self) -> bool {
        match self {
            Self::Queue(queue) | Self::Listener(queue) => queue.strong_count() == 0,
            Self::Run(tracker) => tracker.strong_count() == 0,
        }
    }
}

#[derive(Default)]
struct HubState {
    sinks: Vec<Sink>,
    closed: Option<Arc<Exit>>,
}

/// Hands the events of one connection to its listeners, in order.
#[derive(Default)]
pub(crate) struct Hub {
    state: Mutex<HubState>,
}

impl Hub {
    pub(crate) fn subscribe(&self, capacity: usize) -> Subscription {
        let queue = Queue::new(capacity.max(1));
        let mut state = self.lock();
        match &state.closed {
            Some(exit) => {
                queue.push(EventItem::Closed(Arc::clone(exit)));
                queue.end();
            }
            None => state.sinks.push(Sink::Queue(Arc::downgrade(&queue))),
        }
        Subscription::new(queue)
    }

    pub(crate) fn attach_listener(&self, queue: &Arc<Queue>) {
        let mut state = self.lock();
        match &state.closed {
            Some(exit) => queue.push(EventItem::Closed(Arc::clone(exit))),
            None => state.sinks.push(Sink::Listener(Arc::downgrade(queue))),
        }
    }

    pub(crate) fn track(&self, tracker: &Arc<Tracker>) {
        let mut state = self.lock();
        match &state.closed {
            Some(exit) => tracker.fail(ClientError::Exited(Arc::clone(exit))),
            None => state.sinks.push(Sink::Run(Arc::downgrade(tracker))),
        }
    }

    /// True when nobody listens, so that events need not even be read.
    pub(crate) fn is_deaf(&self) -> bool {
        let mut state = self.lock();
        state.sinks.retain(|sink| !sink.is_gone());
        state.sinks.is_empty()
    }

    pub(crate) fn publish(&self, item: &EventItem) {
        self.lock().sinks.retain(|sink| match sink {
            Sink::Queue(queue) | Sink::Listener(queue) => {
                queue.upgrade().map(|queue| queue.push(item.clone())).is_some()
            }
            Sink::Run(tracker) => tracker.upgrade().is_some_and(|tracker| tracker.observe(item).is_open()),
        });
    }

    pub(crate) fn close(&self, exit: &Arc<Exit>) {
        let sinks = {
            let mut state = self.lock();
            state.closed.get_or_insert_with(|| Arc::clone(exit));
            std::mem::take(&mut state.sinks)
        };
        for sink in sinks {
            match sink {
                Sink::Queue(queue) => {
                    if let Some(queue) = queue.upgrade() {
                        queue.push(EventItem::Closed(Arc::clone(exit)));
                        queue.end();
                    }
                }
                Sink::Listener(queue) => {
                    if let Some(queue) = queue.upgrade() {
                        queue.push(EventItem::Closed(Arc::clone(exit)));
                    }
                }
                Sink::Run(tracker) => {
                    if let Some(tracker) = tracker.upgrade() {
                        tracker.fail(ClientError::Exited(Arc::clone(exit)));
                    }
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The listeners of one client. They end with it.
#[derive(Default)]
pub(crate) struct Listeners {
    queues: Mutex<Vec<Weak<Queue>>>,
}

impl Listeners {
    /// Starts a thread for each function.
    pub(crate) fn start(functions: Vec<Arc<dyn Fn(EventItem) + Send + Sync>>) -> Result<Self, ClientError> {
        let listeners = Self::default();
        for function in functions {
            let queue = Queue::new(DEFAULT_EVENT_CAPACITY);
            Listener::start(&queue, move |item| function(item))
                .map_err(|error| ClientError::Listener(Arc::new(error)))?;
            listeners.lock().push(Arc::downgrade(&queue));
        }
        Ok(listeners)
    }

    /// A hub that all of them hear.
    pub(crate) fn hub(&self) -> Hub {
        Self::hub_of(&mut self.lock())
    }

    /// The same for who has locked them.
    pub(crate) fn hub_of(queues: &mut Vec<Weak<Queue>>) -> Hub {
        queues.retain(|queue| queue.strong_count() > 0);
        let hub = Hub::default();
        queues.iter().filter_map(Weak::upgrade).for_each(|queue| hub.attach_listener(&queue));
        hub
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Weak<Queue>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.lock().iter().filter_map(Weak::upgrade).for_each(|queue| queue.end());
    }
}

/// A listener that was added with [`on_event`](crate::RpcClient::on_event).
///
/// Dropping it leaves the listener in place; it stays until [`remove`](Listener::remove), across
/// restarts, or until the client's last handle is dropped.
#[derive(Debug, Clone)]
pub struct Listener {
    queue: Weak<Queue>,
}

impl Listener {
    /// Takes the listener away. Items that are already queued for it are not delivered any more.
    pub fn remove(&self) {
        if let Some(queue) = self.queue.upgrade() {
            queue.clear();
            queue.end();
        }
    }

    /// Starts the listener's thread.
    ///
    /// A thread, not a task: a listener is a plain function that may block, and on a runtime with one
    /// thread it would hold up the reader.
    pub(crate) fn start(
        queue: &Arc<Queue>,
        mut listener: impl FnMut(EventItem) + Send + 'static,
    ) -> std::io::Result<Self> {
        let mut items = Subscription::new(Arc::clone(queue));
        std::thread::Builder::new().name("sampi-listener".to_owned()).spawn(move || {
            while let Some(item) = items.blocking_next() {
                if catch_unwind(AssertUnwindSafe(|| listener(item))).is_err() {
                    tracing::error!("an event listener panicked; it stays and gets the next event");
                }
            }
        })?;
        Ok(Self { queue: Arc::downgrade(queue) })
    }
}
