//! The arguments of a prompt template: how a line is split, and how they are put into the text.

use crate::ecmascript::is_space;

/// Splits what was typed after a command.
///
/// An argument that starts with a quote goes to the next one of its kind; a backslash keeps a quote
/// inside. A quote elsewhere, or one that nothing closes, is text.
pub fn split_arguments(line: &str) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut rest = line.trim_start_matches(is_space);
    while let Some(first) = rest.chars().next() {
        let mut argument = String::new();
        if let Some((quoted, after)) = ['"', '\''].contains(&first).then(|| quoted(rest, first)).flatten() {
            argument = quoted;
            rest = after;
        }
        let end = rest.find(is_space).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        argument.push_str(word);
        arguments.push(argument);
        rest = after.trim_start_matches(is_space);
    }
    arguments
}

/// Puts the arguments in for `$1`, `$@`, `$ARGUMENTS`, `${1:-default}`, `${@:-default}`, `${@:2}` and
/// `${@:2:3}`. What an argument or a default contains is not looked at again.
pub fn substitute(template: &str, arguments: &[String]) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        let after = from.get(1..).unwrap_or_default();
        match placeholder(after, arguments) {
            Some((value, after)) => {
                text.push_str(&value);
                rest = after;
            }
            None => {
                text.push('$');
                rest = after;
            }
        }
    }
    text.push_str(rest);
    text
}

/// The quoted text at the start, and what follows its closing quote.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut inside = String::new();
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return Some((inside, text.get(at + 1..)?));
        }
        match chars.peek() {
            Some((_, next)) if c == '\\' && *next == quote => {
                inside.push(quote);
                chars.next();
            }
            _ => inside.push(c),
        }
    }
    None
}

/// The value of the placeholder after a dollar sign, and what follows it.
fn placeholder<'a>(text: &'a str, arguments: &[String]) -> Option<(String, &'a str)> {
    let Some(inner) = text.strip_prefix('{') else {
        let (name, after) = Name::read(text)?;
        return Some((name.value(arguments), after));
    };
    let (name, after) = Name::read(inner)?;
    let after = after.strip_prefix(':')?;
    if let Some(default) = after.strip_prefix('-') {
        let (default, after) = default.split_once('}')?;
        let value = name.value(arguments);
        return Some((if value.is_empty() { default.to_owned() } else { value }, after));
    }
    if !matches!(name, Name::At) {
        return None;
    }
    let (start, after) = number(after)?;
    let (length, after) = match after.strip_prefix(':') {
        Some(after) => number(after)?,
        None => (usize::MAX, after),
    };
    let after = after.strip_prefix('}')?;
    let words: Vec<&str> =
        arguments.iter().skip(start.saturating_sub(1)).take(length).map(String::as_str).collect();
    Some((words.join(" "), after))
}

/// What a placeholder names.
#[derive(Clone, Copy)]
enum Name {
    Nth(usize),
    At,
    Arguments,
}

impl Name {
    fn read(text: &str) -> Option<(Self, &str)> {
        if let Some(after) = text.strip_prefix('@') {
            return Some((Self::At, after));
        }
        if let Some(after) = text.strip_prefix("ARGUMENTS") {
            return Some((Self::Arguments, after));
        }
        number(text).map(|(nth, after)| (Self::Nth(nth), after))
    }

    fn value(self, arguments: &[String]) -> String {
        match self {
            Self::Nth(nth) => {
                nth.checked_sub(1).and_then(|at| arguments.get(at)).cloned().unwrap_or_default()
            }
            Self::At | Self::Arguments => arguments.join(" "),
        }
    }
}

