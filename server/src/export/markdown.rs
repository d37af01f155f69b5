//! Markdown as HTML. Raw HTML in it is shown as text.

use std::io;

use pulldown_cmark::{
    Alignment, BlockQuoteKind, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TextMergeStream,
};

use super::html::{Html, followable};

/// Elements inside one another above which no more are opened; browsers flatten what is deeper.
const DEEPEST: usize = 64;

/// What a line end inside a paragraph becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnds {
    /// A space, as Markdown has it.
    Space,
    /// A line end, as people type it.
    Kept,
}

/// Writes Markdown.
pub(super) fn markdown(html: &mut Html<'_>, text: &str, line_ends: LineEnds) -> io::Result<()> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer { html, line_ends, open: Vec::new(), links: 0, code: 0, table: Table::default() };
    for event in TextMergeStream::new(Parser::new_ext(text, options)) {
        writer.event(event)?;
    }
    writer.close_all()
}

struct Writer<'a, 'out> {
    html: &'a mut Html<'out>,
    line_ends: LineEnds,
    /// The markup that closes what is open.
    open: Vec<&'static str>,
    links: usize,
    code: usize,
    table: Table,
}

#[derive(Default)]
struct Table {
    columns: Vec<Alignment>,
    column: usize,
    in_head: bool,
}

