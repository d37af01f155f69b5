//! Tool calls and their results.

use std::io;

use sampi_protocol::data::{ContentBlock, ToolCall, ToolResultMessage};
use serde_json::Value;

use super::html::{Html, without_escapes};
use super::{answer, format};

/// Lines that are shown of a long text before it is folded.
const SHOWN_LINES: usize = 10;

/// Bytes that are shown of a long text before it is folded.
const SHOWN_BYTES: usize = 3000;

/// Lines of a difference that are shown before it is folded.
const SHOWN_DIFF_LINES: usize = 60;

/// A text is not folded for so few lines or bytes more.
const SLACK_LINES: usize = 5;
const SLACK_BYTES: usize = 600;

/// Arguments that tell at a glance what a call is about, the most telling first.
const TELLING: [&str; 9] =
    ["command", "path", "file_path", "pattern", "query", "url", "name", "script", "code"];

/// The argument that tells what a call is about.
pub(super) fn headline(call: &ToolCall) -> String {
    let telling = TELLING.iter().find_map(|name| call.arguments.get(*name)?.as_str());
    let text = telling.or_else(|| call.arguments.values().find_map(Value::as_str)).unwrap_or_default();
    format::line(text)
}

/// A result and the place of its entry.
pub(super) struct Answered {
    pub(super) place: usize,
    pub(super) result: ToolResultMessage,
}

/// Writes a call with its result.
pub(super) fn call(html: &mut Html<'_>, call: &ToolCall, answered: Option<&Answered>) -> io::Result<()> {
    let failed = answered.is_some_and(|answered| answered.result.is_error);
    html.raw(if failed { "<section class=\"call failed\"" } else { "<section class=\"call\"" })?;
    if let Some(answered) = answered {
        html.raw(" id=\"e")?;
        html.place(answered.place)?;
        html.raw("\"")?;
    }
    html.raw("><header>")?;
    html.element("<b>", &call.name, "</b> ")?;
    let headline = headline(call);
    if !headline.is_empty() {
        html.element("<code>", &headline, "</code>")?;
    }
    if let Some(millis) = answered.and_then(|answered| answered.result.duration_ms) {
        html.element("<span class=\"aside\">", &format::duration(millis), "</span>")?;
    }
    html.raw("</header>\n")?;
    let diff = answered.and_then(|answered| text_detail(&answered.result, "diff"));
    match diff {
        Some(text) => {
            difference(html, text)?;
            html.raw("<details><summary>Arguments</summary>")?;
            arguments(html, call, &headline)?;
            html.raw("</details>\n")?;
        }
        None => arguments(html, call, &headline)?,
    }
    match answered {
        // The difference says what the text would say.
        Some(answered) if diff.is_some() && !failed => result_extras(html, &answered.result)?,
        Some(answered) => {
            output(html, &answered.result.content)?;
            result_extras(html, &answered.result)?;
        }
        None => html.raw("<p class=\"note\">No result.</p>\n")?,
    }
    html.raw("</section>\n")
}

/// Writes a result whose call is elsewhere.
pub(super) fn result(html: &mut Html<'_>, result: &ToolResultMessage) -> io::Result<()> {
    html.raw(if result.is_error { "<section class=\"call failed\">" } else { "<section class=\"call\">" })?;
    html.element("<header><b>", &result.tool_name, "</b> <span class=\"aside\">result</span></header>\n")?;
    if let Some(text) = text_detail(result, "diff") {
        difference(html, text)?;
    }
    output(html, &result.content)?;
    result_extras(html, result)?;
    html.raw("</section>\n")
}

/// Writes what a command or a tool put out.
pub(super) fn output(html: &mut Html<'_>, content: &[ContentBlock]) -> io::Result<()> {
    for block in content {
        match block {
            ContentBlock::Text(block) if block.text.trim().is_empty() => {}
            ContentBlock::Text(block) => {
                folded(html, &without_escapes(&block.text), "<pre class=\"out\">\n")?
            }
            ContentBlock::Image(block) => html.image(&block.mime_type, &block.data)?,
            other => json_of(html, other)?,
        }
    }
    Ok(())
}

/// Writes a text as it is; what is long is folded behind its first lines. `open` opens a `pre`.
pub(super) fn folded(html: &mut Html<'_>, text: &str, open: &'static str) -> io::Result<()> {
    let text = text.trim_end_matches(['\n', '\r']);
    let Some(cut) = fold_at(text, SHOWN_LINES, SHOWN_BYTES) else {
        return html.element(open, text, "</pre>\n");
    };
    let (shown, rest) = text.split_at(cut);
    html.element(open, shown, "</pre>\n")?;
    more(html, rest)?;
    html.element(open, rest, "</pre></details>\n")
}

