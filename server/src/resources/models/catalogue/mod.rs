//! The models that come with the program.
//!
//! One table for each provider, written by `cargo xtask catalogue` from a file of facts. A table is read when
//! its provider is needed and not before, so that nobody waits for the models of others. Its lines begin with
//! a letter, fields are separated by tabs:
//!
//! - `e`, an endpoint: the API and the base URL.
//! - `c`, `t`, `x`: a `compat` object, a `thinkingLevelMap`, an object of the fields that are handed on as
//!   they are.
//! - `m`, a model: id, name, the number of its endpoint, of its `c`, `t` and `x` (empty for none), `1` for one
//!   that can think, its input (`t` text, `i` images), context window, largest output, and the prices as
//!   `input/output/cacheRead/cacheWrite`, with `;above:` and the same for each tier.
//!
//! Models whose API this build does not speak are left out.

mod defaults;
mod tables;
#[cfg(test)]
mod tests;

use sampi_protocol::data::{CostTier, Extra, Model, ModelCost};
use serde_json::{Map, Value};

use crate::llm::Providers;
pub(super) use defaults::DEFAULT_MODELS;
pub(super) use tables::TABLES;

/// The models of a provider's table.
pub(super) fn read(provider: &str, table: &str) -> Vec<Model> {
    let apis = Providers::new();
    let mut shared = Shared::default();
    let mut models = Vec::new();
    for line in table.lines() {
        match shared.read_line(provider, line) {
            Some(Some(model)) if apis.get(&model.api).is_some() => models.push(model),
            Some(_) => {}
            // A test reads all tables.
            None => tracing::error!(provider, line, "a line of the catalogue cannot be read"),
        }
    }
    models
}

/// False when no model of the table can have the text in its id or name. Cheaper than reading it.
pub(super) fn may_have(table: &str, text: &str) -> bool {
    table.to_lowercase().contains(&text.to_lowercase())
}

/// The variables without which the provider's base URL is not complete.
pub(super) fn required_variables(provider: &str) -> &'static [&'static str] {
    match provider {
        "cloudflare-ai-gateway" => &["CLOUDFLARE_ACCOUNT_ID", "CLOUDFLARE_GATEWAY_ID"],
        "cloudflare-workers-ai" => &["CLOUDFLARE_ACCOUNT_ID"],
        _ => &[],
    }
}

/// What several models of a table share, in the order of its lines.
#[derive(Default)]
struct Shared<'a> {
    endpoints: Vec<(&'a str, &'a str)>,
    compat: Vec<Map<String, Value>>,
    thinking: Vec<Map<String, Value>>,
    extra: Vec<Extra>,
}

impl<'a> Shared<'a> {
    /// Reads a line. The inner `None` is a line that is no model; the outer one that it cannot be read.
    fn read_line(&mut self, provider: &str, line: &'a str) -> Option<Option<Model>> {
        let (kind, rest) = line.split_once('\t')?;
        match kind {
            "e" => self.endpoints.push(rest.split_once('\t')?),
            "c" => self.compat.push(serde_json::from_str(rest).ok()?),
            "t" => self.thinking.push(serde_json::from_str(rest).ok()?),
            "x" => self.extra.push(serde_json::from_str(rest).ok()?),
            "m" => return self.read_model(provider, rest).map(Some),
            _ => return None,
        }
        Some(None)
    }

    fn read_model(&self, provider: &str, line: &str) -> Option<Model> {
        let mut fields = line.split('\t');
        let mut next = || fields.next();
        let (id, name) = (next()?, next()?);
        let (api, base_url) = *self.endpoints.get(next()?.parse::<usize>().ok()?)?;
        Some(Model {
            id: id.to_owned(),
            name: name.to_owned(),
            api: api.to_owned(),
            provider: provider.to_owned(),
            base_url: base_url.to_owned(),
            compat: numbered(&self.compat, next()?)?,
            thinking_level_map: numbered(&self.thinking, next()?)?,
            extra: numbered(&self.extra, next()?)?.unwrap_or_default(),
            reasoning: next()? == "1",
            input: next()?.chars().map(input_kind).collect::<Option<_>>()?,
            context_window: next()?.parse().ok()?,
            max_tokens: next()?.parse().ok()?,
            cost: read_cost(next()?)?,
        })
    }
}

/// The shared object of this number, `Some(None)` for none.
fn numbered<T: Clone>(shared: &[T], number: &str) -> Option<Option<T>> {
    if number.is_empty() {
        return Some(None);
    }
    shared.get(number.parse::<usize>().ok()?).cloned().map(Some)
}

fn input_kind(letter: char) -> Option<String> {
    match letter {
        't' => Some("text".to_owned()),
        'i' => Some("image".to_owned()),
        _ => None,
    }
}

fn read_cost(text: &str) -> Option<ModelCost> {
    let mut parts = text.split(';');
    let [input, output, cache_read, cache_write] = read_prices(parts.next()?)?;
    let mut tiers = Vec::new();
    for part in parts {
        let (above, prices) = part.split_once(':')?;
        let [input, output, cache_read, cache_write] = read_prices(prices)?;
        let input_tokens_above = above.parse().ok()?;
        tiers.push(CostTier { input_tokens_above, input, output, cache_read, cache_write });
    }
    let tiers = (!tiers.is_empty()).then_some(tiers);
    Some(ModelCost { input, output, cache_read, cache_write, tiers })
}

fn read_prices(text: &str) -> Option<[f64; 4]> {
    let prices: Vec<f64> = text.split('/').map(|price| price.parse().ok()).collect::<Option<_>>()?;
    prices.try_into().ok()
}
