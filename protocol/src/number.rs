//! Numbers as JavaScript writes and reads them.
//!
//! JavaScript has one kind of number and prints `1.0` as `1`. Files that Pi reads must not be broken by
//! `1.0`, and counts that another writer printed as `3.0` must not make a message unreadable.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Largest integer that a JavaScript number holds exactly (2^53 - 1).
pub const MAX_SAFE_INTEGER: u64 = 9_007_199_254_740_991;

/// Writes a float the way JavaScript does: integral values without a fraction.
///
/// Non-finite values become `null`, as `JSON.stringify` does.
pub fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if !value.is_finite() {
        serializer.serialize_none()
    } else if value.fract() == 0.0 && value.abs() <= MAX_SAFE_INTEGER as f64 {
        serializer.serialize_i64(*value as i64)
    } else {
        serializer.serialize_f64(*value)
    }
}

/// Reads a float; `null` is zero, as it stands for a non-finite number.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(0.0))
}

/// A float that may be `null`, written the way JavaScript does.
pub mod nullable {
    use super::*;

    /// Writes a float or `null`.
    pub fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => super::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Reads a float or `null`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
        Option::<f64>::deserialize(deserializer)
    }
}

/// A count or a timestamp in milliseconds: read from any non-negative number, written as an integer.
pub mod count {
    use super::*;

    /// Writes an integer.
    pub fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    /// Reads an integer, or a float whose fraction is dropped.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = u64;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a non-negative number")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<u64, E> {
                Ok(value)
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<u64, E> {
                u64::try_from(value).map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))
            }

            fn visit_f64<E: de::Error>(self, value: f64) -> Result<u64, E> {
                if value >= 0.0 && value <= MAX_SAFE_INTEGER as f64 {
                    Ok(value as u64)
                } else {
                    Err(E::invalid_value(de::Unexpected::Float(value), &self))
                }
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// A count that may be absent.
pub mod optional_count {
    use super::*;

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Count(#[serde(with = "count")] u64);

    /// Writes an integer or `null`.
    pub fn serialize<S: Serializer>(value: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    /// Reads a count or `null`.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::<Count>::deserialize(deserializer)?.map(|count| count.0))
    }
}

/// Reads a whole number from `MIN` to `MAX`, or `null`.
pub fn optional_within<'de, D: Deserializer<'de>, const MIN: u32, const MAX: u32>(
    deserializer: D,
) -> Result<Option<u32>, D::Error> {
    struct Within<const MIN: u32, const MAX: u32>(u32);

    impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Within<MIN, MAX> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Visitor::<MIN, MAX>).map(Self)
        }
    }

    struct Visitor<const MIN: u32, const MAX: u32>;

    impl<const MIN: u32, const MAX: u32> de::Visitor<'_> for Visitor<MIN, MAX> {
        type Value = u32;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "a whole number from {MIN} to {MAX}")
        }

        fn visit_u64<E: de::Error>(self, value: u64) -> Result<u32, E> {
            let within = u32::try_from(value).ok().filter(|value| (MIN..=MAX).contains(value));
            within.ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(value), &self))
        }

        fn visit_i64<E: de::Error>(self, value: i64) -> Result<u32, E> {
            match u64::try_from(value) {
                Ok(value) => self.visit_u64(value),
                Err(_) => Err(E::invalid_value(de::Unexpected::Signed(value), &self)),
            }
        }

        fn visit_f64<E: de::Error>(self, value: f64) -> Result<u32, E> {
            if value.fract() == 0.0 && (f64::from(MIN)..=f64::from(MAX)).contains(&value) {
                Ok(value as u32)
            } else {
                Err(E::invalid_value(de::Unexpected::Float(value), &self))
            }
        }
    }

    let value = Option::<Within<MIN, MAX>>::deserialize(deserializer)?;
    Ok(value.map(|value| value.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Numbers {
        #[serde(with = "super")]
        cost: f64,
        #[serde(with = "count")]
        tokens: u64,
    }

    #[test]
    fn integral_floats_are_written_without_a_fraction() {
        let text = serde_json::to_string(&Numbers { cost: 3.0, tokens: 7 }).unwrap();
        assert_eq!(text, r#"{"cost":3,"tokens":7}"#);
        let text = serde_json::to_string(&Numbers { cost: 0.00012, tokens: 7 }).unwrap();
        assert_eq!(text, r#"{"cost":0.00012,"tokens":7}"#);
    }

    #[test]
    fn a_number_within_bounds_may_be_null_or_a_float_without_a_fraction_and_nothing_else() {
        let read = |text: &str| {
            let mut json = serde_json::Deserializer::from_str(text);
            optional_within::<_, 1, 10>(&mut json).map_err(|error| error.to_string())
        };
        assert_eq!([read("1"), read("10.0"), read("null")], [Ok(Some(1)), Ok(Some(10)), Ok(None)]);
        for wrong in ["0", "11", "-1", "1.5", "1e300", "true", "\"1\"", "[1]"] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains("expected a whole number from 1 to 10"), "{error}");
        }
    }

    #[test]
    fn counts_written_as_floats_are_read() {
        let read: Numbers = serde_json::from_str(r#"{"cost":1,"tokens":12.0}"#).unwrap();
        assert_eq!((read.cost, read.tokens), (1.0, 12));
        assert!(serde_json::from_str::<Numbers>(r#"{"cost":1,"tokens":-1}"#).is_err());
    }
}
