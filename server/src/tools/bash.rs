//! The `bash` tool.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sampi_protocol::data::{ContentBlock, ToolDefinition, ToolOutput};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::arguments::{property, schema, text};
use super::{Tool, ToolContext, ToolError};
use crate::BoxFuture;
use crate::process::truncation::{MAX_BYTES, TruncatedBy, Truncation, format_size};
use crate::process::{OutputCollector, OutputSink, ShellCommand, ShellEnd, run_shell};

/// How often output so far is reported at most.
const REPORT_EVERY: Duration = Duration::from_millis(100);

/// Bytes of output that the structured result has at most.
const STRUCTURED_BYTES: u64 = 1024 * 1024;

/// The longest timeout in seconds: what fits a JavaScript timer.
const MAX_TIMEOUT_SECONDS: f64 = 2_147_483.647;

/// Runs a shell command.
#[derive(Debug)]
pub struct BashTool {
    definition: ToolDefinition,
}

impl Default for BashTool {
    fn default() -> Self {
        let definition = ToolDefinition {
            name: "bash".into(),
            description: "Run a bash command in the working directory and get what it printed, stdout and \
                          stderr together. Long output is cut to its last 2000 lines or 50 KB, and the whole \
                          of it is kept in a file that the result names. Standard input is empty, and \
                          processes that are left in the background are stopped when the command ends."
                .into(),
            parameters: schema(
                &["command"],
                &[
                    ("command", property("string", "The command line")),
                    ("timeout", property("number", "Seconds after which it is stopped; no limit by default")),
                ],
            ),
            constrained_sampling: None,
            extra: Default::default(),
        }
        .with_strict_schema();
        Self { definition }
    }
}

impl Tool for BashTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn snippet(&self) -> &str {
        "Run shell commands (builds, tests, git, ls, grep, ...)"
    }

    fn guidelines(&self) -> &[&str] {
        &["The PI_* environment variables of bash commands tell the current model and session."]
    }

    fn run<'a>(
        &'a self,
        arguments: Map<String, Value>,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let timeout = timeout(&arguments)?;
            let command = ShellCommand {
                command: text(&arguments, "command")?.to_owned(),
                cwd: context.cwd.clone(),
                env: context.env.clone(),
                shell: context.shell.clone(),
                timeout,
            };
            let started = Instant::now();
            let (end, mut output) = run_reporting(&command, context).await?;
            let shown = shown(&output);
            match end {
                ShellEnd::Exited(code) => exited(code, &shown, &mut output, started.elapsed()),
                ShellEnd::Cancelled => Err(stopped(&shown, "Command aborted")),
                ShellEnd::TimedOut => {
                    let seconds = timeout.unwrap_or_default().as_secs_f64();
                    Err(stopped(&shown, &format!("Command timed out after {seconds} seconds")))
                }
            }
        })
    }
}

fn timeout(arguments: &Map<String, Value>) -> Result<Option<Duration>, ToolError> {
    let Some(seconds) = arguments.get("timeout").and_then(Value::as_f64) else {
        return Ok(None);
    };
    if !seconds.is_finite() || seconds <= 0.0 {
        return Err(ToolError::new("Invalid timeout: must be a finite number of seconds"));
    }
    if seconds > MAX_TIMEOUT_SECONDS {
        let text = format!("Invalid timeout: maximum is {MAX_TIMEOUT_SECONDS} seconds");
        return Err(ToolError::new(text));
    }
    Ok(Some(Duration::from_secs_f64(seconds)))
}

/// Runs the command and reports its output so far: at once after a pause, else once a while.
async fn run_reporting(
    command: &ShellCommand,
    context: &ToolContext,
) -> Result<(ShellEnd, OutputCollector), ToolError> {
    context.progress.report(ToolOutput::default());
    let output = Mutex::new(OutputCollector::default());
    let changed = Notify::new();
    let mut sink = CollectedOutput { output: &output, changed: &changed };
    let run = run_shell(command, &context.cancel, &mut sink);
    let report = async {
        loop {
            changed.notified().await;
            let so_far = progress(&output.lock().unwrap_or_else(PoisonError::into_inner));
            context.progress.report(so_far);
            tokio::time::sleep(REPORT_EVERY).await;
        }
    };
    let end = tokio::select! {
        biased;
        end = run => end,
        never = report => never,
    };
    let end = end.map_err(|error| ToolError::new(error.to_string()))?;
    Ok((end, output.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

struct CollectedOutput<'c> {
    output: &'c Mutex<OutputCollector>,
    changed: &'c Notify,
}

impl OutputSink for CollectedOutput<'_> {
    fn take<'a>(&'a mut self, text: &'a str) -> BoxFuture<'a, ()> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        self.changed.notify_one();
        Box::pin(std::future::ready(()))
    }
}

