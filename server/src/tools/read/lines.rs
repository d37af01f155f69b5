//! The part of a text file that a call asks for, read without keeping the rest.

use crate::process::truncation::{
    MAX_BYTES, MAX_LINES, TextSize, TruncatedBy, Truncation, format_size, truncate_head_of,
};

/// Collects some lines of a text that comes in pieces.
#[derive(Debug)]
pub(super) struct LineWindow {
    /// The first line, counted from zero.
    start: u64,
    /// Lines at most.
    limit: Option<u64>,
    /// The line that the next piece continues.
    line: u64,
    kept: String,
    selected_bytes: u64,
    selected_newlines: u64,
    first_line_bytes: u64,
    /// Bytes of the last line that was selected, without its line break.
    last_line_bytes: u64,
    /// False when the selection ends in a line without a line break.
    ends_with_newline: bool,
}

/// What a call reads.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// The lines, and a note on what is left.
    pub(super) text: String,
    /// Set when the limits of a result cut the lines.
    pub(super) truncation: Option<Truncation>,
}

impl LineWindow {
    /// `offset` counts from one.
    pub(super) fn new(offset: Option<u64>, limit: Option<u64>) -> Self {
        Self {
            start: offset.unwrap_or(1).saturating_sub(1),
            limit,
            line: 0,
            kept: String::new(),
            selected_bytes: 0,
            selected_newlines: 0,
            first_line_bytes: 0,
            last_line_bytes: 0,
            ends_with_newline: true,
        }
    }

    /// Takes the next piece of the file.
    pub(super) fn push(&mut self, text: &str) {
        for part in text.split_inclusive('\n') {
            let ends = part.ends_with('\n');
            if self.line >= self.start && self.limit.is_none_or(|limit| self.line - self.start < limit) {
                self.selected_bytes += part.len() as u64;
                self.selected_newlines += u64::from(ends);
                let continued = if self.ends_with_newline { 0 } else { self.last_line_bytes };
                self.last_line_bytes = continued + part.len() as u64 - u64::from(ends);
                self.ends_with_newline = ends;
                if self.line == self.start {
                    self.first_line_bytes += part.len() as u64 - u64::from(ends);
                }
                if self.kept.len() as u64 <= MAX_BYTES + 1 {
                    self.kept.push_str(part);
                }
            }
            self.line += u64::from(ends);
        }
    }

