//! The finished text of a tool call's arguments.
//!
//! The text is what the model wrote, so it may be anything. What is wrong with it goes back to the model
//! as the tool's result, in the words of JavaScript's `JSON.parse`: models have seen those often, and
//! sessions of either side read the same.

use serde_json::{Map, Value};

/// The arguments of a finished tool call.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Arguments {
    /// The arguments in the model's order; empty when there is an error.
    pub(crate) values: Map<String, Value>,
    /// What is wrong, with the text that was received.
    pub(crate) error: Option<String>,
}

/// Reads the whole text of a tool call's arguments. An empty text stands for no arguments.
///
/// Control characters inside strings and escapes that JSON does not have are taken as they stand, as
/// models write them often.
pub(crate) fn parse_arguments(text: &str) -> Arguments {
    if text.trim().is_empty() {
        return Arguments::default();
    }
    let problem = match read(text) {
        Ok(Value::Object(values)) => return Arguments { values, error: None },
        Ok(_) => "Tool arguments must be a JSON object".to_owned(),
        Err(problem) => problem,
    };
    Arguments { values: Map::new(), error: Some(format!("{problem}\n\nReceived arguments:\n{text}")) }
}

/// Reads JSON whose strings may hold surrogates that stand alone; they become U+FFFD.
pub(crate) fn lossy_value(json: &str) -> serde_json::Result<Value> {
    serde_json::from_str(&repair(json))
}

fn read(text: &str) -> Result<Value, String> {
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let repaired = repair(text);
    serde_json::from_str(&repaired).map_err(|error| describe(&repaired).unwrap_or_else(|| error.to_string()))
}

/// Escapes control characters inside strings, doubles the backslash of unknown escapes, and replaces
/// surrogates that stand alone.
fn repair(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut in_string = false;
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let (_, after) = rest.split_at(character.len_utf8());
        match character {
            '"' => {
                in_string = !in_string;
                out.push('"');
                rest = after;
            }
            '\\' if in_string => rest = repair_escape(after, &mut out),
            '\u{0}'..='\u{1f}' if in_string => {
                match character {
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    '\t' => out.push_str("\\t"),
                    '\u{8}' => out.push_str("\\b"),
                    '\u{c}' => out.push_str("\\f"),
                    other => out.push_str(&format!("\\u{:04x}", u32::from(other))),
                }
                rest = after;
            }
            other => {
                out.push(other);
                rest = after;
            }
        }
    }
    out
}

/// Writes the escape whose backslash was read, and gives what follows it.
fn repair_escape<'a>(after: &'a str, out: &mut String) -> &'a str {
    match after.chars().next() {
        Some(known @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => {
            out.push('\\');
            out.push(known);
            after.get(1..).unwrap_or_default()
        }
        Some('u') => match hex4(after.get(1..).unwrap_or_default()) {
            Some(unit) => {
                let rest = after.get(5..).unwrap_or_default();
                let low = rest.strip_prefix("\\u").and_then(hex4);
                match (unit, low) {
                    (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) => {
                        out.push_str(&format!("\\u{unit:04x}\\u{low:04x}"));
                        rest.get(6..).unwrap_or_default()
                    }
                    (0xd800..=0xdfff, _) => {
                        out.push_str("\\ufffd");
                        rest
                    }
                    _ => {
                        out.push_str(&format!("\\u{unit:04x}"));
                        rest
                    }
                }
            }
            None => {
                out.push_str("\\\\");
                after
            }
        },
        _ => {
            out.push_str("\\\\");
            after
        }
    }
}

fn hex4(text: &str) -> Option<u16> {
    let digits = text.get(..4)?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

/// What `JSON.parse` of V8 says about a text; nothing when it finds the text valid.
fn describe(text: &str) -> Option<String> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let mut scanner = Scanner { units: &units, at: 0 };
    scanner.document().err().map(|fault| fault.message(&units))
}