fn progress(output: &OutputCollector) -> ToolOutput {
    let truncation = output.truncation();
    ToolOutput {
        content: vec![ContentBlock::text(truncation.content.clone())],
        details: Some(details(&truncation, output).unwrap_or_else(|| json!({}))),
        ..ToolOutput::default()
    }
}

fn details(truncation: &Truncation, output: &OutputCollector) -> Option<Value> {
    truncation.truncated.then(|| {
        let mut details = json!({ "truncation": truncation });
        if let Some(path) = output.full_output_path() {
            details["fullOutputPath"] = json!(path.to_string_lossy());
        }
        details
    })
}

struct Shown {
    text: String,
    details: Option<Value>,
}

/// The output as the model sees it: its end, and a note on what was left out.
fn shown(output: &OutputCollector) -> Shown {
    let truncation = output.truncation();
    let details = details(&truncation, output);
    if !truncation.truncated {
        return Shown { text: truncation.content, details };
    }
    let total = truncation.total_lines;
    let part = if truncation.last_line_partial {
        let (shown, line) = (format_size(truncation.output_bytes), format_size(output.last_line_bytes()));
        format!("Showing last {shown} of line {total} (line is {line}).")
    } else {
        let first = total + 1 - truncation.output_lines;
        let limit = match truncation.truncated_by {
            Some(TruncatedBy::Bytes) => format!(" ({} limit)", format_size(MAX_BYTES)),
            _ => String::new(),
        };
        format!("Showing lines {first}-{total} of {total}{limit}.")
    };
    let rest = match output.full_output_path() {
        Some(path) => format!("Full output: {}", path.display()),
        None => "The rest could not be kept.".to_owned(),
    };
    Shown { text: format!("{}\n\n[{part} {rest}]", truncation.content), details }
}

fn exited(
    code: i32,
    shown: &Shown,
    output: &mut OutputCollector,
    elapsed: Duration,
) -> Result<ToolOutput, ToolError> {
    let mut text = if shown.text.is_empty() { "(no output)" } else { &shown.text }.to_owned();
    if code != 0 {
        text.push_str(&format!("\n\nCommand exited with code {code}"));
    }
    let full = output.full_output(STRUCTURED_BYTES);
    let full = full.map_err(|error| ToolError::new(format!("cannot read the full output: {error}")))?;
    let mut structured = json!({ "output": full.text, "truncated": full.truncated });
    if full.truncated
        && let Some(path) = output.full_output_path()
    {
        structured["full_output_path"] = json!(path.to_string_lossy());
    }
    structured["exit_code"] = json!(code);
    structured["wall_time_seconds"] = tenths_of_seconds(elapsed);
    Ok(ToolOutput {
        content: vec![ContentBlock::text(text)],
        details: shown.details.clone(),
        structured_content: Some(structured),
        is_error: (code != 0).then_some(true),
        ..ToolOutput::default()
    })
}

fn stopped(shown: &Shown, why: &str) -> ToolError {
    if shown.text.is_empty() {
        ToolError::new(why)
    } else {
        ToolError::new(format!("{}\n\n{why}", shown.text))
    }
}

