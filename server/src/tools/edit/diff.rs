//! What an edit changed, for people and as a patch.

use std::ops::Range;

use super::matching::{Replacement, line_starts};

/// Unchanged lines around a change.
const CONTEXT: usize = 4;

/// Edit steps up to which the shortest difference is looked for; after that, a quicker method does.
const MAX_STEPS: usize = 1000;

/// The difference that an edit made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EditDiff {
    /// The changed lines with their numbers, and some lines around them.
    pub(super) diff: String,
    /// The same as a unified patch.
    pub(super) patch: String,
    /// The number of the first line of the new text that differs.
    pub(super) first_changed_line: Option<usize>,
}

/// Compares `old` with `new`, which `replacements` of `old` made; both have `\n` line ends. Only lines
/// near a replacement are compared.
pub(super) fn edit_diff(path: &str, old: &str, new: &str, replacements: &[Replacement]) -> EditDiff {
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let mut changes = Vec::new();
    for (old_range, new_range) in windows(old, &old_lines, &new_lines, replacements) {
        let (Some(old_part), Some(new_part)) =
            (old_lines.get(old_range.clone()), new_lines.get(new_range.clone()))
        else {
            continue;
        };
        compare(old_part, new_part, old_range.start, new_range.start, &mut changes);
    }
    let hunks = hunks(&changes, &old_lines, &new_lines);
    EditDiff {
        diff: render(&hunks, &old_lines, &new_lines),
        patch: patch(path, &hunks),
        first_changed_line: changes.first().map(|change| change.new + 1),
    }
}

/// One line that is only in the old or only in the new text.
#[derive(Debug, Clone, Copy)]
struct Change {
    kind: Kind,
    /// Index of the line in the old text, or of the old line that comes after an added one.
    old: usize,
    /// Index of the line in the new text, or of the new line that comes after a removed one.
    new: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Removed,
    Added,
    Same,
}

struct Hunk<'a> {
    old: Range<usize>,
    new: Range<usize>,
    lines: Vec<Line<'a>>,
}

struct Line<'a> {
    kind: Kind,
    number: usize,
    text: &'a str,
}

/// Ranges of old and new lines that have all changes, with the context around them.
fn windows(
    old: &str,
    old_lines: &[&str],
    new_lines: &[&str],
    replacements: &[Replacement],
) -> Vec<(Range<usize>, Range<usize>)> {
    let starts = line_starts(old);
    let line_of = |position: usize| starts.partition_point(|start| *start <= position).saturating_sub(1);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for replacement in replacements {
        let first = line_of(replacement.start).saturating_sub(CONTEXT);
        let last = (line_of(replacement.end) + 1 + CONTEXT).min(old_lines.len());
        match ranges.last_mut() {
            Some(range) if first <= range.end => range.end = last.max(range.end),
            _ => ranges.push(first..last),
        }
    }
    // Between two windows the texts are the same, so the lines after a window shift by what it added.
    let mut result = Vec::new();
    let mut pending = replacements.iter().peekable();
    let mut shift: isize = 0;
    for range in ranges {
        let end = starts.get(range.end).copied().unwrap_or(usize::MAX);
        let new_start = range.start.saturating_add_signed(shift);
        while let Some(replacement) = pending.next_if(|replacement| replacement.start < end) {
            let removed = old.get(replacement.start..replacement.end).unwrap_or_default();
            shift += newlines(&replacement.text) - newlines(removed);
        }
        let new_end = if range.end == old_lines.len() {
            new_lines.len()
        } else {
            range.end.saturating_add_signed(shift).min(new_lines.len())
        };
        result.push((range, new_start..new_end.max(new_start)));
    }
    result
}

fn newlines(text: &str) -> isize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count() as isize
}

/// Adds the changes between two runs of lines that start at the given indexes.
fn compare(old: &[&str], new: &[&str], old_start: usize, new_start: usize, changes: &mut Vec<Change>) {
    let kinds = shortest_script(old, new).unwrap_or_else(|| quick_script(old, new));
    let (mut old_index, mut new_index) = (old_start, new_start);
    for kind in kinds {
        if kind != Kind::Same {
            changes.push(Change { kind, old: old_index, new: new_index });
        }
        old_index += usize::from(kind != Kind::Added);
        new_index += usize::from(kind != Kind::Removed);
    }
}

