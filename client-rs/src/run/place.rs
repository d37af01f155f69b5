//! Following one message through the queues.

use sampi_protocol::commands::StreamingBehavior;
use sampi_protocol::events::QueueUpdate;

/// Where a message waits: a queue, and how many messages are before it.
#[derive(Debug)]
pub(super) struct Place {
    behavior: StreamingBehavior,
    before: usize,
    queue: Vec<String>,
}

impl Place {
    /// The place of the message that was queued last.
    pub(super) fn last(behavior: StreamingBehavior, update: &QueueUpdate) -> Option<Self> {
        let queue = queue_of(behavior, update);
        let before = queue.len().checked_sub(1)?;
        Some(Self { behavior, before, queue: queue.to_vec() })
    }

    /// Follows a change of the queues. `None` when the message is not in its queue any more.
    ///
    /// Messages leave at the front and come at the back: the smallest number of messages that must have
    /// left to explain the change is the one that left.
    pub(super) fn follow(mut self, update: &QueueUpdate) -> Option<Self> {
        let now = queue_of(self.behavior, update);
        let left = (0..=self.queue.len()).find(|left| now.starts_with(&self.queue[*left..]))?;
        self.before = self.before.checked_sub(left)?;
        self.queue = now.to_vec();
        Some(self)
    }
}

fn queue_of(behavior: StreamingBehavior, update: &QueueUpdate) -> &[String] {
    match behavior {
        StreamingBehavior::Steer => &update.steering,
        StreamingBehavior::FollowUp => &update.follow_up,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(steering: &[&str]) -> QueueUpdate {
        QueueUpdate { steering: steering.iter().map(|&text| text.to_owned()).collect(), follow_up: vec![] }
    }

    #[test]
    fn a_message_is_followed_until_it_leaves_also_among_equal_ones() {
        let place = Place::last(StreamingBehavior::Steer, &update(&["x", "x"])).unwrap();
        let place = place.follow(&update(&["x", "x", "y"])).unwrap();
        let place = place.follow(&update(&["x", "y"])).unwrap();
        assert!(place.follow(&update(&["y"])).is_none());
        assert!(Place::last(StreamingBehavior::FollowUp, &update(&["x"])).is_none());
    }

    #[test]
    fn clearing_the_queue_takes_the_message_out() {
        let place = Place::last(StreamingBehavior::Steer, &update(&["a", "b"])).unwrap();
        assert!(place.follow(&update(&[])).is_none());
    }
}
