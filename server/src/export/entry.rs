//! One entry of the session as an article of the page.

use std::io;

use sampi_protocol::data::{
    AgentMessage, AssistantMessage, BashExecutionMessage, Content, ContentBlock, SessionEntry, SystemMessage,
};
use serde_json::Value;

use super::html::{Html, without_escapes};
use super::markdown::{LineEnds, markdown};
use super::outline::Outline;
use super::tool::{self, Answered};
use super::{answer, format};
use crate::session::Session;

/// Writes an entry, unless it stands inside another one or has nothing to show.
pub(super) fn write(
    html: &mut Html<'_>,
    session: &Session,
    outline: &Outline,
    place: usize,
) -> io::Result<()> {
    if outline.nodes.get(place).is_none_or(|node| node.inside.is_some()) {
        return Ok(());
    }
    let article = Article { html, session, outline, place };
    match session.entry_at_place(place) {
        Some(entry) => article.entry(&entry),
        None => article.note("This entry cannot be read.", ""),
    }
}

struct Article<'a, 'out> {
    html: &'a mut Html<'out>,
    session: &'a Session,
    outline: &'a Outline,
    place: usize,
}

impl Article<'_, '_> {
    fn entry(self, entry: &SessionEntry) -> io::Result<()> {
        let time = entry.base().map(|base| base.timestamp.as_str()).unwrap_or_default();
        match entry {
            SessionEntry::MessageEntry(entry) => self.message(&entry.message, time),
            SessionEntry::ModelChangeEntry(entry) => {
                self.note("Model", &format!("{}/{}", entry.provider, entry.model_id))
            }
            SessionEntry::ThinkingLevelChangeEntry(entry) => self.note("Thinking", &entry.thinking_level),
            SessionEntry::CompactionEntry(entry) => {
                let words = format!("Compacted {} tokens", format::tokens(entry.tokens_before));
                self.summary(&words, &entry.summary, time)
            }
            SessionEntry::BranchSummaryEntry(entry) => {
                self.summary("Summary of the branch that was left", &entry.summary, time)
            }
            SessionEntry::CustomMessageEntry(entry) => {
                self.custom(&entry.custom_type, &entry.content, entry.display, time)
            }
            SessionEntry::SessionInfoEntry(entry) => match &entry.name {
                Some(name) => self.note("Named", name),
                None => self.note("Name taken away", ""),
            },
            SessionEntry::ContextEditEntry(entry) => match &entry.replacement {
                Some(_) => self.note("Changed for the model: entry", entry.target_id.as_str()),
                None => self.note("Left out for the model: entry", entry.target_id.as_str()),
            },
            SessionEntry::UsageEntry(entry) => self.note("Usage", &entry.kind),
            // Labels stand at what they mark; the state of extensions is for programs.
            SessionEntry::LabelEntry(_) | SessionEntry::CustomEntry(_) => Ok(()),
            SessionEntry::Unknown(raw) => self.folded("Unknown entry", time, |html| tool::json_of(html, raw)),
        }
    }

    fn message(self, message: &AgentMessage, time: &str) -> io::Result<()> {
        match message {
            AgentMessage::System(message) => {
                let is_first = message.replace == Some(true) || self.outline.first_system == Some(self.place);
                let title =
                    if is_first { "System prompt and tools" } else { "System prompt and tools, changes" };
                self.folded(title, time, |html| system(html, message))
            }
            AgentMessage::User(message) => {
                self.whole("user", "You", time, |html| content(html, &message.content))
            }
            AgentMessage::Assistant(message) => self.answer(message, time),
            AgentMessage::ToolResult(message) => {
                self.whole("answer", "Tool", time, |html| tool::result(html, message))
            }
            AgentMessage::BashExecution(message) => {
                self.whole("shell", "Shell", time, |html| shell(html, message))
            }
            AgentMessage::Custom(message) => {
                self.custom(&message.custom_type, &message.content, message.display, time)
            }
            AgentMessage::BranchSummary(message) => {
                self.summary("Summary of the branch that was left", &message.summary, time)
            }
            AgentMessage::CompactionSummary(message) => self.summary("Summary", &message.summary, time),
            AgentMessage::Unknown(raw) => {
                self.folded("Unknown message", time, |html| tool::json_of(html, raw))
            }
        }
    }

    fn answer(self, message: &AssistantMessage, time: &str) -> io::Result<()> {
        let (session, outline, place) = (self.session, self.outline, self.place);
        let results = message.tool_calls().map(|call| {
            let place = outline.result_of(place, call)?;
            match session.entry_at_place(place)? {
                SessionEntry::MessageEntry(entry) => match &*entry.message {
                    AgentMessage::ToolResult(result) => Some(Answered { place, result: result.clone() }),
                    _ => None,
                },
                _ => None,
            }
        });
        self.whole("answer", "Assistant", time, |html| answer::write(html, message, results))
    }

    fn custom(self, name: &str, text: &Content, display: bool, time: &str) -> io::Result<()> {
        if display {
            self.whole("custom", name, time, |html| content(html, text))
        } else {
            self.folded(name, time, |html| content(html, text))
        }
    }

    fn summary(self, title: &str, text: &str, time: &str) -> io::Result<()> {
        self.folded(title, time, |html| {
            html.raw("<div class=\"md\">")?;
            markdown(html, text, LineEnds::Space)?;
            html.raw("</div>\n")
        })
    }