#[derive(Debug, PartialEq)]
enum Fault {
    /// A message and the position that it names.
    At(&'static str, usize),
    /// Something follows the value.
    Trailing(usize),
    /// A token that cannot stand where it stands.
    Token(usize),
    End,
}

/// How many characters V8 shows on either side of an unexpected token.
const SNIPPET: usize = 10;

impl Fault {
    fn message(&self, units: &[u16]) -> String {
        match *self {
            Self::At(message, at) => {
                let (line, column) = line_and_column(units, at);
                format!("{message} in JSON at position {at} (line {line} column {column})")
            }
            Self::Trailing(at) => {
                let (line, column) = line_and_column(units, at);
                format!(
                    "Unexpected non-whitespace character after JSON at position {at} (line {line} column {column})"
                )
            }
            Self::End => "Unexpected end of JSON input".to_owned(),
            Self::Token(at) => {
                let unexpected = match units.get(at).and_then(|unit| char::from_u32(u32::from(*unit))) {
                    Some('"') => Some("Unexpected string"),
                    Some('-' | '0'..='9') => Some("Unexpected number"),
                    _ => None,
                };
                if let Some(message) = unexpected {
                    return Self::At(message, at).message(units);
                }
                let show = |from: usize, to: usize| {
                    String::from_utf16_lossy(units.get(from..to.min(units.len())).unwrap_or_default())
                };
                let token = show(at, at + 1);
                let source = if units.len() <= 2 * SNIPPET {
                    format!("\"{}\"", show(0, units.len()))
                } else if at < SNIPPET {
                    format!("\"{}\"...", show(0, at + SNIPPET))
                } else if at < units.len() - SNIPPET {
                    format!("...\"{}\"...", show(at - SNIPPET, at + SNIPPET))
                } else {
                    format!("...\"{}\"", show(at - SNIPPET, units.len()))
                };
                format!("Unexpected token '{token}', {source} is not valid JSON")
            }
        }
    }
}

fn line_and_column(units: &[u16], at: usize) -> (usize, usize) {
    let (mut line, mut start) = (1, 0);
    let before = units.get(..at.min(units.len())).unwrap_or_default();
    for (index, unit) in before.iter().enumerate() {
        let feed_follows = units.get(index + 1) == Some(&NEWLINE);
        if *unit == NEWLINE || (*unit == RETURN && !feed_follows) {
            line += 1;
            start = index + 1;
        }
    }
    (line, at - start + 1)
}

const NEWLINE: u16 = b'\n' as u16;
const RETURN: u16 = b'\r' as u16;

/// Finds the first fault in a text. Not recursive: the nesting is the sender's choice.
struct Scanner<'a> {
    units: &'a [u16],
    at: usize,
}

enum Open {
    Array,
    Object,
}

