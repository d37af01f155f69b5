//! Settings that commands change for good: they go to the user's settings file, as in Pi.

use std::collections::VecDeque;
use std::path::PathBuf;

use sampi_protocol::commands::QueueMode;
use serde_json::{Value, json};

use super::{Agent, Inbox, InboxMessage};
use crate::resources::settings::SettingChange;
use crate::resources::shared_file::update_object;

/// Changes on their way to the settings file, one at a time and in order.
#[derive(Default)]
pub(super) struct Preferences {
    file: Option<PathBuf>,
    waiting: VecDeque<SettingChange>,
    writing: Option<SettingChange>,
    /// Those that no file has: they last as long as the agent.
    in_memory: Vec<SettingChange>,
}

/// What became of a change.
pub(super) struct Written(Result<(), String>);

impl Preferences {
    pub(super) fn is_idle(&self) -> bool {
        self.writing.is_none() && self.waiting.is_empty()
    }

    /// Where changes go from now on. With no file they last as long as the agent.
    pub(super) fn use_file(&mut self, file: Option<PathBuf>) {
        self.file = file;
    }

    /// The changes that the settings file does not have, oldest first.
    pub(super) fn unwritten(&self) -> Vec<SettingChange> {
        self.in_memory.iter().chain(&self.writing).chain(&self.waiting).cloned().collect()
    }

    fn keep_in_memory(&mut self, change: SettingChange) {
        self.in_memory.retain(|earlier| earlier.path != change.path);
        self.in_memory.push(change);
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
        let change = SettingChange { path, value };
        if self.preferences.file.is_some() {
            self.preferences.waiting.push_back(change);
            self.write_next_preference();
        } else {
            self.preferences.keep_in_memory(change);
        }
    }

    fn write_next_preference(&mut self) {
        if self.preferences.writing.is_some() {
            return;
        }
        let Some(change) = self.preferences.waiting.pop_front() else { return };
        let Some(file) = self.preferences.file.clone() else {
            self.preferences.keep_in_memory(change);
            return self.write_next_preference();
        };
        self.preferences.writing = Some(change.clone());
        let inbox = self.inbox_writer.clone();
        tokio::spawn(async move {
            let written = tokio::task::spawn_blocking(move || {
                update_object(&file, |settings| change.apply(settings))
                    .map_err(|error| format!("{} could not be changed: {error}", file.display()))
            });
            let written = written.await.unwrap_or_else(|error| Err(error.to_string()));
            inbox.send(Inbox(InboxMessage::PreferenceWritten(Written(written)))).await.ok();
        });
    }

    pub(super) fn handle_preference_written(&mut self, Written(written): Written) {
        let Some(change) = self.preferences.writing.take() else { return };
        match written {
            Ok(()) => self.preferences.in_memory.retain(|earlier| earlier.path != change.path),
            Err(error) => {
                tracing::warn!("{error}; the setting holds for this process only");
                self.preferences.keep_in_memory(change);
            }
        }
        self.write_next_preference();
    }
}