/// Seconds with one digit after the point, and without one when it is zero, as JavaScript prints it.
fn tenths_of_seconds(elapsed: Duration) -> Value {
    let tenths = (elapsed.as_secs_f64() * 10.0).round();
    if tenths % 10.0 == 0.0 { json!((tenths / 10.0) as u64) } else { json!(tenths / 10.0) }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::super::{ProgressSink, test_context};
    use super::*;

    async fn bash(arguments: Value) -> Result<ToolOutput, ToolError> {
        let context = test_context(&std::env::temp_dir());
        BashTool::default().run(arguments.as_object().unwrap().clone(), &context).await
    }

    fn text_of(output: &ToolOutput) -> &str {
        output.content[0].as_text().unwrap()
    }

    #[tokio::test]
    async fn a_failing_command_is_a_result_with_its_exit_code() {
        let output = bash(json!({ "command": "echo out; echo err >&2; exit 3" })).await.unwrap();
        assert_eq!(text_of(&output), "out\nerr\n\n\nCommand exited with code 3");
        assert_eq!(output.is_error, Some(true));
        assert_eq!(output.details, None);
        let mut structured = output.structured_content.unwrap();
        structured.as_object_mut().unwrap().shift_remove("wall_time_seconds");
        let expected = r#"{"output":"out\nerr\n","truncated":false,"exit_code":3}"#;
        assert_eq!(structured.to_string(), expected);
    }

    #[tokio::test]
    async fn a_silent_command_says_so() {
        let output = bash(json!({ "command": "true" })).await.unwrap();
        assert_eq!((text_of(&output), output.is_error), ("(no output)", None));
        let output = bash(json!({ "command": "exit 5" })).await.unwrap();
        assert_eq!(text_of(&output), "(no output)\n\nCommand exited with code 5");
    }

    #[tokio::test]
    async fn long_output_ends_with_a_note_that_names_the_file() {
        let output = bash(json!({ "command": "seq 1 3000" })).await.unwrap();
        let details = output.details.clone().unwrap();
        let path = details["fullOutputPath"].as_str().unwrap();
        let note = format!("\n3000\n\n[Showing lines 1001-3000 of 3000. Full output: {path}]");
        assert!(text_of(&output).ends_with(&note));
        assert_eq!(details["truncation"]["totalBytes"], 13893);
        assert_eq!(output.structured_content.unwrap()["output"].as_str().unwrap().len(), 13893);
        std::fs::remove_file(path).unwrap();
        let output = bash(json!({ "command": "head -c 60000 /dev/zero | tr '\\0' y" })).await.unwrap();
        let path = output.details.as_ref().unwrap()["fullOutputPath"].as_str().unwrap();
        let note = format!("\n\n[Showing last 50.0KB of line 1 (line is 58.6KB). Full output: {path}]");
        assert!(text_of(&output).ends_with(&note));
        std::fs::remove_file(path).unwrap();
    }

    #[tokio::test]
    async fn very_long_output_leaves_the_middle_out_of_the_structured_result() {
        let output = bash(json!({ "command": "seq 1 1000000" })).await.unwrap();
        let structured = output.structured_content.unwrap();
        let path = structured["full_output_path"].as_str().unwrap();
        assert_eq!(std::fs::metadata(path).unwrap().len(), 6_888_896);
        assert_eq!(structured["output"].as_str().unwrap().len(), 1_048_611);
        assert!(structured["output"].as_str().unwrap().contains("\n\n[... 5840320 bytes omitted ...]\n\n"));
        std::fs::remove_file(path).unwrap();
    }

    #[tokio::test]
    async fn a_timeout_tells_the_output_so_far_and_the_limit() {
        let error = bash(json!({ "command": "echo x; sleep 1000", "timeout": 0.5 })).await.unwrap_err();
        assert_eq!(error.to_string(), "x\n\n\nCommand timed out after 0.5 seconds");
        let error = bash(json!({ "command": "sleep 1000", "timeout": 1 })).await.unwrap_err();
        assert_eq!(error.to_string(), "Command timed out after 1 seconds");
    }

    #[tokio::test]
    async fn senseless_timeouts_are_refused() {
        for seconds in [json!(0), json!(-1)] {
            let error = bash(json!({ "command": "true", "timeout": seconds })).await.unwrap_err();
            assert_eq!(error.to_string(), "Invalid timeout: must be a finite number of seconds");
        }
        let error = bash(json!({ "command": "true", "timeout": 1e12 })).await.unwrap_err();
        assert_eq!(error.to_string(), "Invalid timeout: maximum is 2147483.647 seconds");
    }

    #[tokio::test]
    async fn cancelling_tells_the_output_so_far() {
        let (sender, mut reports) = mpsc::channel(8);
        let mut context = test_context(&std::env::temp_dir());
        context.progress = ProgressSink::new(sender);
        let arguments = json!({ "command": "echo before; sleep 1000" }).as_object().unwrap().clone();
        let tool = BashTool::default();
        let cancel = context.cancel.clone();
        let watch = async {
            assert_eq!(reports.recv().await, Some(ToolOutput::default()));
            let report = reports.recv().await.unwrap();
            assert_eq!((text_of(&report), report.details.clone()), ("before\n", Some(json!({}))));
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(tool.run(arguments, &context), watch);
        assert_eq!(result.unwrap_err().to_string(), "before\n\n\nCommand aborted");
    }
}
