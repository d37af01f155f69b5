//! `--list-models`: a table for people.

use std::fmt::Write as _;

use sampi_protocol::data::Model;

use super::resolve::compare_ids;
use super::{ModelRegistry, NO_MODELS};

const HEADINGS: [&str; 6] = ["provider", "model", "context", "max-out", "thinking", "images"];

/// The table of the available models, those that `search` finds when it is not empty. Ends in a newline.
pub fn list_models(registry: &ModelRegistry, search: &str) -> String {
    let available = registry.available();
    if available.is_empty() {
        return format!("{NO_MODELS}\n");
    }
    let mut models: Vec<&Model> = available.iter().filter(|model| is_found(model, search)).collect();
    if models.is_empty() {
        return format!("No models matching \"{search}\"\n");
    }
    models.sort_by(|a, b| compare_ids(&a.provider, &b.provider).then_with(|| compare_ids(&a.id, &b.id)));
    let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let rows = models.into_iter().map(|model| {
        [
            model.provider.clone(),
            model.id.clone(),
            tokens(model.context_window),
            tokens(model.max_tokens),
            yes_no(model.reasoning),
            yes_no(model.takes_images()),
        ]
    });
    let rows: Vec<[String; 6]> = std::iter::once(HEADINGS.map(str::to_owned)).chain(rows).collect();
    let mut widths = [0; 6];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut table = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            // Writing to a string cannot fail.
            write!(line, "{cell:width$}  ").ok();
        }
        table.push_str(line.trim_end());
        table.push('\n');
    }
    table
}

/// True when every word of the search has its letters in `provider id`, in order. A word of letters and
/// digits is also looked for the other way round: `son4` finds `4-sonnet`.
fn is_found(model: &Model, search: &str) -> bool {
    let text = format!("{} {}", model.provider, model.id).to_lowercase();
    let has = |word: &str| {
        let mut letters = text.chars();
        word.chars().all(|wanted| letters.any(|letter| letter == wanted))
    };
    let search = search.to_lowercase();
    search
        .split(|c: char| c.is_whitespace() || c == '/')
        .all(|word| has(word) || swapped(word).is_some_and(|word| has(&word)))
}

/// `son4` for `4son` and the other way round.
fn swapped(word: &str) -> Option<String> {
    let is_digit = |c: char| c.is_ascii_digit();
    let middle = if word.starts_with(is_digit) { word.find(|c| !is_digit(c))? } else { word.find(is_digit)? };
    let (before, after) = word.split_at(middle);
    let letters = if before.starts_with(is_digit) { after } else { before };
    let digits = if before.starts_with(is_digit) { before } else { after };
    let is_plain = letters.bytes().all(|b| b.is_ascii_lowercase()) && digits.chars().all(is_digit);
    is_plain.then(|| format!("{after}{before}"))
}

/// `128K`, `16.4K`, `1M`, `77`
fn tokens(count: u64) -> String {
    let (unit, name) = match count {
        1_000_000.. => (1_000_000, "M"),
        1_000.. => (1_000, "K"),
        _ => return count.to_string(),
    };
    if count.is_multiple_of(unit) {
        return format!("{}{name}", count / unit);
    }
    format!("{:.1}{name}", count as f64 / unit as f64)
}
