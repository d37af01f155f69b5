//! JSON as people write it by hand: comments, trailing commas, a byte order mark.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Map, Value};

/// Largest configuration file that is read.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// Why a configuration file counts for nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    #[error("{file}: cannot be read: {source}")]
    Read { file: String, source: io::Error },
    #[error("{file}: larger than {} MiB", MAX_FILE_BYTES / 1024 / 1024)]
    TooLarge { file: String },
    #[error("{file}:{line}:{column}: not valid JSON: {reason}")]
    Syntax { file: String, line: usize, column: usize, reason: String },
    #[error("{file}: the top level must be an object")]
    NotAnObject { file: String },
}

/// Reads a file that holds one object. `None` when there is no such file or nothing in it.
pub(super) fn read_object(path: &Path) -> Result<Option<Map<String, Value>>, FileError> {
    let file = path.display().to_string();
    let bytes = match fs::metadata(path) {
        // Pipes and devices may never end.
        Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => {
            let source = io::Error::other("not a regular file");
            return Err(FileError::Read { file, source });
        }
        Ok(metadata) if metadata.len() > MAX_FILE_BYTES => return Err(FileError::TooLarge { file }),
        Ok(_) => fs::read(path),
        Err(error) => Err(error),
    };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(FileError::Read { file, source }),
    };
    let text = String::from_utf8_lossy(&bytes);
    let plain = to_json(&text);
    if plain.trim().is_empty() {
        return Ok(None);
    }
    match serde_json::from_str(&plain) {
        Ok(Value::Object(object)) => Ok(Some(object)),
        Ok(_) => Err(FileError::NotAnObject { file }),
        Err(error) => {
            let line = error.line();
            let column = column_of(&plain, line, error.column());
            // The position stands in front already.
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default().to_owned();
            Err(FileError::Syntax { file, line, column, reason })
        }
    }
}

/// The column in characters, as editors count, of a column in bytes.
fn column_of(text: &str, line: usize, byte_column: usize) -> usize {
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    line.char_indices().take_while(|(at, _)| at + 1 < byte_column).count() + 1
}

/// Blanks out comments, trailing commas and a byte order mark. Every other character keeps its place,
/// so positions in error messages hold for the original.
fn to_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.strip_prefix('\u{feff}').unwrap_or(text).chars().peekable();
    // Where in `out` the last comma stands, while nothing but space and comments followed it.
    let mut comma: Option<usize> = None;
    // The last character that means something.
    let mut last = ' ';
    while let Some(c) = chars.next() {
        match (c, chars.peek().copied()) {
            ('"', _) => {
                comma = None;
                last = c;
                out.push(c);
                let mut escaped = false;
                for c in chars.by_ref() {
                    out.push(c);
                    match c {
                        _ if escaped => escaped = false,
                        '\\' => escaped = true,
                        '"' => break,
                        _ => {}
                    }
                }
            }
            ('/', Some('/')) => {
                out.push(' ');
                while let Some(c) = chars.next_if(|c| *c != '\n') {
                    blank(&mut out, c);
                }
            }
            ('/', Some('*')) => {
                out.push(' ');
                let mut star = false;
                for (nth, c) in chars.by_ref().enumerate() {
                    blank(&mut out, c);
                    if star && c == '/' {
                        break;
                    }
                    // The star that opens the comment does not close it.
                    star = c == '*' && nth > 0;
                }
            }
            (',', _) => {
                // A comma with no value before it is no trailing one.
                comma = (!"{[,: ".contains(last)).then_some(out.len());
                last = c;
                out.push(c);
            }
            ('}' | ']', _) => {
                if let Some(at) = comma.take() {
                    out.replace_range(at..at + 1, " ");
                }
                last = c;
                out.push(c);
            }
            _ => {
                if !c.is_whitespace() {
                    comma = None;
                    last = c;
                }
                out.push(c);
            }
        }
    }
    out
}

/// Keeps lines and columns.
fn blank(out: &mut String, c: char) {
    out.push(if c == '\n' { c } else { ' ' });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Value, serde_json::Error> {
        serde_json::from_str(&to_json(text))
    }

    #[test]
    fn a_pipe_or_device_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("settings.json");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [&pipe, Path::new("/dev/zero")] {
            let error = read_object(path).unwrap_err().to_string();
            assert_eq!(error, format!("{}: cannot be read: not a regular file", path.display()));
        }
    }

    #[test]
    fn comments_and_trailing_commas_are_accepted() {
        let text = "\u{feff}// first\n{ /* é */ \"a\": [1, 2, /* x */ ], // c\n \"b\": {\"c\": 1,},\n}\n/**/";
        assert_eq!(read(text).unwrap(), serde_json::json!({ "a": [1, 2], "b": { "c": 1 } }));
    }

    #[test]
    fn what_looks_like_a_comment_in_a_string_is_kept() {
        let value = read(r#"{"url": "http://x/*y*/", "q": "a\"//,]"}"#).unwrap();
        assert_eq!(value, serde_json::json!({ "url": "http://x/*y*/", "q": "a\"//,]" }));
    }

    #[test]
    fn a_lone_or_double_comma_is_still_an_error() {
        for text in ["{,}", "[,]", "[1,,]", "[,1]", "{\"a\":1,,\"b\":2}", "{\"a\":,}"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn positions_of_errors_hold_for_the_original_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        fs::write(&path, "// ü\n{ /* ü */ \"ü\": x }").unwrap();
        let error = read_object(&path).unwrap_err().to_string();
        assert!(error.ends_with("x.json:2:16: not valid JSON: expected value"), "{error}");
    }

    #[test]
    fn a_missing_or_empty_file_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read_object(&dir.path().join("no.json")).unwrap().is_none());
        let empty = dir.path().join("empty.json");
        fs::write(&empty, " // nothing\n").unwrap();
        assert!(read_object(&empty).unwrap().is_none());
        fs::write(&empty, "[1]").unwrap();
        assert!(matches!(read_object(&empty), Err(FileError::NotAnObject { .. })));
    }

    #[test]
    fn an_open_comment_or_string_at_the_end_is_an_error_and_no_panic() {
        for text in ["{ /* x", "{ \"a", "/", "/*", "{ \"a\\"] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn plain_json_is_left_as_it_is(text in "\\PC*", number in proptest::num::i64::ANY) {
            let value = serde_json::json!({ &text: [text, number, null, { "a": {} }], "b": [] });
            let plain = value.to_string();
            proptest::prop_assert_eq!(to_json(&plain), plain);
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            proptest::prop_assert_eq!(to_json(&pretty), pretty);
        }

        #[test]
        fn any_text_keeps_its_lines_and_columns(text in "[ -,/*\"\\\\\n{}\\[\\]aé]{0,40}") {
            let shape = |text: &str| text.lines().map(|line| line.chars().count()).collect::<Vec<_>>();
            proptest::prop_assert_eq!(shape(&to_json(&text)), shape(&text));
        }
    }
}
