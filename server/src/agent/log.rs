//! What the debug log tells of a run: that things begin and end, and never what they are about.

use sampi_protocol::events::SessionEvent;

/// Logs an event.
pub(super) fn log(event: &SessionEvent) {
    if !tracing::enabled!(tracing::Level::DEBUG) {
        return;
    }
    match event {
        SessionEvent::AgentStart(_) => tracing::debug!("the run begins"),
        SessionEvent::AgentEnd(end) => tracing::debug!(will_retry = end.will_retry, "the run ends"),
        SessionEvent::AgentSettled(settled) => tracing::debug!(aborted = settled.aborted, "settled"),
        SessionEvent::TurnStart(_) => tracing::debug!("a turn begins"),
        SessionEvent::ToolExecutionStart(start) => {
            tracing::debug!(tool = start.tool_name, call = %start.tool_call_id, "a tool call begins");
        }
        SessionEvent::ToolExecutionEnd(end) => tracing::debug!(
            tool = end.tool_name,
            call = %end.tool_call_id,
            failed = end.is_error,
            milliseconds = end.duration_ms,
            "a tool call ends"
        ),
        SessionEvent::AutoRetryStart(retry) => tracing::debug!(
            attempt = retry.attempt,
            of = retry.max_attempts,
            milliseconds = retry.delay_ms,
            "the request is sent again after a delay"
        ),
        SessionEvent::AutoRetryEnd(end) => {
            tracing::debug!(success = end.success, attempt = end.attempt, "the retrying ends");
        }
        SessionEvent::SummarizationRetryScheduled(retry) => tracing::debug!(
            attempt = retry.attempt,
            of = retry.max_attempts,
            milliseconds = retry.delay_ms,
            "a summary is asked for again after a delay"
        ),
        SessionEvent::CompactionStart(start) => {
            tracing::debug!(reason = ?start.reason, "a compaction begins");
        }
        SessionEvent::CompactionEnd(end) => tracing::debug!(
            reason = ?end.reason,
            aborted = end.aborted,
            failed = end.error_message.is_some(),
            "a compaction ends"
        ),
        SessionEvent::ThinkingLevelChanged(changed) => {
            tracing::debug!(level = %changed.level, "the thinking level changes");
        }
        _ => {}
    }
}
