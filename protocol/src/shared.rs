//! A value that is shared cheaply and serialised at most once.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

struct Inner<T> {
    value: T,
    json: OnceLock<Box<RawValue>>,
}

/// A finished value (a message, an entry) behind a cheap clone, whose JSON is made once and reused for
/// the session line, the RPC event and the JSON-mode line.
pub struct Shared<T>(Arc<Inner<T>>);

impl<T> Shared<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(Arc::new(Inner { value, json: OnceLock::new() }))
    }

    /// Wraps a value whose JSON is already at hand. `json` must be the value's own serialisation.
    pub fn with_json(value: T, json: Box<RawValue>) -> Self {
        Self(Arc::new(Inner { value, json: OnceLock::from(json) }))
    }
}

impl<T: Serialize> Shared<T> {
    /// The value's JSON, made on first use.
    pub fn json(&self) -> Result<&RawValue, serde_json::Error> {
        if let Some(json) = self.0.json.get() {
            return Ok(json);
        }
        let json = serde_json::value::to_raw_value(&self.0.value)?;
        Ok(self.0.json.get_or_init(|| json))
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.value.fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.value == other.0.value
    }
}

impl<T: Serialize> Serialize for Shared<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Shared<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::new)
    }
}

impl<T: JsonSchema> JsonSchema for Shared<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_made_once_and_reused_by_every_clone() {
        let shared = Shared::new(vec![1, 2]);
        let first = shared.json().unwrap().get().as_ptr();
        assert_eq!(shared.clone().json().unwrap().get().as_ptr(), first);
        assert_eq!(serde_json::to_string(&shared).unwrap(), "[1,2]");
    }
}
