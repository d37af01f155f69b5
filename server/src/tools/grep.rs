//! The `grep` tool.

use std::io;
use std::path::PathBuf;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use ignore::overrides::OverrideBuilder;
use sampi_protocol::data::{ToolDefinition, ToolOutput};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::arguments::{count, flag, optional_text, property, schema, text};
use super::paths::relative;
use super::search::{Lines, SearchNotes, lines_output, path_not_found, run_search, search_path, walk};
use super::{ABORTED, Tool, ToolContext, ToolError, text_output};
use crate::BoxFuture;

/// Matches unless the call says otherwise.
const DEFAULT_LIMIT: u64 = 100;

/// Characters of a line that are shown.
const MAX_LINE_CHARACTERS: usize = 500;

/// Bytes of a line at most; a file with a longer one is not searched to its end.
const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// Lines around a match at most.
const MAX_CONTEXT: u64 = 1000;

/// Ignore files that only this tool reads, as ripgrep does.
const IGNORE_FILE: &str = ".rgignore";

/// Searches in files.
#[derive(Debug)]
pub struct GrepTool {
    definition: ToolDefinition,
}

impl Default for GrepTool {
    fn default() -> Self {
        let definition = ToolDefinition {
            name: "grep".into(),
            description:
                "Search the contents of files for a regular expression (ripgrep's syntax) or a literal \
                          text. The result has path, line number and line of each match. What .gitignore \
                          files name is left out. At most 100 matches or 50 KB; long lines are cut to 500 \
                          characters."
                    .into(),
            parameters: schema(
                &["pattern"],
                &[
                    (
                        "pattern",
                        property("string", "The regular expression, or the text when literal is true"),
                    ),
                    (
                        "path",
                        property("string", "The folder or file to search; the working directory by default"),
                    ),
                    (
                        "glob",
                        property("string", "Search only files that match this, such as *.ts or src/**/*.rs"),
                    ),
                    ("ignoreCase", property("boolean", "True to match in any case")),
                    ("literal", property("boolean", "True when the pattern is plain text")),
                    (
                        "context",
                        property("number", "Lines to show before and after each match; none by default"),
                    ),
                    ("limit", property("number", "How many matches at most; 100 by default")),
                ],
            ),
            constrained_sampling: None,
            extra: Default::default(),
        };
        Self { definition }
    }
}

impl Tool for GrepTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn snippet(&self) -> &str {
        "Search file contents, without what .gitignore names"
    }

    fn run<'a>(
        &'a self,
        arguments: Map<String, Value>,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let search = Search {
                pattern: text(&arguments, "pattern")?.to_owned(),
                root: search_path(&arguments, context),
                glob: optional_text(&arguments, "glob").map(str::to_owned),
                ignore_case: flag(&arguments, "ignoreCase"),
                literal: flag(&arguments, "literal"),
                context: count(&arguments, "context").unwrap_or(0).min(MAX_CONTEXT),
                limit: count(&arguments, "limit").unwrap_or(DEFAULT_LIMIT).max(1),
            };
            run_search(context, move |cancel| search.run(cancel)).await
        })
    }
}

struct Search {
    pattern: String,
    root: PathBuf,
    glob: Option<String>,
    ignore_case: bool,
    literal: bool,
    context: u64,
    limit: u64,
}

impl Search {
    fn run(self, cancel: &CancellationToken) -> Result<ToolOutput, ToolError> {
        let metadata = self.root.metadata().map_err(|_| path_not_found(&self.root))?;
        let matcher = self.matcher()?;
        let mut matches = Matches { limit: self.limit, context: self.context, ..Matches::default() };
        if metadata.is_dir() {
            self.search_folder(&matcher, &mut matches, cancel)?;
        } else if !metadata.is_file() {
            // Pipes and devices may never end.
            return Err(ToolError::new(format!("Not a regular file: {}", self.root.display())));
        } else {
            let name = self.root.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // A file that is named is searched whatever is in it.
            let mut searcher = self.searcher(BinaryDetection::none());
            let mut sink = FileMatches { matches: &mut matches, path: name, after: 0, cancel };
            let result = searcher.search_path(&matcher, &self.root, &mut sink);
            result.map_err(|error| ToolError::new(format!("{}: {error}", self.root.display())))?;
        }
        if cancel.is_cancelled() {
            return Err(ToolError::new(ABORTED));
        }
        Ok(matches.output())
    }

