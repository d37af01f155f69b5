//! `--model`: exact ids, `provider/id`, partial names, a `:thinking` suffix.

use std::cmp::Ordering;

use sampi_protocol::data::{Model, ThinkingLevel};

use super::{ModelRegistry, catalogue};
use crate::ecmascript::collation_rank;

/// A model as the command line names it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelWish<'a> {
    /// `--provider`
    pub provider: Option<&'a str>,
    /// `--model`; empty for the provider's default, which is its first where it has none.
    pub pattern: &'a str,
    /// `--thinking`: an id that nobody knows is taken to be able to think then.
    pub thinking: Option<ThinkingLevel>,
}

/// The model that a pattern names.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The model.
    pub model: Model,
    /// The level of the pattern's suffix.
    pub thinking: Option<ThinkingLevel>,
    /// Something that the user should know.
    pub warning: Option<String>,
}

/// Why a pattern names no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No such provider.
    #[error("Unknown provider \"{0}\". Use --list-models to see available providers/models.")]
    UnknownProvider(String),
    /// No such model.
    #[error("Model \"{0}\" not found. Use --list-models to see available models.")]
    NotFound(String),
    /// Several providers have it.
    #[error(
        "Model \"{pattern}\" is ambiguous across providers: {}. {} Use --provider or provider/model.",
        candidates.join(", "),
        if *any_usable { "More than one matching provider is authenticated." } else { "No matching provider is authenticated." }
    )]
    Ambiguous {
        /// The pattern.
        pattern: String,
        /// The models, as `provider/id`.
        candidates: Vec<String>,
        /// True when more than one of them has credentials, false when none has.
        any_usable: bool,
    },
}

/// The models that match a text equally well: one id, one or more providers.
pub(super) type Matches<'a> = Vec<&'a Model>;

impl ModelRegistry {
    /// The model that the command line means.
    pub fn resolve_pattern(&self, wish: ModelWish<'_>) -> Result<Resolved, ResolveError> {
        let pattern = wish.pattern.trim();
        let not_found = || ResolveError::NotFound(wish.pattern.to_owned());
        let known = |name: &str| {
            self.shelves
                .iter()
                .map(|shelf| shelf.provider.as_ref())
                .find(|provider| provider.eq_ignore_ascii_case(name))
        };
        // The provider and the text for its models: as the option says, or as the pattern begins.
        let prefixed = pattern.split_once('/').and_then(|(prefix, rest)| Some((known(prefix)?, rest)));
        let (provider, own_text) = match (wish.provider, prefixed) {
            (Some(name), prefixed) => {
                let provider = known(name).ok_or_else(|| ResolveError::UnknownProvider(name.to_owned()))?;
                (
                    Some(provider),
                    prefixed.filter(|(prefix, _)| *prefix == provider).map_or(pattern, |(_, rest)| rest),
                )
            }
            (None, Some((provider, rest))) => (Some(provider), rest),
            (None, None) => (None, pattern),
        };
        let own: Vec<&Model> = match provider {
            Some(provider) => self.models_of(provider).iter().collect(),
            None => Vec::new(),
        };
        if wish.provider.is_some() && own_text.is_empty() {
            let default = provider.and_then(|provider| self.default_of(provider));
            let model = default.or(own.first().copied()).ok_or_else(not_found)?;
            return Ok(Resolved { model: model.clone(), thinking: None, warning: None });
        }
        // The models of all providers that may match.
        let everybodys = |text: &str| -> Vec<&Model> {
            if wish.provider.is_some() || text.is_empty() {
                return Vec::new();
            }
            let shelves = self.shelves.iter();
            shelves
                .filter(|shelf| self.is_offered(&shelf.provider) && shelf.may_have(text))
                .flat_map(|shelf| self.models_on(shelf))
                .collect()
        };
        let attempt = |text: &str, own_text: &str| -> Matches<'_> {
            let usable = |model: &Model| self.is_usable(&model.provider);
            let found = exact(&own, own_text);
            if !found.is_empty() {
                return found;
            }
            let all = everybodys(text);
            let stages = [exact(&all, text), partial(&own, own_text, usable), partial(&all, text, usable)];
            stages.into_iter().find(|matches| !matches.is_empty()).unwrap_or_default()
        };
        let mut thinking = None;
        let mut matches = attempt(pattern, own_text);
        let own_stripped = strip_thinking(own_text);
        if matches.is_empty()
            && let (Some((text, level)), Some((own_text, _))) = (strip_thinking(pattern), own_stripped)
        {
            matches = attempt(text, own_text);
            thinking = Some(level);
        }
        if let Some(model) = self.pick(&matches, wish.pattern)? {
            return Ok(Resolved { model: model.clone(), thinking, warning: None });
        }
        let (id, thinking) = own_stripped.map_or((own_text, None), |(id, level)| (id, Some(level)));
        let template = provider.and_then(|provider| self.default_of(provider)).or(own.first().copied());
        match (provider, template) {
            (Some(provider), Some(template)) if !id.is_empty() && !self.on_request.contains(provider) => {
                let asked = wish.thinking.or(thinking).is_some_and(|level| level != ThinkingLevel::Off);
                let model = Model {
                    id: id.to_owned(),
                    name: id.to_owned(),
                    reasoning: template.reasoning || asked,
                    ..template.clone()
                };
                let warning =
                    format!("Model \"{id}\" not found for provider \"{provider}\". Using custom model id.");
                Ok(Resolved { model, thinking, warning: Some(warning) })
            }
            _ => Err(not_found()),
        }
    }

    fn default_of(&self, provider: &str) -> Option<&Model> {
        let (_, id) = catalogue::DEFAULT_MODELS.iter().find(|(name, _)| *name == provider)?;
        self.models_of(provider).iter().find(|model| model.id == *id)
    }

    /// One of equal matches: the only one, or the only one with credentials.
    fn pick<'a>(&self, matches: &Matches<'a>, pattern: &str) -> Result<Option<&'a Model>, ResolveError> {
        match matches.as_slice() {
            [] => Ok(None),
            [model] => Ok(Some(model)),
            several => {
                let usable: Vec<&&Model> =
                    several.iter().filter(|model| self.is_usable(&model.provider)).collect();
                if let [model] = usable.as_slice() {
                    return Ok(Some(model));
                }
                let mut candidates: Vec<String> =
                    several.iter().map(|model| format!("{}/{}", model.provider, model.id)).collect();
                candidates.sort();
                let any_usable = !usable.is_empty();
                Err(ResolveError::Ambiguous { pattern: pattern.to_owned(), candidates, any_usable })
            }
        }
    }
}

