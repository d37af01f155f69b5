//! `--models` and `enabledModels`: the models to start with and to cycle through.

use globset::GlobBuilder;
use sampi_protocol::data::{Model, ThinkingLevel};

use super::ModelRegistry;
use super::resolve::{Matches, exact, partial, strip_thinking};

/// A model of the scope.
#[derive(Debug, Clone, PartialEq)]
pub struct ScopedModel {
    /// The model.
    pub model: Model,
    /// The level of the pattern's suffix.
    pub thinking: Option<ThinkingLevel>,
}

impl ModelRegistry {
    /// The available models that the patterns name, in their order and each once, and what was wrong.
    pub fn scope<S: AsRef<str>>(&self, patterns: &[S]) -> (Vec<ScopedModel>, Vec<String>) {
        // Without a pattern no model is needed, and no table is read.
        let available: Vec<&Model> =
            if patterns.is_empty() { Vec::new() } else { self.available_models().collect() };
        let mut scope: Vec<ScopedModel> = Vec::new();
        let mut warnings = Vec::new();
        for pattern in
            patterns.iter().map(|pattern| pattern.as_ref().trim()).filter(|pattern| !pattern.is_empty())
        {
            let (matches, thinking) = if pattern.contains(['*', '?', '[']) {
                by_glob(&available, pattern)
            } else {
                by_name(&available, pattern, &mut warnings)
            };
            if matches.is_empty() {
                warnings.push(format!("No models match pattern \"{pattern}\""));
            }
            for model in matches {
                if !scope
                    .iter()
                    .any(|scoped| scoped.model.provider == model.provider && scoped.model.id == model.id)
                {
                    scope.push(ScopedModel { model: model.clone(), thinking });
                }
            }
        }
        (scope, warnings)
    }
}

fn by_glob<'a>(models: &[&'a Model], pattern: &str) -> (Matches<'a>, Option<ThinkingLevel>) {
    let (pattern, thinking) =
        strip_thinking(pattern).map_or((pattern, None), |(pattern, level)| (pattern, Some(level)));
    let glob = GlobBuilder::new(pattern).case_insensitive(true).literal_separator(true).build();
    // What is no valid pattern matches nothing, which is reported.
    let Ok(matcher) = glob.map(|glob| glob.compile_matcher()) else { return (Vec::new(), None) };
    let names = |model: &Model| {
        matcher.is_match(&model.id) || matcher.is_match(format!("{}/{}", model.provider, model.id))
    };
    (models.iter().copied().filter(|model| names(model)).collect(), thinking)
}

fn by_name<'a>(
    models: &[&'a Model],
    pattern: &str,
    warnings: &mut Vec<String>,
) -> (Matches<'a>, Option<ThinkingLevel>) {
    let mut matches = attempt(models, pattern);
    let mut thinking = None;
    if matches.is_empty()
        && let Some((before, suffix)) = pattern.rsplit_once(':')
    {
        matches = attempt(models, before);
        thinking = ThinkingLevel::parse(suffix);
        if thinking.is_none() && !matches.is_empty() {
            warnings.push(format!(
                "Invalid thinking level \"{suffix}\" in pattern \"{pattern}\". Using default instead."
            ));
        }
    }
    if matches.len() > 1 {
        let providers: Vec<&str> = matches.iter().map(|model| model.provider.as_str()).collect();
        warnings.push(format!(
            "Pattern \"{pattern}\" matches several providers: {}. Use provider/id to choose one.",
            providers.join(", ")
        ));
    }
    (matches, thinking)
}

fn attempt<'a>(models: &[&'a Model], text: &str) -> Matches<'a> {
    let own: Option<(Vec<&Model>, &str)> = text.split_once('/').map(|(prefix, rest)| {
        let own = models.iter().copied().filter(|model| model.provider.eq_ignore_ascii_case(prefix));
        (own.collect(), rest)
    });
    let (own, rest) = own.unwrap_or_default();
    let stages = [
        exact(&own, rest),
        exact(models, text),
        partial(&own, rest, |_| true),
        partial(models, text, |_| true),
    ];
    stages.into_iter().find(|matches| !matches.is_empty()).unwrap_or_default()
}
