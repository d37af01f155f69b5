//! Parameters that are one of a few names.
//!
//! What serde says of a number where a name belongs does not tell the names; with these readers it does.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{self, Deserialize, Deserializer, Visitor};

/// Reads a choice.
pub(crate) fn read<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::deserialize(Choice(deserializer))
}

/// Reads a choice that may be absent or `null`.
pub(crate) fn read_optional<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Chosen<T>>::deserialize(deserializer)?.map(|Chosen(value)| value))
}

struct Chosen<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Chosen<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer).map(Self)
    }
}

/// Gives an enum without content its name as a string.
struct Choice<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Choice<D> {
    type Error = D::Error;

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_str(Name { names, visitor })
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Name<V> {
    names: &'static [&'static str],
    visitor: V,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Name<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.names.iter().map(|name| format!("`{name}`")).collect();
        match names.as_slice() {
            [name] => f.write_str(name),
            names => write!(f, "one of {}", names.join(", ")),
        }
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<V::Value, E> {
        self.visitor.visit_enum(StrDeserializer::new(name))
    }
}
