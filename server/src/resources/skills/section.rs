//! The part of the system prompt that tells the model which skills there are.

use super::Skill;
use crate::resources::system_prompt::PromptSection;

/// Tools that can load a skill's file, the best first.
const READERS: [&str; 2] = ["read", "bash"];

/// The section `skills`. `None` when the model may load no skill, or has no tool to do it with.
pub fn skills_section<'a>(skills: &[Skill], tools: impl Fn(&str) -> bool + 'a) -> Option<PromptSection> {
    let mut listed = skills.iter().filter(|skill| !skill.disable_model_invocation).peekable();
    listed.peek()?;
    let reader = READERS.into_iter().find(|name| tools(name))?;
    let mut text = format!(
        "Each skill is a file with instructions for one kind of work. When a task fits a skill's description, load its \
         file with {reader} before you begin, and follow it. Paths in a skill start at the folder of its file: give tools \
         absolute paths.\n\n<available_skills>\n"
    );
    for skill in listed {
        text.push_str(&format!(
            "  <skill>\n    <name>{}</name>\n    <description>{}</description>\n    <location>{}</location>\n  </skill>\n",
            escape(&skill.name),
            escape(&skill.description),
            escape(&skill.path.to_string_lossy())
        ));
    }
    text.push_str("</available_skills>");
    Some(PromptSection { name: "skills".to_owned(), text })
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&apos;")
}
