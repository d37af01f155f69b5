//! Numbers, costs and times as people read them.

/// The most characters of a line in the sidebar.
const LINE: usize = 100;

/// A count of tokens: 950, 12.3k, 1.2M.
pub(super) fn tokens(count: u64) -> String {
    let count = count as f64;
    match count {
        ..1_000.0 => format!("{count}"),
        1_000.0..999_950.0 => format!("{:.1}k", count / 1_000.0),
        _ => format!("{:.2}M", count / 1_000_000.0),
    }
}

/// A cost in US dollars; small ones keep two digits that count.
pub(super) fn cost(dollars: f64) -> String {
    match dollars {
        0.1.. => format!("${dollars:.2}"),
        0.001..0.1 => format!("${dollars:.4}"),
        _ => format!("${dollars:.6}"),
    }
}

/// A duration in milliseconds.
pub(super) fn duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{:.1} s", millis as f64 / 1_000.0),
        _ => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1_000),
    }
}

/// A time as it stands in entries: to the minute, in UTC; `None` when it is no time.
pub(super) fn time(stamp: &str) -> Option<String> {
    let time: jiff::Timestamp = stamp.parse().ok()?;
    Some(time.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// The start of a text on one line.
pub(super) fn line(text: &str) -> String {
    let mut line = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        if count > 0 {
            line.push(' ');
            count += 1;
        }
        for c in word.chars() {
            if count >= LINE {
                line.push('…');
                return line;
            }
            line.push(c);
            count += 1;
        }
    }
    line
}

/// The start of a Markdown text without the commonest of its marks.
pub(super) fn without_marks(markdown: &str) -> String {
    let start: String = markdown.trim_start_matches(['#', '>', ' ', '\n']).chars().take(4 * LINE).collect();
    start.replace("**", "").replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [950, 1_000, 12_345, 999_949, 1_234_567].map(tokens),
            ["950", "1.0k", "12.3k", "999.9k", "1.23M"]
        );
        assert_eq!([2.0, 0.0123, 0.00012, f64::NAN].map(cost), ["$2.00", "$0.0123", "$0.000120", "$NaN"]);
        assert_eq!([7, 1_500, 61_000].map(duration), ["7 ms", "1.5 s", "1 min 1 s"]);
    }

    #[test]
    fn a_line_is_one_line_and_not_too_long() {
        assert_eq!(line(" a\n\tb "), "a b");
        assert_eq!(line(&without_marks("\n## **One** of `two`\n")), "One of two");
        assert_eq!(line(&"é".repeat(500)).chars().count(), LINE + 1);
        assert_eq!(time("2026-01-02T03:04:05.678Z").as_deref(), Some("2026-01-02 03:04 UTC"));
        assert_eq!(time("<script>"), None);
    }
}
