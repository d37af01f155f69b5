//! Session events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::data::{
    AgentMessage, CompactionReason, CompactionResult, SessionEntry, ThinkingLevel, ToolCallId, ToolOutput,
    Usage,
};
use crate::number;
use crate::request_id::{self, RequestId};
use crate::shared::Shared;
use crate::stream::AssistantMessageEvent;
use crate::wire::{self, Unknown, WireError};

macro_rules! events {
    ($($(#[$doc:meta])* $wire:literal => $variant:ident { $($(#[$field_attr:meta])* $field:ident: $ty:ty),* $(,)? })+) => {
        /// What happens in a session, as a daemon reports it.
        #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
        #[serde(tag = "type")]
        pub enum SessionEvent {
            $($(#[$doc])* #[serde(rename = $wire)] $variant($variant),)+
            /// An event that this version does not know.
            #[serde(untagged)]
            Unknown(Unknown),
        }

        wire::read_tagged!(SessionEvent, "type", { $($wire => $variant),+ });

        impl SessionEvent {
            /// Reads one event from the text of its record.
            pub fn read(text: &str) -> Result<Self, WireError> {
                match wire::Head::read(text)?.kind.as_deref() {
                    Some(kind) => Self::read_as(kind, text),
                    None => Err(WireError::new("type: missing or not a string")),
                }
            }

            /// Reads one event whose tag has been read already, with [`wire::leading_tag`] for one.
            pub fn read_as(kind: &str, text: &str) -> Result<Self, WireError> {
                match kind {
                    $($wire => wire::from_text::<$variant>(text)
                        .map(Self::$variant)
                        .map_err(|error| WireError::new(format!(concat!($wire, ": {}"), error))),)+
                    _ => wire::from_text(text).map(|raw| Self::Unknown(Unknown::new(raw))),
                }
            }

            /// The wire name.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $wire,)+
                    Self::Unknown(raw) => raw.str_field("type").unwrap_or_default(),
                }
            }
        }

        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub struct $variant {
            $($(#[$field_attr])* pub $field: $ty,)*
        }

        impl From<$variant> for SessionEvent {
            fn from(event: $variant) -> Self {
                Self::$variant(event)
            }
        })+
    };
}

events! {
    /// The agent began to work.
    "agent_start" => AgentStart {}
    /// The agent stopped. It may go on by itself: only `agent_settled` says that it does not.
    "agent_end" => AgentEnd {
        /// The messages of this run, in order.
        messages: Vec<Shared<AgentMessage>>,
        /// True when a retry follows.
        will_retry: bool,
    }
    /// Nothing more happens by itself. The last event of every run.
    "agent_settled" => AgentSettled {
        /// True when the run was aborted.
        aborted: bool,
    }
    /// A turn began: one answer of the model and the tool calls in it.
    "turn_start" => TurnStart {}
    /// A turn ended.
    "turn_end" => TurnEnd {
        /// The assistant message.
        message: Shared<AgentMessage>,
        /// The results of its tool calls, messages of the role `toolResult`.
        tool_results: Vec<Shared<AgentMessage>>,
    }
    /// A message began. An assistant message comes with the stop reason `pending`.
    "message_start" => MessageStart {
        /// The message so far.
        message: Shared<AgentMessage>,
    }
    /// The assistant message grew.
    "message_update" => MessageUpdate {
        /// The usage so far, as the provider reports it.
        usage: Usage,
        /// What happened.
        assistant_message_event: AssistantMessageEvent,
    }
    /// A message ended.
    "message_end" => MessageEnd {
        /// The whole message.
        message: Shared<AgentMessage>,
    }
    /// A tool call is about to run.
    "tool_execution_start" => ToolExecutionStart {
        /// The call.
        tool_call_id: ToolCallId,
        /// The tool's name.
        tool_name: String,
        /// The arguments.
        args: Map<String, Value>,
    }
    /// A tool reports what it has so far.
    "tool_execution_update" => ToolExecutionUpdate {
        /// The call.
        tool_call_id: ToolCallId,
        /// The tool's name.
        tool_name: String,
        /// The arguments.
        args: Map<String, Value>,
        /// The result so far.
        partial_result: ToolOutput,
    }
    /// A tool call is done.
    "tool_execution_end" => ToolExecutionEnd {
        /// The call.
        tool_call_id: ToolCallId,
        /// The tool's name.
        tool_name: String,
        /// The result.
        result: ToolOutput,
        /// True when the tool failed.
        is_error: bool,
        /// How long it ran, in milliseconds; absent when it did not run.
        #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "number::optional_count::serialize", deserialize_with = "number::optional_count::deserialize")]
        duration_ms: Option<u64>,
    }
    /// The queues changed.
    "queue_update" => QueueUpdate {
        /// The texts of all steering messages that wait, oldest first.
        steering: Vec<String>,
        /// The texts of all follow-up messages that wait, oldest first.
        follow_up: Vec<String>,
    }
    /// An entry other than a message was appended to the session.
    "entry_appended" => EntryAppended {
        /// The entry.
        entry: Shared<SessionEntry>,
    }
    /// Something is wrong with the session's file, and what became of it. An event of Sampi.
    "session_diagnostic" => SessionDiagnostic {
        /// The file.
        path: String,
        /// The line, from 1; absent when it concerns the file as a whole.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            serialize_with = "number::optional_count::serialize",
            deserialize_with = "number::optional_count::deserialize"
        )]
        line: Option<u64>,
        /// What is wrong, and what became of it.
        message: String,
    }
    /// The session's display name changed.
    "session_info_changed" => SessionInfoChanged {
        /// The name; absent when it was taken away.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    }
    /// The thinking level changed.
    "thinking_level_changed" => ThinkingLevelChanged {
        /// The level that is now in force.
        level: ThinkingLevel,
    }
    /// A compaction began.
    "compaction_start" => CompactionStart {
        /// Why.
        reason: CompactionReason,
    }
    /// A compaction ended.
    "compaction_end" => CompactionEnd {
        /// Why it ran.
        reason: CompactionReason,
        /// What it made; absent when it failed or was stopped.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<CompactionResult>,
        /// True when it was stopped.
        aborted: bool,
        /// True when the request that was too long is sent again.
        will_retry: bool,
        /// What went wrong.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    }
    /// A failed request is sent again after a delay.
    "auto_retry_start" => AutoRetryStart {
        /// The attempt that follows, from 1.
        attempt: u32,
        /// How many attempts there are at most.
        max_attempts: u32,
        /// The delay in milliseconds.
        #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
        delay_ms: u64,
        /// Why the request failed.
        error_message: String,
    }
    /// The retrying ended.
    "auto_retry_end" => AutoRetryEnd {
        /// True when an attempt succeeded.
        success: bool,
        /// The last attempt.
        attempt: u32,
        /// Why the last attempt failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        final_error: Option<String>,
    }
    /// A failed summary is asked for again after a delay.
    "summarization_retry_scheduled" => SummarizationRetryScheduled {
        /// The attempt that follows, from 1.
        attempt: u32,
        /// How many attempts there are at most.
        max_attempts: u32,
        /// The delay in milliseconds.
        #[serde(serialize_with = "number::count::serialize", deserialize_with = "number::count::deserialize")]
        delay_ms: u64,
        /// Why the request failed.
        error_message: String,
    }
    /// A summary is asked for again.
    "summarization_retry_attempt_start" => SummarizationRetryAttemptStart {
        /// `compaction` or `branchSummary`.
        source: String,
        /// Why the compaction runs; absent for a branch summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<CompactionReason>,
    }
    /// The retrying of a summary ended.
    "summarization_retry_finished" => SummarizationRetryFinished {}
    /// A shell command that the user runs wrote something. Only over RPC.
    "bash_execution_update" => BashExecutionUpdate {
        /// The id of the `bash` command, as it came.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "request_id::present")]
        id: Option<RequestId>,
        /// What it wrote.
        delta: String,
    }
    /// A handler of an extension failed. Only over RPC.
    "extension_error" => ExtensionError {
        /// The extension's path.
        extension_path: String,
        /// The event that it handled.
        event: String,
        /// What went wrong.
        error: String,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_survive_a_round_trip_and_an_unknown_one_is_kept() {
        for text in [
            r#"{"type":"agent_start"}"#,
            r#"{"type":"agent_settled","aborted":false}"#,
            r#"{"type":"message_update","usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"assistantMessageEvent":{"type":"toolcall_start","contentIndex":1,"id":"c","toolName":"read"}}"#,
            r#"{"type":"tool_execution_end","toolCallId":"c","toolName":"read","result":{"content":[{"type":"text","text":"x"}],"structuredContent":"x"},"isError":false}"#,
            r#"{"type":"compaction_end","reason":"manual","aborted":false,"willRetry":false,"errorMessage":"e"}"#,
            r#"{"type":"bash_execution_update","id":"b","delta":"x"}"#,
            r#"{"type":"bash_execution_update","id":null,"delta":"x"}"#,
            r#"{"type":"moon_phase","phase":{"full":true}}"#,
        ] {
            let event = SessionEvent::read(text).unwrap();
            assert_eq!(serde_json::to_string(&event).unwrap(), text);
            assert_eq!(serde_json::from_str::<SessionEvent>(text).unwrap(), event);
        }
    }

    #[test]
    fn a_malformed_known_event_is_an_error_that_names_the_field() {
        let error = SessionEvent::read(r#"{"type":"agent_settled","aborted":"no"}"#).unwrap_err().to_string();
        assert_eq!(error, "agent_settled: aborted: invalid type: string \"no\", expected a boolean");
    }
}
