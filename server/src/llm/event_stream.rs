//! The binary event stream of AWS, without I/O.

use std::ops::ControlFlow;

use super::sse::{MAX_EVENT_BYTES, SseEvent};

/// Bytes before the headers of a message: two lengths and their checksum.
const PRELUDE: usize = 12;

/// Bytes of the checksum at the end of a message.
const CHECKSUM: usize = 4;

/// Why a stream cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EventStreamError {
    /// A message is larger than what is read.
    #[error("an event of the stream is larger than {MAX_EVENT_BYTES} bytes")]
    TooLarge,
    /// Lengths or checksums are wrong.
    #[error("the event stream is corrupt")]
    Corrupt,
}

/// Turns chunks of bytes into events: the name is the type of the event or of the exception, the data is
/// the payload.
#[derive(Debug, Default)]
pub(crate) struct EventStream {
    buffer: Vec<u8>,
}

impl EventStream {
    /// Reads a chunk and calls `on_event` for every event that it completes, until one says `Break`.
    pub(crate) fn push<B>(
        &mut self,
        chunk: &[u8],
        mut on_event: impl FnMut(SseEvent<'_>) -> ControlFlow<B>,
    ) -> Result<ControlFlow<B>, EventStreamError> {
        self.buffer.extend_from_slice(chunk);
        let mut start = 0;
        while let Some(total) = message_length(self.buffer.get(start..).unwrap_or_default())? {
            let Some(message) = self.buffer.get(start..start + total) else { break };
            start += total;
            let (name, data) = read_message(message).ok_or(EventStreamError::Corrupt)?;
            if let ControlFlow::Break(value) = on_event(SseEvent { name: &name, data: &data }) {
                return Ok(ControlFlow::Break(value));
            }
        }
        self.buffer.drain(..start);
        Ok(ControlFlow::Continue(()))
    }
}

/// The length of the message that begins here, as soon as its prelude is there.
fn message_length(bytes: &[u8]) -> Result<Option<usize>, EventStreamError> {
    let Some(prelude) = bytes.get(..PRELUDE) else { return Ok(None) };
    let (total, headers) = (number(prelude, 0), number(prelude, 4));
    let sum = prelude.get(..8).map(crc32);
    if sum.map(|sum| sum as usize) != Some(number(prelude, 8)) || headers + PRELUDE + CHECKSUM > total {
        return Err(EventStreamError::Corrupt);
    }
    if total > MAX_EVENT_BYTES { Err(EventStreamError::TooLarge) } else { Ok(Some(total)) }
}

fn number(bytes: &[u8], at: usize) -> usize {
    let bytes = bytes.get(at..at + 4).unwrap_or_default();
    bytes.iter().fold(0, |number, byte| (number << 8) | usize::from(*byte))
}

fn read_message(message: &[u8]) -> Option<(String, String)> {
    let end = message.len().checked_sub(CHECKSUM)?;
    if crc32(message.get(..end)?) as usize != number(message, end) {
        return None;
    }
    let headers_end = PRELUDE + number(message, 4);
    let mut headers = message.get(PRELUDE..headers_end)?;
    let payload = String::from_utf8_lossy(message.get(headers_end..end)?).into_owned();
    let (mut name, mut text) = (String::new(), None);
    while !headers.is_empty() {
        let (header, value) = read_header(&mut headers)?;
        match header.as_str() {
            ":event-type" | ":exception-type" | ":error-code" => name = value,
            ":error-message" => text = Some(value),
            _ => {}
        }
    }
    Some((name, text.unwrap_or(payload)))
}

/// Takes a header off the front; values that are no strings are skipped.
fn read_header(headers: &mut &[u8]) -> Option<(String, String)> {
    let name_length = usize::from(take(headers, 1)?.first().copied()?);
    let name = String::from_utf8_lossy(take(headers, name_length)?).into_owned();
    let kind = take(headers, 1)?.first().copied()?;
    let length = match kind {
        0 | 1 => 0,
        2 => 1,
        3 => 2,
        4 => 4,
        5 | 8 => 8,
        9 => 16,
        6 | 7 => take(headers, 2)?.iter().fold(0, |number, byte| (number << 8) | usize::from(*byte)),
        _ => return None,
    };
    let value = take(headers, length)?;
    let text = if kind == 7 { String::from_utf8_lossy(value).into_owned() } else { String::new() };
    Some((name, text))
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (front, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(front)
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| {
        let [low, ..] = sum.to_le_bytes();
        CRC_TABLE.get(usize::from(low ^ byte)).copied().unwrap_or_default() ^ (sum >> 8)
    };
    !bytes.iter().fold(u32::MAX, step)
}

/// What each byte does to a checksum.
const CRC_TABLE: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { 0xedb8_8320 ^ (sum >> 1) } else { sum >> 1 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
}

/// A message with string headers, for tests.
#[cfg(test)]
pub(crate) fn message(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(u8::try_from(name.len()).unwrap());
        block.extend_from_slice(name.as_bytes());
        block.push(7);
        block.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        block.extend_from_slice(value.as_bytes());
    }
    let total = u32::try_from(PRELUDE + block.len() + payload.len() + CHECKSUM).unwrap();
    let mut bytes = total.to_be_bytes().to_vec();
    bytes.extend_from_slice(&u32::try_from(block.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(&crc32(&bytes).to_be_bytes());
    bytes.extend_from_slice(&block);
    bytes.extend_from_slice(payload.as_bytes());
    bytes.extend_from_slice(&crc32(&bytes).to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunks: &[&[u8]]) -> Result<Vec<String>, EventStreamError> {
        let mut stream = EventStream::default();
        let mut events = Vec::new();
        for chunk in chunks {
            let _ = stream.push(chunk, |event| {
                events.push(format!("{} {}", event.name, event.data));
                ControlFlow::<()>::Continue(())
            })?;
        }
        Ok(events)
    }

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn any_cut_of_the_bytes_gives_the_same_events() {
        let mut bytes = message(&[(":message-type", "event"), (":event-type", "one")], "{\"text\":\"é😀\"}");
        bytes.extend(message(&[(":exception-type", "badException")], "{}"));
        bytes.extend(message(&[(":error-code", "E"), (":error-message", "what")], ""));
        let expected = ["one {\"text\":\"é😀\"}", "badException {}", "E what"];
        for size in [1, 2, 5, 13, bytes.len()] {
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            assert_eq!(decode(&chunks).unwrap(), expected, "{size}");
        }
        let cut = bytes.len() - 1;
        assert_eq!(decode(&[&bytes[..cut]]).unwrap().len(), 2);
    }

    #[test]
    fn broken_bytes_are_refused_and_never_panic() {
        let good = message(&[(":event-type", "one")], "{}");
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x55;
            assert!(decode(&[&bad]).is_err() || decode(&[&bad]).unwrap().is_empty(), "{at}");
        }
        assert_eq!(decode(&[b"HTTP/1.1 200 OK"]), Err(EventStreamError::Corrupt));
    }

    #[test]
    fn a_break_stops_the_reading() {
        let two = [message(&[(":event-type", "a")], ""), message(&[(":event-type", "b")], "")].concat();
        let flow = EventStream::default().push(&two, |event| ControlFlow::Break(event.name.to_owned()));
        assert_eq!(flow, Ok(ControlFlow::Break("a".to_owned())));
    }
}
