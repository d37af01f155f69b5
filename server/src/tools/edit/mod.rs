//! The `edit` tool.

mod diff;
mod lossless;
mod matching;

#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

use rustix::fs::Access;
use sampi_protocol::data::{ContentBlock, ToolDefinition, ToolOutput};
use serde_json::{Map, Value, json};
use tokio::fs;

use super::arguments::{property, schema, text};
use super::file_lock::lock_file;
use super::fs_error::{code, fs_error, open_file_error};
use super::paths::resolve;
use super::{ABORTED, Tool, ToolContext, ToolError};
use crate::BoxFuture;
use diff::{EditDiff, edit_diff};
use matching::{Edit, apply, apply_to_original, find_replacements, to_lf};

/// Replaces texts in a file.
#[derive(Debug)]
pub struct EditTool {
    definition: ToolDefinition,
}

impl Default for EditTool {
    fn default() -> Self {
        let edit = schema(
            &["oldText", "newText"],
            &[
                ("oldText", property("string", "The text to replace; it must be in the file exactly once")),
                ("newText", property("string", "The text that takes its place")),
            ],
        );
        let edits = json!({
            "type": "array",
            "items": edit,
            "description": "The replacements. Each is found in the file as it was before the call, and they \
                            must not overlap",
        });
        let path = property("string", "The file, relative to the working directory or absolute");
        let definition = ToolDefinition {
            name: "edit".into(),
            description:
                "Change a file by exact text replacement. Every oldText must occur in the file exactly \
                          once, with all its blanks and line breaks. Several places of one file are changed \
                          with several edits in one call. Nothing is changed when one of them does not fit."
                    .into(),
            parameters: schema(&["path", "edits"], &[("path", path), ("edits", edits)]),
            constrained_sampling: None,
            extra: Default::default(),
        }
        .with_strict_schema();
        Self { definition }
    }
}

impl Tool for EditTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn snippet(&self) -> &str {
        "Change files by exact text replacement, several places in one call"
    }

    fn guidelines(&self) -> &[&str] {
        &[
            "Change files with edit, all places of one file in one call.",
            "Copy each oldText exactly from the file, just long enough to be unique; make one edit of changes \
             that are close together.",
        ]
    }

    /// Models send `edits` as JSON text, or one replacement without the list around it.
    fn prepare_arguments(&self, mut arguments: Map<String, Value>) -> Map<String, Value> {
        if let Some(Value::String(text)) = arguments.get("edits")
            && let Ok(edits @ (Value::Array(_) | Value::Object(_))) = serde_json::from_str(text)
        {
            arguments.insert("edits".into(), edits);
        }
        let (Some(Value::String(old)), Some(Value::String(new))) =
            (arguments.get("oldText"), arguments.get("newText"))
        else {
            return arguments;
        };
        let edit = json!({ "oldText": old, "newText": new });
        arguments.shift_remove("oldText");
        arguments.shift_remove("newText");
        match arguments.get_mut("edits") {
            Some(Value::Array(edits)) => edits.push(edit),
            _ => {
                arguments.insert("edits".into(), json!([edit]));
            }
        }
        arguments
    }

    fn run<'a>(
        &'a self,
        arguments: Map<String, Value>,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let argument = text(&arguments, "path")?;
            let edits = edits(&arguments)?;
            let path = resolve(argument, &context.cwd);
            let _guard = tokio::select! {
                guard = lock_file(&path) => guard,
                () = context.cancel.cancelled() => return Err(ToolError::new(ABORTED)),
            };
            let bytes = read(&path, argument).await?;
            let count = edits.len();
            let shown_path = argument.to_owned();
            let work = tokio::task::spawn_blocking(move || edit_bytes(&bytes, &edits, &shown_path));
            let edited = work.await.map_err(|error| ToolError::new(format!("edit failed: {error}")))?;
            let (bytes, diff) = edited.map_err(ToolError::new)?;
            if context.cancel.is_cancelled() {
                return Err(ToolError::new(ABORTED));
            }
            fs::write(&path, bytes).await.map_err(|error| fs_error(&error, "open", &path))?;
            Ok(output(argument, count, diff))
        })
    }
}

fn output(path: &str, count: usize, diff: EditDiff) -> ToolOutput {
    let mut details = json!({ "diff": diff.diff, "patch": diff.patch });
    if let Some(line) = diff.first_changed_line {
        details["firstChangedLine"] = json!(line);
    }
    ToolOutput {
        content: vec![ContentBlock::text(format!("Successfully replaced {count} block(s) in {path}."))],
        details: Some(details),
        ..ToolOutput::default()
    }
}

fn edits(arguments: &Map<String, Value>) -> Result<Vec<Edit>, ToolError> {
    let edits = arguments.get("edits").and_then(Value::as_array);
    let edits = edits.map(Vec::as_slice).unwrap_or_default();
    if edits.is_empty() {
        let text = "Edit tool input is invalid. edits must contain at least one replacement.";
        return Err(ToolError::new(text));
    }
    let field = |edit: &Value, name: &str| Some(edit.get(name)?.as_str()?.to_owned());
    let read =
        |edit: &Value| Some(Edit { old_text: field(edit, "oldText")?, new_text: field(edit, "newText")? });
    let edits: Option<Vec<Edit>> = edits.iter().map(read).collect();
    edits.ok_or_else(|| ToolError::new("Edit tool input is invalid. every edit needs oldText and newText."))
}

async fn read(path: &Path, argument: &str) -> Result<Vec<u8>, ToolError> {
    let refused = |error: io::Error| {
        ToolError::new(format!("Could not edit file: {argument}. Error code: {}.", code(&error)))
    };
    rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK).map_err(|error| refused(error.into()))?;
    let metadata = fs::metadata(path).await.map_err(refused)?;
    if !metadata.is_file() && !metadata.is_dir() {
        // Pipes and devices may never end.
        return Err(ToolError::new(format!("Could not edit file: {argument}. It is no regular file.")));
    }
    fs::read(path).await.map_err(|error| open_file_error(&error, "read"))
}

/// The file's bytes after the edits. The byte order mark, line ends, and bytes that are no UTF-8 stay.
fn edit_bytes(bytes: &[u8], edits: &[Edit], path: &str) -> Result<(Vec<u8>, EditDiff), String> {
    let content = lossless::decode(bytes)
        .ok_or_else(|| format!("Could not edit file: {path}. It is neither UTF-8 nor another text."))?;
    let (mark, original) = match content.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", content.as_ref()),
    };
    let base = to_lf(original);
    let replacements = find_replacements(&base, edits, path)?;
    let new = apply(&base, &replacements);
    let mut diff = edit_diff(path, &base, &new, &replacements);
    diff.diff = lossless::shown(&diff.diff);
    diff.patch = lossless::shown(&diff.patch);
    let edited = format!("{mark}{}", apply_to_original(original, &replacements));
    // Without private characters for bytes in what was read, those of the model are its own.
    let bytes = if matches!(content, std::borrow::Cow::Borrowed(_)) {
        edited.into_bytes()
    } else {
        lossless::encode(&edited)
    };
    Ok((bytes, diff))
}