/// The number at the start; one that is too large stands for one that no argument has.
fn number(text: &str) -> Option<(usize, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, after) = text.split_at(end);
    (!digits.is_empty()).then(|| (digits.parse().unwrap_or(usize::MAX), after))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arguments_are_split_like_a_shell_with_quotes_only_at_their_start() {
        for (line, expected) in [
            ("", &[][..]),
            (" a\tb\n c ", &["a", "b", "c"]),
            (r#""a b" 'c d' e"#, &["a b", "c d", "e"]),
            ("doesn't don't", &["doesn't", "don't"]),
            (r#"a"b"c"#, &[r#"a"b"c"#]),
            (r#""a""b""#, &[r#"a"b""#]),
            (r#"'a'"b" c"#, &[r#"a"b""#, "c"]),
            (r#""a"b c"#, &["ab", "c"]),
            (r#""a\"b" c"#, &[r#"a"b"#, "c"]),
            (r#""a\\b" 'c\'d'"#, &[r"a\\b", "c'd"]),
            (r#""a\\" c"#, &[r#""a\\""#, "c"]),
            (r#""a\""#, &[r#""a\""#]),
            (r#""\"""#, &[r#"""#]),
            (r#""unclosed a b"#, &[r#""unclosed"#, "a", "b"]),
            (r#""a" ""#, &["a", r#"""#]),
            (r#""" b"#, &["", "b"]),
            (r#"\"a b"#, &[r#"\"a"#, "b"]),
            ("\"a\nb\"", &["a\nb"]),
            ("“a b”", &["“a", "b”"]),
            ("x\u{a0}y", &["x", "y"]),
        ] {
            assert_eq!(split_arguments(line), expected, "{line}");
        }
    }

    #[test]
    fn placeholders_take_arguments_by_number_all_of_them_a_slice_or_a_default() {
        let fill = |template: &str, line: &str| substitute(template, &split_arguments(line));
        for (template, line, expected) in [
            ("[$1|$2|$@|$ARGUMENTS]", "a \"b c\"", "[a|b c|a b c|a b c]"),
            ("[$1|$2|$@]", "", "[||]"),
            (
                r"{$#|$*|$0|$10|$1x|$$1|\$1|$A|$ARGUMENTSX|$@x|$ARGUMENT}",
                "a",
                r"{$#|$*|||ax|$a|\a|$A|aX|ax|$ARGUMENT}",
            ),
            ("$10|$01", "1 2 3 4 5 6 7 8 9 ten", "ten|1"),
            ("${1}|${1:-d}|${2:-d e}|${2:-}|${3:-$1}|${1-d}|${1:=d}", "a", "${1}|a|d e||$1|${1-d}|${1:=d}"),
            ("${1:-d}", "\"\"", "d"),
            ("${0:-z}|${01:-d}", "a", "z|a"),
            ("${@}|${@:-none}|${ARGUMENTS:-none}|${@:-a}b}", "", "${@}|none|none|ab}"),
            ("${@:-none}", "\"\" \"\"", " "),
            (
                "${@:2}|${@:2:3}|${@:0}|${@:1:0}|${@:9}|${@:2:99}|${@:0:1}|${@:-1}",
                "a b c d e",
                "b c d e|b c d|a b c d e|||b c d e|a|a b c d e",
            ),
            (
                "${@: 2}|${ARGUMENTS:2}|${@:1:}|${1:2}|${@:x}|${@:2",
                "a b",
                "${@: 2}|${ARGUMENTS:2}|${@:1:}|${1:2}|${@:x}|${@:2",
            ),
            ("${1:-${2}}|${1:-x:-y}|${1:-multi\nline}", "", "${2}|x:-y|multi\nline"),
            (
                "$99999999999999999999|${99999999999999999999:-d}|${@:99999999999999999999}|${@:1:99999999999999999999}",
                "a",
                "|d||a",
            ),
            ("$1 $2", "$2 $@", "$2 $@"),
            ("a$", "x", "a$"),
            ("é$1é", "ü", "éüé"),
        ] {
            assert_eq!(fill(template, line), expected, "{template} {line}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_splitting_or_filling_panic(template in "[$@{}:0-9a-zé\"' -]{0,40}", line in "[\"'\\\\ a-zé]{0,40}") {
            let arguments = split_arguments(&line);
            prop_assert!(arguments.len() <= line.len());
            substitute(&template, &arguments);
        }
    }
}
