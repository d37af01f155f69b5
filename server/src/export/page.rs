//! The frame of the page, and the pass that writes entry after entry.

use std::io::{self, Write};

use super::html::Html;
use super::outline::Outline;
use super::{entry, format, sidebar};
use crate::session::Session;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Writes the page of a session.
pub(super) fn write(session: &Session, out: &mut dyn Write) -> io::Result<()> {
    let outline = Outline::of(session);
    let html = &mut Html::new(out);
    // Drawn after everything in the session was written, so nothing in the session can know it.
    let nonce = uuid::Uuid::new_v4().simple().to_string();
    head(html, session, &outline, &nonce)?;
    html.raw("<main id=\"main\">\n")?;
    overview(html, session, &outline)?;
    for place in 0..outline.nodes.len() {
        entry::write(html, session, &outline, place)?;
    }
    html.raw("</main>\n")?;
    sidebar::write(html, session, &outline)?;
    tree_data(html, &outline, &nonce)?;
    html.raw("<script")?;
    html.attribute("nonce", &nonce)?;
    html.raw(">\n")?;
    html.raw(SCRIPT)?;
    html.raw("</script>\n</body>\n</html>\n")
}

fn head(html: &mut Html<'_>, session: &Session, outline: &Outline, nonce: &str) -> io::Result<()> {
    html.raw(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; \
         base-uri 'none'; form-action 'none'; style-src 'nonce-",
    )?;
    html.text(nonce)?;
    html.raw("'; script-src 'nonce-")?;
    html.text(nonce)?;
    html.raw(
        "'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"color-scheme\" content=\"light dark\">\n",
    )?;
    html.element("<title>", title(session, outline), "</title>\n")?;
    html.raw("<style")?;
    html.attribute("nonce", nonce)?;
    html.raw(">\n")?;
    html.raw(STYLE)?;
    html.raw("</style>\n<noscript><style")?;
    html.attribute("nonce", nonce)?;
    html.raw(
        ">article.off{display:block}.script{display:none!important}</style></noscript>\n</head>\n<body>\n\
         <header id=\"bar\"><button id=\"menu\" class=\"script\" aria-label=\"Show the tree\" \
         aria-expanded=\"false\">☰</button>",
    )?;
    html.element("<span>", title(session, outline), "</span>")?;
    html.raw(
        "<span class=\"script buttons\">\
         <button id=\"unfold\" title=\"Unfold or fold everything\">Unfold</button>\
         <button id=\"theme\" title=\"Light, dark, or as the system says\">Theme</button></span></header>\n",
    )
}

fn title<'a>(session: &'a Session, outline: &'a Outline) -> &'a str {
    session.name().or(outline.first_prompt.as_deref()).unwrap_or("Session")
}

fn overview(html: &mut Html<'_>, session: &Session, outline: &Outline) -> io::Result<()> {
    let header = session.header();
    let totals = session.totals();
    html.raw("<header id=\"overview\">\n")?;
    html.element("<h1>", title(session, outline), "</h1>\n<dl>\n")?;
    let mut fact = |name: &'static str, value: &str| -> io::Result<()> {
        if value.is_empty() {
            return Ok(());
        }
        html.raw("<div><dt>")?;
        html.raw(name)?;
        html.element("</dt><dd>", value, "</dd></div>\n")
    };
    let started = format::time(&header.timestamp);
    fact("Started", started.as_deref().unwrap_or(&header.timestamp))?;
    fact("Folder", &header.cwd)?;
    fact(if outline.models.len() > 1 { "Models" } else { "Model" }, &outline.models.join(", "))?;
    fact(
        "Messages",
        &format!(
            "{} of the user, {} answers, {} tool calls",
            totals.user_messages, totals.assistant_messages, totals.tool_calls
        ),
    )?;
    let tokens = totals.tokens;
    let parts = [
        (tokens.input, "in"),
        (tokens.output, "out"),
        (tokens.cache_read, "from the cache"),
        (tokens.cache_write, "into the cache"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> =
        parts.map(|(count, word)| format!("{} {word}", format::tokens(*count))).collect();
    fact("Tokens", &parts.join(", "))?;
    fact("Cost", &if totals.cost > 0.0 { format::cost(totals.cost) } else { String::new() })?;
    fact("Session", header.id.as_str())?;
    fact("Forked from", header.parent_session.as_deref().unwrap_or_default())?;
    html.raw("</dl></header>\n")
}

/// The tree as the script needs it: numbers only.
fn tree_data(html: &mut Html<'_>, outline: &Outline, nonce: &str) -> io::Result<()> {
    html.raw("<script type=\"application/json\" id=\"data\"")?;
    html.attribute("nonce", nonce)?;
    html.raw(">{\"leaf\":")?;
    number_or_none(html, outline.leaf)?;
    html.raw(",\"parents\":[")?;
    for (place, node) in outline.nodes.iter().enumerate() {
        html.raw(if place == 0 { "" } else { "," })?;
        number_or_none(html, node.parent)?;
    }
    html.raw("]}</script>\n")
}

fn number_or_none(html: &mut Html<'_>, place: Option<usize>) -> io::Result<()> {
    match place {
        Some(place) => html.place(place),
        None => html.raw("-1"),
    }
}