/// The models whose id is the text, in any case.
pub(super) fn exact<'a>(models: &[&'a Model], text: &str) -> Matches<'a> {
    let text = text.to_lowercase();
    models.iter().copied().filter(|model| model.id.to_lowercase() == text).collect()
}

/// The models with the best id among those whose id or name has the text in it. Usable ones go before
/// others, ids without a date before ids with one, then the last in the alphabet.
pub(super) fn partial<'a>(models: &[&'a Model], text: &str, usable: impl Fn(&Model) -> bool) -> Matches<'a> {
    if text.is_empty() {
        return Vec::new();
    }
    let text = text.to_lowercase();
    let contains =
        |model: &Model| model.id.to_lowercase().contains(&text) || model.name.to_lowercase().contains(&text);
    let mut found: Matches<'a> = models.iter().copied().filter(|model| contains(model)).collect();
    if found.iter().any(|model| usable(model)) {
        found.retain(|model| usable(model));
    }
    let best = found
        .iter()
        .copied()
        .max_by(|a, b| (!is_dated(&a.id)).cmp(&!is_dated(&b.id)).then_with(|| compare_ids(&a.id, &b.id)));
    found.retain(|model| best.is_some_and(|best| best.id == model.id));
    found
}

/// The order of ids as people sort them, which is also JavaScript's `localeCompare` for the characters
/// of ids: punctuation, digits, letters; a letter's case counts last, small before large.
pub(super) fn compare_ids(a: &str, b: &str) -> Ordering {
    let ranks = |text: &str| text.to_lowercase().chars().map(collation_rank).collect::<Vec<_>>();
    ranks(a).cmp(&ranks(b)).then_with(|| b.cmp(a))
}

/// The text before a `:level` suffix, and the level.
pub(super) fn strip_thinking(text: &str) -> Option<(&str, ThinkingLevel)> {
    let (before, suffix) = text.rsplit_once(':')?;
    Some((before, ThinkingLevel::parse(suffix)?))
}

/// True for an id that ends in a date, such as `-20250514`.
fn is_dated(id: &str) -> bool {
    id.rsplit_once('-')
        .is_some_and(|(_, date)| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()))
}