    /// What was read, once the file ended. `path` is the file as the call named it.
    pub(super) fn finish(mut self, path: &str) -> Result<Window, String> {
        let total = self.line + 1;
        if self.start >= total {
            let offset = self.start + 1;
            return Err(format!("Offset {offset} is beyond end of file ({total} lines total)"));
        }
        let end = self.limit.map_or(total, |limit| self.start.saturating_add(limit).min(total));
        if end < total && self.selected_newlines > 0 {
            // The line break after the last line that was asked for is no part of it.
            if self.kept.len() as u64 == self.selected_bytes {
                self.kept.pop();
            }
            self.selected_bytes -= 1;
            self.selected_newlines -= 1;
            self.ends_with_newline = self.last_line_bytes == 0;
        }
        let lines = self.selected_newlines + u64::from(!self.ends_with_newline);
        let size = TextSize { lines, bytes: self.selected_bytes };
        let truncation = truncate_head_of(&self.kept, size, MAX_LINES);
        let first = self.start + 1;
        let limit = format_size(MAX_BYTES);
        if truncation.first_line_exceeds_limit {
            let size = format_size(self.first_line_bytes);
            let hint = format!("sed -n '{first}p' {path} | head -c {MAX_BYTES}");
            let text = format!("[Line {first} is {size}, exceeds {limit} limit. Use bash: {hint}]");
            return Ok(Window { text, truncation: Some(truncation) });
        }
        if truncation.truncated {
            let last = self.start + truncation.output_lines;
            let cause = match truncation.truncated_by {
                Some(TruncatedBy::Bytes) => format!(" ({limit} limit)"),
                _ => String::new(),
            };
            let note = format!(
                "Showing lines {first}-{last} of {total}{cause}. Use offset={} to continue.",
                last + 1
            );
            return Ok(Window {
                text: format!("{}\n\n[{note}]", truncation.content),
                truncation: Some(truncation),
            });
        }
        let text = if end < total {
            let note = format!("{} more lines in file. Use offset={} to continue.", total - end, end + 1);
            format!("{}\n\n[{note}]", self.kept)
        } else {
            self.kept
        };
        Ok(Window { text, truncation: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, offset: Option<u64>, limit: Option<u64>) -> Result<String, String> {
        let mut window = LineWindow::new(offset, limit);
        // Pieces of any size must do.
        for piece in text.as_bytes().chunks(7000) {
            window.push(std::str::from_utf8(piece).unwrap());
        }
        window.finish("f.txt").map(|window| window.text)
    }

    #[test]
    fn whole_files_come_as_they_are() {
        for text in ["", "a\nb", "x\n", "a\r\nb\r\n"] {
            assert_eq!(read(text, None, None).unwrap(), text);
        }
        assert_eq!(read("l\n".repeat(2000).as_str(), None, None).unwrap(), "l\n".repeat(2000));
        assert_eq!(read("a\nb", None, Some(5)).unwrap(), "a\nb");
    }

    #[test]
    fn a_part_tells_how_to_go_on() {
        let text: String = (1..=10).map(|n| format!("line {n}\n")).collect();
        let expected = "line 3\nline 4\n\n[7 more lines in file. Use offset=5 to continue.]";
        assert_eq!(read(&text, Some(3), Some(2)).unwrap(), expected);
        assert_eq!(read(&text, Some(10), None).unwrap(), "line 10\n");
        assert_eq!(read(&text, Some(11), None).unwrap(), "");
        assert_eq!(
            read(&text, Some(0), Some(1)).unwrap(),
            "line 1\n\n[10 more lines in file. Use offset=2 to continue.]"
        );
        assert_eq!(
            read("a\n", None, Some(0)).unwrap(),
            "\n\n[2 more lines in file. Use offset=1 to continue.]"
        );
        let error = read(&text, Some(999), None).unwrap_err();
        assert_eq!(error, "Offset 999 is beyond end of file (11 lines total)");
        assert_eq!(read("", Some(2), None).unwrap_err(), "Offset 2 is beyond end of file (1 lines total)");
    }

    #[test]
    fn too_many_lines_are_cut() {
        let text: String = (1..=3000).map(|n| format!("row {n}\n")).collect();
        let read = read(&text, None, None).unwrap();
        assert!(read.ends_with("\nrow 2000\n\n[Showing lines 1-2000 of 3001. Use offset=2001 to continue.]"));
    }

    #[test]
    fn too_many_bytes_are_cut_at_a_line() {
        let text = format!("{}\n", "z".repeat(999)).repeat(100);
        let note = "\n\n[Showing lines 1-51 of 101 (50.0KB limit). Use offset=52 to continue.]";
        assert!(read(&text, None, None).unwrap().ends_with(note));
        let text = format!("a\nb\n{}\nc\n", "y".repeat(60_000));
        let cut = "a\nb\n\n[Showing lines 1-2 of 5 (50.0KB limit). Use offset=3 to continue.]";
        assert_eq!(read(&text, None, None).unwrap(), cut);
        assert_eq!(read(&text, None, Some(3)).unwrap(), cut);
        let long = "[Line 3 is 58.6KB, exceeds 50.0KB limit. Use bash: sed -n '3p' f.txt | head -c 51200]";
        assert_eq!(read(&text, Some(3), None).unwrap(), long);
    }

    #[test]
    fn the_details_count_what_was_asked_for() {
        let text = format!("a\nb\n{}\nc\n", "y".repeat(60_000));
        let truncation = |limit: Option<u64>| {
            let mut window = LineWindow::new(None, limit);
            window.push(&text);
            window.finish("f").unwrap().truncation.unwrap()
        };
        let all = truncation(None);
        assert_eq!((all.total_lines, all.total_bytes, all.output_lines, all.output_bytes), (4, 60_007, 2, 3));
        let some = truncation(Some(3));
        assert_eq!((some.total_lines, some.total_bytes), (3, 60_004));
    }
}
