//! The sidebar: the tree of entries, search and filters.

use std::io;

use super::html::Html;
use super::outline::{Outline, RowKind};
use crate::session::Session;

/// Branches inside branches that are still indented.
const DEEPEST: usize = 12;

pub(super) fn write(html: &mut Html<'_>, session: &Session, outline: &Outline) -> io::Result<()> {
    html.raw(concat!(
        "<aside id=\"sidebar\" aria-label=\"Entries\">\n",
        "<div class=\"tools\">",
        "<input id=\"search\" type=\"search\" placeholder=\"Search  ( / )\" aria-label=\"Search\" autocomplete=\"off\" spellcheck=\"false\">",
        "<div class=\"filters\" role=\"group\" aria-label=\"What the tree shows\">",
        "<button data-filter=\"talk\" aria-pressed=\"false\">Talk</button>",
        "<button data-filter=\"all\" aria-pressed=\"true\">All</button>",
        "<button data-filter=\"user\" aria-pressed=\"false\">Prompts</button>",
        "<button data-filter=\"marked\" aria-pressed=\"false\">Labels</button>",
        "</div><p id=\"found\" role=\"status\"></p></div>\n<nav id=\"tree\" class=\"all\">\n",
    ))?;
    let roots = (0..outline.nodes.len()).filter(|place| outline.nodes[*place].parent.is_none());
    let mut open: Vec<(usize, usize)> = roots.map(|place| (place, 0)).collect();
    open.reverse();
    while let Some((place, depth)) = open.pop() {
        let Some(node) = outline.nodes.get(place) else { continue };
        row(html, session, outline, place, depth)?;
        let depth = if node.children.len() > 1 { depth + 1 } else { depth };
        open.extend(node.children.iter().rev().map(|child| (*child, depth)));
    }
    html.raw("</nav></aside>\n")
}

fn row(
    html: &mut Html<'_>,
    session: &Session,
    outline: &Outline,
    place: usize,
    depth: usize,
) -> io::Result<()> {
    let Some((node, row)) = outline.nodes.get(place).and_then(|node| Some((node, node.row.as_ref()?))) else {
        return Ok(());
    };
    html.raw("<a href=\"#e")?;
    html.place(place)?;
    html.raw("\" class=\"")?;
    html.raw(match row.kind {
        RowKind::User => "user",
        RowKind::Answer => "answer",
        RowKind::Tool => "tool",
        RowKind::FailedTool => "tool failed",
        RowKind::Summary => "summary",
        RowKind::Note => "note",
    })?;
    html.raw(if node.is_active { " on" } else { "" })?;
    html.raw(" d")?;
    html.place(depth.min(DEEPEST))?;
    html.raw("\">")?;
    let id = session.id_at_place(place);
    if let Some(label) = id.and_then(|id| session.label(id.as_str())) {
        html.element("<b class=\"label\">", &label.text, "</b>")?;
    }
    html.element("<span>", &row.text, "</span></a>\n")
}
