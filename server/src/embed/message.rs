//! The assistant message that is being streamed, as every event of it left it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sampi_protocol::MessageAssembler;
use sampi_protocol::data::{AssistantMessage, Usage};
use sampi_protocol::events::{MessageUpdate, SessionEvent};
use sampi_protocol::stream::{AssistantMessageEvent, BlockDelta};

/// What is new of the message that is being streamed, and the message so far.
///
/// All events of one message share one record of it, so an event costs the same however long the message is.
/// The message is put together when it is asked for: going from event to event costs what each of them adds, and
/// going back starts anew.
#[derive(Clone)]
pub struct MessageProgress {
    log: Arc<MessageLog>,
    from: usize,
    to: usize,
    /// What the events of one subscription put together.
    view: Arc<Mutex<View>>,
}

impl MessageProgress {
    pub(super) fn last_of(log: &Arc<MessageLog>) -> Self {
        let to = lock(&log.updates).len();
        Self { log: Arc::clone(log), from: to.saturating_sub(1), to, view: Arc::default() }
    }

    /// Goes on where an earlier event of the same message is, if it is one.
    pub(super) fn continue_from(&mut self, earlier: &Self) {
        if Arc::ptr_eq(&self.log, &earlier.log) {
            self.view = Arc::clone(&earlier.view);
        }
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
        lock(&self.log.updates)
            .range(self.from, self.to)
            .map(|update| update.assistant_message_event)
            .collect()
    }

    /// The text that was added.
    pub fn text_delta(&self) -> String {
        let text = |event| match event {
            AssistantMessageEvent::TextDelta(delta) => Some(delta.delta),
            _ => None,
        };
        self.changes().into_iter().filter_map(text).collect()
    }

    /// The thinking that was added.
    pub fn thinking_delta(&self) -> String {
        let thinking = |event| match event {
            AssistantMessageEvent::ThinkingDelta(delta) => Some(delta.delta),
            _ => None,
        };
        self.changes().into_iter().filter_map(thinking).collect()
    }

    /// The message as this event left it.
    pub fn message(&self) -> AssistantMessage {
        self.read(AssistantMessage::clone)
    }

    /// The text of the message as this event left it.
    pub fn text(&self) -> String {
        self.read(AssistantMessage::text)
    }

    /// Looks at the message as this event left it, without copying it. Meanwhile events of the same message cannot
    /// be looked at.
    pub fn read<T>(&self, look: impl FnOnce(&AssistantMessage) -> T) -> T {
        self.assembled(|assembler| match assembler.message() {
            Some(message) => look(message),
            None => look(&AssistantMessage::default()),
        })
    }

    /// What the model has written of the arguments of the tool call with this block index; `None` once the call
    /// is complete and its arguments are in the message.
    pub fn arguments_text(&self, index: usize) -> Option<String> {
        self.assembled(|assembler| assembler.arguments_text(index).map(str::to_owned))
    }

    fn assembled<T>(&self, look: impl FnOnce(&MessageAssembler) -> T) -> T {
        let mut view = lock(&self.view);
        if view.seen == 0 || view.seen > self.to {
            *view = View::default();
            if let Some(start) = &self.log.start {
                view.assembler.apply(start);
            }
        }
        let updates = lock(&self.log.updates);
        for update in updates.range(view.seen, self.to) {
            view.assembler.apply(&update.into());
        }
        drop(updates);
        view.seen = self.to;
        look(&view.assembler)
    }
}

impl fmt::Debug for MessageProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageProgress").field("changes", &self.changes()).finish_non_exhaustive()
    }
}

/// All that happened to one message, in order.
#[derive(Default)]
pub(super) struct MessageLog {
    /// The event with which the message began.
    start: Option<SessionEvent>,
    updates: Mutex<Updates>,
}

impl MessageLog {
    pub(super) fn new(start: SessionEvent) -> Self {
        Self { start: Some(start), ..Self::default() }
    }

    pub(super) fn push(&self, update: MessageUpdate) {
        lock(&self.updates).push(update);
    }
}

/// The updates of a message. An answer has many deltas and little else, so these are kept small.
#[derive(Default)]
struct Updates {
    kept: Vec<Kept>,
    /// What the deltas added, one after the other.
    text: String,
    /// The usages that were reported, each once in a row.
    usages: Vec<Usage>,
}

struct Kept {
    what: What,
    /// Where the text of the deltas ends, this one included.
    end: usize,
    /// The place of the usage.
    usage: usize,
}

enum What {
    Delta(DeltaKind, usize),
    Other(Box<AssistantMessageEvent>),
}

#[derive(Clone, Copy)]
enum DeltaKind {
    Text,
    Thinking,
    ToolCall,
}

impl Updates {
    fn len(&self) -> usize {
        self.kept.len()
    }

