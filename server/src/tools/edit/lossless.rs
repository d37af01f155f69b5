//! Text of files that are not wholly UTF-8, so that an edit keeps all other bytes.

use std::borrow::Cow;

/// The first of 256 private characters, at the end of the last plane, that stand for bytes.
const FIRST: u32 = 0x10_FF00;

/// The text, with a private character for every byte that is no UTF-8. `None` when the text has such
/// characters itself.
pub(super) fn decode(bytes: &[u8]) -> Option<Cow<'_, str>> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(Cow::Borrowed(text));
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        if chunk.valid().chars().any(is_byte) {
            return None;
        }
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().filter_map(|byte| char::from_u32(FIRST + u32::from(*byte))));
    }
    Some(Cow::Owned(text))
}

/// The bytes of a text that [`decode`] gave.
pub(super) fn encode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for character in text.chars() {
        match u8::try_from(u32::from(character).wrapping_sub(FIRST)) {
            Ok(byte) => bytes.push(byte),
            Err(_) => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

/// The text as it is shown: U+FFFD for bytes that are no UTF-8.
pub(super) fn shown(text: &str) -> String {
    text.replace(is_byte, "\u{fffd}")
}

fn is_byte(character: char) -> bool {
    u32::from(character) >= FIRST
}