#[derive(Clone, Copy)]
struct Path {
    /// Old lines that are behind.
    old: usize,
    /// The last step, in the list of all steps.
    step: Option<usize>,
}

struct Step {
    kind: Kind,
    before: Option<usize>,
}

/// Myers' greedy search. Where several scripts are equally short, the choice is jsdiff's: prefer the
/// path that is further in the old text, and a removal when both are equally far.
fn shortest_script(old: &[&str], new: &[&str]) -> Option<Vec<Kind>> {
    let mut steps: Vec<Step> = Vec::new();
    let most = (old.len() + new.len()).min(MAX_STEPS);
    // One path per diagonal, the number of old lines less that of new lines; shifted to be positive.
    let origin = most as isize + 1;
    let mut paths: Vec<Option<Path>> = vec![None; 2 * most + 3];
    let slot = |diagonal: isize| usize::try_from(diagonal + origin).unwrap_or_default();
    let mut start = Path { old: 0, step: None };
    if follow(&mut start, 0, old, new, &mut steps) {
        return Some(script(&steps, start));
    }
    paths[slot(0)] = Some(start);
    let (mut lowest, mut highest) = (isize::MIN, isize::MAX);
    for length in 1..=most as isize {
        let mut diagonal = lowest.max(-length);
        if (diagonal + length) % 2 != 0 {
            diagonal += 1;
        }
        while diagonal <= highest.min(length) {
            let remove = paths[slot(diagonal - 1)].take().filter(|path| path.old < old.len());
            let add = paths[slot(diagonal + 1)].filter(|path| {
                let new_index = path.old as isize - diagonal - 1;
                new_index >= 0 && (new_index as usize) < new.len()
            });
            let next = match (remove, add) {
                (Some(remove), Some(add)) if remove.old < add.old => Some((Kind::Added, add)),
                (Some(remove), _) => Some((Kind::Removed, remove)),
                (None, Some(add)) => Some((Kind::Added, add)),
                (None, None) => None,
            };
            paths[slot(diagonal)] = None;
            if let Some((kind, before)) = next {
                let mut path = take(before, kind, &mut steps);
                if follow(&mut path, diagonal, old, new, &mut steps) {
                    return Some(script(&steps, path));
                }
                paths[slot(diagonal)] = Some(path);
                if path.old >= old.len() {
                    highest = highest.min(diagonal - 1);
                }
                if path.old as isize - diagonal >= new.len() as isize {
                    lowest = lowest.max(diagonal + 1);
                }
            }
            diagonal += 2;
        }
    }
    None
}

fn take(path: Path, kind: Kind, steps: &mut Vec<Step>) -> Path {
    steps.push(Step { kind, before: path.step });
    Path { old: path.old + usize::from(kind == Kind::Removed), step: Some(steps.len() - 1) }
}

/// Goes over lines that are the same; true at the end of both texts.
fn follow(path: &mut Path, diagonal: isize, old: &[&str], new: &[&str], steps: &mut Vec<Step>) -> bool {
    loop {
        let new_index = usize::try_from(path.old as isize - diagonal).unwrap_or_default();
        match (old.get(path.old), new.get(new_index)) {
            (Some(old_line), Some(new_line)) if old_line == new_line => {
                steps.push(Step { kind: Kind::Same, before: path.step });
                *path = Path { old: path.old + 1, step: Some(steps.len() - 1) };
            }
            (old_line, new_line) => return old_line.is_none() && new_line.is_none(),
        }
    }
}

fn script(steps: &[Step], end: Path) -> Vec<Kind> {
    let mut kinds = Vec::new();
    let mut next = end.step;
    while let Some(step) = next.and_then(|index| steps.get(index)) {
        kinds.push(step.kind);
        next = step.before;
    }
    kinds.reverse();
    kinds
}

