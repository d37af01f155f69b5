//! Plain results.

use std::sync::Arc;

use pyo3::prelude::*;
use sampi_client::protocol::{commands, data};

use super::declare::{records, repr};
use crate::convert::{ToPy, from_json, loads, to_json};

records! {
    /// Tokens of one response, and what they cost.
    Usage(v: data::Usage) {
        /// Input tokens that were neither read from nor written to the cache.
        input = v.input,
        /// Output tokens, reasoning included.
        output = v.output,
        /// Tokens read from the prompt cache.
        cache_read = v.cache_read,
        /// Tokens written to the prompt cache.
        cache_write = v.cache_write,
        /// All tokens of the request and its response.
        total_tokens = v.total_tokens,
        /// What the tokens cost, in US dollars.
        cost = v.cost,
        /// The part of `output` that is reasoning, when the provider tells.
        reasoning = v.reasoning,
    }

    /// The cost of one response, in US dollars.
    UsageCost(v: data::UsageCost) {
        /// The whole cost.
        total = v.total,
        /// Cost of the input tokens.
        input = v.input,
        /// Cost of the output tokens.
        output = v.output,
        /// Cost of reading the cache.
        cache_read = v.cache_read,
        /// Cost of writing the cache.
        cache_write = v.cache_write,
    }

    /// A model that can be chosen.
    Model(v: data::Model) {
        /// The provider's id.
        provider = v.provider,
        /// The model's id, as sent to the API.
        id = v.id,
        /// Display name.
        name = v.name,
        /// The API it speaks, such as `openai-completions`.
        api = v.api,
        /// Base URL of the API.
        base_url = v.base_url,
        /// True when the model can think.
        reasoning = v.reasoning,
        /// What the model takes: `text`, `image`.
        input = v.input,
        /// Prices.
        cost = v.cost,
        /// Context window in tokens.
        context_window = v.context_window,
        /// Largest output in tokens.
        max_tokens = v.max_tokens,
    }

    /// Prices in US dollars per million tokens.
    ModelCost(v: data::ModelCost) {
        /// Input tokens.
        input = v.input,
        /// Output tokens.
        output = v.output,
        /// Tokens read from the cache.
        cache_read = v.cache_read,
        /// Tokens written to the cache.
        cache_write = v.cache_write,
    }

    /// A tool that the model may call.
    ToolDefinition(v: data::ToolDefinition) {
        /// The tool's name.
        name = v.name,
        /// What the tool does, for the model.
        description = v.description,
        /// JSON Schema of the arguments.
        parameters = v.parameters,
    }

    /// What a tool gave back.
    ToolOutput(v: data::ToolOutput) {
        /// The text of all text blocks.
        text = v.content.iter().filter_map(data::ContentBlock::as_text).collect::<String>(),
        /// Text and images for the model.
        content = v.content,
        /// Details for people and hosts, specific to the tool.
        details = v.details,
        /// The result as data, specific to the tool.
        structured_content = v.structured_content,
        /// Usage of model work that the tool did itself.
        usage = v.usage,
    }

    /// What a compaction made.
    CompactionResult(v: data::CompactionResult) {
        /// The summary.
        summary = v.summary,
        /// The first entry before the compaction that the model still sees.
        first_kept_entry_id = v.first_kept_entry_id,
        /// Tokens of the context before.
        tokens_before = v.tokens_before,
        /// Estimate of the tokens of the context after.
        estimated_tokens_after = v.estimated_tokens_after,
        /// Usage of the summarising.
        usage = v.usage,
        /// Files that were read and changed, or an extension's own data.
        details = v.details,
    }

    /// The session's state.
    SessionState(v: commands::SessionState) {
        /// The session's id.
        session_id = v.session_id,
        /// The session's file; `None` for a session in memory.
        session_file = v.session_file,
        /// The session's display name.
        session_name = v.session_name,
        /// The chosen model.
        model = v.model,
        /// The thinking level in force.
        thinking_level = v.thinking_level,
        /// True while a run is under way.
        is_streaming = v.is_streaming,
        /// True while a compaction runs.
        is_compacting = v.is_compacting,
        /// How steering messages are delivered: `all` or `one-at-a-time`.
        steering_mode = v.steering_mode,
        /// How follow-up messages are delivered.
        follow_up_mode = v.follow_up_mode,
        /// True when automatic compaction is on.
        auto_compaction_enabled = v.auto_compaction_enabled,
        /// How many messages the context has.
        message_count = v.message_count,
        /// How many messages wait in the queues.
        pending_message_count = v.pending_message_count,
    }

    /// Totals over the whole session.
    SessionStats(v: commands::SessionStats) {
        /// The session's id.
        session_id = v.session_id,
        /// The session's file; `None` for a session in memory.
        session_file = v.session_file,
        /// Tokens.
        tokens = v.tokens,
        /// US dollars.
        cost = v.cost,
        /// Messages of the user.
        user_messages = v.user_messages,
        /// Messages of the assistant.
        assistant_messages = v.assistant_messages,
        /// Tool calls.
        tool_calls = v.tool_calls,
        /// Tool results.
        tool_results = v.tool_results,
        /// Messages of any role.
        total_messages = v.total_messages,
        /// How full the context is; `None` without a model.
        context_usage = v.context_usage,
    }

    /// Token totals.
    TokenTotals(v: commands::TokenTotals) {
        /// Input tokens outside the cache.
        input = v.input,
        /// Output tokens.
        output = v.output,
        /// Tokens read from the cache.
        cache_read = v.cache_read,
        /// Tokens written to the cache.
        cache_write = v.cache_write,
        /// The sum of the four.
        total = v.total,
    }

    /// How full the context is.
    ContextUsage(v: commands::ContextUsage) {
        /// Tokens of the context; `None` after a compaction until the next answer measures it.
        tokens = v.tokens,
        /// The model's context window in tokens.
        context_window = v.context_window,
        /// `tokens` as a percentage of the window.
        percent = v.percent,
    }

    /// How a shell command ended.
    BashResult(v: commands::BashResult) {
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
    }

    /// The model that was chosen by cycling.
    CycledModel(v: commands::CycledModel) {
        /// The model.
        model = v.model,
        /// The thinking level that is now in force.
        thinking_level = v.thinking_level,
        /// True when cycling is limited to the models of `--models`.
        is_scoped = v.is_scoped,
    }

    /// The texts of the messages that were taken out of the queues.
    ClearedQueue(v: commands::ClearedQueue) {
        /// Steering messages, oldest first.
        steering = v.steering,
        /// Follow-up messages, oldest first.
        follow_up = v.follow_up,
    }

    /// What became of a fork.
    ForkResult(v: commands::ForkResult) {
        /// The text of the message that was forked from; `None` when the fork was cancelled.
        text = v.text,
        /// True when an extension prevented it.
        cancelled = v.cancelled,
    }

    /// A message that `fork` accepts.
    ForkMessage(v: commands::ForkMessage) {
        /// Its entry.
        entry_id = v.entry_id,
        /// Its text.
        text = v.text,
    }

    /// The session's entries.
    Entries(v: commands::Entries) {
        /// The entries, in the order in which they were appended.
        entries = v.entries,
        /// The entry at which the active branch ends; `None` in an empty session.
        leaf_id = v.leaf_id,
    }

    /// Where the session is after moving in its tree.
    Navigated(v: commands::Navigated) {
        /// The entry at which the active branch ends; `None` before the first one.
        leaf_id = v.leaf_id,
        /// The text of the user message that was moved to, to be edited and sent again.
        editor_text = v.editor_text,
        /// The summary of the branch that was left.
        summary = v.summary,
        /// True when an extension prevented it.
        cancelled = v.cancelled,
    }

    /// Sessions on disk.
    SessionList(v: commands::SessionList) {
        /// The sessions, the one that was appended to last first.
        sessions = v.sessions,
        /// Gives the sessions that follow; `None` at the end.
        next_cursor = v.next_cursor,
    }

    /// One session on disk.
    ListedSession(v: commands::ListedSession) {
        /// The session's file.
        path = v.path,
        /// The session's id.
        id = v.id,
        /// Its working directory; empty when an old file does not tell.
        cwd = v.cwd,
        /// Its display name.
        name = v.name,
        /// The text of the user's first message.
        first_message = v.first_message,
        /// When it was made, ISO 8601.
        created = v.created,
        /// When it was last appended to, Unix milliseconds.
        modified = v.modified,
        /// The file of the session that it was made from.
        parent_session = v.parent_session,
    }

    /// A command that a prompt can name with a slash.
    SlashCommand(v: commands::SlashCommand) {
        /// The name without the slash.
        name = v.name,
        /// What it does.
        description = v.description,
        /// `extension`, `prompt` or `skill`.
        source = v.source,
        /// Where it comes from.
        source_info = v.source_info,
    }

    /// Where a resource comes from.
    SourceInfo(v: commands::SourceInfo) {
        /// Its path.
        path = v.path,
        /// How it was found, such as `auto`, `local` or `cli`.
        source = v.source,
        /// `user`, `project` or `temporary`.
        scope = v.scope,
        /// `top-level` or `package`.
        origin = v.origin,
        /// The folder that it belongs to.
        base_dir = v.base_dir,
    }
}