    fn push(&mut self, update: MessageUpdate) {
        let MessageUpdate { usage, assistant_message_event: event } = update;
        if self.usages.last() != Some(&usage) {
            self.usages.push(usage);
        }
        let delta = match &event {
            AssistantMessageEvent::TextDelta(delta) => Some((DeltaKind::Text, delta)),
            AssistantMessageEvent::ThinkingDelta(delta) => Some((DeltaKind::Thinking, delta)),
            AssistantMessageEvent::ToolCallDelta(delta) => Some((DeltaKind::ToolCall, delta)),
            _ => None,
        };
        let what = match delta {
            Some((kind, BlockDelta { content_index, delta })) => {
                self.text.push_str(delta);
                What::Delta(kind, *content_index)
            }
            None => What::Other(Box::new(event)),
        };
        self.kept.push(Kept { what, end: self.text.len(), usage: self.usages.len() - 1 });
    }

    /// The updates from one place to another, as they came.
    fn range(&self, from: usize, to: usize) -> impl Iterator<Item = MessageUpdate> + '_ {
        let before = from.checked_sub(1).and_then(|before| self.kept.get(before));
        let mut start = before.map_or(0, |kept| kept.end);
        self.kept.get(from..to).unwrap_or_default().iter().map(move |kept| {
            let delta = self.text.get(std::mem::replace(&mut start, kept.end)..kept.end).unwrap_or_default();
            let delta = |content_index| BlockDelta { content_index, delta: delta.to_owned() };
            let event = match &kept.what {
                What::Delta(DeltaKind::Text, index) => AssistantMessageEvent::TextDelta(delta(*index)),
                What::Delta(DeltaKind::Thinking, index) => {
                    AssistantMessageEvent::ThinkingDelta(delta(*index))
                }
                What::Delta(DeltaKind::ToolCall, index) => {
                    AssistantMessageEvent::ToolCallDelta(delta(*index))
                }
                What::Other(event) => AssistantMessageEvent::clone(event),
            };
            let usage = self.usages.get(kept.usage).cloned().unwrap_or_default();
            MessageUpdate { usage, assistant_message_event: event }
        })
    }
}

/// The message after so many updates.
#[derive(Default)]
struct View {
    assembler: MessageAssembler,
    seen: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn update(output: u64, event: serde_json::Value) -> MessageUpdate {
        let event = json!({ "type": "message_update", "usage": { "output": output }, "assistantMessageEvent": event });
        match SessionEvent::read(&event.to_string()).unwrap() {
            SessionEvent::MessageUpdate(update) => update,
            other => panic!("{other:?}"),
        }
    }

    fn updates() -> Vec<MessageUpdate> {
        let call = json!({ "type": "toolCall", "id": "c", "name": "read", "arguments": { "path": "x" } });
        vec![
            update(1, json!({ "type": "thinking_start", "contentIndex": 0 })),
            update(1, json!({ "type": "thinking_delta", "contentIndex": 0, "delta": "hm" })),
            update(1, json!({ "type": "text_start", "contentIndex": 1 })),
            update(2, json!({ "type": "text_delta", "contentIndex": 1, "delta": "Hé" })),
            update(2, json!({ "type": "text_delta", "contentIndex": 1, "delta": "" })),
            update(1, json!({ "type": "text_delta", "contentIndex": 1, "delta": "llo" })),
            update(1, json!({ "type": "text_end", "contentIndex": 1, "content": "Héllo" })),
            update(3, json!({ "type": "toolcall_start", "contentIndex": 2, "id": "c", "toolName": "read" })),
            update(3, json!({ "type": "toolcall_delta", "contentIndex": 2, "delta": "{\"path\":" })),
            update(3, json!({ "type": "toolcall_end", "contentIndex": 2, "toolCall": call })),
        ]
    }

    #[test]
    fn what_was_kept_comes_back_as_it_was_from_any_place_to_any_other() {
        let pushed = updates();
        let mut kept = Updates::default();
        pushed.iter().cloned().for_each(|update| kept.push(update));
        for from in 0..=pushed.len() {
            for to in from..=pushed.len() {
                assert_eq!(kept.range(from, to).collect::<Vec<_>>(), pushed[from..to], "{from}..{to}");
            }
        }
        assert!(std::mem::size_of::<Kept>() <= 40, "an answer has tens of thousands of them");
    }

    #[test]
    fn every_event_shows_the_message_as_it_left_it_in_whatever_order_they_are_asked() {
        let log = Arc::new(MessageLog::default());
        let mut seen: Vec<MessageProgress> = Vec::new();
        for update in updates() {
            log.push(update);
            let mut progress = MessageProgress::last_of(&log);
            if let Some(earlier) = seen.last() {
                progress.continue_from(earlier);
            }
            seen.push(progress);
        }
        let texts = ["", "", "", "Hé", "Hé", "Héllo", "Héllo", "Héllo", "Héllo", "Héllo"];
        let all = || seen.iter().zip(texts);
        for (progress, text) in all().chain(all().rev()) {
            assert_eq!(progress.text(), text);
        }
        assert_eq!(seen[8].arguments_text(2).as_deref(), Some("{\"path\":"));
        assert_eq!(seen[9].arguments_text(2), None);
        assert_eq!(seen[5].message().usage.output, 1);
        let mut merged = seen[3].clone();
        assert!(merged.extend(&seen[6]) && !merged.extend(&MessageProgress::last_of(&Arc::default())));
        assert_eq!((merged.text_delta().as_str(), merged.changes().len()), ("Héllo", 4));
    }
}