impl Writer<'_, '_> {
    fn event(&mut self, event: Event<'_>) -> io::Result<()> {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(_) => self.end(),
            Event::Text(text) if self.links == 0 && self.code == 0 => self.text_with_links(&text),
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.html.text(&text),
            Event::Code(text) => self.html.element("<code>", &text, "</code>"),
            Event::SoftBreak if self.line_ends == LineEnds::Space => self.html.raw("\n"),
            Event::SoftBreak | Event::HardBreak => self.html.raw("<br>\n"),
            Event::Rule => self.html.raw("<hr>\n"),
            Event::TaskListMarker(true) => self.html.raw("<input type=\"checkbox\" disabled checked> "),
            Event::TaskListMarker(false) => self.html.raw("<input type=\"checkbox\" disabled> "),
        }
    }

    fn start(&mut self, tag: Tag<'_>) -> io::Result<()> {
        match &tag {
            Tag::Link { .. } | Tag::Image { .. } => self.links += 1,
            Tag::CodeBlock(_) => self.code += 1,
            _ => {}
        }
        if self.open.len() >= DEEPEST {
            self.open.push(match tag {
                Tag::Link { .. } | Tag::Image { .. } => LINK_AS_TEXT,
                Tag::CodeBlock(_) => CODE_AS_TEXT,
                _ => "",
            });
            return Ok(());
        }
        let close = match tag {
            Tag::Paragraph => self.opened("<p>", "</p>\n"),
            Tag::HtmlBlock => self.opened("<p class=\"raw\">", "</p>\n"),
            Tag::Heading { level, .. } => match level {
                HeadingLevel::H1 => self.opened("<h3>", "</h3>\n"),
                HeadingLevel::H2 => self.opened("<h4>", "</h4>\n"),
                HeadingLevel::H3 => self.opened("<h5>", "</h5>\n"),
                _ => self.opened("<h6>", "</h6>\n"),
            },
            Tag::BlockQuote(kind) => match kind {
                Some(BlockQuoteKind::Warning | BlockQuoteKind::Caution) => {
                    self.opened("<blockquote class=\"warn\">", "</blockquote>\n")
                }
                _ => self.opened("<blockquote>", "</blockquote>\n"),
            },
            Tag::CodeBlock(CodeBlockKind::Fenced(language)) if !language.is_empty() => {
                self.html.raw("<pre class=\"code\"")?;
                let word = language.split([' ', ',', '{']).next().unwrap_or_default();
                self.html.attribute("data-lang", word)?;
                self.opened("><code>", CODE_END)
            }
            Tag::CodeBlock(_) => self.opened("<pre class=\"code\"><code>", CODE_END),
            Tag::List(None) => self.opened("<ul>\n", "</ul>\n"),
            Tag::List(Some(first)) => {
                self.html.raw("<ol start=\"")?;
                self.html.number(first)?;
                self.opened("\">\n", "</ol>\n")
            }
            Tag::Item => self.opened("<li>", "</li>\n"),
            Tag::Table(columns) => {
                self.table = Table { columns, ..Table::default() };
                self.opened("<div class=\"table\"><table>", "</tbody></table></div>\n")
            }
            Tag::TableHead => {
                self.table.in_head = true;
                self.table.column = 0;
                self.opened("<thead><tr>", "</tr></thead><tbody>\n")
            }
            Tag::TableRow => {
                self.table.in_head = false;
                self.table.column = 0;
                self.opened("<tr>", "</tr>\n")
            }
            Tag::TableCell => {
                let alignment = self.table.columns.get(self.table.column).copied();
                self.table.column += 1;
                self.html.raw(if self.table.in_head { "<th" } else { "<td" })?;
                let class = match alignment {
                    Some(Alignment::Center) => " class=\"center\">",
                    Some(Alignment::Right) => " class=\"right\">",
                    _ => ">",
                };
                self.opened(class, if self.table.in_head { "</th>" } else { "</td>" })
            }
            Tag::Emphasis => self.opened("<em>", "</em>"),
            Tag::Strong => self.opened("<strong>", "</strong>"),
            Tag::Strikethrough => self.opened("<del>", "</del>"),
            Tag::Link { dest_url, .. } => {
                if self.html.open_link(&dest_url)? {
                    Ok(LINK_END)
                } else {
                    self.html.raw("<span class=\"link\"")?;
                    self.html.attribute("title", &dest_url)?;
                    self.opened(">", SPAN_LINK_END)
                }
            }
            Tag::Image { dest_url, .. } => {
                // Nothing is loaded: a picture elsewhere would tell who reads this.
                self.html.raw("<span class=\"link\"")?;
                self.html.attribute("title", &dest_url)?;
                self.opened(">[image] ", SPAN_LINK_END)
            }
            _ => self.opened("<div>", "</div>\n"),
        }?;
        self.open.push(close);
        Ok(())
    }

    fn opened(&mut self, open: &'static str, close: &'static str) -> io::Result<&'static str> {
        self.html.raw(open)?;
        Ok(close)
    }

    fn end(&mut self) -> io::Result<()> {
        let Some(close) = self.open.pop() else { return Ok(()) };
        match close {
            LINK_END | SPAN_LINK_END => self.links = self.links.saturating_sub(1),
            LINK_AS_TEXT => {
                self.links = self.links.saturating_sub(1);
                return Ok(());
            }
            CODE_END => self.code = self.code.saturating_sub(1),
            CODE_AS_TEXT => {
                self.code = self.code.saturating_sub(1);
                return Ok(());
            }
            _ => {}
        }
        self.html.raw(close)
    }

    fn close_all(&mut self) -> io::Result<()> {
        while !self.open.is_empty() {
            self.end()?;
        }
        Ok(())
    }

    /// Text whose web addresses become links.
    fn text_with_links(&mut self, text: &str) -> io::Result<()> {
        let mut rest = text;
        while let Some(start) = next_address(rest) {
            let (before, from) = rest.split_at(start);
            let end = from
                .find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '`' | '|'))
                .unwrap_or(from.len());
            let address = from[..end].trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', ')', ']', '*']);
            // A bracket that the address opened itself belongs to it.
            let closes = from[address.len()..].starts_with(')') && address.contains('(');
            let address = &from[..address.len() + usize::from(closes)];
            self.html.text(before)?;
            if followable(address).is_some() && self.html.open_link(address)? {
                self.html.element("", address, "</a>")?;
            } else {
                self.html.text(address)?;
            }
            rest = &from[address.len()..];
        }
        self.html.text(rest)
    }
}