    fn matcher(&self) -> Result<RegexMatcher, ToolError> {
        RegexMatcherBuilder::new()
            .case_insensitive(self.ignore_case)
            .fixed_strings(self.literal)
            .line_terminator(Some(b'\n'))
            .build(&self.pattern)
            // The matcher's own error shows the pattern with what it put around it.
            .map_err(|error| match regex_syntax::parse(&self.pattern) {
                Err(error) if !self.literal => ToolError::new(error.to_string()),
                _ => ToolError::new(error.to_string()),
            })
    }

    fn searcher(&self, binary: BinaryDetection) -> Searcher {
        let context = usize::try_from(self.context).unwrap_or(usize::MAX);
        let mut builder = SearcherBuilder::new();
        builder.line_number(true).before_context(context).after_context(context).binary_detection(binary);
        builder.heap_limit(Some(MAX_LINE_BYTES));
        builder.build()
    }

    fn search_folder(
        &self,
        matcher: &RegexMatcher,
        matches: &mut Matches,
        cancel: &CancellationToken,
    ) -> Result<(), ToolError> {
        let mut builder = walk(&self.root);
        builder.add_custom_ignore_filename(IGNORE_FILE);
        if let Some(glob) = &self.glob {
            let mut overrides = OverrideBuilder::new(&self.root);
            let overrides = overrides.add(glob).and_then(|overrides| overrides.build());
            builder.overrides(overrides.map_err(|error| ToolError::new(error.to_string()))?);
        }
        let mut searcher = self.searcher(BinaryDetection::quit(0));
        for entry in builder.build() {
            if cancel.is_cancelled() || matches.is_over {
                break;
            }
            // What cannot be read has no matches, as with ripgrep, which only warns.
            let Ok(entry) = entry else { continue };
            if entry.file_type().is_some_and(|kind| kind.is_file()) {
                let path = relative(entry.path(), &self.root);
                let mut sink = FileMatches { matches, path, after: 0, cancel };
                if let Err(error) = searcher.search_path(matcher, entry.path(), &mut sink) {
                    tracing::debug!(path = %entry.path().display(), %error, "cannot search a file");
                }
            }
        }
        Ok(())
    }
}

/// What was found so far.
#[derive(Debug, Default)]
struct Matches {
    limit: u64,
    context: u64,
    count: u64,
    lines: Lines,
    /// There are more matches than the limit.
    is_over: bool,
    lines_cut: bool,
}

impl Matches {
    fn push(&mut self, path: &str, number: Option<u64>, mark: char, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        let number = number.unwrap_or_default();
        let text = match line.char_indices().nth(MAX_LINE_CHARACTERS) {
            Some((end, _)) => {
                self.lines_cut = true;
                format!("{path}{mark}{number}{mark} {}... [truncated]", line.get(..end).unwrap_or_default())
            }
            None => format!("{path}{mark}{number}{mark} {line}"),
        };
        self.lines.push(&text);
    }

    fn output(self) -> ToolOutput {
        if self.lines.is_empty() {
            return text_output("No matches found");
        }
        let limit = self.is_over.then(|| {
            let next = self.limit.saturating_mul(2);
            let note =
                format!("{} matches limit reached. Use limit={next} for more, or refine pattern", self.limit);
            ("matchLimitReached", self.limit, note)
        });
        let lines_cut = self.lines_cut.then(|| {
            let note = format!(
                "Some lines truncated to {MAX_LINE_CHARACTERS} chars. Use read tool to see full lines"
            );
            ("linesTruncated", note)
        });
        lines_output(&self.lines, SearchNotes { limit, lines_cut })
    }
}

/// Takes the matches of one file.
struct FileMatches<'a> {
    matches: &'a mut Matches,
    path: String,
    /// Lines of context that are still shown after the last match.
    after: u64,
    cancel: &'a CancellationToken,
}

impl Sink for FileMatches<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.matches.count >= self.matches.limit {
            self.matches.is_over = true;
            if self.after == 0 {
                return Ok(false);
            }
            self.after -= 1;
            self.matches.push(&self.path, found.line_number(), '-', found.bytes());
        } else {
            self.matches.count += 1;
            self.after = self.matches.context;
            self.matches.push(&self.path, found.line_number(), ':', found.bytes());
        }
        Ok(!self.cancel.is_cancelled())
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> Result<bool, io::Error> {
        let is_full = self.matches.count >= self.matches.limit;
        if is_full && self.after == 0 {
            // Lines before a match that is not shown; the match itself will end the search.
            return Ok(true);
        }
        if is_full {
            self.after -= 1;
        }
        self.matches.push(&self.path, line.line_number(), '-', line.bytes());
        Ok(!self.cancel.is_cancelled())
    }
}
