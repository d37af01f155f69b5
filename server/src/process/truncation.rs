//! The limits of what a tool shows a model: lines and bytes, from the head or from the tail.

use serde::Serialize;

/// Lines that a result shows at most.
pub const MAX_LINES: u64 = 2000;

/// Bytes that a result shows at most (50 KB).
pub const MAX_BYTES: u64 = 50 * 1024;

/// Stands for "no limit on lines": the largest integer that a JavaScript reader holds exactly.
pub const UNLIMITED_LINES: u64 = sampi_protocol::number::MAX_SAFE_INTEGER;

/// The limit that cut a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TruncatedBy {
    /// Too many lines.
    Lines,
    /// Too many bytes.
    Bytes,
}

/// A text within the limits, and what was left out. Its JSON is the `truncation` of a tool's details.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Truncation {
    /// The text that is shown.
    pub content: String,
    /// True when something was left out.
    pub truncated: bool,
    /// The limit that was hit first.
    pub truncated_by: Option<TruncatedBy>,
    /// Lines of the whole text; a newline at the end starts no line.
    pub total_lines: u64,
    /// Bytes of the whole text.
    pub total_bytes: u64,
    /// Lines of the text that is shown.
    pub output_lines: u64,
    /// Bytes of the text that is shown.
    pub output_bytes: u64,
    /// True when only the end of the last line is shown, as it alone is over the limit.
    pub last_line_partial: bool,
    /// True when nothing is shown, as the first line alone is over the limit.
    pub first_line_exceeds_limit: bool,
    /// The limit on lines.
    pub max_lines: u64,
    /// The limit on bytes.
    pub max_bytes: u64,
}

/// How long a text is of which perhaps only a part is at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextSize {
    /// Lines; a newline at the end starts no line.
    pub lines: u64,
    /// Bytes.
    pub bytes: u64,
}

impl TextSize {
    /// The size of a text that is at hand.
    pub fn of(text: &str) -> Self {
        Self { lines: lines_of(text).count() as u64, bytes: text.len() as u64 }
    }
}

/// Keeps the first lines of a text: whole lines only, nothing when the first one alone is too long.
pub fn truncate_head(text: &str, max_lines: u64) -> Truncation {
    truncate_head_of(text, TextSize::of(text), max_lines)
}

/// Keeps the first lines of a text of which `head` is the beginning. When it is only a part, it must
/// be longer than [`MAX_BYTES`].
pub fn truncate_head_of(head: &str, total: TextSize, max_lines: u64) -> Truncation {
    if total.lines <= max_lines && total.bytes <= MAX_BYTES {
        return whole(head, total, max_lines);
    }
    let mut kept = Kept::default();
    for line in lines_of(head) {
        if !kept.take(line, max_lines) {
            break;
        }
    }
    let content = kept.lines.join("\n");
    Truncation {
        truncated: true,
        truncated_by: Some(kept.limit()),
        output_lines: kept.lines.len() as u64,
        output_bytes: content.len() as u64,
        first_line_exceeds_limit: kept.lines.is_empty() && kept.hit_bytes,
        ..whole(&content, total, max_lines)
    }
}

/// Keeps the last lines of a text of which `tail` is the end. When it is only a part, it must be longer
/// than [`MAX_BYTES`]. When the last line alone is too long, its end is kept.
pub fn truncate_tail_of(tail: &str, total: TextSize) -> Truncation {
    if total.lines <= MAX_LINES && total.bytes <= MAX_BYTES {
        return whole(tail, total, MAX_LINES);
    }
    let mut kept = Kept::default();
    let text = tail.strip_suffix('\n').unwrap_or(tail);
    let mut last_line_partial = false;
    for line in text.rsplit('\n') {
        if !kept.take(line, MAX_LINES) {
            if kept.lines.is_empty() {
                last_line_partial = true;
                kept.lines.push(end_of(line, MAX_BYTES as usize));
            }
            break;
        }
    }
    kept.lines.reverse();
    let content = kept.lines.join("\n");
    Truncation {
        truncated: true,
        truncated_by: Some(kept.limit()),
        output_lines: kept.lines.len() as u64,
        output_bytes: content.len() as u64,
        last_line_partial,
        ..whole(&content, total, MAX_LINES)
    }
}

