//! Markdown files that start with a block of YAML between two lines of dashes.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Map, Value};

/// Largest Markdown file that is read.
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// A Markdown text, cut into what it says about itself and what it says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Markdown {
    fields: Map<String, Value>,
    /// The text after the front matter, without blank lines around it; the whole text when it has none.
    pub body: String,
}

/// Front matter that is not YAML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the front matter is not valid YAML: {0}")]
pub struct FrontMatterError(String);

impl Markdown {
    /// Cuts a text. Line ends become `\n`.
    pub fn parse(text: &str) -> Result<Self, FrontMatterError> {
        let (yaml, body) = split(text);
        let fields = match yaml {
            Some(yaml) => read_yaml(&yaml)?,
            None => Map::new(),
        };
        Ok(Self { fields, body })
    }

    /// A field that is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.as_str()
    }

    /// True for a field that is `true`, not for text that only looks like it.
    pub fn flag(&self, name: &str) -> bool {
        self.fields.get(name) == Some(&Value::Bool(true))
    }
}

/// The text of a file without its byte order mark. What is not UTF-8 is replaced.
pub fn read_text(path: &Path) -> io::Result<String> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("not a file"));
    }
    if metadata.len() > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("larger than {} MiB", MAX_FILE_BYTES / 1024 / 1024)));
    }
    let bytes = fs::read(path)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

/// The YAML, if there is any, and the body.
fn split(text: &str) -> (Option<String>, String) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n");
    // As Pi: the opening dashes and one character, then anything up to a line that starts with dashes.
    let Some(rest) = text.strip_prefix("---") else { return (None, text) };
    let Some(end) = rest.find("\n---") else { return (None, text) };
    let mut yaml = rest.get(..end).unwrap_or_default().chars();
    yaml.next();
    let body = rest.get(end + "\n---".len()..).unwrap_or_default();
    (Some(yaml.as_str().to_owned()), body.trim().to_owned())
}

fn read_yaml(yaml: &str) -> Result<Map<String, Value>, FrontMatterError> {
    if yaml.trim().is_empty() {
        return Ok(Map::new());
    }
    // YAML 1.2, where `yes` and `on` are text.
    let options = serde_saphyr::options! {
        strict_booleans: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
    };
    match serde_saphyr::from_str_with_options::<Value>(yaml, options) {
        Ok(Value::Object(fields)) => Ok(fields),
        // A list or a lone word names no field.
        Ok(_) => Ok(Map::new()),
        Err(error) => {
            let error = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
            Err(FrontMatterError(error.lines().next().unwrap_or_default().to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (String, String) {
        let markdown = Markdown::parse(text).unwrap();
        (Value::Object(markdown.fields).to_string(), markdown.body)
    }

    #[test]
    fn the_block_between_dashes_is_read_and_the_body_is_trimmed() {
        for (text, fields, body) in [
            ("---\nname: x\n---\n\n\n  B  \n\n", r#"{"name":"x"}"#, "B"),
            ("---\r\nname: x\r\n---\r\nBody\r\nmore\r\n", r#"{"name":"x"}"#, "Body\nmore"),
            ("---\rname: x\r---\rB", r#"{"name":"x"}"#, "B"),
            ("\u{feff}---\nname: x\n---\nB", r#"{"name":"x"}"#, "B"),
            ("--- \nname: x\n---  \n\tB\n", r#"{"name":"x"}"#, "B"),
            ("---\nname: x\n---", r#"{"name":"x"}"#, ""),
            ("---\n---\nB", "{}", "B"),
            ("---\n---", "{}", ""),
            ("---\na: 1\n---\n---\nb: 2\n---\nB", r#"{"a":1}"#, "---\nb: 2\n---\nB"),
            ("----\nname: x\n----\nB", r#"{"name":"x"}"#, "-\nB"),
            ("---\n- a\n---\nB", "{}", "B"),
            ("---\nfoo\n---\nB", "{}", "B"),
        ] {
            assert_eq!(parse(text), (fields.to_owned(), body.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn a_text_without_a_closed_block_at_its_start_is_all_body() {
        for text in [
            "\n  plain\nx \n",
            "---\nname: x\nB\n",
            "---\nname: x\n  ---\nB",
            "\n---\na: 1\n---\nB",
            "",
            "--",
            "---",
        ] {
            assert_eq!(parse(text), ("{}".to_owned(), text.to_owned()));
        }
        assert_eq!(parse("\u{feff}plain\r\nx").1, "plain\nx");
    }

    #[test]
    fn scalars_are_those_of_yaml_1_2() {
        let text = "---\nb: yes\nc: True\nd: ~\nf: 1_000\nj: 2024-01-01\nk: on\np: \"q\"\nq: 'it''s'\nr: >\n  one\n  two\n\n  three\n\
                    s: |\n  one\n  two\nt: <name>\nu: a #b\nv: one\n  two\nw: &x y\nx: *x\n---\n";
        let expected = r#"{"b":"yes","c":true,"d":null,"f":"1_000","j":"2024-01-01","k":"on","p":"q","q":"it's","r":"one two\nthree\n","s":"one\ntwo\n","t":"<name>","u":"a","v":"one two","w":"y","x":"y"}"#;
        assert_eq!(parse(text).0, expected);
        let markdown = Markdown::parse(text).unwrap();
        assert!(markdown.flag("c") && !markdown.flag("b") && !markdown.flag("nosuch"));
        assert_eq!((markdown.text("b"), markdown.text("c"), markdown.text("d")), (Some("yes"), None, None));
    }

    #[test]
    fn what_is_not_yaml_is_an_error_of_one_line() {
        for yaml in [
            "d: [x",
            "d: use: this",
            "a: 1\na: 2",
            "d: @foo",
            "d: *foo",
            "d: \"a\" b",
            "h: [file] [opt]",
            "d: one\ntwo",
            "d:\n\te: y",
        ] {
            let error = Markdown::parse(&format!("---\n{yaml}\n---\nB")).expect_err(yaml).to_string();
            assert!(
                error.starts_with("the front matter is not valid YAML: ") && !error.contains('\n'),
                "{error}"
            );
        }
    }

    #[test]
    fn a_deeply_nested_block_does_no_harm() {
        let yaml = format!("---\na: {}{}\n---\nB", "[".repeat(100_000), "]".repeat(100_000));
        assert!(Markdown::parse(&yaml).is_err());
    }
}
