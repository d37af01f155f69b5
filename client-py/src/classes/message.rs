//! Messages.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use sampi_client::protocol::Shared;
use sampi_client::protocol::data::{AgentMessage, AssistantMessage as Answer, ContentBlock};

use super::declare::{Holds, family, kinds, mismatch, repr};
use crate::convert::{FromShared, ToPy, from_json, loads, to_json};

family! {
    /// A message of the conversation. Match on the subclasses.
    Message(Shared<AgentMessage>) of AgentMessage, built by message_to_py {
        /// The role on the wire, such as `assistant`.
        #[getter]
        fn role(&self) -> &str {
            self.value.role()
        }
    }
}

/// The object of a value of this family.
pub(super) fn message_to_py<'py>(
    py: Python<'py>,
    message: &Shared<AgentMessage>,
) -> PyResult<Bound<'py, PyAny>> {
    build_kind(py, message, PyClassInitializer::from(Message::new(message.clone())))
}

impl FromShared for Shared<AgentMessage> {
    fn build<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        message_to_py(py, self)
    }
}

impl ToPy for Answer {
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Shared::new(AgentMessage::Assistant(self.clone())).to_py(py)
    }
}

/// Text of the text blocks, one after the other.
fn text_of(blocks: &[ContentBlock]) -> String {
    blocks.iter().filter_map(ContentBlock::as_text).collect()
}

/// The tool calls among the blocks.
fn calls_of(blocks: &[ContentBlock]) -> Vec<ContentBlock> {
    blocks.iter().filter(|block| matches!(block, ContentBlock::ToolCall(_))).cloned().collect()
}

kinds! {
    Message;

    /// Instructions and tool declarations at one point of the transcript.
    SystemMessage: AgentMessage::System(v) => {
        /// Instruction text.
        text = &*v.content.text(),
        /// Named sections, each text or `None`.
        sections = v.sections,
        /// Tools that become available here.
        tools_added = v.tools_added,
        /// The names of tools that stop being available here.
        tools_removed = v.tools_removed.as_ref().map(|tools| tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>()),
        /// Unix milliseconds.
        timestamp = v.timestamp,
    }

    /// What the user said.
    UserMessage: AgentMessage::User(v) => {
        /// The text of all text blocks.
        text = &*v.content.text(),
        /// Unix milliseconds.
        timestamp = v.timestamp,
        ;
        /// Text and images.
        content = v.content.to_blocks()
    }

    /// What the model answered.
    AssistantMessage: AgentMessage::Assistant(v) => {
        /// The text of all text blocks.
        text = text_of(&v.content),
        /// The tool calls, in order.
        tool_calls = calls_of(&v.content),
        /// Why the answer ended.
        stop_reason = v.stop_reason,
        /// Tokens and cost.
        usage = v.usage,
        /// The provider's id.
        provider = v.provider,
        /// The model's id.
        model = v.model,
        /// The API that was spoken.
        api = v.api,
        /// What went wrong, for `error` and `aborted`.
        error_message = v.error_message,
        /// When the request started, Unix milliseconds.
        timestamp = v.timestamp,
        /// Milliseconds from `timestamp` to the end of the response.
        duration_ms = v.duration_ms,
        /// The provider's id of the response.
        response_id = v.response_id,
        /// The model that answered, when it is not the one that was asked.
        response_model = v.response_model,
        /// The provider's own stop reason.
        raw_stop_reason = v.raw_stop_reason,
        /// The thinking level that was asked for.
        thinking_level = v.thinking_level,
        ;
        /// Text, thinking and tool calls.
        content = v.content
    }

    /// What a tool gave back.
    ToolResultMessage: AgentMessage::ToolResult(v) => {
        /// The tool's name.
        tool_name = v.tool_name,
        /// The text of all text blocks.
        text = text_of(&v.content),
        /// True when the tool failed.
        is_error = v.is_error,
        /// The call that this answers.
        tool_call_id = v.tool_call_id,
        /// Details for people and hosts, specific to the tool.
        details = v.details,
        /// Usage of model work that the tool did itself.
        usage = v.usage,
        /// When the result was made, Unix milliseconds.
        timestamp = v.timestamp,
        /// How long the tool ran, in milliseconds.
        duration_ms = v.duration_ms,
        ;
        /// Text and images for the model.
        content = v.content
    }

    /// A shell command that the user ran directly, and its output.
    BashExecutionMessage: AgentMessage::BashExecution(v) => {
        /// The command.
        command = v.command,
        /// Stdout and stderr together, possibly cut.
        output = v.output,
        /// The exit code; `None` when the command was cancelled.
        exit_code = v.exit_code,
        /// True when the command was stopped.
        cancelled = v.cancelled,
        /// True when `output` is not the whole output.
        truncated = v.truncated,
        /// The file that has the whole output.
        full_output_path = v.full_output_path,
        /// True when the model must not see it.
        exclude_from_context = v.exclude_from_context.unwrap_or(false),
        /// Unix milliseconds.
        timestamp = v.timestamp,
    }

    /// A message of an extension; the model sees it as the user's.
    CustomMessage: AgentMessage::Custom(v) => {
        /// The extension's name for this kind of message.
        custom_type = v.custom_type,
        /// The text of all text blocks.
        text = &*v.content.text(),
        /// True when people should see it.
        display = v.display,
        /// Details for people and hosts.
        details = v.details,
        /// Unix milliseconds.
        timestamp = v.timestamp,
        ;
        /// Text and images for the model.
        content = v.content.to_blocks()
    }

    /// The summary of a branch that was left.
    BranchSummaryMessage: AgentMessage::BranchSummary(v) => {
        /// The summary.
        summary = v.summary,
        /// The leaf of the branch that was left.
        from_id = v.from_id,
        /// Unix milliseconds.
        timestamp = v.timestamp,
    }

    /// The summary of what was compacted.
    CompactionSummaryMessage: AgentMessage::CompactionSummary(v) => {
        /// The summary.
        summary = v.summary,
        /// How many tokens the context had before.
        tokens_before = v.tokens_before,
        /// Unix milliseconds.
        timestamp = v.timestamp,
    }

    /// A message of a role that this version does not know. `raw()` has all of it.
    UnknownMessage: AgentMessage::Unknown(v) => {
        /// The role on the wire.
        role = v.str_field("role"),
    }
}
