//! Framing: one JSON record a line, LF between records.
//!
//! Only LF ends a record; one CR before it is dropped. U+2028 and U+2029 are ordinary characters. A line
//! of nothing but JSON's white space holds no record and is skipped. The code is sans-IO: feed it bytes in
//! any chunks, it gives back the same records.

use serde::Serialize;

/// The default limit of one frame: 64 MiB.
pub const DEFAULT_FRAME_LIMIT: usize = 64 * 1024 * 1024;

/// Appends one record and its LF to a buffer.
pub fn encode<T: Serialize + ?Sized>(record: &T, into: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    let start = into.len();
    if let Err(error) = serde_json::to_writer(&mut *into, record) {
        into.truncate(start);
        return Err(error);
    }
    into.push(b'\n');
    Ok(())
}

/// One frame of the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// The bytes of a record, without its line end. Never blank.
    Line(Vec<u8>),
    /// A record that passed the limit; its bytes were dropped up to its end.
    TooLong {
        /// How long the record was, in bytes, a CR of its line end counted.
        length: usize,
        /// The first bytes of the record, up to [`LineSplitter::KEPT_OF_TOO_LONG`].
        start: Vec<u8>,
    },
}

/// Cuts a byte stream into frames.
#[derive(Debug)]
pub struct LineSplitter {
    limit: usize,
    partial: Vec<u8>,
    dropped: Option<usize>,
}

impl Default for LineSplitter {
    fn default() -> Self {
        Self::new(DEFAULT_FRAME_LIMIT)
    }
}

impl LineSplitter {
    /// How many bytes of an over-long record are kept, so that its id can be found.
    pub const KEPT_OF_TOO_LONG: usize = 4096;

    /// A splitter whose frames are at most `limit` bytes long, line end not counted.
    pub fn new(limit: usize) -> Self {
        Self { limit, partial: Vec::new(), dropped: None }
    }

    /// Takes the next bytes of the stream and gives each whole frame in them to `sink`.
    pub fn push(&mut self, mut bytes: &[u8], mut sink: impl FnMut(Frame)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            self.take(line);
            if let Some(frame) = self.close() {
                sink(frame);
            }
        }
        self.take(bytes);
    }

    /// Ends the stream: a last line without LF is a frame too.
    pub fn finish(&mut self) -> Option<Frame> {
        self.close()
    }

    fn take(&mut self, bytes: &[u8]) {
        let length = self.dropped.unwrap_or(self.partial.len()) + bytes.len();
        // One byte more than the limit may still be the CR of the line end.
        if self.dropped.is_none() && length <= self.limit.saturating_add(1) {
            self.partial.extend_from_slice(bytes);
            return;
        }
        self.dropped = Some(length);
        let room = Self::KEPT_OF_TOO_LONG.saturating_sub(self.partial.len());
        self.partial.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.partial.truncate(Self::KEPT_OF_TOO_LONG);
        self.partial.shrink_to_fit();
    }

    fn close(&mut self) -> Option<Frame> {
        let mut line = std::mem::take(&mut self.partial);
        let dropped = self.dropped.take();
        let length = dropped.unwrap_or(line.len());
        if dropped.is_none() && line.last() == Some(&b'\r') {
            line.pop();
        }
        if dropped.is_some() || line.len() > self.limit {
            line.truncate(Self::KEPT_OF_TOO_LONG);
            return Some(Frame::TooLong { length, start: line });
        }
        let is_blank = line.iter().all(|byte| b" \t\r".contains(byte));
        (!is_blank).then_some(Frame::Line(line))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(limit: usize, chunks: &[&[u8]]) -> Vec<Frame> {
        let mut splitter = LineSplitter::new(limit);
        let mut frames = Vec::new();
        for chunk in chunks {
            splitter.push(chunk, |frame| frames.push(frame));
        }
        frames.extend(splitter.finish());
        frames
    }

    fn line(text: &str) -> Frame {
        Frame::Line(text.as_bytes().to_vec())
    }

    #[test]
    fn only_lf_ends_a_record_and_one_cr_before_it_is_dropped() {
        let frames = split(100, &["a\u{2028}b\u{2029}c\r\n\n\r\nx\ry\n".as_bytes(), b"last"]);
        assert_eq!(frames, [line("a\u{2028}b\u{2029}c"), line("x\ry"), line("last")]);
    }

    #[test]
    fn a_line_of_white_space_is_no_frame_and_white_space_around_a_record_stays() {
        let frames = split(100, &[b"  \n\t\r\r\n \n x \n\xc2\xa0\n", b" \t"]);
        assert_eq!(frames, [line(" x "), line("\u{a0}")]);
    }

    #[test]
    fn the_limit_counts_one_frame_and_the_next_one_is_read() {
        let frames = split(4, &[b"1234\n12345\r\n1234\r\n", b"123456789", b"\n12\n"]);
        let long = |length, start: &[u8]| Frame::TooLong { length, start: start.to_vec() };
        assert_eq!(
            frames,
            [line("1234"), long(6, b"12345\r"), line("1234"), long(9, b"123456789"), line("12")]
        );
    }

    #[test]
    fn encoding_writes_one_lf_and_leaves_separators_alone() {
        let mut buffer = Vec::new();
        encode("a\u{2028}\n", &mut buffer).unwrap();
        assert_eq!(buffer, "\"a\u{2028}\\n\"\n".as_bytes());
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_frames(
            bytes in proptest::collection::vec(
                prop_oneof![Just(b'\n'), Just(b'\r'), Just(0xe2u8), any::<u8>()], 0..200),
            cuts in proptest::collection::vec(0usize..200, 0..8),
            limit in 1usize..40,
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(split(limit, &[&bytes]), split(limit, &chunks));
        }

        #[test]
        fn records_survive_encoding_and_splitting(texts in proptest::collection::vec(".*", 0..10)) {
            let mut buffer = Vec::new();
            for text in &texts {
                encode(text, &mut buffer).unwrap();
            }
            let read: Vec<String> = split(usize::MAX - 1, &[&buffer])
                .into_iter()
                .map(|frame| match frame {
                    Frame::Line(bytes) => serde_json::from_slice(&bytes).unwrap(),
                    Frame::TooLong { .. } => panic!("no frame is too long"),
                })
                .collect();
            prop_assert_eq!(read, texts);
        }
    }
}
