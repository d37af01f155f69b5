//! The `write` tool.

use std::os::unix::fs::FileTypeExt;

use sampi_protocol::data::{ToolDefinition, ToolOutput};
use serde_json::{Map, Value};

use super::arguments::{property, schema, text};
use super::file_lock::lock_file;
use super::fs_error::fs_error;
use super::paths::resolve;
use super::{ABORTED, Tool, ToolContext, ToolError, text_output};
use crate::BoxFuture;

/// Creates a file or replaces one as a whole.
#[derive(Debug)]
pub struct WriteTool {
    definition: ToolDefinition,
}

impl Default for WriteTool {
    fn default() -> Self {
        let definition = ToolDefinition {
            name: "write".into(),
            description: "Create a file with the given content, or replace an existing file as a whole. \
                          Folders on the way are created."
                .into(),
            parameters: schema(
                &["path", "content"],
                &[
                    ("path", property("string", "The file, relative to the working directory or absolute")),
                    ("content", property("string", "All that the file is to contain")),
                ],
            ),
            constrained_sampling: None,
            extra: Default::default(),
        }
        .with_strict_schema();
        Self { definition }
    }
}

impl Tool for WriteTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn snippet(&self) -> &str {
        "Create a file or replace its whole content"
    }

    fn guidelines(&self) -> &[&str] {
        &["Use write for new files and complete rewrites only; change parts of a file with edit."]
    }

    fn run<'a>(
        &'a self,
        arguments: Map<String, Value>,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let argument = text(&arguments, "path")?;
            let content = text(&arguments, "content")?;
            let path = resolve(argument, &context.cwd);
            let _guard = tokio::select! {
                guard = lock_file(&path) => guard,
                () = context.cancel.cancelled() => return Err(ToolError::new(ABORTED)),
            };
            if context.cancel.is_cancelled() {
                return Err(ToolError::new(ABORTED));
            }
            if let Some(folder) = path.parent() {
                let made = tokio::fs::create_dir_all(folder).await;
                made.map_err(|error| fs_error(&error, "mkdir", folder))?;
            }
            if tokio::fs::metadata(&path).await.is_ok_and(|metadata| metadata.file_type().is_fifo()) {
                // Opening it waits for a reader that may never come.
                return Err(ToolError::new(format!("Not a regular file: {}", path.display())));
            }
            tokio::fs::write(&path, content).await.map_err(|error| fs_error(&error, "open", &path))?;
            Ok(text_output(format!("Successfully wrote to {argument}")))
        })
    }
}
