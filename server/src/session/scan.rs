//! Reading a session file into an index, in one pass. Memory is bounded by the longest line.

use std::borrow::Cow;
use std::io::{self, Read};
use std::sync::LazyLock;

use memchr::memmem::Finder;
use sampi_protocol::wire::repair_lone_surrogates;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::index::{Body, Index};
use super::record::{Found, Head, read_line};

/// How much of the file is read at a time.
const READ_SIZE: usize = 256 * 1024;

/// A buffer that grew beyond this for a long line is given back after it.
const KEPT_LINE_SIZE: usize = 1024 * 1024;

/// Notes on damaged lines at most. The last one says that there are more.
const MAX_DIAGNOSTICS: usize = 1000;

/// A note on damage in a session file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The line, from 1; 0 when it concerns the file as a whole.
    pub line: u64,
    /// What is wrong there, and what became of it.
    pub message: String,
}

/// Notes on damage, bounded.
#[derive(Debug, Default)]
pub(super) struct Notes {
    all: Vec<Diagnostic>,
    /// True once a note said that there are more.
    cut: bool,
}

impl Notes {
    pub(super) fn add(&mut self, line: u64, message: impl Into<String>) {
        // What concerns the whole file is always told.
        let message = match line {
            1.. if self.cut => return,
            1.. if self.all.len() >= MAX_DIAGNOSTICS => {
                self.cut = true;
                "there is more damage from here on, which is not listed".to_owned()
            }
            _ => message.into(),
        };
        self.all.push(Diagnostic { line, message });
    }

    /// These notes, and what is new in those of a later look at the same file.
    pub(super) fn followed_by(mut self, later: Self) -> Self {
        for Diagnostic { line, message } in later.all {
            if !self.all.iter().any(|known| known.line == line && known.message == message) {
                self.add(line, message);
            }
        }
        self
    }

    pub(super) fn all(&self) -> &[Diagnostic] {
        &self.all
    }
}

/// One line of a file.
pub(super) struct Line<'a> {
    /// Its text; bytes that are not UTF-8 and lone surrogates are replaced.
    pub(super) text: &'a str,
    /// Whether the text differs from the file's bytes.
    pub(super) repaired: bool,
    /// Where it starts in the file.
    pub(super) offset: u64,
    /// Its length in the file, without its line end.
    pub(super) length: usize,
    /// Its number, from 1.
    pub(super) number: u64,
    /// Whether a line end follows it.
    pub(super) ended: bool,
}

/// Where a pass over lines begins and where it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The byte.
    pub(super) offset: u64,
    /// Lines before it.
    pub(super) lines: u64,
    /// Whether the byte before it ends a line, or there is none.
    pub(super) fresh_line: bool,
}

impl Place {
    /// The beginning of a file.
    pub(super) const START: Self = Self { offset: 0, lines: 0, fresh_line: true };
}

