//! What the generations of Claude can do on Bedrock.

use sampi_protocol::data::Model;

/// The generation of a Claude, such as 4.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Generation(pub(super) u32, pub(super) u32);

/// The generation of a model that is a Claude, by its id or, for inference profiles, by its name.
pub(super) fn generation(model: &Model) -> Option<Generation> {
    of_name(&model.id).or_else(|| of_name(&model.name))
}

fn of_name(name: &str) -> Option<Generation> {
    let name = name.to_ascii_lowercase().replace([' ', '.', ':'], "-");
    let (_, rest) = name.split_once("claude-")?;
    let mut numbers = rest.split('-').skip_while(|part| small_number(part).is_none()).map(small_number);
    let major = numbers.next().flatten().unwrap_or(0);
    Some(Generation(major, numbers.next().flatten().unwrap_or(0)))
}

/// Dates have more digits than versions.
fn small_number(part: &str) -> Option<u32> {
    if part.len() <= 2 { part.parse().ok() } else { None }
}

/// True when prompts can be cached.
pub(super) fn can_cache(id: &str) -> bool {
    let Some(generation) = of_name(id) else { return false };
    generation >= Generation(3, 7) || (generation == Generation(3, 5) && id.contains("haiku"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_are_read_from_every_form_of_a_name() {
        for (name, expected) in [
            ("anthropic.claude-opus-4-6-v1", Some(Generation(4, 6))),
            ("anthropic.claude-sonnet-4-v1:0", Some(Generation(4, 0))),
            ("in.anthropic.claude-haiku-4-5-20251001-v1:0", Some(Generation(4, 5))),
            ("anthropic.claude-3-7-sonnet-20250219-v1:0", Some(Generation(3, 7))),
            ("anthropic.claude-fable-5", Some(Generation(5, 0))),
            ("Claude Sonnet 4.5", Some(Generation(4, 5))),
            ("amazon.nova-pro-v1:0", None),
        ] {
            assert_eq!(of_name(name), expected, "{name}");
        }
        assert!(can_cache("anthropic.claude-3-5-haiku-20241022-v1:0"));
        assert!(!can_cache("anthropic.claude-3-haiku-20240307-v1:0"));
        assert!(!can_cache("anthropic.claude-3-5-sonnet-20241022-v2:0"));
    }
}
