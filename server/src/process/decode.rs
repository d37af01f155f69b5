//! Text from bytes that come in pieces.

/// Decodes UTF-8 that comes in pieces: a character cut between two pieces stays whole, bytes that are
/// no UTF-8 become U+FFFD.
#[derive(Debug, Default)]
pub struct Utf8Decoder {
    /// The beginning of a character whose end has not come yet; at most three bytes.
    pending: Vec<u8>,
}

impl Utf8Decoder {
    /// Appends the text of the next piece to `text`.
    pub fn push(&mut self, bytes: &[u8], text: &mut String) {
        if self.pending.is_empty() {
            self.decode(bytes, text);
        } else {
            let mut joined = std::mem::take(&mut self.pending);
            joined.extend_from_slice(bytes);
            self.decode(&joined, text);
        }
    }

    /// Appends what an unfinished character at the end becomes.
    pub fn finish(&mut self, text: &mut String) {
        if !self.pending.is_empty() {
            self.pending.clear();
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }

    fn decode(&mut self, mut bytes: &[u8], text: &mut String) {
        loop {
            let error = match std::str::from_utf8(bytes) {
                Ok(valid) => return text.push_str(valid),
                Err(error) => error,
            };
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            text.push_str(&String::from_utf8_lossy(valid));
            match error.error_len() {
                Some(length) => {
                    text.push(char::REPLACEMENT_CHARACTER);
                    bytes = rest.get(length..).unwrap_or_default();
                }
                None => {
                    self.pending = rest.to_vec();
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode_in_pieces(bytes: &[u8], cuts: &[usize]) -> String {
        let mut decoder = Utf8Decoder::default();
        let mut text = String::new();
        let mut rest = bytes;
        for cut in cuts {
            let (piece, tail) = rest.split_at((*cut).min(rest.len()));
            decoder.push(piece, &mut text);
            rest = tail;
        }
        decoder.push(rest, &mut text);
        decoder.finish(&mut text);
        text
    }

    proptest! {
        #[test]
        fn any_cut_of_any_bytes_decodes_as_the_whole_does(
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
            cuts in proptest::collection::vec(0usize..5, 0..12),
        ) {
            prop_assert_eq!(decode_in_pieces(&bytes, &cuts), String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn any_cut_of_text_gives_the_text(text in "\\PC{0,20}", cuts in proptest::collection::vec(0usize..4, 0..30)) {
            prop_assert_eq!(decode_in_pieces(text.as_bytes(), &cuts), text);
        }
    }

    #[test]
    fn an_unfinished_character_at_the_end_is_one_replacement() {
        assert_eq!(decode_in_pieces(b"x\xff\xe2\x82", &[2]), "x\u{fffd}\u{fffd}");
    }
}
