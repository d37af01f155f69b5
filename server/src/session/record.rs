//! Records in one line of a session file, whole or damaged.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// How often a damaged line is searched for a record that starts inside it.
const SALVAGE_ATTEMPTS: usize = 10_000;

/// What some editors put at the start of a file.
const BOM: char = '\u{feff}';

/// What the index needs of a record. Fields of another JSON type than expected read as absent.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Head<'a> {
    #[serde(borrow, default, rename = "type")]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) parent_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) timestamp: Text<'a>,
    #[serde(borrow, default)]
    pub(super) target_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) label: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) message: Object<MessageHead<'a>>,
}

/// What the index needs of a message.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageHead<'a> {
    #[serde(borrow, default)]
    pub(super) role: Text<'a>,
    #[serde(default)]
    pub(super) content: ToolCalls,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
}

/// A string, or nothing when the value is none.
#[derive(Debug, Default)]
pub(super) struct Text<'a>(pub(super) Option<Cow<'a, str>>);

impl Text<'_> {
    pub(super) fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// A struct read from an object, or nothing when the value is none.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) Option<T>);

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// How many tool calls a message's content has.
#[derive(Debug, Default)]
pub(super) struct ToolCalls(pub(super) u64);

/// Visitor methods for values that are read as nothing.
macro_rules! ignore_values {
    ($nothing:expr; $($method:ident: $ty:ty),+) => {
        $(fn $method<E: de::Error>(self, _: $ty) -> Result<Self::Value, E> {
            Ok($nothing)
        })+

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok($nothing)
        }
    };
}

fn drain_seq<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn drain_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Borrowed(text))))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Some(Cow::Owned(text.to_owned()))))
            }

            ignore_values!(Text(None); visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64);

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Text<'de>, A::Error> {
                drain_seq(seq).map(|()| Text(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Text<'de>, A::Error> {
                drain_map(map).map(|()| Text(None))
            }
        }
        deserializer.deserialize_any(TextVisitor)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            ignore_values!(
                Object(None);
                visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str
            );

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Object<T>, A::Error> {
                drain_seq(seq).map(|()| Object(None))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(de::value::MapAccessDeserializer::new(map)).map(|value| Object(Some(value)))
            }
        }
        deserializer.deserialize_any(ObjectVisitor(PhantomData))
    }
}

impl<'de> Deserialize<'de> for ToolCalls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Block<'a> {
            #[serde(borrow, default, rename = "type")]
            kind: Text<'a>,
        }

        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = ToolCalls;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            ignore_values!(
                ToolCalls(0);
                visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str
            );

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<ToolCalls, A::Error> {
                let mut calls = 0;
                while let Some(block) = seq.next_element::<Object<Block<'_>>>()? {
                    calls +=
                        u64::from(block.0.is_some_and(|block| block.kind.as_deref() == Some("toolCall")));
                }
                Ok(ToolCalls(calls))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ToolCalls, A::Error> {
                drain_map(map).map(|()| ToolCalls(0))
            }
        }
        deserializer.deserialize_any(ContentVisitor)
    }
}

/// One find in a line.
#[derive(Debug)]
pub(super) enum Found<'a> {
    /// A whole record and the bytes that it takes.
    Record(Box<Head<'a>>, Range<usize>),
    /// Bytes that are no record, and why.
    Damage(String),
}

/// Gives every whole record of a line to `sink`, in order, and a note for everything else.
pub(super) fn read_line<'a>(line: &'a str, mut sink: impl FnMut(Found<'a>)) {
    let mut at = if line.starts_with(BOM) { BOM.len_utf8() } else { 0 };
    let mut records = 0;
    loop {
        let (skipped, nuls) = blank(line.get(at..).unwrap_or_default());
        if nuls > 0 {
            sink(Found::Damage(format!("{nuls} NUL bytes skipped")));
        }
        at += skipped;
        let rest = line.get(at..).unwrap_or_default();
        if rest.is_empty() {
            return;
        }
        match parse(rest) {
            Ok((head, length)) => {
                if records == 1 {
                    sink(Found::Damage("more than one record on the line; all are kept".to_owned()));
                }
                records += 1;
                sink(Found::Record(Box::new(head), at..at + length));
                at += length;
            }
            Err(reason) => {
                sink(Found::Damage(format!("{} bytes that are no record skipped: {reason}", rest.len())));
                match salvage(rest) {
                    Some(next) => at += next,
                    None => return,
                }
            }
        }
    }
}

