//! Server-sent events from bytes, without I/O.

use std::borrow::Cow;

/// Longest line, and longest data of one event, that is read. Larger ones end the stream with an error.
pub(crate) const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SseEvent<'a> {
    /// The event's name; empty when it has none.
    pub(crate) name: &'a str,
    /// The data lines, joined by line feeds.
    pub(crate) data: &'a str,
}

/// An event was larger than [`MAX_EVENT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {MAX_EVENT_BYTES} bytes")]
pub(crate) struct EventTooLarge;

/// Turns chunks of bytes into events. Lines end in LF, CRLF or CR; comments are skipped; bytes that are
/// not UTF-8 become U+FFFD; the last event needs no blank line after it.
#[derive(Debug, Default)]
pub(crate) struct SseDecoder {
    // The beginning of a line whose end has not come.
    partial: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    skip_line_feed: bool,
    past_start: bool,
}

impl SseDecoder {
    /// An empty decoder.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Reads a chunk and calls `on_event` for every event that it completes, until one says `Break`.
    pub(crate) fn push<B>(
        &mut self,
        mut chunk: &[u8],
        mut on_event: impl FnMut(SseEvent<'_>) -> std::ops::ControlFlow<B>,
    ) -> Result<std::ops::ControlFlow<B>, EventTooLarge> {
        use std::ops::ControlFlow::{Break, Continue};
        if std::mem::take(&mut self.skip_line_feed) {
            match chunk.first() {
                Some(b'\n') => chunk = chunk.get(1..).unwrap_or_default(),
                Some(_) => {}
                None => self.skip_line_feed = true,
            }
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', chunk) {
            let (line, rest) = chunk.split_at(end);
            let ended_by_return = rest.first() == Some(&b'\r');
            chunk = rest.get(1..).unwrap_or_default();
            if ended_by_return {
                match chunk.first() {
                    Some(b'\n') => chunk = chunk.get(1..).unwrap_or_default(),
                    Some(_) => {}
                    None => self.skip_line_feed = true,
                }
            }
            let flow = if self.partial.is_empty() {
                self.line(line, &mut on_event)?
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.extend_from_slice(line);
                let flow = self.line(&whole, &mut on_event)?;
                whole.clear();
                self.partial = whole;
                flow
            };
            if let Break(value) = flow {
                return Ok(Break(value));
            }
        }
        if self.partial.len() + chunk.len() > MAX_EVENT_BYTES {
            return Err(EventTooLarge);
        }
        self.partial.extend_from_slice(chunk);
        Ok(Continue(()))
    }

    /// The stream ended: gives the event that was not yet followed by a blank line, if there is one.
    pub(crate) fn finish<B>(
        &mut self,
        mut on_event: impl FnMut(SseEvent<'_>) -> std::ops::ControlFlow<B>,
    ) -> Result<std::ops::ControlFlow<B>, EventTooLarge> {
        let last = std::mem::take(&mut self.partial);
        if !last.is_empty()
            && let std::ops::ControlFlow::Break(value) = self.line(&last, &mut on_event)?
        {
            return Ok(std::ops::ControlFlow::Break(value));
        }
        Ok(self.dispatch(&mut on_event))
    }

    fn line<B>(
        &mut self,
        mut line: &[u8],
        on_event: &mut impl FnMut(SseEvent<'_>) -> std::ops::ControlFlow<B>,
    ) -> Result<std::ops::ControlFlow<B>, EventTooLarge> {
        if !std::mem::replace(&mut self.past_start, true) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        if line.is_empty() {
            return Ok(self.dispatch(on_event));
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => {
                let (field, value) = line.split_at(colon);
                let value = value.get(1..).unwrap_or_default();
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match field {
            b"data" => {
                if self.data.len() + value.len() >= MAX_EVENT_BYTES {
                    return Err(EventTooLarge);
                }
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // A comment, an id, a retry time, or a field that we do not know.
            _ => {}
        }
        Ok(std::ops::ControlFlow::Continue(()))
    }

    fn dispatch<B>(
        &mut self,
        on_event: &mut impl FnMut(SseEvent<'_>) -> std::ops::ControlFlow<B>,
    ) -> std::ops::ControlFlow<B> {
        let flow = if std::mem::take(&mut self.has_data) {
            let name: Cow<'_, str> = String::from_utf8_lossy(&self.name);
            let data: Cow<'_, str> = String::from_utf8_lossy(&self.data);
            on_event(SseEvent { name: &name, data: &data })
        } else {
            std::ops::ControlFlow::Continue(())
        };
        self.name.clear();
        self.data.clear();
        flow
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use proptest::prelude::*;

    use super::*;

    fn decode(chunks: &[&[u8]]) -> Vec<(String, String)> {
        let mut events = Vec::new();
        let mut decoder = SseDecoder::new();
        let mut keep = |event: SseEvent<'_>| -> ControlFlow<()> {
            events.push((event.name.to_owned(), event.data.to_owned()));
            ControlFlow::Continue(())
        };
        for chunk in chunks {
            let _ = decoder.push(chunk, &mut keep).unwrap();
        }
        let _ = decoder.finish(&mut keep).unwrap();
        events
    }

    fn pairs(events: &[(&str, &str)]) -> Vec<(String, String)> {
        events.iter().map(|(name, data)| ((*name).to_owned(), (*data).to_owned())).collect()
    }

    #[test]
    fn every_kind_of_line_end_comments_names_and_many_data_lines_are_read() {
        for end in ["\n", "\r\n", "\r"] {
            let text = [
                "\u{feff}: hello",
                "event: one",
                "data: a",
                "data:b",
                "id: 7",
                "",
                "data",
                "",
                "event: lost",
                "",
                "data:  x",
            ]
            .join(end);
            assert_eq!(
                decode(&[text.as_bytes()]),
                pairs(&[("one", "a\nb"), ("", ""), ("", " x")]),
                "{end:?}"
            );
        }
    }

    #[test]
    fn a_character_that_is_cut_between_chunks_stays_whole() {
        let text = "data: é😀\n\n".as_bytes();
        for at in 0..text.len() {
            assert_eq!(decode(&[&text[..at], &text[at..]]), pairs(&[("", "é😀")]));
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_become_replacement_characters() {
        assert_eq!(decode(&[b"data: a\xffb\n\n"]), pairs(&[("", "a\u{fffd}b")]));
    }

    #[test]
    fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
        let mut decoder = SseDecoder::new();
        let chunk = vec![b'x'; MAX_EVENT_BYTES / 2 + 1];
        assert!(decoder.push(&chunk, |_| ControlFlow::<()>::Continue(())).is_ok());
        assert_eq!(decoder.push(&chunk, |_| ControlFlow::<()>::Continue(())), Err(EventTooLarge));
    }

    #[test]
    fn a_break_stops_the_reading() {
        let mut decoder = SseDecoder::new();
        let flow = decoder.push(b"data: 1\n\ndata: 2\n\n", |event| ControlFlow::Break(event.data.to_owned()));
        assert_eq!(flow, Ok(ControlFlow::Break("1".to_owned())));
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(
            lines in prop::collection::vec("(data|event|:|x)?(: ?)?[a-zé😀 :]{0,6}(\r\n|\n|\r|\n\n)", 0..20),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ) {
            let text: String = lines.concat();
            let bytes = text.as_bytes();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let chunks: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(decode(&chunks), decode(&[bytes]));
        }
    }
}
