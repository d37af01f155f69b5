//! Session files: the header and the entries of the tree.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentMessage, Content, Extra, SystemMessage, TypeTag, Untagged, Usage};
use crate::number;
use crate::shared::Shared;
use crate::wire::{Unknown, read_tagged, string_id};

string_id!(
    /// Id of a session entry: eight hexadecimal digits, or a UUID.
    EntryId
);
string_id!(
    /// Id of a session: a UUID, or what `--session-id` gave.
    SessionId
);

/// The version of session files that this crate writes.
pub const SESSION_VERSION: u32 = 3;

/// The first line of a session file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionHeader {
    /// Always `session`.
    #[serde(rename = "type")]
    pub kind: SessionTag,
    /// The format's version; absent means 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The session's id.
    pub id: SessionId,
    /// When the session was made, ISO 8601 with milliseconds.
    pub timestamp: String,
    /// The working directory.
    pub cwd: String,
    /// The file of the session that this one was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_session: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The tag of a session header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum SessionTag {
    /// `session`
    #[default]
    #[serde(rename = "session")]
    Session,
}

/// What every entry has: its place in the tree and its time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntryBase {
    /// The entry's id.
    pub id: EntryId,
    /// The entry before it on its branch; `null` at a root.
    pub parent_id: Option<EntryId>,
    /// ISO 8601 with milliseconds.
    pub timestamp: String,
}