const LINK_END: &str = "</a>";
const SPAN_LINK_END: &str = "</span>";
const CODE_END: &str = "</code></pre>\n";
/// Marks of elements that are too deep to be opened.
const LINK_AS_TEXT: &str = "link";
const CODE_AS_TEXT: &str = "code";

fn next_address(text: &str) -> Option<usize> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find("http") {
        let at = from + at;
        let rest = &text[at..];
        let starts_word = !text[..at].ends_with(|c: char| c.is_alphanumeric());
        if starts_word && (rest.starts_with("http://") || rest.starts_with("https://")) {
            return Some(at);
        }
        from = at + "http".len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> String {
        let mut bytes = Vec::new();
        markdown(&mut Html::new(&mut bytes), text, LineEnds::Space).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn markdown_becomes_html() {
        let html = rendered(
            "# T\n\none *two* **three** ~~four~~ `five`\n\n- [x] a\n- b\n\n3. c\n\n```rust x\nfn <a>() {}\n```\n\n| a | b |\n|--|-:|\n| 1 | 2 |\n",
        );
        for part in [
            "<h3>T</h3>",
            "<em>two</em>",
            "<strong>three</strong>",
            "<del>four</del>",
            "<code>five</code>",
            "<input type=\"checkbox\" disabled checked> a",
            "<ol start=\"3\">",
            "<pre class=\"code\" data-lang=\"rust\"><code>fn &lt;a&gt;() {}\n</code></pre>",
            "<th>a</th><th class=\"right\">b</th></tr></thead><tbody>",
            "<td>1</td><td class=\"right\">2</td></tr>\n</tbody></table>",
        ] {
            assert!(html.contains(part), "{part} in {html}");
        }
    }

    #[test]
    fn raw_html_is_text_and_hostile_links_are_no_links() {
        for hostile in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<div onclick=\"x\">\n\nhi\n</div>",
            "[x](javascript:alert(1))",
            "[x](<javascript:alert(1)>)",
            "[x](JAVASCRIPT&colon;alert(1))",
            "[x](data:text/html;base64,PHNjcmlwdD4=)",
            "<javascript:alert(1)>",
            "![x](javascript:alert(1) \"t\\\" onload=\\\"x\")",
            "![x](https://tracker.example/a.png)",
            "```\" onmouseover=\"alert(1)\nx\n```",
            "[a](https://x/\"onmouseover=\"alert(1))",
            "| <script> |\n|--|\n| <iframe src=x> |",
            "https://x/'onmouseover='alert(1)",
        ] {
            let html = rendered(hostile);
            for bad in
                ["<script", "<img", "<div onclick", "<iframe", "href=\"java", "href=\"data", "\" on", "'on"]
            {
                assert!(!html.to_lowercase().contains(bad), "{bad} in {html} of {hostile}");
            }
        }
    }

    #[test]
    fn addresses_in_text_become_links_without_the_punctuation_after_them() {
        let html = rendered(
            "see https://a.example/x_y_(z), and `https://b.example`; xhttps://c.example (http://d.example).",
        );
        assert!(html.contains("href=\"https://a.example/x_y_(z)\">https://a.example/x_y_(z)</a>,"), "{html}");
        assert!(html.contains("<code>https://b.example</code>"), "{html}");
        assert!(!html.contains("href=\"https://c"), "{html}");
        assert!(
            html.contains("(<a") && html.contains("href=\"http://d.example\">http://d.example</a>)."),
            "{html}"
        );
    }

    #[test]
    fn what_is_opened_is_closed_however_deep_it_is() {
        let deep = format!("{}x", "> ".repeat(5000));
        let html = rendered(&deep);
        let count = |part: &str| html.matches(part).count();
        assert!(count("<blockquote>") <= DEEPEST);
        assert_eq!(count("<blockquote>"), count("</blockquote>"));
        let brackets = rendered(&"[".repeat(50_000));
        assert_eq!(brackets.matches('[').count(), 50_000);
    }
}