fn quick_script(old: &[&str], new: &[&str]) -> Vec<Kind> {
    let operations = similar::capture_diff_slices(similar::Algorithm::Patience, old, new);
    let kinds = operations.iter().flat_map(|operation| {
        let (tag, old_range, new_range) = operation.as_tag_tuple();
        let (removed, added) = match tag {
            similar::DiffTag::Equal => return vec![Kind::Same; old_range.len()],
            _ => (old_range.len(), new_range.len()),
        };
        [vec![Kind::Removed; removed], vec![Kind::Added; added]].concat()
    });
    kinds.collect()
}

/// Changes with their context; changes that are close share one hunk.
fn hunks<'a>(changes: &[Change], old_lines: &[&'a str], new_lines: &[&'a str]) -> Vec<Hunk<'a>> {
    let mut hunks: Vec<Hunk<'a>> = Vec::new();
    let mut last_old = 0;
    for change in changes {
        let gap = change.old - last_old;
        let context = match hunks.last_mut() {
            Some(hunk) if gap <= 2 * CONTEXT => {
                extend(hunk, gap, old_lines);
                0
            }
            Some(hunk) => {
                extend(hunk, CONTEXT, old_lines);
                CONTEXT
            }
            None => CONTEXT.min(change.old),
        };
        if context > 0 || hunks.is_empty() {
            let (old, new) = (change.old - context, change.new - context);
            hunks.push(Hunk { old: old..old, new: new..new, lines: Vec::new() });
            if let Some(hunk) = hunks.last_mut() {
                extend(hunk, context, old_lines);
            }
        }
        if let Some(hunk) = hunks.last_mut() {
            let removed = change.kind == Kind::Removed;
            let (lines, index) = if removed { (old_lines, change.old) } else { (new_lines, change.new) };
            let text = lines.get(index).copied().unwrap_or_default();
            hunk.lines.push(Line { kind: change.kind, number: index + 1, text });
            hunk.old.end += usize::from(removed);
            hunk.new.end += usize::from(!removed);
            last_old = hunk.old.end;
        }
    }
    if let Some(hunk) = hunks.last_mut() {
        extend(hunk, CONTEXT.min(old_lines.len() - hunk.old.end), old_lines);
    }
    hunks
}

fn extend<'a>(hunk: &mut Hunk<'a>, count: usize, old_lines: &[&'a str]) {
    for (offset, text) in old_lines.iter().skip(hunk.old.end).take(count).enumerate() {
        hunk.lines.push(Line { kind: Kind::Same, number: hunk.old.end + offset + 1, text });
    }
    hunk.old.end += count;
    hunk.new.end += count;
}

fn render(hunks: &[Hunk<'_>], old_lines: &[&str], new_lines: &[&str]) -> String {
    let most = line_count(old_lines).max(line_count(new_lines));
    let width = most.to_string().len();
    let gap = format!(" {:width$} ...", "");
    let mut rendered = Vec::new();
    let mut shown = 0;
    for hunk in hunks {
        if hunk.old.start > shown {
            rendered.push(gap.clone());
        }
        for line in &hunk.lines {
            let text = line.text.strip_suffix('\n').unwrap_or(line.text);
            rendered.push(format!("{}{:>width$} {text}", sign(line.kind), line.number));
        }
        shown = hunk.old.end;
    }
    if shown < old_lines.len() && !hunks.is_empty() {
        rendered.push(gap);
    }
    rendered.join("\n")
}

/// A newline at the end starts one more line, as editors count.
fn line_count(lines: &[&str]) -> usize {
    lines.len() + usize::from(lines.last().is_none_or(|line| line.ends_with('\n')))
}

fn patch(path: &str, hunks: &[Hunk<'_>]) -> String {
    let mut text = format!("--- {path}\n+++ {path}\n");
    for hunk in hunks {
        text.push_str(&format!("@@ -{} +{} @@\n", range(&hunk.old), range(&hunk.new)));
        for line in &hunk.lines {
            text.push(sign(line.kind));
            text.push_str(line.text);
            if !line.text.ends_with('\n') {
                text.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
    text
}

fn range(lines: &Range<usize>) -> String {
    let start = if lines.is_empty() { lines.start } else { lines.start + 1 };
    format!("{start},{}", lines.len())
}

fn sign(kind: Kind) -> char {
    match kind {
        Kind::Removed => '-',
        Kind::Added => '+',
        Kind::Same => ' ',
    }
}