/// Gives each line of a reader to `sink` until that returns false.
pub(super) fn each_line(
    mut reader: impl Read,
    from: Place,
    mut sink: impl FnMut(Line<'_>) -> bool,
) -> io::Result<Place> {
    let mut place = from;
    let mut buffer = vec![0; READ_SIZE];
    // The bytes that are read and not given out yet, and how many of them have no line end.
    let (mut start, mut filled, mut searched) = (0, 0, 0);
    let mut at_end = false;
    loop {
        let unread = buffer.get(start..filled).unwrap_or_default();
        let found = memchr::memchr(b'\n', unread.get(searched..).unwrap_or_default()).map(|at| at + searched);
        let length = match found {
            Some(end) => end,
            None if at_end && unread.is_empty() => return Ok(place),
            None if at_end => unread.len(),
            None => {
                searched = unread.len();
                buffer.copy_within(start..filled, 0);
                (start, filled) = (0, searched);
                if filled <= READ_SIZE / 2 {
                    buffer.resize(READ_SIZE, 0);
                    buffer.shrink_to(KEPT_LINE_SIZE);
                } else {
                    buffer.resize(filled.saturating_mul(2), 0);
                }
                let read = read_some(&mut reader, buffer.get_mut(filled..).unwrap_or_default())?;
                filled += read;
                at_end = read == 0;
                continue;
            }
        };
        let content = unread.get(..length).unwrap_or_default();
        let ended = found.is_some();
        let taken = length + usize::from(ended);
        let offset = place.offset;
        place = Place { offset: offset + taken as u64, lines: place.lines + 1, fresh_line: ended };
        let (text, repaired) = repair(content);
        if !sink(Line { text: &text, repaired, offset, length, number: place.lines, ended }) {
            return Ok(place);
        }
        (start, searched) = (start + taken, 0);
    }
}

fn read_some(reader: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// The text of these bytes, and whether anything in it had to be replaced.
pub(super) fn repair(bytes: &[u8]) -> (Cow<'_, str>, bool) {
    static ESCAPES: LazyLock<[Finder<'static>; 2]> =
        LazyLock::new(|| [Finder::new(br"\ud"), Finder::new(br"\uD")]);
    let (text, lossy) = match std::str::from_utf8(bytes) {
        Ok(text) => (Cow::Borrowed(text), false),
        Err(_) => (String::from_utf8_lossy(bytes), true),
    };
    let suspect = ESCAPES.iter().any(|escape| escape.find(bytes).is_some());
    match suspect.then(|| repair_lone_surrogates(&text)).flatten() {
        Some(repaired) => (Cow::Owned(repaired), true),
        None => (text, lossy),
    }
}

/// Reads entries from `reader` into the index. Records of type `session` after the header are not entries.
pub(super) fn scan_entries(
    reader: impl Read,
    from: Place,
    index: &mut Index,
    notes: &mut Notes,
) -> io::Result<Place> {
    let mut header_seen = from.offset > 0;
    let place = each_line(reader, from, |line| {
        scan_line(&line, &mut header_seen, index, notes);
        true
    })?;
    index.link_waiting(|message| notes.add(0, message));
    Ok(place)
}

fn scan_line(line: &Line<'_>, header_seen: &mut bool, index: &mut Index, notes: &mut Notes) {
    let mut damaged = false;
    let mut found = Vec::new();
    read_line(line.text, |one| match one {
        Found::Record(head, span) => found.push((head, span)),
        Found::Damage(message) => {
            damaged = true;
            let torn =
                if line.ended { "" } else { " (the last line has no end: it was cut while being written)" };
            notes.add(line.number, format!("{message}{torn}"));
        }
    });
    if line.repaired {
        notes.add(line.number, "invalid UTF-8 or half of a surrogate pair replaced by U+FFFD");
    }
    let alone = found.len() == 1 && !damaged;
    for (head, span) in found {
        if head.kind.as_deref() == Some("session") {
            if *header_seen {
                notes.add(line.number, "a second session header; only the first one counts");
            }
            *header_seen = true;
            continue;
        }
        let text = line.text.get(span.clone()).unwrap_or_default();
        let body = if line.repaired && !alone {
            match RawValue::from_string(text.to_owned()) {
                Ok(json) => Body::Memory(json),
                Err(error) => {
                    notes.add(line.number, format!("a record that cannot be read: {error}"));
                    continue;
                }
            }
        } else if line.repaired {
            // The text's length differs from the file's: take the whole line, white space and all.
            Body::File { offset: line.offset, length: line.length, repair: true }
        } else {
            Body::File { offset: line.offset + span.start as u64, length: span.len(), repair: false }
        };
        add(line, &head, text, body, index, notes);
    }
}

fn add(line: &Line<'_>, head: &Head<'_>, text: &str, body: Body, index: &mut Index, notes: &mut Notes) {
    if head.kind.0.is_none() {
        notes.add(line.number, "a record without a type skipped");
        return;
    }
    let Some(id) = head.id.as_deref() else {
        add_without_id(line, text, index, notes);
        return;
    };
    let (_, again) = index.push(id, head, body);
    if again {
        notes.add(line.number, format!("entry id {id} was used before; both entries are kept"));
    }
}

/// An entry without an id continues the entry before it under an id that its place in the file gives.
fn add_without_id(line: &Line<'_>, text: &str, index: &mut Index, notes: &mut Notes) {
    let Ok(mut entry) = serde_json::from_str::<Map<String, Value>>(text) else {
        notes.add(line.number, "a record that cannot be read skipped");
        return;
    };
    let mut number = line.number;
    let id = loop {
        let id = format!("{number:08x}");
        if index.find(&id).is_none() {
            break id;
        }
        number = number.wrapping_add(1 << 24);
    };
    let parent = index.nodes().last().map(|node| Value::from(node.id.as_str()));
    entry.insert("id".to_owned(), id.clone().into());
    entry.insert("parentId".to_owned(), parent.unwrap_or(Value::Null));
    entry.entry("timestamp").or_insert_with(|| Value::from(""));
    notes.add(line.number, format!("an entry without an id; it is known as {id}"));
    let Ok(json) = serde_json::value::to_raw_value(&entry) else { return };
    let text = json.get().to_owned();
    if let Ok(head) = serde_json::from_str::<Head<'_>>(&text) {
        index.push(&id, &head, Body::Memory(json));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads at most a few bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(buffer.len()).min(self.0.len());
            buffer[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

        #[test]
        fn lines_of_any_length_come_whole_and_where_they_are(
            lengths in proptest::collection::vec(prop_oneof![0usize..50, Just(READ_SIZE - 1), 200_000usize..900_000], 0..6),
            ended in any::<bool>(),
            step in prop_oneof![7usize..2000, Just(usize::MAX)],
        ) {
            let mut bytes = Vec::new();
            for (number, length) in lengths.iter().enumerate() {
                bytes.extend(std::iter::repeat_n(b'a' + (number as u8 % 26), *length));
                bytes.push(b'\n');
            }
            if !ended {
                bytes.pop();
            }
            let mut offset = 0;
            let mut read = Vec::new();
            let place = each_line(Slow(&bytes, step), Place::START, |line| {
                assert_eq!((line.offset, line.length), (offset, line.text.len()));
                offset += (line.length + usize::from(line.ended)) as u64;
                read.push(line.text.to_owned());
                true
            })
            .unwrap();
            let text = String::from_utf8(bytes.clone()).unwrap();
            prop_assert_eq!(read, text.split_terminator('\n').collect::<Vec<_>>());
            prop_assert_eq!(place.offset, bytes.len() as u64);
            prop_assert_eq!(place.fresh_line, bytes.last().is_none_or(|byte| *byte == b'\n'));
        }
    }
}
