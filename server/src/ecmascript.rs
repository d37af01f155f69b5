//! Text as JavaScript treats it, where results have to be the same as Pi's.

/// Punctuation and symbols in the order of `localeCompare`.
const PUNCTUATION: &str = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

/// White space: what `trim` trims and what `\s` matches.
pub(crate) fn is_space(c: char) -> bool {
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}

/// The place of a small letter, digit or mark of ASCII in the order of `localeCompare`: punctuation, digits,
/// letters.
pub(crate) fn collation_rank(c: char) -> (u8, u32) {
    match PUNCTUATION.find(c) {
        Some(at) => (0, u32::try_from(at).unwrap_or(u32::MAX)),
        None => (if c.is_ascii_digit() { 1 } else { 2 }, u32::from(c)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_has_the_byte_order_mark_but_not_the_next_line() {
        assert!([' ', '\n', '\u{a0}', '\u{3000}', '\u{feff}'].into_iter().all(is_space));
        assert!(!['a', '\u{85}', '\u{200b}'].into_iter().any(is_space));
    }

    #[test]
    fn punctuation_comes_before_digits_and_these_before_letters() {
        let mut text: Vec<char> = "b1a0~_é-".chars().collect();
        text.sort_by_key(|c| collation_rank(*c));
        assert_eq!(String::from_iter(text), "_-~01abé");
    }
}