    fn whole(
        mut self,
        class: &'static str,
        who: &str,
        time: &str,
        body: impl FnOnce(&mut Html<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.open(class)?;
        self.html.raw("<header>")?;
        self.html.element("<b class=\"who\">", who, "</b>")?;
        self.marks(time)?;
        self.html.raw("</header>\n")?;
        body(self.html)?;
        self.html.raw("</article>\n")
    }

    fn folded(
        mut self,
        title: &str,
        time: &str,
        body: impl FnOnce(&mut Html<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        self.open("fold")?;
        self.html.element("<details><summary><b>", title, "</b>")?;
        self.marks(time)?;
        self.html.raw("</summary>\n")?;
        body(self.html)?;
        self.html.raw("</details></article>\n")
    }

    fn note(mut self, words: &'static str, name: &str) -> io::Result<()> {
        self.open("change")?;
        self.html.raw("<p>")?;
        self.html.raw(words)?;
        if !name.is_empty() {
            self.html.element(" <code>", name, "</code>")?;
        }
        self.marks("")?;
        self.html.raw("</p></article>\n")
    }

    fn open(&mut self, class: &'static str) -> io::Result<()> {
        let is_active = self.outline.nodes.get(self.place).is_some_and(|node| node.is_active);
        self.html.raw("<article id=\"e")?;
        self.html.place(self.place)?;
        self.html.raw("\" class=\"")?;
        self.html.raw(class)?;
        self.html.raw(if is_active { "\">\n" } else { " off\">\n" })?;
        self.branches()
    }

    /// The way to the other branches that start where this entry does.
    fn branches(&mut self) -> io::Result<()> {
        let Some((index, siblings)) = self.outline.siblings(self.place) else { return Ok(()) };
        self.html.raw("<nav class=\"branches\" aria-label=\"Branches\">")?;
        self.branch(index.checked_sub(1).and_then(|before| siblings.get(before)), "‹ before")?;
        self.html.raw("<span>branch ")?;
        self.html.place(index + 1)?;
        self.html.raw(" of ")?;
        self.html.place(siblings.len())?;
        self.html.raw("</span>")?;
        self.branch(siblings.get(index + 1), "next ›")?;
        self.html.raw("</nav>\n")
    }

    fn branch(&mut self, place: Option<&usize>, words: &'static str) -> io::Result<()> {
        let Some(place) = place else { return Ok(()) };
        self.html.raw("<a href=\"#e")?;
        self.html.place(*place)?;
        self.html.raw("\">")?;
        self.html.raw(words)?;
        self.html.raw("</a>")
    }

    fn marks(&mut self, time: &str) -> io::Result<()> {
        let id = self.session.id_at_place(self.place);
        if let Some(label) = id.and_then(|id| self.session.label(id.as_str())) {
            self.html.element(" <span class=\"label\">", &label.text, "</span>")?;
        }
        if let Some(words) = format::time(time) {
            self.html.raw(" <time")?;
            self.html.attribute("datetime", time)?;
            self.html.element(">", &words, "</time>")?;
        }
        Ok(())
    }
}

fn content(html: &mut Html<'_>, content: &Content) -> io::Result<()> {
    match content {
        Content::Text(text) => typed(html, text),
        Content::Blocks(blocks) => {
            for block in blocks {
                match block {
                    ContentBlock::Text(block) => typed(html, &block.text)?,
                    ContentBlock::Image(block) => html.image(&block.mime_type, &block.data)?,
                    other => tool::json_of(html, other)?,
                }
            }
            Ok(())
        }
    }
}

fn typed(html: &mut Html<'_>, text: &str) -> io::Result<()> {
    html.raw("<div class=\"md\">")?;
    markdown(html, text, LineEnds::Kept)?;
    html.raw("</div>\n")
}

fn shell(html: &mut Html<'_>, message: &BashExecutionMessage) -> io::Result<()> {
    let failed = message.cancelled || message.exit_code.is_some_and(|code| code != 0);
    html.raw(if failed { "<section class=\"call failed\">" } else { "<section class=\"call\">" })?;
    tool::folded(html, &message.command, "<pre class=\"command\">\n")?;
    if !message.output.trim().is_empty() {
        tool::folded(html, &without_escapes(&message.output), "<pre class=\"out\">\n")?;
    }
    let notes = [
        message.cancelled.then(|| "cancelled".to_owned()),
        message.exit_code.filter(|code| *code != 0).map(|code| format!("exit code {code}")),
        message.truncated.then(|| "output cut".to_owned()),
        (message.exclude_from_context == Some(true)).then(|| "not for the model".to_owned()),
    ];
    html.raw("<footer>")?;
    for note in notes.iter().flatten() {
        html.element("<span>", note, "</span>")?;
    }
    html.raw("</footer></section>\n")
}

fn system(html: &mut Html<'_>, message: &SystemMessage) -> io::Result<()> {
    let text = message.content.text();
    if !text.trim().is_empty() {
        tool::folded(html, &text, "<pre class=\"prose\">\n")?;
    }
    for (name, section) in message.sections.iter().flatten() {
        html.element("<p class=\"name\">", name, "</p>")?;
        match section {
            Value::String(text) => tool::folded(html, text, "<pre class=\"prose\">\n")?,
            Value::Null => html.raw("<p class=\"note\">taken out</p>\n")?,
            other => tool::json_of(html, other)?,
        }
    }
    for tool in message.tools_added.iter().flatten() {
        html.raw("<details><summary>Tool ")?;
        html.element("<code>", &tool.name, "</code></summary>")?;
        tool::folded(html, &tool.description, "<pre class=\"prose\">\n")?;
        tool::json_of(html, &tool.parameters)?;
        html.raw("</details>\n")?;
    }
    for tool in message.tools_removed.iter().flatten() {
        html.element("<p class=\"note\">Tool <code>", &tool.name, "</code> taken out</p>\n")?;
    }
    Ok(())
}
