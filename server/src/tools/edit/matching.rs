//! Finds the texts to replace, and replaces them.

use unicode_normalization::UnicodeNormalization;

use crate::ecmascript::is_space;

/// One replacement that the model asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) old_text: String,
    pub(super) new_text: String,
}

/// A part of a text, as a range of bytes, and what takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) text: String,
}

/// Line ends as `\n`.
pub(super) fn to_lf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// The replacements in `base`, which has `\n` line ends, sorted. All edits are found in `base` itself,
/// not in what other edits leave.
///
/// A text that is not there exactly is looked for without regard to quotes, dashes, kinds of space,
/// blanks at line ends and compatibility forms; then whole lines are replaced, and the others keep
/// their bytes.
pub(super) fn find_replacements(base: &str, edits: &[Edit], path: &str) -> Result<Vec<Replacement>, String> {
    let message = Messages { path, count: edits.len() };
    let edits: Vec<Edit> = edits
        .iter()
        .map(|edit| Edit { old_text: to_lf(&edit.old_text), new_text: to_lf(&edit.new_text) })
        .collect();
    if let Some(index) = edits.iter().position(|edit| edit.old_text.is_empty()) {
        return Err(message.empty(index));
    }
    let normal = normalise(base);
    let exact = edits.iter().all(|edit| base.contains(&edit.old_text));
    let space = if exact { base } else { &normal };
    let mut found = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let (start, length) = find(space, &edit.old_text).ok_or_else(|| message.not_found(index))?;
        let occurrences = count(&normal, &normalise(&edit.old_text));
        if occurrences > 1 {
            return Err(message.not_unique(index, occurrences));
        }
        let replacement = Replacement { start, end: start + length, text: edit.new_text.clone() };
        found.push((index, replacement));
    }
    found.sort_by_key(|(_, replacement)| replacement.start);
    for pair in found.windows(2) {
        if let [(first, before), (second, after)] = pair
            && before.end > after.start
        {
            return Err(message.overlap(*first, *second));
        }
    }
    let found: Vec<Replacement> = found.into_iter().map(|(_, replacement)| replacement).collect();
    let replacements = if exact { found } else { whole_lines(base, &normal, &found) };
    if apply(base, &replacements) == base { Err(message.no_change()) } else { Ok(replacements) }
}

/// The text with its replacements, which are sorted and do not overlap.
pub(super) fn apply(text: &str, replacements: &[Replacement]) -> String {
    let mut result = String::with_capacity(text.len());
    let mut position = 0;
    for replacement in replacements {
        result.push_str(text.get(position..replacement.start).unwrap_or_default());
        result.push_str(&replacement.text);
        position = replacement.end;
    }
    result.push_str(text.get(position..).unwrap_or_default());
    result
}

/// Applies replacements of `to_lf(original)` to `original` itself: what is not replaced keeps its
/// bytes, new line ends are those of the line where the replacement starts.
pub(super) fn apply_to_original(original: &str, replacements: &[Replacement]) -> String {
    let mut result = String::with_capacity(original.len());
    let mut cursor = Cursor { text: original, position: 0, lf_position: 0 };
    for replacement in replacements {
        let before = cursor.position;
        cursor.advance(replacement.start);
        push(&mut result, original.get(before..cursor.position).unwrap_or_default());
        let line_end = line_end_at(original, cursor.position);
        push(&mut result, &replacement.text.replace('\n', line_end));
        cursor.advance(replacement.end);
    }
    push(&mut result, original.get(cursor.position..).unwrap_or_default());
    result
}

/// Two line ends that come together must not become one.
fn push(result: &mut String, piece: &str) {
    if result.ends_with('\r') && piece.starts_with('\n') {
        result.push('\r');
    }
    result.push_str(piece);
}

/// A place in a text, counted both in its bytes and in those of the text with `\n` line ends.
struct Cursor<'a> {
    text: &'a str,
    position: usize,
    lf_position: usize,
}

impl Cursor<'_> {
    fn advance(&mut self, target: usize) {
        while self.lf_position < target {
            let rest = self.text.as_bytes().get(self.position..).unwrap_or_default();
            let plain = memchr::memchr(b'\r', rest).unwrap_or(rest.len());
            let step = plain.min(target - self.lf_position);
            self.position += step;
            self.lf_position += step;
            if self.lf_position == target || step == rest.len() {
                return;
            }
            let is_pair = rest.get(plain + 1) == Some(&b'\n');
            self.position += if is_pair { 2 } else { 1 };
            self.lf_position += 1;
        }
    }
}

