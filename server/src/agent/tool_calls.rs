//! The tool calls of one answer, side by side.

use std::sync::Arc;
use std::time::Instant;

use sampi_protocol::Shared;
use sampi_protocol::data::{
    AgentMessage, AssistantMessage, ContentBlock, StopReason, ToolCall, ToolOutput, ToolResultMessage,
};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::link::{GivenUp, RunLink, RunMessage, TurnPlan};
use super::now_millis;
use super::run::{grace_over, panic_text};
use crate::extensions::{Extension, ToolVerdict};
use crate::tools::{
    ProgressSink, Tool, ToolContext, ToolError, invalid_arguments, prepare_call, tool_not_found,
};

/// Results so far of one call that may wait; a newer one replaces what does not fit.
const PROGRESS_CAPACITY: usize = 8;

/// What a call that was stopped before it could answer tells the model.
pub(super) const ABORTED_TEXT: &str = "Tool call aborted";

/// What calls in an answer that was cut off tell the model.
const CUT_OFF_TEXT: &str = "The answer hit the output limit before this call was complete, so it was not run. Send it again, shorter.";

struct Ended {
    index: usize,
    output: ToolOutput,
    is_error: bool,
    duration_ms: Option<u64>,
}

/// Runs every call of the answer and gives back their results in the order of the calls.
pub(super) async fn run_tool_calls(
    link: &RunLink,
    extension: &dyn Extension,
    plan: &TurnPlan,
    message: &AssistantMessage,
    cancel: &CancellationToken,
) -> Result<Vec<Shared<AgentMessage>>, GivenUp> {
    let mut calls: Vec<Arc<ToolCall>> = Vec::new();
    let mut running = JoinSet::new();
    let mut ended: Vec<Option<Ended>> = Vec::new();
    for call in message.tool_calls() {
        let index = calls.len();
        let mut call = call.clone();
        link.send(RunMessage::ToolStart(call.clone())).await?;
        let checked = check(extension, plan, message, &mut call, cancel).await;
        let call = Arc::new(call);
        calls.push(Arc::clone(&call));
        ended.push(None);
        match checked {
            Ok((tool, arguments)) => {
                let context = tool_context(plan, cancel, link, &call);
                let task = run_one(tool, arguments, context);
                running.spawn(async move { (index, task.await) });
            }
            Err(error) => {
                let end = Ended { index, output: error_output(&error), is_error: true, duration_ms: None };
                report_end(link, &call, &end).await?;
                ended[index] = Some(end);
            }
        }
    }
    while let Some(joined) = running.join_next().await {
        let Ok((index, (result, duration_ms))) = joined else { continue };
        let (Some(call), Some(slot)) = (calls.get(index), ended.get_mut(index)) else { continue };
        let (output, is_error) = match result {
            Ok(output) => {
                let is_error = output.is_error == Some(true);
                (output, is_error)
            }
            Err(error) => (error_output(&error), true),
        };
        let output = extension.tool_result(call, output).await;
        let end = Ended { index, output, is_error, duration_ms: Some(duration_ms) };
        report_end(link, call, &end).await?;
        *slot = Some(end);
    }
    if calls.is_empty() {
        return Ok(Vec::new());
    }
    let results = ended.into_iter().flatten().map(|end| result_message(&calls[end.index], end)).collect();
    link.ask(|reply| RunMessage::ToolResults { results, reply }).await
}

/// Decides whether a call runs, and with which arguments.
async fn check(
    extension: &dyn Extension,
    plan: &TurnPlan,
    message: &AssistantMessage,
    call: &mut ToolCall,
    cancel: &CancellationToken,
) -> Result<(Arc<dyn Tool>, Map<String, Value>), ToolError> {
    if cancel.is_cancelled() {
        return Err(ToolError::new(ABORTED_TEXT));
    }
    if message.stop_reason == StopReason::Length {
        return Err(ToolError::new(CUT_OFF_TEXT));
    }
    let tool = plan
        .tools
        .iter()
        .find(|tool| tool.definition().name == call.name)
        .ok_or_else(|| ToolError::new(tool_not_found(&call.name)))?;
    if let Some(error) = &call.arguments_error {
        return Err(ToolError::new(invalid_arguments(&call.name, error)));
    }
    call.arguments = prepare_call(tool.as_ref(), &call.arguments).map_err(ToolError::new)?;
    if let ToolVerdict::Block { reason } = extension.tool_call(call).await {
        return Err(ToolError::new(reason));
    }
    Ok((Arc::clone(tool), call.arguments.clone()))
}

fn tool_context(
    plan: &TurnPlan,
    cancel: &CancellationToken,
    link: &RunLink,
    call: &Arc<ToolCall>,
) -> ToolContext {
    let (progress, mut results) = mpsc::channel(PROGRESS_CAPACITY);
    let (link, call) = (link.clone(), Arc::clone(call));
    // Owned by the call: it ends when the tool drops its sink.
    tokio::spawn(async move {
        while let Some(output) = results.recv().await {
            if link.send(RunMessage::ToolProgress { call: Arc::clone(&call), output }).await.is_err() {
                return;
            }
        }
    });
    ToolContext {
        cwd: plan.cwd.clone(),
        env: plan.env.clone(),
        shell: plan.shell.clone(),
        model_id: Some(plan.request.model.id.clone()),
        images: plan.images,
        cancel: cancel.clone(),
        progress: ProgressSink::new(progress),
    }
}

/// Runs a tool in a task of its own, so that its panic or its deafness stays there.
async fn run_one(
    tool: Arc<dyn Tool>,
    arguments: Map<String, Value>,
    context: ToolContext,
) -> (Result<ToolOutput, ToolError>, u64) {
    let started = Instant::now();
    let cancel = context.cancel.clone();
    let mut task = tokio::spawn(async move { tool.run(arguments, &context).await });
    let result = tokio::select! {
        biased;
        joined = &mut task => joined.unwrap_or_else(|error| {
            let text = match error.try_into_panic() {
                Ok(panic) => format!("the tool stopped working: {}", panic_text(panic.as_ref())),
                Err(_) => ABORTED_TEXT.to_owned(),
            };
            Err(ToolError::new(text))
        }),
        () = grace_over(&cancel) => {
            task.abort();
            Err(ToolError::new(ABORTED_TEXT))
        }
    };
    (result, u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX))
}

async fn report_end(link: &RunLink, call: &Arc<ToolCall>, end: &Ended) -> Result<(), GivenUp> {
    link.send(RunMessage::ToolEnd {
        call: Arc::clone(call),
        output: end.output.clone(),
        is_error: end.is_error,
        duration_ms: end.duration_ms,
    })
    .await
}

/// The output of a call that failed.
pub(super) fn error_output(error: &ToolError) -> ToolOutput {
    ToolOutput {
        content: vec![ContentBlock::text(error.to_string())],
        details: Some(Value::Object(Map::new())),
        ..ToolOutput::default()
    }
}

fn result_message(call: &ToolCall, end: Ended) -> ToolResultMessage {
    ToolResultMessage {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: end.output.content,
        details: end.output.details,
        usage: end.output.usage,
        is_error: end.is_error,
        timestamp: now_millis(),
        duration_ms: end.duration_ms,
        ..ToolResultMessage::default()
    }
}

/// The result of a call that has none because the run was given up.
pub(super) fn aborted_result(call: &ToolCall) -> ToolResultMessage {
    let output = error_output(&ToolError::new(ABORTED_TEXT));
    result_message(call, Ended { index: 0, output, is_error: true, duration_ms: None })
}
