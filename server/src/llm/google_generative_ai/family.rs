//! What the name of a model tells about how it wants to be spoken to.

/// A family of models with rules of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// A Gemini of this generation.
    Gemini(u32),
    /// A Gemini that is named by what it is and not by its generation.
    GeminiLatest,
    /// A Gemma of this generation.
    Gemma(u32),
    /// A model of another vendor that Google serves.
    Guest,
    /// Anything else.
    Other,
}

impl Family {
    /// The family of a model.
    pub(super) fn of(id: &str) -> Self {
        let id = id.rsplit('/').next().unwrap_or(id).to_ascii_lowercase();
        let generation = |prefix: &str| {
            let rest = id.strip_prefix(prefix)?;
            let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
            digits.parse().ok()
        };
        if let Some(generation) = generation("gemini-") {
            Self::Gemini(generation)
        } else if let Some(generation) = generation("gemma-") {
            Self::Gemma(generation)
        } else if matches!(id.as_str(), "gemini-flash-latest" | "gemini-flash-lite-latest") {
            Self::GeminiLatest
        } else if id.starts_with("claude-") || id.starts_with("gpt-oss-") {
            Self::Guest
        } else {
            Self::Other
        }
    }

    /// True when the model is told a level of thinking, and not a number of tokens.
    pub(super) fn has_thinking_levels(self) -> bool {
        match self {
            Self::Gemini(generation) => generation >= 3,
            Self::Gemma(generation) => generation >= 4,
            Self::GeminiLatest => true,
            Self::Guest | Self::Other => false,
        }
    }

    /// True when calls and their results carry ids.
    pub(super) fn has_call_ids(self) -> bool {
        match self {
            Self::Gemini(generation) => generation >= 3,
            Self::Guest => true,
            Self::GeminiLatest | Self::Gemma(_) | Self::Other => false,
        }
    }

    /// True when the first call of an answer must be signed.
    pub(super) fn wants_signed_calls(self) -> bool {
        match self {
            Self::Gemini(generation) => generation >= 3,
            Self::GeminiLatest => true,
            Self::Guest | Self::Gemma(_) | Self::Other => false,
        }
    }

    /// True when the result of a call can hold images.
    pub(super) fn takes_images_in_results(self) -> bool {
        match self {
            Self::Gemini(generation) => generation >= 3,
            _ => true,
        }
    }
}
