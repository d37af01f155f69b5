use serde_json::Value;

use super::Gate;

/// How many characters a delta has, unless the test cuts the text itself.
const DELTA_LENGTH: usize = 12;

/// An answer of the model: blocks, usage, stop reason. Written in the form of the API that is asked.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(super) parts: Vec<Part>,
    pub(super) tokens: Tokens,
    pub(super) stop: Option<String>,
}

/// A part of an answer.
#[derive(Debug, Clone)]
pub(super) enum Part {
    Text(Vec<String>),
    Thinking(Vec<String>),
    RedactedThinking(String),
    ToolCall { id: String, name: String, arguments: Vec<String> },
    Wait(Gate),
    Cut,
    End,
    Hang,
}

/// The usage that the model reports.
#[derive(Debug, Clone, Copy)]
pub struct Tokens {
    /// Outside the cache.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Written to the cache.
    pub cache_write: u64,
}

impl Default for Tokens {
    fn default() -> Self {
        Self { input: 100, output: 10, cache_read: 0, cache_write: 0 }
    }
}

/// An answer that begins with text.
pub fn text(text: &str) -> Answer {
    Answer::empty().text(text)
}

/// An answer that begins with thinking.
pub fn thinking(text: &str) -> Answer {
    Answer::empty().thinking(text)
}

/// An answer that begins with redacted thinking, which only Anthropic has.
pub fn redacted_thinking(data: &str) -> Answer {
    Answer::empty().part(Part::RedactedThinking(data.to_owned()))
}

/// An answer that begins with a tool call.
pub fn tool_call(id: &str, name: &str, arguments: Value) -> Answer {
    Answer::empty().tool_call(id, name, arguments)
}

impl Answer {
    /// An answer without content.
    pub fn empty() -> Self {
        Self { parts: Vec::new(), tokens: Tokens::default(), stop: None }
    }

    /// Adds text, sent in deltas of a few characters.
    pub fn text(self, text: &str) -> Self {
        self.part(Part::Text(cut(text)))
    }

    /// Adds text, sent in these deltas.
    pub fn text_deltas<S: Into<String>>(self, deltas: impl IntoIterator<Item = S>) -> Self {
        self.part(Part::Text(deltas.into_iter().map(Into::into).collect()))
    }

    /// Adds thinking.
    pub fn thinking(self, text: &str) -> Self {
        self.part(Part::Thinking(cut(text)))
    }

    /// Adds a tool call.
    pub fn tool_call(self, id: &str, name: &str, arguments: Value) -> Self {
        self.raw_tool_call(id, name, &arguments.to_string())
    }

    /// Adds a tool call whose arguments are this text, JSON or not.
    pub fn raw_tool_call(self, id: &str, name: &str, arguments: &str) -> Self {
        self.part(Part::ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: cut(arguments) })
    }

    /// Waits until the test opens the gate.
    pub fn wait(self, gate: &Gate) -> Self {
        self.part(Part::Wait(gate.clone()))
    }

    /// Cuts the connection here.
    pub fn cut(self) -> Self {
        self.part(Part::Cut)
    }

    /// Ends the stream here as if all was said, without a stop reason.
    pub fn end(self) -> Self {
        self.part(Part::End)
    }

    /// Sends nothing more and keeps the connection open.
    pub fn hang(self) -> Self {
        self.part(Part::Hang)
    }

    /// Reports this usage.
    pub fn usage(self, tokens: Tokens) -> Self {
        Self { tokens, ..self }
    }

    /// Stops for this reason, in the API's own words.
    pub fn stop(self, reason: &str) -> Self {
        Self { stop: Some(reason.to_owned()), ..self }
    }

    pub(super) fn calls_tools(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::ToolCall { .. }))
    }

    fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }
}

fn cut(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(DELTA_LENGTH).map(|delta| delta.iter().collect()).collect()
}
