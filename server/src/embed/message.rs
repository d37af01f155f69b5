//! The assistant message that is being streamed, as every event of it left it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sampi_protocol::MessageAssembler;
use sampi_protocol::data::AssistantMessage;
use sampi_protocol::events::SessionEvent;
use sampi_protocol::stream::AssistantMessageEvent;

/// What is new of the message that is being streamed, and the message so far.
///
/// All events of one message share one record of it, so an event costs the same however long the message is.
/// The message is put together when it is asked for: going from event to event costs what each of them adds.
#[derive(Clone)]
pub struct MessageProgress {
    log: Arc<MessageLog>,
    from: usize,
    to: usize,
}

impl MessageProgress {
    pub(super) fn last_of(log: &Arc<MessageLog>) -> Self {
        let to = log.lock().updates.len();
        Self { log: Arc::clone(log), from: to.saturating_sub(1), to }
    }

    /// Takes in what is newer of the same message; false when it is another one.
    pub(super) fn extend(&mut self, newer: &Self) -> bool {
        let same = Arc::ptr_eq(&self.log, &newer.log);
        if same {
            self.to = newer.to;
        }
        same
    }

    /// What happened since the event before this one: one thing for a reader that keeps up, more for one that
    /// was behind. Nothing is left out.
    pub fn changes(&self) -> Vec<AssistantMessageEvent> {
        self.new_updates(|event| Some(event.clone())).collect()
    }

    /// The text that was added.
    pub fn text_delta(&self) -> String {
        self.added(|event| match event {
            AssistantMessageEvent::TextDelta(delta) => Some(delta.delta.clone()),
            _ => None,
        })
    }

    /// The thinking that was added.
    pub fn thinking_delta(&self) -> String {
        self.added(|event| match event {
            AssistantMessageEvent::ThinkingDelta(delta) => Some(delta.delta.clone()),
            _ => None,
        })
    }

    /// The message as this event left it.
    pub fn message(&self) -> AssistantMessage {
        self.read(AssistantMessage::clone)
    }

    /// The text of the message as this event left it.
    pub fn text(&self) -> String {
        self.read(AssistantMessage::text)
    }

    /// Looks at the message as this event left it, without copying it. Meanwhile the session's events wait.
    pub fn read<T>(&self, look: impl FnOnce(&AssistantMessage) -> T) -> T {
        let mut state = self.log.lock();
        match state.assembled(self.to).message() {
            Some(message) => look(message),
            None => look(&AssistantMessage::default()),
        }
    }

    /// What the model has written of the arguments of the tool call with this block index; `None` once the call
    /// is complete and its arguments are in the message.
    pub fn arguments_text(&self, index: usize) -> Option<String> {
        self.log.lock().assembled(self.to).arguments_text(index).map(str::to_owned)
    }

    fn added(&self, text_of: impl Fn(&AssistantMessageEvent) -> Option<String>) -> String {
        self.new_updates(text_of).collect()
    }

    fn new_updates<T>(&self, pick: impl Fn(&AssistantMessageEvent) -> Option<T>) -> std::vec::IntoIter<T> {
        let state = self.log.lock();
        let new = state.updates.get(self.from..self.to).unwrap_or_default().iter();
        let picked: Vec<T> = new
            .filter_map(|event| match event {
                SessionEvent::MessageUpdate(update) => pick(&update.assistant_message_event),
                _ => None,
            })
            .collect();
        picked.into_iter()
    }
}

impl fmt::Debug for MessageProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageProgress").field("changes", &self.changes()).finish_non_exhaustive()
    }
}

/// All that happened to one message, in order.
pub(super) struct MessageLog(Mutex<LogState>);

struct LogState {
    /// The event with which the message began.
    start: SessionEvent,
    updates: Vec<SessionEvent>,
    assembler: MessageAssembler,
    /// How many updates the assembler has seen.
    assembled: usize,
}

impl MessageLog {
    pub(super) fn new(start: SessionEvent) -> Self {
        let mut assembler = MessageAssembler::new();
        assembler.apply(&start);
        Self(Mutex::new(LogState { start, updates: Vec::new(), assembler, assembled: 0 }))
    }

    pub(super) fn push(&self, update: SessionEvent) {
        self.lock().updates.push(update);
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LogState {
    /// The message after this many updates. Only a reader behind another one makes it start anew.
    fn assembled(&mut self, count: usize) -> &MessageAssembler {
        if count < self.assembled {
            self.assembler = MessageAssembler::new();
            self.assembler.apply(&self.start);
            self.assembled = 0;
        }
        for update in self.updates.get(self.assembled..count).unwrap_or_default() {
            self.assembler.apply(update);
        }
        self.assembled = count;
        &self.assembler
    }
}
