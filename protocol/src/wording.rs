//! Errors of serde in the words of JSON: who reads them writes JSON, not Rust.

/// The text of an error, with Rust's names for kinds of values replaced.
pub(crate) fn in_words_of_json(text: &str) -> String {
    if let Some(rest) = text.strip_prefix("unknown variant ") {
        return format!("unknown value {rest}");
    }
    let Some((fault, expected)) = text.rsplit_once(", expected ") else { return text.to_owned() };
    let fault = match fault.split_once(": ") {
        Some((what @ ("invalid type" | "invalid value"), given)) => format!("{what}: {}", given_kind(given)),
        // A list where an object belongs is read as its fields, if it has as many.
        _ if fault.starts_with("invalid length ") && is_object(expected) => "invalid type: array".to_owned(),
        _ if fault.starts_with("invalid length ") => fault.to_owned(),
        _ => return text.to_owned(),
    };
    format!("{fault}, expected {}", expected_kind(expected))
}

fn given_kind(given: &str) -> String {
    match given {
        "sequence" => "array".to_owned(),
        "map" => "object".to_owned(),
        "unit value" | "Option value" => "null".to_owned(),
        _ => match given.strip_prefix("floating point ") {
            Some(number) => format!("number {number}"),
            None => given.to_owned(),
        },
    }
}

fn expected_kind(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or greater",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a sequence" | "a borrowed sequence" => "an array",
        "a borrowed string" | "variant identifier" | "field identifier" => "a string",
        "a map" => "an object",
        "unit" => "null",
        "string or map" => "a string or an object",
        _ if is_object(expected) => "an object",
        _ if expected.starts_with("tuple ") => "an array",
        _ => expected,
    }
}

fn is_object(expected: &str) -> bool {
    expected.starts_with("struct ") || expected.starts_with("internally tagged enum ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rusts_names_of_kinds_become_those_of_json() {
        for (text, expected) in [
            (
                "invalid type: sequence, expected u32",
                "invalid type: array, expected a whole number, 0 or greater",
            ),
            ("invalid type: map, expected a sequence", "invalid type: object, expected an array"),
            (
                "invalid type: floating point `1.5`, expected i64",
                "invalid type: number `1.5`, expected a whole number",
            ),
            (
                "invalid value: integer `-1`, expected u64",
                "invalid value: integer `-1`, expected a whole number, 0 or greater",
            ),
            ("invalid type: null, expected f64", "invalid type: null, expected a number"),
            (
                "invalid type: boolean `true`, expected struct Image",
                "invalid type: boolean `true`, expected an object",
            ),
            (
                "invalid length 1, expected struct Image with 3 elements",
                "invalid type: array, expected an object",
            ),
            ("unknown variant `x`, expected `a` or `b`", "unknown value `x`, expected `a` or `b`"),
        ] {
            assert_eq!(in_words_of_json(text), expected);
            assert_eq!(in_words_of_json(expected), expected, "a second time changes nothing");
        }
    }

    #[test]
    fn what_the_writer_wrote_and_texts_of_our_own_stay_as_they_are() {
        for text in [
            "invalid type: string \"map, expected u32\", expected a string",
            "invalid type: string \"sequence\", expected a boolean",
            "missing field `message`",
            "cursor: expected the nextCursor of an earlier list",
            "two, expected u32",
        ] {
            assert_eq!(in_words_of_json(text), text);
        }
    }
}