/// Length of the white space and NUL bytes at the start, and how many NULs there are.
fn blank(text: &str) -> (usize, usize) {
    let bytes = text.as_bytes();
    let length = bytes
        .iter()
        .position(|byte| !matches!(byte, 0 | b' ' | b'\t' | b'\r' | b'\n'))
        .unwrap_or(bytes.len());
    (length, bytes[..length].iter().filter(|byte| **byte == 0).count())
}

/// The record at the start of a text, and its length.
fn parse(text: &str) -> Result<(Head<'_>, usize), String> {
    if !text.starts_with('{') {
        return Err("expected a JSON object".to_owned());
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<Head<'_>>();
    match stream.next() {
        Some(Ok(head)) => Ok((head, stream.byte_offset())),
        Some(Err(error)) => Err(error.to_string()),
        None => Err("expected a JSON object".to_owned()),
    }
}

/// Where the next whole entry starts in a text whose own start is damaged.
///
/// Quotes inside JSON strings are escaped, so `{"type"` starts an object; that it is an entry and not a
/// part of a torn one shows in the fields that every entry has.
fn salvage(text: &str) -> Option<usize> {
    memchr::memmem::find_iter(text.as_bytes(), br#"{"type""#)
        .filter(|at| *at > 0)
        .take(SALVAGE_ATTEMPTS)
        .find(|at| text.get(*at..).and_then(|rest| parse(rest).ok()).is_some_and(|(head, _)| is_entry(&head)))
}

fn is_entry(head: &Head<'_>) -> bool {
    head.kind.0.is_some() && head.id.0.is_some() && head.timestamp.0.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<String> {
        let mut all = Vec::new();
        read_line(line, |found| {
            all.push(match found {
                Found::Record(head, span) => {
                    assert!(serde_json::from_str::<IgnoredAny>(&line[span]).is_ok());
                    head.id.as_deref().unwrap_or("?").to_owned()
                }
                Found::Damage(note) => format!("! {note}"),
            });
        });
        all
    }

    #[test]
    fn a_head_has_what_the_index_needs() {
        let text = r#"{"type":"message","id":"a","parentId":null,"timestamp":"t","message":{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"toolCall","id":"c"}],"usage":{"input":1}}}"#;
        let (head, length) = parse(text).unwrap();
        assert_eq!(length, text.len());
        let message = head.message.0.unwrap();
        assert_eq!(
            (message.role.as_deref(), message.content.0, message.usage.unwrap().get()),
            (Some("assistant"), 1, r#"{"input":1}"#)
        );
    }

    #[test]
    fn fields_of_other_types_read_as_absent() {
        let (head, _) =
            parse(r#"{"type":5,"id":{"a":[1]},"parentId":[2],"timestamp":null,"message":"x","usage":3}"#)
                .unwrap();
        assert!(head.kind.0.is_none() && head.id.0.is_none() && head.message.0.is_none());
    }

    #[test]
    fn glued_torn_and_holed_records_give_every_whole_one() {
        let a = r#"{"type":"label","id":"a","timestamp":"t"}"#;
        let b = r#"{"type":"label","id":"b","timestamp":"t"}"#;
        let kept = |line: &str| found(line).into_iter().filter(|f| !f.starts_with('!')).collect::<String>();
        assert_eq!(kept(&format!("{a}{b}")), "ab");
        assert_eq!(kept(&format!("{a}\0\0\0{b}")), "ab");
        assert_eq!(kept(&format!("\0\0{a}")), "a");
        assert_eq!(kept(&format!("{}{b}", &a[..20])), "b");
        assert_eq!(kept(&format!("{a}{}\0\0{b}", &a[..30])), "ab");
        assert_eq!(
            kept(
                r#"{"type":"message","id":"x","timestamp":"t","message":{"content":[{"type":"toolCall","id":"c"},"#
            ),
            ""
        );
        assert_eq!(kept("hello"), "");
        assert_eq!(kept("[1]"), "");
        assert!(found("").is_empty() && found(" \r").is_empty());
    }
}
