//! Questions to whoever sits at the terminal.
//!
//! Lines are read without the terminal's own editing, so that a secret is never shown, Ctrl-C leaves the
//! terminal as it was, and waiting for an answer can be given up.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use secrecy::SecretString;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Most bytes of an answer.
const MAX_ANSWER: usize = 64 * 1024;

/// Whether an answer can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Echo {
    Shown,
    Hidden,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum TerminalError {
    /// Ctrl-C, Ctrl-D, or the end of the input.
    Interrupted,
    /// The terminal cannot be read or written.
    Io(io::Error),
}

impl From<io::Error> for TerminalError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A person who answers.
pub(super) trait Terminal {
    /// Asks for one line. When the wait is given up, nothing stays behind.
    fn ask(&mut self, prompt: &str, echo: Echo) -> impl Future<Output = Result<SecretString, TerminalError>>;

    /// Says something, on a line of its own.
    fn say(&mut self, text: &str);
}

/// The terminal of the process.
pub(super) struct ProcessTerminal {
    input: AsyncFd<OwnedFd>,
    /// What was typed ahead.
    ahead: VecDeque<u8>,
}

impl ProcessTerminal {
    /// The terminal that stdin is.
    pub(super) fn open() -> io::Result<Self> {
        let own = std::io::stdin().as_fd().try_clone_to_owned()?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe for types that lie about their descriptor; this one is owned"
        )]
        let input = AsyncFd::with_interest(own, Interest::READABLE)?;
        Ok(Self { input, ahead: VecDeque::new() })
    }

    async fn next_byte(&mut self) -> Result<u8, TerminalError> {
        loop {
            if let Some(byte) = self.ahead.pop_front() {
                return Ok(byte);
            }
            let mut ready = self.input.readable().await?;
            let mut bytes = [0; 1024];
            // It is readable, and gives what there is: this does not wait.
            let count = rustix::io::read(self.input.get_ref(), &mut bytes).map_err(io::Error::from)?;
            ready.clear_ready();
            if count == 0 {
                return Err(TerminalError::Interrupted);
            }
            self.ahead.extend(bytes.iter().take(count));
        }
    }
}

impl Terminal for ProcessTerminal {
    async fn ask(&mut self, prompt: &str, echo: Echo) -> Result<SecretString, TerminalError> {
        let _raw = RawMode::enter(&self.input)?;
        write(prompt.as_bytes())?;
        let mut line = Line::default();
        let end = loop {
            let byte = self.next_byte().await?;
            match line.take(byte) {
                Step::On(shown) => {
                    if echo == Echo::Shown {
                        write(&shown)?;
                    }
                }
                Step::Done => break Ok(line.text()),
                Step::Stopped => break Err(TerminalError::Interrupted),
            }
        };
        write(b"\n")?;
        end
    }

    fn say(&mut self, text: &str) {
        // Whoever cannot read it cannot answer either.
        write(format!("{text}\n").as_bytes()).ok();
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout();
    stdout.write_all(bytes)?;
    stdout.flush()
}

/// Gives the terminal back as it was when dropped.
struct RawMode(OwnedFd, Termios);

impl RawMode {
    fn enter(input: &AsyncFd<OwnedFd>) -> io::Result<Self> {
        let own = input.get_ref().try_clone()?;
        let before = tcgetattr(&own)?;
        let mut raw = before.clone();
        raw.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
        tcsetattr(&own, OptionalActions::Now, &raw)?;
        Ok(Self(own, before))
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        if let Err(error) = tcsetattr(&self.0, OptionalActions::Now, &self.1) {
            tracing::warn!(%error, "the terminal could not be given back as it was");
        }
    }
}

/// A line that is being typed.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    escape: Escape,
}

#[derive(Default, PartialEq, Eq)]
enum Escape {
    #[default]
    No,
    Begun,
    Sequence,
}

/// What a byte did.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// The line goes on; this is what to show of it.
    On(Vec<u8>),
    Done,
    Stopped,
}

impl Line {
    fn take(&mut self, byte: u8) -> Step {
        // Arrow keys and the like are sequences that begin with ESC; they mean nothing here.
        match self.escape {
            Escape::Begun => {
                self.escape = if matches!(byte, b'[' | b'O') { Escape::Sequence } else { Escape::No };
                return Step::On(Vec::new());
            }
            Escape::Sequence => {
                if (0x40..=0x7e).contains(&byte) {
                    self.escape = Escape::No;
                }
                return Step::On(Vec::new());
            }
            Escape::No => {}
        }
        match byte {
            b'\r' | b'\n' => return Step::Done,
            0x03 => return Step::Stopped,
            0x04 if self.bytes.is_empty() => return Step::Stopped,
            0x1b => self.escape = Escape::Begun,
            0x08 | 0x7f => return Step::On(self.erase(1)),
            0x15 => return Step::On(self.erase(usize::MAX)),
            0..=0x1f => {}
            _ if self.bytes.len() >= MAX_ANSWER => {}
            _ => {
                self.bytes.push(byte);
                return Step::On(vec![byte]);
            }
        }
        Step::On(Vec::new())
    }

    /// Takes back so many characters.
    fn erase(&mut self, count: usize) -> Vec<u8> {
        let mut shown = Vec::new();
        for _ in 0..count {
            let Some(start) = self.bytes.iter().rposition(|byte| byte & 0xc0 != 0x80) else { break };
            self.bytes.truncate(start);
            shown.extend_from_slice(b"\x08 \x08");
        }
        shown
    }

    fn text(&self) -> SecretString {
        String::from_utf8_lossy(&self.bytes).into_owned().into()
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn typed(bytes: &[u8]) -> (String, Vec<u8>, Option<Step>) {
        let mut line = Line::default();
        let mut shown = Vec::new();
        for byte in bytes {
            match line.take(*byte) {
                Step::On(bytes) => shown.extend(bytes),
                step => return (line.text().expose_secret().to_owned(), shown, Some(step)),
            }
        }
        (line.text().expose_secret().to_owned(), shown, None)
    }

    #[test]
    fn a_line_can_be_corrected_and_keys_without_text_do_nothing() {
        assert_eq!(typed(b"abc\r"), ("abc".to_owned(), b"abc".to_vec(), Some(Step::Done)));
        assert_eq!(typed("aé\x7fb\n".as_bytes()).0, "ab");
        assert_eq!(typed("é\x7f\x7f\n".as_bytes()).1, "é\x08 \x08".as_bytes());
        assert_eq!(typed(b"wrong\x15right\n").0, "right");
        assert_eq!(typed(b"a\x1b[A\x1b[1;5C\x1bOPb\x01\n").0, "ab");
    }

    #[test]
    fn ctrl_c_and_ctrl_d_on_an_empty_line_stop() {
        assert_eq!(typed(b"abc\x03").2, Some(Step::Stopped));
        assert_eq!(typed(b"\x04").2, Some(Step::Stopped));
        assert_eq!(typed(b"a\x04").2, None);
    }
}
