//! Settings that commands change for good: they go to the user's settings file, as in Pi.

use std::collections::VecDeque;
use std::path::PathBuf;

use sampi_protocol::commands::QueueMode;
use serde_json::{Map, Value, json};

use super::{Agent, Inbox, InboxMessage};
use crate::resources::shared_file::update_object;

/// Changes on their way to the settings file, one at a time and in order.
#[derive(Default)]
pub(super) struct Preferences {
    file: Option<PathBuf>,
    waiting: VecDeque<(&'static [&'static str], Value)>,
    writing: bool,
}

impl Preferences {
    /// With no file, changes last as long as the agent.
    pub(super) fn new(file: Option<PathBuf>) -> Self {
        Self { file, ..Self::default() }
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.writing && self.waiting.is_empty()
    }
}

impl Agent {
    /// Sets how steering messages are delivered.
    pub fn set_steering_mode(&mut self, mode: QueueMode) {
        self.queues.steering_mode = mode;
        self.keep_preference(&["steeringMode"], json!(mode));
    }

    /// Sets how follow-up messages are delivered.
    pub fn set_follow_up_mode(&mut self, mode: QueueMode) {
        self.queues.follow_up_mode = mode;
        self.keep_preference(&["followUpMode"], json!(mode));
    }

    /// Turns automatic compaction on or off.
    pub fn set_auto_compaction(&mut self, enabled: bool) {
        self.auto_compaction = enabled;
        self.keep_preference(&["compaction", "enabled"], json!(enabled));
    }

    /// Turns automatic retry on or off.
    pub fn set_auto_retry(&mut self, enabled: bool) {
        self.recovery.enabled = enabled;
        self.keep_preference(&["retry", "enabled"], json!(enabled));
    }

    fn keep_preference(&mut self, path: &'static [&'static str], value: Value) {
        if self.preferences.file.is_some() {
            self.preferences.waiting.push_back((path, value));
            self.write_next_preference();
        }
    }

    fn write_next_preference(&mut self) {
        let Some(file) = self.preferences.file.clone().filter(|_| !self.preferences.writing) else { return };
        let Some((path, value)) = self.preferences.waiting.pop_front() else { return };
        self.preferences.writing = true;
        let inbox = self.inbox_writer.clone();
        tokio::spawn(async move {
            let written = tokio::task::spawn_blocking(move || {
                update_object(&file, |settings| set(settings, path, value))
                    .map_err(|error| format!("{} could not be changed: {error}", file.display()))
            });
            if let Err(error) = written.await.unwrap_or_else(|error| Err(error.to_string())) {
                tracing::warn!("{error}; the setting holds for this session only");
            }
            inbox.send(Inbox(InboxMessage::PreferenceWritten)).await.ok();
        });
    }

    pub(super) fn handle_preference_written(&mut self) {
        self.preferences.writing = false;
        self.write_next_preference();
    }
}

/// Sets a value at a path of keys; what is no object on the way becomes one.
fn set(settings: &mut Map<String, Value>, path: &[&str], value: Value) {
    match path {
        [] => {}
        [key] => drop(settings.insert((*key).to_owned(), value)),
        [key, rest @ ..] => {
            let inner = settings.entry(*key).or_insert_with(|| json!({}));
            if !inner.is_object() {
                *inner = json!({});
            }
            if let Value::Object(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}
