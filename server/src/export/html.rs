//! Writing HTML: markup is a constant of this program, everything else is escaped.

use std::borrow::Cow;
use std::io::{self, Write};

/// The media types of images that are shown.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The schemes of links that can be followed.
const LINK_SCHEMES: [&str; 3] = ["http://", "https://", "mailto:"];

/// A page that is being written.
///
/// [`Html::raw`] takes only constants, so nothing of a session can become markup.
pub(super) struct Html<'a> {
    out: &'a mut dyn Write,
}

impl<'a> Html<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Self { out }
    }

    /// Writes markup.
    pub(super) fn raw(&mut self, markup: &'static str) -> io::Result<()> {
        self.out.write_all(markup.as_bytes())
    }

    /// Writes text, for the content of an element or the value of a quoted attribute.
    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        let mut written = 0;
        for (at, c) in text.char_indices() {
            let replacement = match c {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => "&quot;",
                '\'' => "&#39;",
                '\n' | '\t' => continue,
                '\r' if text[at..].starts_with("\r\n") => "",
                '\r' => "\n",
                c if is_invisible(c) => "\u{fffd}",
                _ => continue,
            };
            self.out.write_all(&text.as_bytes()[written..at])?;
            self.out.write_all(replacement.as_bytes())?;
            written = at + c.len_utf8();
        }
        self.out.write_all(&text.as_bytes()[written..])
    }

    /// Writes a number.
    pub(super) fn number(&mut self, number: impl Into<u64>) -> io::Result<()> {
        write!(self.out, "{}", number.into())
    }

    /// Writes an entry's number.
    pub(super) fn place(&mut self, place: usize) -> io::Result<()> {
        write!(self.out, "{place}")
    }

    /// Writes `name="value"` with a space before it.
    pub(super) fn attribute(&mut self, name: &'static str, value: &str) -> io::Result<()> {
        self.raw(" ")?;
        self.raw(name)?;
        self.raw("=\"")?;
        self.text(value)?;
        self.raw("\"")
    }

    /// Writes an element with only text in it.
    pub(super) fn element(&mut self, open: &'static str, text: &str, close: &'static str) -> io::Result<()> {
        self.raw(open)?;
        self.text(text)?;
        self.raw(close)
    }

    /// Writes an image, or a note that says why it is not shown.
    pub(super) fn image(&mut self, media_type: &str, base64: &str) -> io::Result<()> {
        let known = IMAGE_TYPES.iter().find(|known| known.eq_ignore_ascii_case(media_type.trim()));
        let is_base64 = |data: &str| {
            !data.is_empty() && data.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b))
        };
        let Some(known) = known.filter(|_| is_base64(base64)) else {
            self.raw("<p class=\"note\">An image that is not shown (")?;
            self.text(media_type)?;
            return self.raw(")</p>");
        };
        self.raw("<img class=\"shot\" loading=\"lazy\" alt=\"image\" src=\"data:")?;
        self.text(known)?;
        self.raw(";base64,")?;
        self.text(base64)?;
        self.raw("\">")
    }

    /// Opens a link if it can be followed; tells whether it did.
    pub(super) fn open_link(&mut self, url: &str) -> io::Result<bool> {
        let Some(url) = followable(url) else { return Ok(false) };
        self.raw("<a target=\"_blank\" rel=\"noopener noreferrer nofollow\"")?;
        self.attribute("href", url)?;
        self.raw(">")?;
        Ok(true)
    }
}

/// The link, if it goes to the web or to a mailbox.
pub(super) fn followable(url: &str) -> Option<&str> {
    let has_scheme = |scheme: &&str| {
        url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
            && url.len() > scheme.len()
    };
    let is_clean = !url.chars().any(|c| c.is_whitespace() || is_invisible(c));
    (is_clean && LINK_SCHEMES.iter().any(has_scheme)).then_some(url)
}

/// Control characters, and those that turn the direction of text around.
fn is_invisible(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Output of a terminal without its escape sequences.
pub(super) fn without_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            plain.push(c);
            continue;
        }
        match rest.peek() {
            Some('[') => {
                rest.next();
                // Parameters, up to the letter that ends the sequence.
                while let Some(c) = rest.next_if(|c| matches!(c, '\u{20}'..='\u{7e}')) {
                    if matches!(c, '\u{40}'..='\u{7e}') {
                        break;
                    }
                }
            }
            Some(']') => {
                while let Some(c) = rest.next_if(|c| *c != '\n') {
                    if c == '\u{7}' {
                        break;
                    }
                    if c == '\u{1b}' && rest.next_if_eq(&'\\').is_some() {
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Html<'_>) -> io::Result<()>) -> String {
        let mut bytes = Vec::new();
        write(&mut Html::new(&mut bytes)).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn text_cannot_leave_its_place() {
        let text = "a</pre><script>'\"&\u{0}\u{1b}\u{202e}é\r\n\tz\r";
        assert_eq!(
            written(|html| html.text(text)),
            "a&lt;/pre&gt;&lt;script&gt;&#39;&quot;&amp;\u{fffd}\u{fffd}\u{fffd}é\n\tz\n"
        );
    }

    #[test]
    fn only_links_to_the_web_and_to_mailboxes_can_be_followed() {
        for good in ["http://a", "HTTPS://a/?q=<>\"", "mailto:a@b.c"] {
            assert_eq!(followable(good), Some(good));
        }
        for bad in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            " javascript:alert(1)",
            "java\nscript:alert(1)",
            "http://a\nb",
            "\u{1}http://a",
            "data:text/html,<script>",
            "vbscript:x",
            "file:///etc/passwd",
            "//evil.example",
            "src/main.rs",
            "http://",
            "",
        ] {
            assert_eq!(followable(bad), None, "{bad:?}");
        }
        assert_eq!(
            written(|html| html.open_link("https://a/\"onmouseover=\"x").map(|_| ())),
            "<a target=\"_blank\" rel=\"noopener noreferrer nofollow\" href=\"https://a/&quot;onmouseover=&quot;x\">"
        );
    }

    #[test]
    fn only_images_of_four_types_are_shown() {
        assert!(
            written(|html| html.image("image/png", "AAAA")).contains("src=\"data:image/png;base64,AAAA\"")
        );
        assert!(written(|html| html.image("IMAGE/JPEG", "AA==")).contains("data:image/jpeg;"));
        for (media_type, data) in [
            ("image/svg+xml", "AAAA"),
            ("text/html", "AAAA"),
            ("image/png\" onerror=\"x", "AAAA"),
            ("image/png", "AA\" onerror=\"alert(1)"),
            ("image/png", ""),
        ] {
            let note = written(|html| html.image(media_type, data));
            assert!(note.starts_with("<p class=\"note\">") && !note.contains("<img"), "{note}");
            assert!(!note.contains("\" onerror"), "{note}");
        }
    }

    #[test]
    fn terminal_escapes_are_left_out() {
        assert_eq!(
            without_escapes("\u{1b}[31;1mred\u{1b}[0m \u{1b}]8;;http://x\u{7}l\u{1b}]8;;\u{1b}\\ \u{1b}"),
            "red l "
        );
        assert_eq!(without_escapes("\u{1b}[31\nnext"), "\nnext");
    }
}
