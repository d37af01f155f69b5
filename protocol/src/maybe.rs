//! Three states of a field: absent, `null`, a value.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A field that may be absent, `null` or a value, where the three mean different things.
///
/// Use it with `#[serde(default, skip_serializing_if = "Maybe::is_absent")]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Maybe<T> {
    /// The field is not there.
    #[default]
    Absent,
    /// The field is `null`.
    Null,
    /// The field holds a value.
    Value(T),
}

impl<T> Maybe<T> {
    /// True when the field is not there.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// The value, if there is one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Null => None,
        }
    }
}

impl<T: Serialize> Serialize for Maybe<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Absent | Self::Null => serializer.serialize_none(),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Option::<T>::deserialize(deserializer)? {
            Some(value) => Self::Value(value),
            None => Self::Null,
        })
    }
}

impl<T: JsonSchema> JsonSchema for Maybe<T> {
    fn schema_name() -> Cow<'static, str> {
        Option::<T>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Option::<T>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder {
        #[serde(default, skip_serializing_if = "Maybe::is_absent")]
        field: Maybe<u32>,
    }

    #[test]
    fn absent_null_and_value_are_three_things_both_ways() {
        for (text, expected) in
            [("{}", Maybe::Absent), (r#"{"field":null}"#, Maybe::Null), (r#"{"field":3}"#, Maybe::Value(3))]
        {
            let read: Holder = serde_json::from_str(text).unwrap();
            assert_eq!(read.field, expected);
            assert_eq!(serde_json::to_string(&read).unwrap(), text);
        }
    }
}
