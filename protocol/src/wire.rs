//! Reading the tag of a record once and routing it to its family.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::request_id::RequestId;
use crate::ui::UiResponse;
use crate::wording::in_words_of_json;

/// Why a record could not be read. The text names the field and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireError {
    message: String,
}

impl WireError {
    /// An error with this text.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// An error at a field path; the path is left out when it is empty.
    pub fn at(path: &str, error: impl fmt::Display) -> Self {
        match path {
            "" | "." => Self::new(error.to_string()),
            path => Self::new(format!("{path}: {error}")),
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for WireError {}

/// A record or block whose tag is not known to this version, kept as it came.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Unknown(Value);

impl Unknown {
    /// Keeps this JSON.
    pub fn new(value: Value) -> Self {
        Self(value)
    }

    /// The JSON as it came.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// A string field of the JSON, such as its tag.
    pub fn str_field(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }
}

impl JsonSchema for Unknown {
    fn schema_name() -> Cow<'static, str> {
        "Unknown".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "object", "description": "A kind that this version does not know." })
    }
}

/// Reads a value of type `T` from a JSON text; the error names the field.
pub fn from_text<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, WireError> {
    // Keeping track of the path costs as much as reading: it is done only for the error.
    if let Ok(value) = serde_json::from_str(text) {
        return Ok(value);
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let (path, inner) = (error.path().to_string(), error.inner());
        match path.as_str() {
            "." if !inner.is_data() => WireError::new(inner.to_string()),
            path => WireError::at(path, without_position(inner)),
        }
    })?;
    deserializer.end().map_err(|error| WireError::new(error.to_string()))?;
    Ok(value)
}

/// The text of an error whose place the path of its field tells.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    in_words_of_json(text.strip_suffix(&position).unwrap_or(&text))
}

/// Reads a value of type `T` from parsed JSON; the error names the field.
pub fn from_value<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, WireError> {
    if let Ok(value) = T::deserialize(&value) {
        return Ok(value);
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        WireError::at(&error.path().to_string(), in_words_of_json(&error.inner().to_string()))
    })
}

/// What every record of the wire has in common.
#[derive(Debug, Deserialize)]
pub struct Head<'a> {
    /// The record's kind. Absent when it is missing or not a string.
    #[serde(borrow, default, rename = "type", deserialize_with = "string_or_nothing")]
    pub kind: Option<Cow<'a, str>>,
    /// The correlation id, any JSON value.
    #[serde(borrow, default, deserialize_with = "present")]
    pub id: Option<&'a RawValue>,
}

fn present<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(d).map(Some)
}

fn string_or_nothing<'de, D: serde::Deserializer<'de>>(d: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    let raw = <&RawValue>::deserialize(d)?;
    Ok(serde_json::from_str::<String>(raw.get()).ok().map(Cow::Owned))
}

impl<'a> Head<'a> {
    /// Reads the head of a JSON object. Anything that is not an object is an error.
    pub fn read(text: &'a str) -> Result<Self, WireError> {
        if !text.trim_start().starts_with('{') {
            serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|e| WireError::new(e.to_string()))?;
            return Err(WireError::new("a record must be a JSON object"));
        }
        serde_json::from_str(text).map_err(|error| WireError::new(error.to_string()))
    }

    /// The id, owned.
    pub fn owned_id(&self) -> Option<RequestId> {
        self.id.map(RequestId::new)
    }
}

/// The tag of a record whose first field is its tag, as daemons write events, without looking at the rest.
///
/// `None` means that the whole record has to be read to know; `Some` does not mean that it is well-formed.
pub fn leading_tag(text: &str) -> Option<&str> {
    let mut rest = text;
    for token in ["{", r#""type""#, ":", "\""] {
        rest = rest.trim_ascii_start().strip_prefix(token)?;
    }
    // A tag with an escape in it is left to the parser.
    let (tag, _) = rest.split_once('"')?;
    (!tag.contains('\\')).then_some(tag)
}

/// The tag of an answer to an extension UI request, which is no command and gets no response.
pub const UI_RESPONSE: &str = "extension_ui_response";

/// Reads an answer to an extension UI request.
pub fn read_ui_response(text: &str) -> Result<UiResponse, WireError> {
    from_text(text)
}

/// Replaces escapes of lone surrogates (`\ud83d` without its other half) by `\ufffd`.
///
/// JavaScript clients send them when they cut a string inside a character; serde_json refuses them.
/// Returns `None` when the text has none.
pub fn repair_lone_surrogates(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let unit = |at: usize| -> Option<u16> {
        let escape = bytes.get(at..at + 6)?;
        if &escape[..2] != br"\u" {
            return None;
        }
        u16::from_str_radix(std::str::from_utf8(&escape[2..]).ok()?, 16).ok()
    };
    let mut repaired = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        let start = at + found;
        at = match unit(start) {
            None => start + 2,
            Some(0xd800..=0xdbff) if matches!(unit(start + 6), Some(0xdc00..=0xdfff)) => start + 12,
            Some(0xd800..=0xdfff) => {
                repaired.push_str(&text[copied..start]);
                repaired.push_str(r"\ufffd");
                copied = start + 6;
                copied
            }
            Some(_) => start + 6,
        };
        if at >= bytes.len() {
            break;
        }
    }
    if copied == 0 {
        return None;
    }
    repaired.push_str(&text[copied..]);
    Some(repaired)
}