macro_rules! entries {
    ($($(#[$doc:meta])* $wire:literal => $variant:ident { $($(#[$field_attr:meta])* $field:ident: $ty:ty),* $(,)? })+) => {
        /// One entry of a session file after the header.
        #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
        #[serde(tag = "type")]
        pub enum SessionEntry {
            $($(#[$doc])* #[serde(rename = $wire)] $variant($variant),)+
            /// An entry of a kind that this version does not know.
            #[serde(untagged)]
            Unknown(Unknown),
        }

        read_tagged!(SessionEntry, "type", { $($wire => $variant),+ });

        impl SessionEntry {
            /// The entry's place in the tree; `None` for a kind that this version does not know.
            pub fn base(&self) -> Option<&EntryBase> {
                match self {
                    $(Self::$variant(entry) => Some(&entry.base),)+
                    Self::Unknown(_) => None,
                }
            }
        }

        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $variant {
            /// The entry's place in the tree.
            #[serde(flatten)]
            pub base: EntryBase,
            $($(#[$field_attr])* pub $field: $ty,)*
            /// Fields that this version does not know.
            #[serde(flatten)]
            pub extra: Untagged<TypeTag>,
        }

        impl From<$variant> for SessionEntry {
            fn from(entry: $variant) -> Self {
                Self::$variant(entry)
            }
        })+
    };
}

entries! {
    /// A message of the conversation.
    "message" => MessageEntry {
        /// The message.
        message: Shared<AgentMessage>,
    }
    /// The user chose a model.
    "model_change" => ModelChangeEntry {
        /// The provider's id.
        provider: String,
        /// The model's id.
        model_id: String,
    }
    /// The user chose a thinking level.
    "thinking_level_change" => ThinkingLevelChangeEntry {
        /// The level.
        thinking_level: String,
    }
    /// Usage that belongs to no assistant message.
    "usage" => UsageEntry {
        /// What the usage was for, such as `cache_warm`.
        kind: String,
        /// The provider's id.
        provider: String,
        /// The model's id.
        model: String,
        /// Tokens and cost.
        usage: Usage,
        /// A qualifier for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    }
    /// What came before was summarised.
    "compaction" => CompactionEntry {
        /// The summary.
        summary: String,
        /// The first entry before this one that the model still sees; its own id when none is kept.
        first_kept_entry_id: EntryId,
        /// Tokens of the context before.
        #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
        tokens_before: u64,
        /// Data specific to whoever made the summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        /// Usage of the summarising.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// True when an extension made the summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_hook: Option<bool>,
        /// The whole prompt and tool state at this point.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        system_message: Option<TaggedSystemMessage>,
    }
    /// A change of what one earlier entry contributes to the model's context.
    "context_edit" => ContextEditEntry {
        /// The entry that is changed.
        target_id: EntryId,
        /// The new content, or `null` to leave the entry out.
        replacement: Option<ContextReplacement>,
    }
    /// The summary of a branch that was left.
    "branch_summary" => BranchSummaryEntry {
        /// The leaf of the branch that was left.
        from_id: EntryId,
        /// The summary.
        summary: String,
        /// Data specific to whoever made the summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        /// Usage of the summarising.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// True when an extension made the summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_hook: Option<bool>,
    }
    /// State of an extension; the model never sees it.
    "custom" => CustomEntry {
        /// The extension's name for this kind of entry.
        custom_type: String,
        /// The state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        data: Option<Value>,
    }
    /// A message of an extension; the model sees it as the user's.
    "custom_message" => CustomMessageEntry {
        /// The extension's name for this kind of message.
        custom_type: String,
        /// Text and images for the model.
        content: Content,
        /// Details for people and hosts; not sent to the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        /// True when people should see it.
        display: bool,
    }
    /// The user's mark on an entry.
    "label" => LabelEntry {
        /// The entry that is marked.
        target_id: EntryId,
        /// The mark; absent takes it away.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<String>,
    }
    /// What is known of the session as a whole.
    "session_info" => SessionInfoEntry {
        /// The display name; absent takes it away.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    }
}

impl SessionEntry {
    /// The entry's id, also of a kind that this version does not know.
    pub fn id(&self) -> &str {
        match self {
            Self::Unknown(raw) => raw.str_field("id").unwrap_or_default(),
            known => known.base().map(|base| base.id.as_str()).unwrap_or_default(),
        }
    }

    /// The parent's id, also of a kind that this version does not know.
    pub fn parent_id(&self) -> Option<&str> {
        match self {
            Self::Unknown(raw) => raw.str_field("parentId"),
            known => known.base().and_then(|base| base.parent_id.as_ref()).map(EntryId::as_str),
        }
    }
}

/// A system message that writes its own role, for places where no tagged enum does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role")]
pub enum TaggedSystemMessage {
    /// The message.
    #[serde(rename = "system")]
    System(SystemMessage),
}

/// The new content of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContextReplacement {
    /// Text or blocks.
    pub content: Content,
}

/// One node of the tree of entries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionTreeNode {
    /// The entry.
    pub entry: SessionEntry,
    /// The entries that continue it.
    pub children: Vec<SessionTreeNode>,
    /// The user's mark on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When the mark was set, ISO 8601.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_timestamp: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_and_an_unknown_one_survive_a_round_trip() {
        let base = r#""id":"a","parentId":null,"timestamp":"t""#;
        for (kind, rest) in [
            ("message", r#""message":{"role":"user","content":"x","timestamp":1}"#),
            ("model_change", r#""provider":"p","modelId":"m""#),
            ("thinking_level_change", r#""thinkingLevel":"off""#),
            (
                "usage",
                r#""kind":"k","provider":"p","model":"m","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}"#,
            ),
            (
                "compaction",
                r#""summary":"s","firstKeptEntryId":"b","tokensBefore":1,"systemMessage":{"role":"system","content":"","timestamp":1}"#,
            ),
            ("context_edit", r#""targetId":"b","replacement":null"#),
            ("context_edit", r#""targetId":"b","replacement":{"content":"x"}"#),
            ("branch_summary", r#""fromId":"b","summary":"s""#),
            ("custom", r#""customType":"x","data":{"n":1}"#),
            ("custom_message", r#""customType":"x","content":"y","display":true,"future":[1]"#),
            ("label", r#""targetId":"b""#),
            ("session_info", r#""name":"n""#),
            ("from_the_future", r#""stars":[1,2]"#),
        ] {
            let text = format!(r#"{{"type":"{kind}",{base},{rest}}}"#);
            let entry: SessionEntry = serde_json::from_str(&text).unwrap();
            assert_eq!(matches!(entry, SessionEntry::Unknown(_)), kind == "from_the_future");
            assert_eq!(serde_json::to_string(&entry).unwrap(), text);
            assert_eq!(entry.id(), "a");
        }
    }

    #[test]
    fn a_header_keeps_its_parent_and_unknown_fields() {
        let text =
            r#"{"type":"session","version":3,"id":"u","timestamp":"t","cwd":"/","parentSession":"/p","x":1}"#;
        let header: SessionHeader = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&header).unwrap(), text);
        assert!(serde_json::from_str::<SessionHeader>(r#"{"type":"message","id":"u"}"#).is_err());
    }
}