impl Scanner<'_> {
    fn document(&mut self) -> Result<(), Fault> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            // A value begins here.
            match self.peek() {
                Some('{') => {
                    self.at += 1;
                    if self.peek() == Some('}') {
                        self.at += 1;
                    } else {
                        self.key("Expected property name or '}'")?;
                        open.push(Open::Object);
                        continue;
                    }
                }
                Some('[') => {
                    self.at += 1;
                    if self.peek() == Some(']') {
                        self.at += 1;
                    } else {
                        open.push(Open::Array);
                        continue;
                    }
                }
                Some('"') => self.string()?,
                Some('-' | '0'..='9') => self.number()?,
                Some('t') => self.literal("true")?,
                Some('f') => self.literal("false")?,
                Some('n') => self.literal("null")?,
                Some(_) => return Err(Fault::Token(self.at)),
                None => return Err(Fault::End),
            }
            // A value ended here.
            loop {
                match (open.last(), self.peek()) {
                    (None, None) => return Ok(()),
                    (None, Some(_)) => {
                        return Err(Fault::Trailing(self.at));
                    }
                    (Some(Open::Array), Some(']')) | (Some(Open::Object), Some('}')) => {
                        self.at += 1;
                        open.pop();
                    }
                    (Some(Open::Array), Some(',')) => {
                        self.at += 1;
                        break;
                    }
                    (Some(Open::Object), Some(',')) => {
                        self.at += 1;
                        self.key("Expected double-quoted property name")?;
                        break;
                    }
                    (Some(Open::Array), _) => {
                        return Err(Fault::At("Expected ',' or ']' after array element", self.at));
                    }
                    (Some(Open::Object), _) => {
                        return Err(Fault::At("Expected ',' or '}' after property value", self.at));
                    }
                }
            }
        }
    }

    /// A property's name and its colon.
    fn key(&mut self, expected: &'static str) -> Result<(), Fault> {
        match self.peek() {
            Some('"') => self.string()?,
            _ => return Err(Fault::At(expected, self.at)),
        }
        if self.peek() != Some(':') {
            return Err(Fault::At("Expected ':' after property name", self.at));
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), Fault> {
        self.at += 1;
        loop {
            match self.unit() {
                None => return Err(Fault::At("Unterminated string", self.at)),
                Some('"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some('\\') => {
                    self.at += 1;
                    match self.unit() {
                        None => return Err(Fault::At("Unterminated string", self.at)),
                        Some('u') => {
                            for _ in 0..4 {
                                self.at += 1;
                                match self.unit() {
                                    Some(digit) if digit.is_ascii_hexdigit() => {}
                                    None => return Err(Fault::At("Unterminated string", self.at)),
                                    Some(_) => return Err(Fault::At("Bad Unicode escape", self.at)),
                                }
                            }
                        }
                        Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't') => {}
                        Some(_) => return Err(Fault::At("Bad escaped character", self.at)),
                    }
                    self.at += 1;
                }
                Some('\u{0}'..='\u{1f}') => {
                    return Err(Fault::At("Bad control character in string literal", self.at));
                }
                Some(_) => self.at += 1,
            }
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.unit() == Some('-') {
            self.at += 1;
            if !self.is_digit() {
                return Err(Fault::At("No number after minus sign", self.at));
            }
        }
        if self.unit() == Some('0') {
            self.at += 1;
            if self.is_digit() {
                return Err(Fault::At("Unexpected number", self.at));
            }
        } else {
            self.digits();
        }
        if self.unit() == Some('.') {
            self.at += 1;
            if !self.is_digit() {
                return Err(Fault::At("Unterminated fractional number", self.at));
            }
            self.digits();
        }
        if matches!(self.unit(), Some('e' | 'E')) {
            self.at += 1;
            if matches!(self.unit(), Some('+' | '-')) {
                self.at += 1;
            }
            if !self.is_digit() {
                return Err(Fault::At("Exponent part is missing a number", self.at));
            }
            self.digits();
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Result<(), Fault> {
        for expected in word.chars() {
            match self.unit() {
                Some(found) if found == expected => self.at += 1,
                Some(_) => return Err(Fault::Token(self.at)),
                None => return Err(Fault::End),
            }
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.is_digit() {
            self.at += 1;
        }
    }

    fn is_digit(&self) -> bool {
        self.unit().is_some_and(|unit| unit.is_ascii_digit())
    }

    /// The next unit after white space.
    fn peek(&mut self) -> Option<char> {
        while matches!(self.unit(), Some(' ' | '\t' | '\n' | '\r')) {
            self.at += 1;
        }
        self.unit()
    }

    /// The unit at the position; the half of a pair counts as some character outside of JSON's syntax.
    fn unit(&self) -> Option<char> {
        self.units.get(self.at).map(|unit| char::from_u32(u32::from(*unit)).unwrap_or('\u{fffd}'))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_keep_their_order_and_no_text_means_no_arguments() {
        let arguments = parse_arguments(" {\"z\":1,\"a\":{\"y\":2,\"b\":3}} ");
        assert_eq!(serde_json::to_string(&arguments.values).unwrap(), "{\"z\":1,\"a\":{\"y\":2,\"b\":3}}");
        for text in ["", "  \n", "{}"] {
            assert_eq!(parse_arguments(text), Arguments::default(), "{text:?}");
        }
    }

    #[test]
    fn what_models_often_get_wrong_inside_strings_is_accepted() {
        for (text, value) in [
            ("{\"a\":\"x\ny\t\"}", "x\ny\t"),
            (r#"{"a":"\d+"}"#, r"\d+"),
            (r#"{"a":"\u12zz"}"#, r"\u12zz"),
            (r#"{"a":"\ud83d"}"#, "\u{fffd}"),
            (r#"{"a":"\ud83d\ude00"}"#, "😀"),
            (r#"{"a":"\d\ud83d\ude00"}"#, "\\d😀"),
        ] {
            let arguments = parse_arguments(text);
            assert_eq!(arguments.error, None, "{text}");
            assert_eq!(arguments.values.get("a"), Some(&json!(value)), "{text}");
        }
    }

    #[test]
    fn the_error_is_that_of_v8_followed_by_the_text() {
        assert_eq!(
            parse_arguments("{\"command\": \"echo unfinished").error.unwrap(),
            "Unterminated string in JSON at position 28 (line 1 column 29)\n\nReceived arguments:\n{\"command\": \"echo unfinished"
        );
        assert_eq!(
            parse_arguments("[1]").error.unwrap(),
            "Tool arguments must be a JSON object\n\nReceived arguments:\n[1]"
        );
    }

    #[test]
    fn every_usual_fault_has_the_words_of_v8() {
        let long = format!("{{\"{}\": y{}", "a".repeat(46), "z".repeat(60));
        for (text, message) in [
            ("{\"a\":\"x\ny", "Unterminated string in JSON at position 10 (line 1 column 11)"),
            ("{\"a\":\"\\d", "Unterminated string in JSON at position 9 (line 1 column 10)"),
            ("{\"a\":\"\\", "Unterminated string in JSON at position 8 (line 1 column 9)"),
            ("{\"a\":\"\\u12", "Unterminated string in JSON at position 11 (line 1 column 12)"),
            (
                "{\"a\":\"x\ty\" z}",
                "Expected ',' or '}' after property value in JSON at position 12 (line 1 column 13)",
            ),
            ("{\"a\":01}", "Unexpected number in JSON at position 6 (line 1 column 7)"),
            ("{\"a\":1.}", "Unterminated fractional number in JSON at position 7 (line 1 column 8)"),
            ("{\"a\":-}", "No number after minus sign in JSON at position 6 (line 1 column 7)"),
            ("{\"a\":1e}", "Exponent part is missing a number in JSON at position 7 (line 1 column 8)"),
            ("{\"a\":tru}", "Unexpected token '}', \"{\"a\":tru}\" is not valid JSON"),
            ("{\"a\":tru", "Unexpected end of JSON input"),
            ("[1,t2]", "Unexpected number in JSON at position 4 (line 1 column 5)"),
            ("{\"a\":t\"b\"}", "Unexpected string in JSON at position 6 (line 1 column 7)"),
            ("{\"a\"", "Expected ':' after property name in JSON at position 4 (line 1 column 5)"),
            ("{\"a\" 1}", "Expected ':' after property name in JSON at position 5 (line 1 column 6)"),
            ("{", "Expected property name or '}' in JSON at position 1 (line 1 column 2)"),
            ("{'a':1}", "Expected property name or '}' in JSON at position 1 (line 1 column 2)"),
            ("{\"a\":1,}", "Expected double-quoted property name in JSON at position 7 (line 1 column 8)"),
            ("[1,", "Unexpected end of JSON input"),
            ("[1 2", "Expected ',' or ']' after array element in JSON at position 3 (line 1 column 4)"),
            ("{\"a\":[1,]}", "Unexpected token ']', \"{\"a\":[1,]}\" is not valid JSON"),
            ("{\"a\":1}}", "Unexpected non-whitespace character after JSON at position 7 (line 1 column 8)"),
            ("\u{a0}{}", "Unexpected token '\u{a0}', \"\u{a0}{}\" is not valid JSON"),
            (
                "{\"é\":\"😀\" x",
                "Expected ',' or '}' after property value in JSON at position 10 (line 1 column 11)",
            ),
            ("nope", "Unexpected token 'o', \"nope\" is not valid JSON"),
            (&"x".repeat(100), "Unexpected token 'x', \"xxxxxxxxxx\"... is not valid JSON"),
            (&long, "Unexpected token 'y', ...\"aaaaaaa\": yzzzzzzzzz\"... is not valid JSON"),
            (
                "{\n\"a\": 1,\n\"b\" 2}",
                "Expected ':' after property name in JSON at position 14 (line 3 column 5)",
            ),
            (
                "{\r\n\"a\": 1\r\n\"b\" 2}",
                "Expected ',' or '}' after property value in JSON at position 11 (line 3 column 1)",
            ),
        ] {
            let error = parse_arguments(text).error.unwrap();
            assert_eq!(error.split("\n\nReceived").next(), Some(message), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_an_error_and_not_a_crash() {
        let text = format!("{{\"a\":{}", "[".repeat(200_000));
        assert!(parse_arguments(&text).error.unwrap().starts_with("Unexpected end of JSON input"));
        let text = format!("{{\"a\":{}{}}}", "[".repeat(2000), "]".repeat(2000));
        assert!(parse_arguments(&text).error.unwrap().starts_with("recursion limit exceeded"));
    }

    proptest! {
        #[test]
        fn no_text_panics_and_an_error_always_shows_the_text(text in r#"[{}\[\]",:\\a-ftrun0-9eé😀 \n.\-]{0,40}"#) {
            let arguments = parse_arguments(&text);
            if let Some(error) = arguments.error {
                prop_assert!(error.ends_with(&text));
                prop_assert!(arguments.values.is_empty());
            }
        }
    }
}
