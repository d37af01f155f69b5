//! Levels of thinking under the names that APIs have for effort.

use sampi_protocol::data::ThinkingLevel;

/// The effort of a level that the model's map does not name. Levels above `high` have no name of their own: a
/// model that knows more says so in its map.
pub(crate) fn plain_effort(level: ThinkingLevel) -> &'static str {
    level.min(ThinkingLevel::High).as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_above_high_are_high() {
        for (level, effort) in [
            (ThinkingLevel::Minimal, "minimal"),
            (ThinkingLevel::Medium, "medium"),
            (ThinkingLevel::High, "high"),
            (ThinkingLevel::Xhigh, "high"),
            (ThinkingLevel::Max, "high"),
        ] {
            assert_eq!(plain_effort(level), effort);
        }
    }
}
