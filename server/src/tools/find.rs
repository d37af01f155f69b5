//! The `find` tool.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use sampi_protocol::data::{ToolDefinition, ToolOutput};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::arguments::{count, property, schema, text};
use super::paths::relative;
use super::search::{
    SearchNotes, lines_output, not_a_directory, path_not_found, run_search, search_path, walk,
};
use super::{ABORTED, Tool, ToolContext, ToolError, text_output};
use crate::BoxFuture;

/// Results unless the call says otherwise.
const DEFAULT_LIMIT: u64 = 1000;

/// Ignore files that only this tool reads, as fd does.
const IGNORE_FILE: &str = ".fdignore";

/// Finds files by name.
#[derive(Debug)]
pub struct FindTool {
    definition: ToolDefinition,
}

impl Default for FindTool {
    fn default() -> Self {
        let definition = ToolDefinition {
            name: "find".into(),
            description: "Find files and folders by a glob pattern. Paths in the result are relative to the \
                          place searched, and folders end with a slash. What .gitignore files name is left \
                          out. At most 1000 results or 50 KB."
                .into(),
            parameters: schema(
                &["pattern"],
                &[
                    (
                        "pattern",
                        property(
                            "string",
                            "The pattern, such as *.rs for names or src/**/*.rs for paths; without capitals \
                             it matches in any case",
                        ),
                    ),
                    ("path", property("string", "The folder to search in; the working directory by default")),
                    ("limit", property("number", "How many results at most; 1000 by default")),
                ],
            ),
            constrained_sampling: None,
            extra: Default::default(),
        };
        Self { definition }
    }
}

impl Tool for FindTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn snippet(&self) -> &str {
        "Find files by glob pattern, without what .gitignore names"
    }

    fn run<'a>(
        &'a self,
        arguments: Map<String, Value>,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let pattern = text(&arguments, "pattern")?.to_owned();
            let root = search_path(&arguments, context);
            let limit = count(&arguments, "limit").unwrap_or(DEFAULT_LIMIT).max(1);
            run_search(context, move |cancel| find(&pattern, &root, limit, cancel)).await
        })
    }
}

fn find(pattern: &str, root: &Path, limit: u64, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
    let metadata = root.metadata().map_err(|_| path_not_found(root))?;
    if !metadata.is_dir() {
        return Err(not_a_directory(root));
    }
    let pattern = Pattern::new(pattern)?;
    let mut found = Vec::new();
    let mut notes = SearchNotes::default();
    let mut builder = walk(root);
    builder.require_git(false).add_custom_ignore_filename(IGNORE_FILE);
    for entry in builder.build() {
        if cancel.is_cancelled() {
            return Err(ToolError::new(ABORTED));
        }
        // What cannot be read is left out, as the shell's find does with a warning.
        let Ok(entry) = entry else { continue };
        let path = relative(entry.path(), root);
        if entry.depth() == 0 || !pattern.matches(&path) {
            continue;
        }
        if found.len() as u64 >= limit {
            let note = format!(
                "{limit} results limit reached. Use limit={} for more, or refine pattern",
                limit.saturating_mul(2)
            );
            notes.limit = Some(("resultLimitReached", limit, note));
            break;
        }
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        found.push(if is_folder { format!("{path}/") } else { path });
    }
    if found.is_empty() {
        return Ok(text_output("No files found matching pattern"));
    }
    found.sort_unstable();
    Ok(lines_output(&found.into_iter().collect(), notes))
}

/// A glob for names, or for paths when it has a slash.
enum Pattern {
    All,
    Name(GlobMatcher),
    Path(GlobMatcher),
}

impl Pattern {
    fn new(pattern: &str) -> Result<Self, ToolError> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        if pattern.is_empty() {
            return Ok(Self::All);
        }
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .case_insensitive(!pattern.chars().any(char::is_uppercase))
            .build()
            .map_err(|error| ToolError::new(error.to_string()))?;
        let matcher = glob.compile_matcher();
        Ok(if pattern.contains('/') { Self::Path(matcher) } else { Self::Name(matcher) })
    }

    fn matches(&self, path: &str) -> bool {
        match self {
            Self::All => true,
            Self::Name(glob) => glob.is_match(path.rsplit('/').next().unwrap_or(path)),
            Self::Path(glob) => glob.is_match(path),
        }
    }
}