/// Writes a value as indented JSON.
pub(super) fn json_of(html: &mut Html<'_>, value: &impl serde::Serialize) -> io::Result<()> {
    match serde_json::to_string_pretty(value) {
        Ok(text) => folded(html, &text, "<pre class=\"json\">\n"),
        Err(error) => html.element("<p class=\"note\">", &error.to_string(), "</p>\n"),
    }
}

fn more(html: &mut Html<'_>, rest: &str) -> io::Result<()> {
    html.raw("<details class=\"more\"><summary>")?;
    match rest.lines().count() as u64 {
        0 | 1 => html.element("", &format::tokens(rest.len() as u64), " bytes more")?,
        lines => {
            html.number(lines)?;
            html.raw(" lines more")?;
        }
    }
    html.raw("</summary>")
}

/// Where a long text is cut: after so many lines, but not after more than so many bytes.
fn fold_at(text: &str, lines: usize, bytes: usize) -> Option<usize> {
    let mut cut = match memchr::memchr_iter(b'\n', text.as_bytes()).nth(lines - 1) {
        Some(at) if text[at + 1..].lines().nth(SLACK_LINES).is_some() => at + 1,
        _ => text.len(),
    };
    if cut > bytes + SLACK_BYTES {
        cut = bytes;
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
    }
    (cut < text.len()).then_some(cut)
}

fn arguments(html: &mut Html<'_>, call: &ToolCall, headline: &str) -> io::Result<()> {
    if let Some(error) = &call.arguments_error {
        html.element("<p class=\"error\">", error, "</p>\n")?;
    }
    let said = |value: &Value| value.as_str().is_some_and(|text| text == headline);
    for (name, value) in call.arguments.iter().filter(|(_, value)| !said(value)) {
        match value {
            Value::String(text) if name == "command" => folded(html, text, "<pre class=\"command\">\n")?,
            Value::String(text) if text.contains('\n') || text.len() > 80 => {
                html.element("<p class=\"name\">", name, "</p>")?;
                folded(html, text, "<pre>\n")?;
            }
            Value::Array(_) | Value::Object(_) => {
                html.element("<p class=\"name\">", name, "</p>")?;
                json_of(html, value)?;
            }
            value => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                html.element("<p class=\"name\">", name, " <code>")?;
                html.element("", &text, "</code></p>\n")?;
            }
        }
    }
    Ok(())
}

fn text_detail<'a>(result: &'a ToolResultMessage, name: &str) -> Option<&'a str> {
    result.details.as_ref()?.get(name)?.as_str().filter(|text| !text.is_empty())
}

fn difference(html: &mut Html<'_>, diff: &str) -> io::Result<()> {
    let diff = diff.trim_end_matches(['\n', '\r']);
    match fold_at(diff, SHOWN_DIFF_LINES, usize::MAX - SLACK_BYTES) {
        None => difference_lines(html, diff),
        Some(cut) => {
            difference_lines(html, &diff[..cut])?;
            more(html, &diff[cut..])?;
            difference_lines(html, &diff[cut..])?;
            html.raw("</details>\n")
        }
    }
}

fn difference_lines(html: &mut Html<'_>, lines: &str) -> io::Result<()> {
    html.raw("<pre class=\"diff\">\n")?;
    for line in lines.lines() {
        html.raw(match line.as_bytes().first() {
            Some(b'+') => "<ins>",
            Some(b'-') => "<del>",
            _ => "<span>",
        })?;
        html.text(line)?;
        html.raw(match line.as_bytes().first() {
            Some(b'+') => "</ins>\n",
            Some(b'-') => "</del>\n",
            _ => "</span>\n",
        })?;
    }
    html.raw("</pre>\n")
}

fn result_extras(html: &mut Html<'_>, result: &ToolResultMessage) -> io::Result<()> {
    if let Some(nested) = result.extra.fields.get("nestedCalls") {
        html.raw("<details><summary>Calls inside</summary>")?;
        json_of(html, nested)?;
        html.raw("</details>\n")?;
    }
    if let Some(usage) = &result.usage {
        html.raw("<footer>")?;
        answer::usage(html, usage)?;
        html.raw("</footer>\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded_text(text: &str) -> String {
        let mut bytes = Vec::new();
        folded(&mut Html::new(&mut bytes), text, "<pre>\n").unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn only_long_texts_are_folded() {
        let lines = |count: usize| (0..count).map(|n| format!("line {n}\n")).collect::<String>();
        assert!(!folded_text(&lines(SHOWN_LINES + SLACK_LINES)).contains("<details"));
        let long = folded_text(&lines(100));
        assert!(long.contains("<summary>90 lines more</summary>"), "{long}");
        assert!(long.contains("line 9\n</pre>") && long.contains("<pre>\nline 10\n"), "{long}");
        let wide = folded_text(&"é".repeat(10_000));
        assert!(wide.contains("k bytes more"), "{wide}");
        assert_eq!(wide.matches('é').count(), 10_000);
    }
}
