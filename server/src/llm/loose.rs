//! Strings of streamed JSON, read without copying where that is possible.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A string, or what some server puts in its place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loose<'a>(&'a RawValue);

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Self)
    }
}

impl<'a> Loose<'a> {
    /// The string; of a list of text parts their texts; of anything else its JSON.
    pub(crate) fn text(&self) -> Cow<'a, str> {
        let json = self.0.get();
        if let Some(inner) = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'))
            && !inner.contains('\\')
        {
            return Cow::Borrowed(inner);
        }
        let value = serde_json::from_str(json).or_else(|_| {
            // A surrogate that stands alone.
            super::partial_json::lossy_value(json)
        });
        match value {
            Ok(Value::String(text)) => Cow::Owned(text),
            Ok(Value::Array(parts)) => {
                let texts = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str));
                Cow::Owned(texts.collect())
            }
            Ok(Value::Null) => Cow::Borrowed(""),
            Ok(_) | Err(_) => Cow::Borrowed(json),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_read_whatever_stands_in_its_place() {
        for (json, text) in [
            (r#""plain""#, "plain"),
            (r#""a\n\"b""#, "a\n\"b"),
            (r#""\ud83d x""#, "\u{fffd} x"),
            (r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#, "ab"),
            (r#"{"path":"x"}"#, r#"{"path":"x"}"#),
            (r#"[{"text":"a\ud83d"},{"text":"b"}]"#, "a\u{fffd}b"),
            (r#"{"path":"\ud83d"}"#, r#"{"path":"\ud83d"}"#),
            ("7", "7"),
        ] {
            let value: Loose<'_> = serde_json::from_str(json).unwrap();
            assert_eq!(value.text(), text, "{json}");
        }
        assert!(matches!(serde_json::from_str::<Loose<'_>>(r#""plain""#).unwrap().text(), Cow::Borrowed(_)));
    }
}
