//! The output of a command within bounds: its end in memory, all of it in a file once it is long.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::truncation::{MAX_BYTES, MAX_LINES, TextSize, Truncation, end_of, truncate_tail_of};
use crate::branding::BRANDING;

/// Bytes of the output's end that stay in memory: more than a result shows, so that it is cut seldom.
const TAIL_BYTES: usize = 4 * MAX_BYTES as usize;

/// Tries to find a name for the file that is not taken.
const NAME_TRIES: usize = 16;

/// Collects output. Memory stays bounded whatever comes; output over the limits of a result goes to a
/// file as a whole.
#[derive(Debug, Default)]
pub struct OutputCollector {
    /// The end of the output; all of it as long as there is no file.
    tail: String,
    newlines: u64,
    bytes: u64,
    /// Bytes after the last newline.
    open_line: u64,
    /// Bytes of the last line that ended.
    closed_line: u64,
    spill: Spill,
}

#[derive(Debug, Default)]
enum Spill {
    /// All output is in memory.
    #[default]
    Memory,
    /// All output is in the file.
    File(PathBuf, File),
    /// The file could not be made or written: only the end of the output is kept.
    Failed,
}

/// The whole output, or its two ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullOutput {
    /// The text.
    pub text: String,
    /// True when the middle was left out.
    pub truncated: bool,
}

impl OutputCollector {
    /// Takes the next piece of output.
    pub fn push(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.newlines += memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64;
        self.bytes += text.len() as u64;
        match text.rsplit_once('\n') {
            Some((before, after)) => {
                self.closed_line = match before.rsplit_once('\n') {
                    Some((_, line)) => line.len() as u64,
                    None => self.open_line + before.len() as u64,
                };
                self.open_line = after.len() as u64;
            }
            None => self.open_line += text.len() as u64,
        }
        if matches!(self.spill, Spill::Memory) && self.is_over_limit() {
            self.spill = open_spill(&self.tail);
        }
        if let Spill::File(path, file) = &mut self.spill
            && let Err(error) = file.write_all(text.as_bytes())
        {
            tracing::warn!(path = %path.display(), %error, "cannot keep the full output of a command");
            self.spill = Spill::Failed;
        }
        self.tail.push_str(text);
        if self.tail.len() > TAIL_BYTES {
            let start = self.tail.len() - end_of(&self.tail, TAIL_BYTES / 2).len();
            self.tail.drain(..start);
        }
    }

    /// The end of the output within the limits of a result.
    pub fn truncation(&self) -> Truncation {
        truncate_tail_of(&self.tail, self.size())
    }

    /// Bytes of the output's last line.
    pub fn last_line_bytes(&self) -> u64 {
        if self.open_line > 0 { self.open_line } else { self.closed_line }
    }

    /// The file that has the whole output, once it is over the limits.
    pub fn full_output_path(&self) -> Option<&Path> {
        match &self.spill {
            Spill::File(path, _) => Some(path),
            Spill::Memory | Spill::Failed => None,
        }
    }

    /// The whole output when it has at most `limit` bytes, else its first and its last half of that.
    pub fn full_output(&mut self, limit: u64) -> io::Result<FullOutput> {
        let Spill::File(_, file) = &mut self.spill else {
            let truncated = matches!(self.spill, Spill::Failed) && (self.tail.len() as u64) < self.bytes;
            return Ok(FullOutput { text: self.tail.clone(), truncated });
        };
        if self.bytes <= limit {
            return Ok(FullOutput { text: read_part(file, 0, self.bytes)?, truncated: false });
        }
        let half = limit / 2;
        let omitted = self.bytes - 2 * half;
        let head = read_part(file, 0, half)?;
        let tail = read_part(file, self.bytes - half, half)?;
        Ok(FullOutput {
            text: format!("{head}\n\n[... {omitted} bytes omitted ...]\n\n{tail}"),
            truncated: true,
        })
    }

    fn size(&self) -> TextSize {
        TextSize { lines: self.newlines + u64::from(self.open_line > 0), bytes: self.bytes }
    }

    fn is_over_limit(&self) -> bool {
        let size = self.size();
        size.lines > MAX_LINES || size.bytes > MAX_BYTES
    }
}

fn open_spill(text: &str) -> Spill {
    match create_file().and_then(|(path, mut file)| {
        file.write_all(text.as_bytes())?;
        Ok((path, file))
    }) {
        Ok((path, file)) => Spill::File(path, file),
        Err(error) => {
            tracing::warn!(%error, "cannot keep the full output of a command");
            Spill::Failed
        }
    }
}

fn create_file() -> io::Result<(PathBuf, File)> {
    let folder = std::env::temp_dir();
    for _ in 0..NAME_TRIES {
        let path = folder.join(format!("{}-bash-{:016x}.log", BRANDING.name, fastrand::u64(..)));
        match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
            Ok(file) => return Ok((path, file)),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("no free name in {}", folder.display())))
}

/// Reads without moving the place where the next output is written.
fn read_part(file: &mut File, start: u64, length: u64) -> io::Result<String> {
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    file.seek(SeekFrom::End(0))?;
    Ok(String::from_utf8_lossy(whole_characters(&bytes)).into_owned())
}

/// The file is text, so only a character that the part cuts at either end is no UTF-8.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let is_continuation = |byte: &&u8| **byte & 0xC0 == 0x80;
    let bytes = bytes.get(bytes.iter().take_while(is_continuation).count()..).unwrap_or_default();
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.get(..error.valid_up_to()).unwrap_or_default(),
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn collect(pieces: impl IntoIterator<Item = String>) -> OutputCollector {
        let mut collector = OutputCollector::default();
        pieces.into_iter().for_each(|piece| collector.push(&piece));
        collector
    }

    #[test]
    fn short_output_makes_no_file() {
        let mut collector = collect(["a\n".to_owned(), "b".to_owned()]);
        assert_eq!(collector.truncation().content, "a\nb");
        assert!(!collector.truncation().truncated);
        assert_eq!(collector.full_output_path(), None);
        assert_eq!(collector.full_output(10).unwrap().text, "a\nb");
    }

    #[test]
    fn five_megabytes_stay_bounded_in_memory_and_whole_in_a_private_file() {
        let line = format!("{}\n", "é".repeat(100));
        let mut collector = collect((0..26_000).map(|_| line.clone()));
        assert!(collector.tail.capacity() <= 2 * TAIL_BYTES);
        let path = collector.full_output_path().unwrap().to_owned();
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!(metadata.len(), 26_000 * line.len() as u64);
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        let full = collector.full_output(1001).unwrap();
        assert!(full.truncated && full.text.contains(" bytes omitted ...]"));
        assert!(!full.text.contains(char::REPLACEMENT_CHARACTER));
        collector.push("last");
        assert!(std::fs::read_to_string(&path).unwrap().ends_with("\nlast"));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn the_length_of_the_last_line_counts_what_left_memory() {
        let mut collector = collect((0..500).map(|_| "y".repeat(1000)));
        assert_eq!(collector.last_line_bytes(), 500_000);
        collector.push("z\n");
        assert_eq!(collector.last_line_bytes(), 500_001);
        collector.push("b\ncc");
        assert_eq!(collector.last_line_bytes(), 2);
        std::fs::remove_file(collector.full_output_path().unwrap()).unwrap();
    }
}