/// The line end of the line at `position`; of a last line without one, that of the line before.
fn line_end_at(text: &str, position: usize) -> &'static str {
    let bytes = text.as_bytes();
    let (before, after) = bytes.split_at_checked(position).unwrap_or((bytes, &[]));
    let end = match memchr::memchr(b'\n', after) {
        Some(end) => Some(position + end),
        None => memchr::memrchr(b'\n', before),
    };
    let is_pair = end.is_some_and(|end| bytes.get(..end).is_some_and(|line| line.ends_with(b"\r")));
    if is_pair { "\r\n" } else { "\n" }
}

/// The text in the form in which texts that look the same are the same.
fn normalise(text: &str) -> String {
    let composed: String = if text.is_ascii() { text.to_owned() } else { text.nfkc().collect() };
    let lines: Vec<&str> = composed.split('\n').map(|line| line.trim_end_matches(is_space)).collect();
    let joined = lines.join("\n");
    if joined.is_ascii() { joined } else { joined.chars().map(plain).collect() }
}

fn plain(character: char) -> char {
    match character {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        other => other,
    }
}

fn find(text: &str, old_text: &str) -> Option<(usize, usize)> {
    if let Some(start) = text.find(old_text) {
        return Some((start, old_text.len()));
    }
    let old_text = normalise(old_text);
    text.find(&old_text).map(|start| (start, old_text.len()))
}

/// Occurrences that do not overlap. A text of blanks only normalises to nothing, which is everywhere.
fn count(text: &str, part: &str) -> usize {
    if part.is_empty() { text.encode_utf16().count().saturating_sub(1) } else { text.matches(part).count() }
}

/// Replacements in the normalised text as replacements of whole lines in the text itself: lines that no
/// replacement touches stay as they are.
fn whole_lines(base: &str, normal: &str, replacements: &[Replacement]) -> Vec<Replacement> {
    let base_lines = line_starts(base);
    let normal_lines = line_starts(normal);
    let line_of =
        |position: usize| normal_lines.partition_point(|start| *start <= position).saturating_sub(1);
    let mut groups: Vec<(usize, usize, Vec<Replacement>)> = Vec::new();
    for replacement in replacements {
        let first = line_of(replacement.start);
        let last = line_of(replacement.end.saturating_sub(1).max(replacement.start));
        match groups.last_mut() {
            Some((_, group_last, members)) if first <= *group_last => {
                *group_last = last.max(*group_last);
                members.push(replacement.clone());
            }
            _ => groups.push((first, last, vec![replacement.clone()])),
        }
    }
    let range = |starts: &[usize], text: &str, first: usize, last: usize| {
        let start = starts.get(first).copied().unwrap_or(text.len());
        let end = starts.get(last + 1).copied().unwrap_or(text.len());
        (start, end)
    };
    let whole = groups.into_iter().map(|(first, last, mut members)| {
        let (normal_start, normal_end) = range(&normal_lines, normal, first, last);
        for member in &mut members {
            member.start -= normal_start;
            member.end -= normal_start;
        }
        let text = apply(normal.get(normal_start..normal_end).unwrap_or_default(), &members);
        let (start, end) = range(&base_lines, base, first, last);
        Replacement { start, end, text }
    });
    whole.collect()
}

/// Where the lines of a text begin.
pub(super) fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|end| end + 1)).collect()
}

/// The texts of errors, which differ for one edit and for several.
struct Messages<'a> {
    path: &'a str,
    count: usize,
}

impl Messages<'_> {
    fn empty(&self, index: usize) -> String {
        let path = self.path;
        if self.count == 1 {
            format!("oldText must not be empty in {path}.")
        } else {
            format!("edits[{index}].oldText must not be empty in {path}.")
        }
    }

    fn not_found(&self, index: usize) -> String {
        let path = self.path;
        if self.count == 1 {
            format!(
                "Could not find the exact text in {path}. The old text must match exactly including all \
                 whitespace and newlines."
            )
        } else {
            format!(
                "Could not find edits[{index}] in {path}. The oldText must match exactly including all \
                 whitespace and newlines."
            )
        }
    }

    fn not_unique(&self, index: usize, count: usize) -> String {
        let path = self.path;
        if self.count == 1 {
            format!(
                "Found {count} occurrences of the text in {path}. The text must be unique. Please provide \
                 more context to make it unique."
            )
        } else {
            format!(
                "Found {count} occurrences of edits[{index}] in {path}. Each oldText must be unique. Please \
                 provide more context to make it unique."
            )
        }
    }

    fn overlap(&self, first: usize, second: usize) -> String {
        format!(
            "edits[{first}] and edits[{second}] overlap in {}. Merge them into one edit or target disjoint \
             regions.",
            self.path
        )
    }

    fn no_change(&self) -> String {
        let path = self.path;
        if self.count == 1 {
            format!(
                "No changes made to {path}. The replacement produced identical content. This might indicate \
                 an issue with special characters or the text not existing as expected."
            )
        } else {
            format!("No changes made to {path}. The replacements produced identical content.")
        }
    }
}
