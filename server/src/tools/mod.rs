//! The tools of the agent: one trait, one tool a file.

mod arguments;
mod bash;
mod edit;
mod file_lock;
mod find;
mod fs_error;
mod grep;
mod ls;
mod paths;
mod read;
mod registry;
mod search;
#[cfg(test)]
mod search_tests;
mod validation;
mod write;

use std::path::PathBuf;

use sampi_protocol::data::{ContentBlock, ToolDefinition, ToolOutput};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::BoxFuture;
pub use crate::images::{ImageLimit, Resize};
pub use crate::process::ShellSettings;

pub use bash::BashTool;
pub use edit::EditTool;
pub use find::FindTool;
pub use grep::GrepTool;
pub use ls::LsTool;
pub use read::ReadTool;
pub use registry::ToolSet;
pub use validation::{invalid_arguments, prepare_call, tool_not_found, validate_arguments};
pub use write::WriteTool;

/// What a call that was stopped says.
const ABORTED: &str = "Operation aborted";

/// A tool that the model may call.
pub trait Tool: Send + Sync {
    /// The name, the description for the model, the schema of the arguments.
    fn definition(&self) -> &ToolDefinition;

    /// One line about the tool for the system prompt.
    fn snippet(&self) -> &str;

    /// Rules for the system prompt that apply while the tool is available.
    fn guidelines(&self) -> &[&str] {
        &[]
    }

    /// Brings arguments that the tool also takes in another form into the form of its schema.
    fn prepare_arguments(&self, arguments: Map<String, Value>) -> Map<String, Value> {
        arguments
    }

    /// Runs one call. The arguments have passed the schema.
    ///
    /// `Err` is a failure that the model is told; it never ends the run. After `context.cancel` is
    /// cancelled the future ends soon, with an error that says that it was aborted.
    fn run<'a>(
        &'a self,
        arguments: Map<String, Value>,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// What a tool call runs in.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The session's working directory, absolute. Relative paths of arguments resolve from it.
    pub cwd: PathBuf,
    /// Variables that shell commands get on top of the daemon's own; `None` removes one.
    pub env: Vec<(String, Option<String>)>,
    /// The shell.
    pub shell: ShellSettings,
    /// The id of the selected model, for results that depend on what it can.
    pub model_id: Option<String>,
    /// Images.
    pub images: ImageSettings,
    /// Cancelled when the call must stop.
    pub cancel: CancellationToken,
    /// Takes results so far.
    pub progress: ProgressSink,
}

/// What the `read` tool does with images.
#[derive(Debug, Clone, Copy)]
pub struct ImageSettings {
    /// Whether images are made smaller.
    pub resize: Resize,
    /// True when the model takes images.
    pub model_takes_images: bool,
}

/// Takes results so far. A result replaces the one before it; when the reader is slow, results in
/// between are left out.
#[derive(Debug, Clone)]
pub struct ProgressSink(Option<mpsc::Sender<ToolOutput>>);

impl ProgressSink {
    /// A sink that hands results to a channel.
    pub fn new(channel: mpsc::Sender<ToolOutput>) -> Self {
        Self(Some(channel))
    }

    /// A sink that drops everything.
    pub fn none() -> Self {
        Self(None)
    }

    /// Reports a result so far, unless the reader is behind.
    pub fn report(&self, output: ToolOutput) {
        if let Some(channel) = &self.0 {
            // A reader that is behind or gone misses this one: the next or the final result replaces it.
            channel.try_send(output).ok();
        }
    }
}

/// Why a tool call failed, as the model is told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(String);

impl ToolError {
    /// A failure with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// A result that is one text.
pub fn text_output(text: impl Into<String>) -> ToolOutput {
    ToolOutput { content: vec![ContentBlock::text(text)], ..ToolOutput::default() }
}

#[cfg(test)]
fn test_context(cwd: &std::path::Path) -> ToolContext {
    ToolContext {
        cwd: cwd.to_owned(),
        env: Vec::new(),
        shell: ShellSettings::default(),
        model_id: None,
        images: ImageSettings { resize: Resize::ToFit(ImageLimit::default()), model_takes_images: true },
        cancel: CancellationToken::new(),
        progress: ProgressSink::none(),
    }
}
