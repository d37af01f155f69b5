//! Entries of a session.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use sampi_client::protocol::Shared;
use sampi_client::protocol::data::SessionEntry;

use super::declare::{Holds, family, kinds, mismatch, repr};
use crate::convert::{FromShared, ToPy, from_json, loads, to_json};

family! {
    /// One entry of a session. Match on the subclasses.
    Entry(Shared<SessionEntry>) of SessionEntry, built by entry_to_py {
        /// The entry's id.
        #[getter]
        fn id(&self) -> &str {
            self.value.id()
        }

        /// The entry before it on its branch; `None` at a root.
        #[getter]
        fn parent_id(&self) -> Option<&str> {
            self.value.parent_id()
        }

        /// When it was appended, ISO 8601.
        #[getter]
        fn timestamp(&self) -> &str {
            match &*self.value {
                SessionEntry::Unknown(raw) => raw.str_field("timestamp").unwrap_or_default(),
                known => known.base().map_or("", |base| base.timestamp.as_str()),
            }
        }
    }
}

/// The object of an entry.
pub(super) fn entry_to_py<'py>(py: Python<'py>, entry: &Shared<SessionEntry>) -> PyResult<Bound<'py, PyAny>> {
    build_kind(py, entry, PyClassInitializer::from(Entry::new(entry.clone())))
}

impl FromShared for Shared<SessionEntry> {
    fn build<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        entry_to_py(py, self)
    }
}

kinds! {
    Entry;

    /// A message of the conversation.
    MessageEntry: SessionEntry::MessageEntry(v) => {
        ;
        /// The message.
        message = v.message
    }

    /// The user chose a model.
    ModelChangeEntry: SessionEntry::ModelChangeEntry(v) => {
        /// The provider's id.
        provider = v.provider,
        /// The model's id.
        model_id = v.model_id,
    }

    /// The user chose a thinking level.
    ThinkingLevelChangeEntry: SessionEntry::ThinkingLevelChangeEntry(v) => {
        /// The level.
        thinking_level = v.thinking_level,
    }

    /// Usage that belongs to no assistant message.
    UsageEntry: SessionEntry::UsageEntry(v) => {
        /// What the usage was for, such as `cache_warm`.
        usage_kind = v.kind,
        /// Tokens and cost.
        usage = v.usage,
        /// The provider's id.
        provider = v.provider,
        /// The model's id.
        model = v.model,
        /// A qualifier for people.
        note = v.note,
    }

    /// What came before was summarised.
    CompactionEntry: SessionEntry::CompactionEntry(v) => {
        /// The summary.
        summary = v.summary,
        /// The first entry before this one that the model still sees.
        first_kept_entry_id = v.first_kept_entry_id,
        /// Tokens of the context before.
        tokens_before = v.tokens_before,
        /// Data specific to whoever made the summary.
        details = v.details,
        /// Usage of the summarising.
        usage = v.usage,
    }

    /// A change of what one earlier entry contributes to the model's context.
    ContextEditEntry: SessionEntry::ContextEditEntry(v) => {
        /// The entry that is changed.
        target_id = v.target_id,
        /// The new content; `None` leaves the entry out.
        replacement = v.replacement.as_ref().map(|replacement| replacement.content.to_blocks()),
    }

    /// The summary of a branch that was left.
    BranchSummaryEntry: SessionEntry::BranchSummaryEntry(v) => {
        /// The summary.
        summary = v.summary,
        /// The leaf of the branch that was left.
        from_id = v.from_id,
        /// Data specific to whoever made the summary.
        details = v.details,
        /// Usage of the summarising.
        usage = v.usage,
    }

    /// State of an extension; the model never sees it.
    CustomEntry: SessionEntry::CustomEntry(v) => {
        /// The extension's name for this kind of entry.
        custom_type = v.custom_type,
        /// The state.
        data = v.data,
    }

    /// A message of an extension; the model sees it as the user's.
    CustomMessageEntry: SessionEntry::CustomMessageEntry(v) => {
        /// The extension's name for this kind of message.
        custom_type = v.custom_type,
        /// True when people should see it.
        display = v.display,
        /// Details for people and hosts.
        details = v.details,
        ;
        /// Text and images for the model.
        content = v.content.to_blocks()
    }

    /// The user's mark on an entry.
    LabelEntry: SessionEntry::LabelEntry(v) => {
        /// The entry that is marked.
        target_id = v.target_id,
        /// The mark; `None` takes it away.
        label = v.label,
    }

    /// What is known of the session as a whole.
    SessionInfoEntry: SessionEntry::SessionInfoEntry(v) => {
        /// The display name; `None` takes it away.
        name = v.name,
    }

    /// An entry of a kind that this version does not know. `raw()` has all of it.
    UnknownEntry: SessionEntry::Unknown(v) => {
        /// The kind on the wire.
        kind = v.str_field("type"),
    }
}
