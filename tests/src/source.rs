//! Rust sources, told apart into code, comments and texts, for the tests of the architecture.

use std::path::{Path, PathBuf};

/// One source file.
#[derive(Debug)]
pub struct Source {
    /// The path from the workspace's root, with `/` between its parts.
    pub path: String,
    /// The file as it is.
    pub text: String,
    /// The code alone: comments are blank, text literals are empty, lines stay where they are.
    pub code: String,
    /// The text literals of the code.
    pub literals: Vec<String>,
}

/// The workspace's root.
pub fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

/// The Rust sources below a directory of the workspace, unit tests included.
pub fn sources_below(directory: &str) -> Vec<Source> {
    let root = workspace_root();
    let mut paths = Vec::new();
    collect(&root.join(directory), &mut paths);
    paths.sort();
    assert!(!paths.is_empty(), "no sources below {directory}");
    paths.into_iter().map(|path| Source::read(&root, &path)).collect()
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in directory.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

impl Source {
    fn read(root: &Path, path: &Path) -> Self {
        let text = std::fs::read_to_string(path).expect("a source can be read");
        let relative = path.strip_prefix(root).expect("below the root");
        let path = relative.to_string_lossy().replace('\\', "/");
        Self::of(path, text)
    }

    fn of(path: String, text: String) -> Self {
        let (code, literals) = split(&text);
        Self { path, text, code, literals }
    }

    /// The source without its unit tests; an empty one for a file of tests.
    pub fn without_tests(self) -> Self {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        if name == "tests.rs" || self.path.contains("/tests/") {
            return Self::of(self.path, String::new());
        }
        let end = self.code.find("#[cfg(test)]\nmod tests {").unwrap_or(self.code.len());
        // Code and text have the same lines, so the cut is made by lines.
        let lines = self.code[..end].lines().count();
        let text: Vec<&str> = self.text.lines().take(lines).collect();
        Self::of(self.path, text.join("\n"))
    }

    /// How many lines have code on them.
    pub fn code_lines(&self) -> usize {
        self.code.lines().filter(|line| !line.trim().is_empty()).count()
    }

    /// Every path of the code, such as `crate::llm::sse`, the branches of `{}` in a `use` each as one.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        let code: Vec<char> = self.code.chars().collect();
        let mut at = 0;
        while at < code.len() {
            let starts = is_word(code[at]) && (at == 0 || !is_word(code[at - 1]));
            if starts {
                at = read_path(&code, at, String::new(), &mut paths);
            } else {
                at += 1;
            }
        }
        paths
    }
}

/// Reads one path from `at` on, branches included; gives back where it ends.
fn read_path(code: &[char], mut at: usize, mut path: String, paths: &mut Vec<String>) -> usize {
    loop {
        let start = at;
        while at < code.len() && is_word(code[at]) {
            path.push(code[at]);
            at += 1;
        }
        let has_more = code.get(at) == Some(&':') && code.get(at + 1) == Some(&':');
        if at == start || !has_more {
            paths.push(path);
            return at.max(start + 1);
        }
        at += 2;
        path.push_str("::");
        if code.get(at) == Some(&'{') {
            at += 1;
            loop {
                while at < code.len() && (code[at].is_whitespace() || code[at] == ',') {
                    at += 1;
                }
                if at >= code.len() || !is_word(code[at]) {
                    // Behind the closing brace, or behind `*`, which names nothing.
                    return at + 1;
                }
                at = read_path(code, at, path.clone(), paths);
                // An alias belongs to the path before it.
                while at < code.len() && !matches!(code[at], ',' | '}') {
                    at += 1;
                }
            }
        }
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Tells code from comments and texts.
fn split(text: &str) -> (String, Vec<String>) {
    let characters: Vec<char> = text.chars().collect();
    let (mut code, mut literals) = (String::new(), Vec::new());
    let mut at = 0;
    while at < characters.len() {
        let rest = &characters[at..];
        let end = match rest {
            ['/', '/', ..] => rest.iter().position(|c| *c == '\n').unwrap_or(rest.len()),
            ['/', '*', ..] => end_of_comment(rest),
            ['"', ..] => {
                let end = end_of_text(rest);
                literals.push(rest[1..end - 1].iter().collect());
                code.push_str("\"\"");
                end
            }
            ['r', '"' | '#', ..] if !ends_in_word(&code) && raw_hashes(rest).is_some() => {
                let (start, end) = raw_text(rest, raw_hashes(rest).unwrap_or_default());
                literals.push(rest[start..end - start + 1].iter().collect());
                code.push_str("\"\"");
                end
            }
            ['\'', '\\', _, ..] => {
                rest.iter().skip(3).position(|c| *c == '\'').map_or(rest.len(), |end| end + 4)
            }
            ['\'', _, '\'', ..] => 3,
            _ => {
                code.push(rest[0]);
                at += 1;
                continue;
            }
        };
        code.extend(rest[..end].iter().filter(|c| **c == '\n'));
        at += end;
    }
    (code, literals)
}

fn ends_in_word(code: &str) -> bool {
    code.chars().next_back().is_some_and(is_word)
}

fn end_of_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match rest[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn end_of_text(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != '"' {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// How many `#` a raw text has, if this is one.
fn raw_hashes(rest: &[char]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
    (rest.get(1 + hashes) == Some(&'"')).then_some(hashes)
}

/// Where the content of a raw text starts, and where the whole of it ends.
fn raw_text(rest: &[char], hashes: usize) -> (usize, usize) {
    let start = hashes + 2;
    let mut at = start;
    while at < rest.len() {
        if rest[at] == '"' && rest[at + 1..].iter().take_while(|c| **c == '#').count() >= hashes {
            return (start, at + 1 + hashes);
        }
        at += 1;
    }
    (start, rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source::of("a/b.rs".to_owned(), text.to_owned())
    }

    #[test]
    fn comments_and_texts_are_no_code() {
        let text = "let a = \"x // \\\" y\"; // std::fs\n/* tokio /* nested */ */ let b = r#\"raw \"q\" \"#; 'c' '\\'' 'a: x";
        let source = source(text);
        assert_eq!(source.literals, ["x // \\\" y", "raw \"q\" "]);
        assert_eq!(source.code, "let a = \"\"; \n let b = \"\";   'a: x");
    }

    #[test]
    fn paths_are_found_through_the_branches_of_a_use() {
        let text =
            "use crate::{llm::{sse, http as h}, tools};\nfn f() { super::session::open(); crate::agent::x }";
        let paths = source(text).paths();
        for path in
            ["crate::llm::sse", "crate::llm::http", "crate::tools", "super::session::open", "crate::agent::x"]
        {
            assert!(paths.iter().any(|found| found == path), "{path} in {paths:?}");
        }
    }

    #[test]
    fn unit_tests_can_be_left_out() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { \"b\" }\n}\n";
        let source = source(text).without_tests();
        assert_eq!(source.text, "fn a() {}");
        assert!(source.literals.is_empty());
    }
}
