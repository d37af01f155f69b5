//! The prompts of a command line: its messages, its `@files`, and what is piped in.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sampi_protocol::data::ImageContent;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::ecmascript::is_space;
use crate::extensions::Input;
use crate::images::image_type;
use crate::paths::tidy;
use crate::resources::Environment;

/// The most that is read from a pipe. A prompt goes to the model whole; what is longer is a mistake.
const MOST_PIPED: u64 = 64 * 1024 * 1024;

/// Where the prompts of a command line come from.
#[derive(Debug, Clone)]
pub struct PromptSources {
    /// The messages; the first one goes with the files and what is piped in.
    pub messages: Vec<String>,
    /// Paths of text files and images.
    pub files: Vec<String>,
    /// What relative paths start from.
    pub cwd: PathBuf,
    /// Tells what `~` is.
    pub environment: Environment,
}

/// Why the prompts cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// There is no such file.
    #[error("File not found: {}", _0.display())]
    FileNotFound(PathBuf),
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// What is piped in cannot be read.
    #[error("stdin cannot be read: {0}")]
    Piped(io::Error),
    /// More is piped in than any model takes.
    #[error("more than {} MiB are piped in", MOST_PIPED / (1024 * 1024))]
    TooMuchPiped,
}

/// Reads the prompts. What is piped in comes first, then the files, then the first message, all in one
/// prompt; each other message is a prompt of its own.
pub async fn read_prompts(
    sources: PromptSources,
    piped: Option<impl AsyncRead + Unpin>,
) -> Result<Vec<Input>, PromptError> {
    let piped = match piped {
        Some(piped) => read_piped(piped).await?,
        None => String::new(),
    };
    let read = tokio::task::spawn_blocking(move || prompts(sources, &piped));
    read.await.map_err(|error| PromptError::Piped(io::Error::other(error)))?
}

async fn read_piped(piped: impl AsyncRead + Unpin) -> Result<String, PromptError> {
    let mut bytes = Vec::new();
    piped.take(MOST_PIPED + 1).read_to_end(&mut bytes).await.map_err(PromptError::Piped)?;
    if bytes.len() as u64 > MOST_PIPED {
        return Err(PromptError::TooMuchPiped);
    }
    Ok(String::from_utf8_lossy(&bytes).trim_matches(is_space).to_owned())
}

fn prompts(sources: PromptSources, piped: &str) -> Result<Vec<Input>, PromptError> {
    let mut first = Input { text: piped.to_owned(), ..Input::default() };
    for file in &sources.files {
        add_file(&mut first, &tidy(&sources.environment.resolve_path(&sources.cwd, file)))?;
    }
    let mut messages = sources.messages.into_iter();
    first.text.push_str(&messages.next().unwrap_or_default());
    let rest = messages.map(|text| Input { text, ..Input::default() });
    let is_something = |input: &Input| !input.text.is_empty() || !input.images.is_empty();
    Ok(std::iter::once(first).chain(rest).filter(is_something).collect())
}

fn add_file(input: &mut Input, path: &Path) -> Result<(), PromptError> {
    let bytes = std::fs::read(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => PromptError::FileNotFound(path.to_owned()),
        _ => PromptError::File { path: path.to_owned(), source },
    })?;
    if bytes.is_empty() {
        return Ok(());
    }
    let name = path.display();
    match image_type(&bytes) {
        Some(mime_type) => {
            input.text.push_str(&format!("<file name=\"{name}\"></file>\n"));
            input.images.push(ImageContent {
                data: STANDARD.encode(&bytes),
                mime_type: mime_type.to_owned(),
                ..ImageContent::default()
            });
        }
        None => {
            let text = String::from_utf8_lossy(&bytes);
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            input.text.push_str(&format!("<file name=\"{name}\">\n{text}\n</file>\n"));
        }
    }
    Ok(())
}
