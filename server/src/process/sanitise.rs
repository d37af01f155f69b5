//! Output of commands made safe to show and to store.

/// Takes terminal control sequences and control characters out of text that comes in pieces.
///
/// Newline, tab and DEL stay; carriage returns go, so `a\r\n` is `a\n` and a progress bar is one line.
#[derive(Debug, Default)]
pub struct Sanitiser {
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate byte such as `(`: one more character belongs to it.
    Designate,
    /// In a control sequence, up to its final byte.
    Sequence,
    /// In a string (title, link, image) up to BEL or ST.
    StringText,
    /// In a string, after ESC: perhaps ST.
    StringEscape,
}

impl Sanitiser {
    /// What is left of the next piece.
    pub fn push(&mut self, text: &str) -> String {
        let mut kept = String::with_capacity(text.len());
        for character in text.chars() {
            self.step(character, &mut kept);
        }
        kept
    }

    fn step(&mut self, character: char, kept: &mut String) {
        self.state = match (self.state, character) {
            (State::Text, '\u{1b}') => State::Escape,
            (State::Text, '\u{9b}') => State::Sequence,
            (State::Text, _) => {
                if is_shown(character) {
                    kept.push(character);
                }
                State::Text
            }
            (State::Escape, '[') => State::Sequence,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::StringText,
            (State::Escape, '\u{20}'..='\u{2f}') => State::Designate,
            (State::Escape, '\u{1b}') => State::Escape,
            (State::Escape, '\u{30}'..='\u{7e}') => State::Text,
            (State::Designate, '\u{20}'..='\u{2f}') => State::Designate,
            (State::Designate, '\u{30}'..='\u{7e}') => State::Text,
            (State::Sequence, '\u{20}'..='\u{3f}') => State::Sequence,
            (State::Sequence, '\u{40}'..='\u{7e}') => State::Text,
            (State::StringText | State::StringEscape, '\u{7}' | '\u{9c}') => State::Text,
            (State::StringText, '\u{1b}') => State::StringEscape,
            (State::StringEscape, '\\') => State::Text,
            // A string that runs over its line was never ended: what follows is text again.
            (State::StringText | State::StringEscape, '\n') => {
                kept.push('\n');
                State::Text
            }
            (State::StringText | State::StringEscape, _) => State::StringText,
            // Broken sequences end where something comes that cannot belong to them.
            (State::Escape | State::Designate | State::Sequence, _) => {
                self.state = State::Text;
                return self.step(character, kept);
            }
        };
    }
}

fn is_shown(character: char) -> bool {
    match character {
        '\n' | '\t' => true,
        '\u{0}'..='\u{1f}' => false,
        // Interlinear annotation marks have no width and confuse terminals.
        '\u{fff9}'..='\u{fffb}' => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(pieces: &[&str]) -> String {
        let mut sanitiser = Sanitiser::default();
        pieces.iter().map(|piece| sanitiser.push(piece)).collect()
    }

    #[test]
    fn colours_titles_and_charsets_go() {
        assert_eq!(clean(&["\u{1b}[31mred\u{1b}[0m \u{1b}]0;t\u{7}x\u{1b}(Bz\n"]), "red xz\n");
        assert_eq!(clean(&["\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\"]), "link");
    }

    #[test]
    fn control_characters_and_carriage_returns_go() {
        assert_eq!(clean(&["a\r\nb\rc\n"]), "a\nbc\n");
        assert_eq!(clean(&["a\0b\u{1}c\u{8}d\u{7f}e\tf\n"]), "abcd\u{7f}e\tf\n");
        assert_eq!(clean(&["a\u{2028}b\u{fff9}c\u{85}d\n"]), "a\u{2028}bc\u{85}d\n");
    }

    #[test]
    fn a_sequence_cut_between_pieces_goes() {
        assert_eq!(clean(&["\u{1b}[1;3", "2mok", "\u{1b}", "[0mx\r", "\n"]), "okx\n");
    }

    #[test]
    fn an_unfinished_sequence_does_not_swallow_the_lines_after_it() {
        assert_eq!(clean(&["\u{1b}]0;never ended\nnext\n"]), "\nnext\n");
        assert_eq!(clean(&["\u{1b}[31\nnext\u{1b}é"]), "\nnexté");
    }
}
