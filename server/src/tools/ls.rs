//! The `ls` tool.

use std::path::Path;

use sampi_protocol::data::{ToolDefinition, ToolOutput};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::arguments::{count, property, schema};
use super::fs_error::fs_error;
use super::search::{
    Lines, SearchNotes, lines_output, not_a_directory, path_not_found, run_search, search_path,
};
use super::{ABORTED, Tool, ToolContext, ToolError, text_output};
use crate::BoxFuture;
use crate::ecmascript::collation_rank;

/// Entries that are listed unless the call says otherwise.
const DEFAULT_LIMIT: u64 = 500;

/// Lists a folder.
#[derive(Debug)]
pub struct LsTool {
    definition: ToolDefinition,
}

impl Default for LsTool {
    fn default() -> Self {
        let definition = ToolDefinition {
            name: "ls".into(),
            description:
                "List what is in a folder, hidden files too, in alphabetical order; folders end with \
                          a slash. At most 500 entries or 50 KB."
                    .into(),
            parameters: schema(
                &[],
                &[
                    ("path", property("string", "The folder; the working directory by default")),
                    ("limit", property("number", "How many entries to list at most; 500 by default")),
                ],
            ),
            constrained_sampling: None,
            extra: Default::default(),
        };
        Self { definition }
    }
}

impl Tool for LsTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn snippet(&self) -> &str {
        "List the contents of a folder"
    }

    fn run<'a>(
        &'a self,
        arguments: Map<String, Value>,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let path = search_path(&arguments, context);
            let limit = count(&arguments, "limit").unwrap_or(DEFAULT_LIMIT).max(1);
            run_search(context, move |cancel| list(&path, limit, cancel)).await
        })
    }
}

fn list(path: &Path, limit: u64, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
    let metadata = path.metadata().map_err(|_| path_not_found(path))?;
    if !metadata.is_dir() {
        return Err(not_a_directory(path));
    }
    let entries = path.read_dir().map_err(|error| fs_error(&error, "scandir", path))?;
    let mut names = Vec::new();
    for entry in entries {
        if cancel.is_cancelled() {
            return Err(ToolError::new(ABORTED));
        }
        names.push(entry.map_err(|error| fs_error(&error, "scandir", path))?.file_name());
    }
    names.sort_by_cached_key(|name| {
        let name = name.to_string_lossy().into_owned();
        (sort_key(&name), name)
    });
    let mut lines = Lines::default();
    let mut notes = SearchNotes::default();
    for name in names {
        if lines.count() >= limit {
            let note =
                format!("{limit} entries limit reached. Use limit={} for more", limit.saturating_mul(2));
            notes.limit = Some(("entryLimitReached", limit, note));
            break;
        }
        // Links that lead nowhere, and what has gone in between, are left out.
        if let Ok(metadata) = path.join(&name).metadata() {
            let name = name.to_string_lossy();
            lines.push(&if metadata.is_dir() { format!("{name}/") } else { name.into_owned() });
        }
    }
    if lines.is_empty() {
        return Ok(text_output("(empty directory)"));
    }
    Ok(lines_output(&lines, notes))
}

/// The order of a dictionary, without regard to case and accents: punctuation, digits, letters.
fn sort_key(name: &str) -> Vec<(u8, u32)> {
    name.to_lowercase().nfd().filter(|c| !is_combining_mark(*c)).map(collation_rank).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::test_context;
    use super::*;

    async fn ls(folder: &Path, arguments: Value) -> Result<(String, Option<Value>), String> {
        let context = test_context(folder);
        let result = LsTool::default().run(arguments.as_object().unwrap().clone(), &context).await;
        let output = result.map_err(|error| error.to_string())?;
        Ok((output.content[0].as_text().unwrap().to_owned(), output.details))
    }

    #[tokio::test]
    async fn entries_are_in_the_order_of_a_dictionary() {
        let folder = tempfile::tempdir().unwrap();
        let sorted =
            ["_b", "-c", ".z", "~t", "1", "10", "2", "a", "a b", "a_b", "a-b", "Aa", "B", "é", "É2", "z"];
        for name in sorted {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(ls(folder.path(), json!({})).await.unwrap(), (sorted.join("\n"), None));
    }

    #[tokio::test]
    async fn folders_end_with_a_slash_and_broken_links_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::os::unix::fs::symlink("sub", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("broken")).unwrap();
        assert_eq!(ls(folder.path(), json!({})).await.unwrap().0, "link/\nsub/");
        assert_eq!(ls(folder.path(), json!({ "path": "sub" })).await.unwrap().0, "(empty directory)");
    }

    #[tokio::test]
    async fn the_limit_is_told_only_when_it_cut() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let (text, details) = ls(folder.path(), json!({ "limit": 2 })).await.unwrap();
        assert_eq!(text, "a\nb\n\n[2 entries limit reached. Use limit=4 for more]");
        assert_eq!(details, Some(json!({ "entryLimitReached": 2 })));
        assert_eq!(ls(folder.path(), json!({ "limit": 3 })).await.unwrap(), ("a\nb\nc".into(), None));
        assert!(ls(folder.path(), json!({ "limit": -1 })).await.unwrap().0.starts_with("a\n\n[1 entries"));
    }

    #[tokio::test]
    async fn a_place_that_cannot_be_listed_is_told() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f"), "").unwrap();
        let root = folder.path().display();
        assert_eq!(
            ls(folder.path(), json!({ "path": "no" })).await.unwrap_err(),
            format!("Path not found: {root}/no")
        );
        assert_eq!(
            ls(folder.path(), json!({ "path": "f" })).await.unwrap_err(),
            format!("Not a directory: {root}/f")
        );
    }
}
