//! Walking over JSON text without recursion and without building values.
//!
//! A tree of entries may be tens of thousands of levels deep, and the start of an over-long frame is no
//! whole JSON text: for both, a cursor over the bytes does what a parser cannot. The cursor checks
//! structure only as far as it needs to find its way; values that are used are decoded by serde_json.

use std::ops::Range;

/// A place in a JSON text.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// The next byte that is not blank.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !byte.is_ascii_whitespace() {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Takes `byte` if it comes next.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Takes a string, quotes included. `None` when none comes next or it has no end.
    pub(crate) fn string(&mut self) -> Option<Range<usize>> {
        if !self.take(b'"') {
            return None;
        }
        let start = self.at - 1;
        let bytes = self.text.as_bytes();
        loop {
            let found = self.at + memchr::memchr2(b'"', b'\\', bytes.get(self.at..)?)?;
            if bytes.get(found) == Some(&b'"') {
                self.at = found + 1;
                return Some(start..self.at);
            }
            self.at = found + 2;
        }
    }

    /// Takes a key and its colon; gives the key with its quotes.
    pub(crate) fn key(&mut self) -> Option<&'a str> {
        let key = self.string()?;
        self.take(b':').then(|| self.text.get(key))?
    }

    /// Takes any value. `None` when it has no end.
    pub(crate) fn value(&mut self) -> Option<Range<usize>> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => return self.string(),
            b'{' | b'[' => {}
            _ => {
                let rest = self.text.as_bytes().get(start..)?;
                let length = rest
                    .iter()
                    .position(|byte| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace());
                self.at = start + length.filter(|length| *length > 0)?;
                return Some(start..self.at);
            }
        }
        let mut depth = 0usize;
        loop {
            match self.text.as_bytes().get(self.at)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(start..self.at);
            }
        }
    }
}

/// What the whole fields at the start of a cut record tell.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CutRecord {
    /// The record's kind.
    pub(crate) kind: Option<String>,
    /// The record's id, when it is a string.
    pub(crate) id: Option<String>,
}

impl CutRecord {
    /// Reads the fields that come before the cut.
    pub(crate) fn read(start: &str) -> Self {
        let mut record = Self::default();
        let mut cursor = Cursor::new(start);
        if !cursor.take(b'{') {
            return record;
        }
        while let Some(key) = cursor.key() {
            let Some(value) = cursor.value() else { break };
            let value = || start.get(value.clone()).and_then(|value| serde_json::from_str(value).ok());
            match key {
                r#""type""# => record.kind = value(),
                r#""id""# => record.id = value(),
                _ => {}
            }
            if !cursor.take(b',') {
                break;
            }
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_where_it_ends() {
        for value in [
            "1",
            "-1.5e3",
            "null",
            r#""a\"]}\\""#,
            r#"{"a":[1,{"b":"}"}],"c":""}"#,
            "[]",
            "[[[]],{}]",
            r#""\u2028é""#,
        ] {
            for rest in [",", " }", "]"] {
                let text = format!(" {value}{rest}");
                assert_eq!(&text[Cursor::new(&text).value().unwrap()], value);
            }
        }
    }

    #[test]
    fn a_value_without_an_end_is_nothing() {
        for text in ["", "\"abc", r#""abc\"#, "{\"a\":1", "[1,", "12", ",", "{\"a\":\"", "]"] {
            assert_eq!(Cursor::new(text).value(), None, "{text}");
        }
    }

    #[test]
    fn depth_does_not_matter() {
        let text = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(Cursor::new(&text).value(), Some(0..2_000_000));
    }

    #[test]
    fn the_start_of_a_cut_record_tells_its_id() {
        let cut = r#"{"id":"c-1","type":"response","command":"get_messages","success":true,"data":{"id":"no"#;
        let record = CutRecord::read(cut);
        assert_eq!((record.kind.as_deref(), record.id.as_deref()), (Some("response"), Some("c-1")));
        assert_eq!(CutRecord::read(r#"{"id":7,"type":"x"#), CutRecord::default());
        assert_eq!(CutRecord::read("not json"), CutRecord::default());
    }
}
