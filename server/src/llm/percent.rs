//! Percent-encoding of what becomes a part of an address or of a form.

/// The text with all bytes encoded but the unreserved ones and those that are `kept`.
pub(crate) fn percent_encoded(text: &str, kept: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        let is_unreserved = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
        if is_unreserved || kept.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_but_the_unreserved_and_the_kept_is_encoded() {
        assert_eq!(percent_encoded("a-Z_0.~ /:é", b""), "a-Z_0.~%20%2F%3A%C3%A9");
        assert_eq!(percent_encoded("a/b:c?", b"/:"), "a/b:c%3F");
    }
}