/// A number of bytes as people read it.
pub fn format_size(bytes: u64) -> String {
    if bytes < 1024 {
        format!("{bytes}B")
    } else if bytes < 1024 * 1024 {
        format!("{:.1}KB", bytes as f64 / 1024.0)
    } else {
        format!("{:.1}MB", bytes as f64 / (1024.0 * 1024.0))
    }
}

/// The end of a text, at most `limit` bytes, beginning at a character.
pub fn end_of(text: &str, limit: usize) -> &str {
    let mut start = text.len().saturating_sub(limit);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text.get(start..).unwrap_or_default()
}

fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    let lines = (!text.is_empty()).then(|| text.strip_suffix('\n').unwrap_or(text).split('\n'));
    lines.into_iter().flatten()
}

fn whole(text: &str, total: TextSize, max_lines: u64) -> Truncation {
    Truncation {
        content: text.to_owned(),
        truncated: false,
        truncated_by: None,
        total_lines: total.lines,
        total_bytes: total.bytes,
        output_lines: total.lines,
        output_bytes: total.bytes,
        last_line_partial: false,
        first_line_exceeds_limit: false,
        max_lines,
        max_bytes: MAX_BYTES,
    }
}

#[derive(Default)]
struct Kept<'a> {
    lines: Vec<&'a str>,
    bytes: u64,
    hit_lines: bool,
    hit_bytes: bool,
}

impl<'a> Kept<'a> {
    fn take(&mut self, line: &'a str, max_lines: u64) -> bool {
        if self.lines.len() as u64 >= max_lines {
            self.hit_lines = true;
            return false;
        }
        let bytes = self.bytes + line.len() as u64 + u64::from(!self.lines.is_empty());
        if bytes > MAX_BYTES {
            self.hit_bytes = true;
            return false;
        }
        self.bytes = bytes;
        self.lines.push(line);
        true
    }

    fn limit(&self) -> TruncatedBy {
        if self.hit_lines { TruncatedBy::Lines } else { TruncatedBy::Bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_two_thousand_lines_are_kept_without_the_final_newline() {
        let text: String = (1..=3000).map(|n| format!("{n}\n")).collect();
        let kept = truncate_tail_of(&text, TextSize::of(&text));
        assert!(kept.content.starts_with("1001\n") && kept.content.ends_with("\n3000"));
        assert_eq!((kept.total_lines, kept.total_bytes), (3000, 13893));
        assert_eq!((kept.output_lines, kept.output_bytes), (2000, 9999));
        assert_eq!(kept.truncated_by, Some(TruncatedBy::Lines));
    }

    #[test]
    fn the_end_of_one_long_line_is_kept_at_a_character() {
        let text = "é".repeat(40_000);
        let kept = truncate_tail_of(&text, TextSize::of(&text));
        assert!(kept.last_line_partial);
        assert_eq!((kept.output_lines, kept.output_bytes), (1, 51_200));
    }

    #[test]
    fn a_long_line_before_the_last_is_left_out_whole() {
        let text = format!("{}\nb\n", "y".repeat(60_000));
        let kept = truncate_tail_of(&text, TextSize::of(&text));
        assert_eq!((kept.content.as_str(), kept.output_lines), ("b", 1));
        assert_eq!(kept.truncated_by, Some(TruncatedBy::Bytes));
    }

    #[test]
    fn the_head_is_whole_lines_or_nothing() {
        let text = format!("a\nb\n{}\nc\n", "y".repeat(60_000));
        let kept = truncate_head(&text, MAX_LINES);
        assert_eq!((kept.content.as_str(), kept.total_lines), ("a\nb", 4));
        let kept = truncate_head(&text[4..], MAX_LINES);
        assert!(kept.first_line_exceeds_limit && kept.content.is_empty());
    }

    #[test]
    fn sizes_read_as_pi_writes_them() {
        assert_eq!(format_size(51_200), "50.0KB");
        assert_eq!(format_size(60_000), "58.6KB");
    }
}
