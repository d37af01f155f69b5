//! The steering and follow-up queues.

use std::collections::VecDeque;

use sampi_protocol::commands::{ClearedQueue, QueueMode};
use sampi_protocol::data::{AgentMessage, Content, ContentBlock, UserMessage};
use sampi_protocol::events::QueueUpdate;

use crate::extensions::Input;

use super::{Agent, now_millis};

/// Messages that wait to be delivered.
#[derive(Debug)]
pub(super) struct Queues {
    pub(super) steering: VecDeque<Input>,
    pub(super) follow_up: VecDeque<Input>,
    pub(super) steering_mode: QueueMode,
    pub(super) follow_up_mode: QueueMode,
}

/// Which queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueKind {
    Steering,
    FollowUp,
}

impl Queues {
    pub(super) fn new(steering_mode: QueueMode, follow_up_mode: QueueMode) -> Self {
        Self { steering: VecDeque::new(), follow_up: VecDeque::new(), steering_mode, follow_up_mode }
    }

    pub(super) fn len(&self) -> usize {
        self.steering.len() + self.follow_up.len()
    }

    pub(super) fn take_all(&mut self) -> ClearedQueue {
        ClearedQueue { steering: take_texts(&mut self.steering), follow_up: take_texts(&mut self.follow_up) }
    }

    fn queue(&mut self, kind: QueueKind) -> (&mut VecDeque<Input>, QueueMode) {
        match kind {
            QueueKind::Steering => (&mut self.steering, self.steering_mode),
            QueueKind::FollowUp => (&mut self.follow_up, self.follow_up_mode),
        }
    }
}

fn take_texts(queue: &mut VecDeque<Input>) -> Vec<String> {
    queue.drain(..).map(|input| input.text).collect()
}

impl Agent {
    /// Takes all queued messages out and gives their texts back.
    pub fn clear_queue(&mut self) -> ClearedQueue {
        let cleared = self.queues.take_all();
        self.emit_queue_update();
        cleared
    }

    pub(super) fn enqueue(&mut self, kind: QueueKind, input: Input) {
        self.queues.queue(kind).0.push_back(input);
        self.emit_queue_update();
    }

    /// Drops all queued messages, as those of another session.
    pub(super) fn drop_queued(&mut self) {
        if self.queues.len() > 0 {
            self.clear_queue();
        }
    }

    /// Delivers what the queue's mode says, each message after a `queue_update` without it. One that
    /// cannot be kept stays queued, and the run ends.
    pub(super) fn deliver_queued(&mut self, kind: QueueKind) {
        loop {
            let (queue, mode) = self.queues.queue(kind);
            let Some(input) = queue.pop_front() else { return };
            self.emit_queue_update();
            if let Err(error) = self.keep(user_message(input.clone())) {
                tracing::error!(%error, "a queued message could not be kept");
                self.recovery.broken.get_or_insert(error.to_string());
                self.queues.queue(kind).0.push_front(input);
                self.emit_queue_update();
                return;
            }
            if mode == QueueMode::OneAtATime {
                return;
            }
        }
    }

    fn emit_queue_update(&mut self) {
        let texts = |queue: &VecDeque<Input>| queue.iter().map(|input| input.text.clone()).collect();
        let update =
            QueueUpdate { steering: texts(&self.queues.steering), follow_up: texts(&self.queues.follow_up) };
        self.emit(update);
    }
}

/// The message that an input becomes.
pub(super) fn user_message(input: Input) -> AgentMessage {
    let mut blocks = vec![ContentBlock::text(input.text)];
    blocks.extend(input.images.into_iter().map(ContentBlock::Image));
    blocks.extend(input.notes.into_iter().map(ContentBlock::text));
    AgentMessage::User(UserMessage {
        content: Content::Blocks(blocks),
        timestamp: now_millis(),
        ..UserMessage::default()
    })
}