/// Implements `Deserialize` for an enum whose variants hold one struct each and whose last variant,
/// `Unknown`, keeps an object with a tag that is not listed.
///
/// A listed tag with a bad body is an error that names the field; it never becomes `Unknown`.
macro_rules! read_tagged {
    ($name:ident, $tag:literal, { $($wire:literal => $variant:ident),+ $(,)? }) => {
        impl $name {
            /// The tags that this version knows.
            pub const KNOWN: &[&str] = &[$($wire),+];

            fn from_tagged_value(value: serde_json::Value) -> Result<Self, $crate::wire::WireError> {
                let tag = match value.get($tag) {
                    Some(serde_json::Value::String(tag)) => tag.as_str(),
                    Some(_) => return Err($crate::wire::WireError::new(concat!($tag, ": expected a string"))),
                    None if value.is_object() => {
                        return Err($crate::wire::WireError::new(concat!("missing field `", $tag, "`")));
                    }
                    None => return Err($crate::wire::WireError::new("expected an object")),
                };
                match tag {
                    $($wire => $crate::wire::from_value(value)
                        .map(Self::$variant)
                        .map_err(|error| $crate::wire::WireError::new(format!(concat!($wire, ": {}"), error))),)+
                    _ => Ok(Self::Unknown($crate::wire::Unknown::new(value))),
                }
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = serde_json::Value::deserialize(deserializer)?;
                Self::from_tagged_value(value).map_err(serde::de::Error::custom)
            }
        }
    };
}
pub(crate) use read_tagged;

/// Declares a transparent newtype over a string.
macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Makes an id from its text.
            pub fn new(id: impl Into<String>) -> Self {
                Self(id.into())
            }

            /// The id's text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                self.0 == *other
            }
        }
    };
}
pub(crate) use string_id;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_surrogate_escape_becomes_the_replacement_character() {
        assert_eq!(repair_lone_surrogates(r#"{"a":"\ud83d"}"#).unwrap(), r#"{"a":"\ufffd"}"#);
        assert_eq!(repair_lone_surrogates(r#""\ude00\ud83d\ude00""#).unwrap(), r#""\ufffd\ud83d\ude00""#);
        assert_eq!(repair_lone_surrogates(r#""\ud83d\ude00 \\ud83d \n""#), None);
        assert_eq!(repair_lone_surrogates(r#""\ud83d\ud83d\ude00""#).unwrap(), r#""\ufffd\ud83d\ude00""#);
    }

    #[test]
    fn a_record_that_is_no_object_is_refused_with_the_reason() {
        for text in ["null", "42", "[1,2]", "\"x\""] {
            assert_eq!(Head::read(text).unwrap_err().to_string(), "a record must be a JSON object");
        }
        assert!(Head::read("{bad").unwrap_err().to_string().contains("line 1 column 2"));
    }

    #[test]
    fn a_text_that_goes_on_after_its_value_is_an_error() {
        assert!(from_text::<bool>(" true ").unwrap());
        let error = from_text::<bool>("true {}").unwrap_err();
        assert!(error.to_string().contains("trailing characters"), "{error}");
    }

    #[test]
    fn the_head_keeps_an_id_of_any_kind() {
        for id in ["7", "null", "1e400", "9007199254740993", "1.0", r#""\ud83d""#, r#"{"a": [1]}"#] {
            let text = format!(r#"{{"id":{id},"type":"get_state"}}"#);
            let head = Head::read(&text).unwrap();
            assert_eq!(head.owned_id().as_ref().map(RequestId::json), Some(id));
            assert_eq!(head.kind.as_deref(), Some("get_state"));
        }
        assert_eq!(Head::read(r#"{"type":5}"#).unwrap().kind, None);
    }

    #[test]
    fn a_tag_in_front_is_found_without_reading_the_rest() {
        for text in
            [r#"{"type":"turn_end","m":"#, "{\"type\":\"turn_end\"}", " { \"type\" :\t\"turn_end\" not JSON"]
        {
            assert_eq!(leading_tag(text), Some("turn_end"), "{text}");
        }
        for text in [
            "",
            "type",
            "{}",
            r#"{"type":5}"#,
            r#"{"type":"cut"#,
            r#"{"type":"esc\u0061ped"}"#,
            r#"{"type":"a\"b"}"#,
            r#"{"typed":"turn_end"}"#,
            r#"{"id":1,"type":"turn_end"}"#,
            r#"["type","turn_end"]"#,
        ] {
            assert_eq!(leading_tag(text), None, "{text}");
        }
    }
}
