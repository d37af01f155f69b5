//! What the tools that look for files have in common.

use std::path::{Path, PathBuf};

use ignore::WalkBuilder;
use sampi_protocol::data::ToolOutput;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::arguments::optional_text;
use super::paths::resolve;
use super::{ABORTED, ToolContext, ToolError, text_output};
use crate::process::truncation::{MAX_BYTES, TextSize, UNLIMITED_LINES, format_size, truncate_head_of};

/// The folder of a repository's own data, which nobody looks for.
const GIT_FOLDER: &str = ".git";

/// Runs a search on a thread of its own; ends at once when the call is cancelled, and the search soon.
pub(super) async fn run_search<T: Send + 'static>(
    context: &ToolContext,
    search: impl FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let cancel = context.cancel.clone();
    let work = tokio::task::spawn_blocking(move || search(&cancel));
    tokio::select! {
        biased;
        () = context.cancel.cancelled() => Err(ToolError::new(ABORTED)),
        result = work => result.map_err(|error| ToolError::new(format!("search failed: {error}")))?,
    }
}

/// The place to search in: the argument `path`, else the working directory.
pub(super) fn search_path(arguments: &Map<String, Value>, context: &ToolContext) -> PathBuf {
    resolve(optional_text(arguments, "path").unwrap_or("."), &context.cwd)
}

/// The error of a place that does not exist.
pub(super) fn path_not_found(path: &Path) -> ToolError {
    ToolError::new(format!("Path not found: {}", path.display()))
}

/// The error of a place that is no folder.
pub(super) fn not_a_directory(path: &Path) -> ToolError {
    ToolError::new(format!("Not a directory: {}", path.display()))
}

/// A walk in the order of names, also through hidden files, without what ignore files name and without
/// the data of repositories.
pub(super) fn walk(root: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(root);
    builder.hidden(false).sort_by_file_name(|a, b| a.cmp(b));
    builder.filter_entry(|entry| entry.depth() == 0 || entry.file_name() != GIT_FOLDER);
    builder
}

/// The lines of a result: as many of them as may be shown, and how long all of them are.
#[derive(Debug, Default)]
pub(super) struct Lines {
    head: String,
    size: TextSize,
}

impl Lines {
    pub(super) fn push(&mut self, line: &str) {
        let separator = if self.size.lines > 0 { "\n" } else { "" };
        // What is behind the limit is only counted.
        if self.size.bytes <= MAX_BYTES {
            self.head.push_str(separator);
            self.head.push_str(line);
        }
        self.size.lines += 1;
        self.size.bytes += (separator.len() + line.len()) as u64;
    }

    pub(super) fn count(&self) -> u64 {
        self.size.lines
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count() == 0
    }
}

impl FromIterator<String> for Lines {
    fn from_iter<I: IntoIterator<Item = String>>(lines: I) -> Self {
        let mut all = Self::default();
        lines.into_iter().for_each(|line| all.push(&line));
        all
    }
}

/// A result of lines, cut to the limit of bytes, with notes on what is left out.
///
/// `details` tells what a limit cut, and `notes` says it in words.
pub(super) fn lines_output(lines: &Lines, notes: SearchNotes) -> ToolOutput {
    let truncation = truncate_head_of(&lines.head, lines.size, UNLIMITED_LINES);
    let mut details = Map::new();
    let mut words = Vec::new();
    if let Some((name, limit, note)) = notes.limit {
        details.insert(name.into(), json!(limit));
        words.push(note);
    }
    if truncation.truncated {
        words.push(format!("{} limit reached", format_size(MAX_BYTES)));
        details.insert("truncation".into(), json!(truncation));
    }
    if let Some((name, note)) = notes.lines_cut {
        details.insert(name.into(), json!(true));
        words.push(note);
    }
    let mut text = truncation.content;
    if !words.is_empty() {
        text.push_str(&format!("\n\n[{}]", words.join(". ")));
    }
    ToolOutput { details: (!details.is_empty()).then_some(Value::Object(details)), ..text_output(text) }
}

/// What a result leaves out, besides too many bytes.
#[derive(Debug, Default)]
pub(super) struct SearchNotes {
    /// A limit on the number of results was reached: the name in the details, the limit, the words.
    pub(super) limit: Option<(&'static str, u64, String)>,
    /// Long lines were cut: the name in the details, the words.
    pub(super) lines_cut: Option<(&'static str, String)>,
}
