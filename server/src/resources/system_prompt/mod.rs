//! The system prompt: what the model is told before the conversation.
//!
//! The prompt is a message of named sections, so that a later change sends only the section that
//! changed. `preamble` is plain text; every other section stands in a tag of its own name, so that a
//! model can tell what a later one replaces.

mod sources;

use std::path::Path;

use sampi_protocol::data::{SystemMessage, ToolDefinition};
use serde_json::{Map, Value};

pub use sources::{PromptError, PromptSources, PromptWish};

/// A tool as the prompt presents it.
#[derive(Debug, Clone, Copy)]
pub struct PromptTool<'a> {
    /// The definition, which the message declares.
    pub definition: &'a ToolDefinition,
    /// One line about the tool.
    pub snippet: &'a str,
    /// Rules that hold while the tool is available.
    pub guidelines: &'a [&'a str],
}

/// A file with instructions, such as `AGENTS.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    /// Its path.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// A section that something else writes, such as `skills`. Its text goes into a tag of its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptSection {
    /// The name, usable as a tag.
    pub name: String,
    /// The text.
    pub text: String,
}

/// What the prompt is made of.
#[derive(Debug, Clone, Copy)]
pub struct PromptInput<'a> {
    /// The tools, in order.
    pub tools: &'a [PromptTool<'a>],
    /// What the user says instead of, and after, our own text.
    pub sources: &'a PromptSources,
    /// Files with instructions, the most general first.
    pub context_files: &'a [ContextFile],
    /// Further sections.
    pub sections: &'a [PromptSection],
    /// The working directory.
    pub cwd: &'a Path,
    /// Today, such as `2026-11-29`.
    pub date: Option<&'a str>,
    /// Unix milliseconds.
    pub timestamp: u64,
}

const PREAMBLE: &str = "You are a coding agent. You work in the user's project through the tools below: you read and \
search files, change them, and run commands. Carry the task through: find out what you need to know, make the change, \
and check that it works before you call it done.";

const BASE_RULES: [&str; 4] = [
    "Look before you change: read the code you touch and follow the project's own style.",
    "Do what was asked and nothing beside it. When the request is unclear and a wrong guess would cost work, ask.",
    "Say plainly what you did, what you could not do, and what you did not check.",
    "Keep answers short, and name the files you speak of by their path.",
];

/// The message that declares the whole prompt and every tool.
pub fn build_system(input: &PromptInput<'_>) -> SystemMessage {
    let mut sections = Map::new();
    let mut add = |name: &str, text: String| {
        sections.insert(name.to_owned(), Value::String(text));
    };
    match &input.sources.custom {
        Some(custom) => add("preamble", custom.clone()),
        None => {
            add("preamble", PREAMBLE.to_owned());
            add("tools", tagged("tools", &tool_lines(input.tools)));
            add("rules", tagged("rules", &rule_lines(input.tools)));
        }
    }
    if !input.sources.appended.is_empty() {
        add("addendum", tagged("addendum", &input.sources.appended.join("\n\n")));
    }
    if !input.context_files.is_empty() {
        add("project_context", tagged("project_context", &context_text(input.context_files)));
    }
    for section in input.sections {
        add(&section.name, tagged(&section.name, &section.text));
    }
    add("cwd", tagged("cwd", &input.cwd.display().to_string()));
    if let Some(date) = input.date {
        add("date", tagged("date", date));
    }
    let tools: Vec<ToolDefinition> = input.tools.iter().map(|tool| tool.definition.clone()).collect();
    SystemMessage {
        sections: Some(sections),
        tools_added: (!tools.is_empty()).then_some(tools),
        timestamp: input.timestamp,
        ..SystemMessage::default()
    }
}

fn tagged(name: &str, text: &str) -> String {
    format!("<{name}>\n{text}\n</{name}>")
}

fn tool_lines(tools: &[PromptTool<'_>]) -> String {
    if tools.is_empty() {
        return "No tools are available now. Answer from what the conversation holds; tools may be added later.".to_owned();
    }
    let lines: Vec<String> =
        tools.iter().map(|tool| format!("- {}: {}", tool.definition.name, tool.snippet)).collect();
    lines.join("\n")
}

fn rule_lines(tools: &[PromptTool<'_>]) -> String {
    let mut rules: Vec<&str> = Vec::new();
    let of_tools = tools.iter().flat_map(|tool| tool.guidelines.iter().copied());
    for rule in BASE_RULES.into_iter().chain(of_tools) {
        if !rule.is_empty() && !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    let lines: Vec<String> = rules.into_iter().map(|rule| format!("- {rule}")).collect();
    lines.join("\n")
}

fn context_text(files: &[ContextFile]) -> String {
    let mut text =
        "Instructions that the user keeps in files for work in this project. Follow them; where two \
                    disagree, the later one holds.\n"
            .to_owned();
    for ContextFile { path, text: instructions } in files {
        let path = path.replace('&', "&amp;").replace('"', "&quot;");
        text.push_str(&format!(
            "\n<project_instructions path=\"{path}\">\n{instructions}\n</project_instructions>\n"
        ));
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn definition(name: &str) -> ToolDefinition {
        serde_json::from_value(json!({ "name": name, "description": "d", "parameters": {} })).unwrap()
    }

    fn build(input: &PromptInput<'_>) -> (Vec<String>, Map<String, Value>) {
        let sections = build_system(input).sections.unwrap();
        (sections.keys().cloned().collect(), sections)
    }

    fn plain(sources: &PromptSources) -> PromptInput<'_> {
        PromptInput {
            tools: &[],
            sources,
            context_files: &[],
            sections: &[],
            cwd: Path::new("/w"),
            date: Some("2026-11-29"),
            timestamp: 7,
        }
    }

    #[test]
    fn sections_come_in_order_and_each_but_the_preamble_is_delimited_by_its_name() {
        let (read, bash) = (definition("read"), definition("bash"));
        let tools = [
            PromptTool { definition: &read, snippet: "Read a file", guidelines: &["Rule one.", "Rule two."] },
            PromptTool { definition: &bash, snippet: "Run a command", guidelines: &["Rule two."] },
        ];
        let sources = PromptSources { custom: None, appended: vec!["one".into(), "two".into()] };
        let files = [ContextFile { path: "/a\"b".into(), text: "Be kind.".into() }];
        let sections = [PromptSection { name: "skills".into(), text: "none".into() }];
        let input =
            PromptInput { tools: &tools, context_files: &files, sections: &sections, ..plain(&sources) };
        let (names, text) = build(&input);
        assert_eq!(
            names,
            ["preamble", "tools", "rules", "addendum", "project_context", "skills", "cwd", "date"]
        );
        assert_eq!(text["tools"], "<tools>\n- read: Read a file\n- bash: Run a command\n</tools>");
        assert_eq!(text["addendum"], "<addendum>\none\n\ntwo\n</addendum>");
        assert_eq!(text["cwd"], "<cwd>\n/w\n</cwd>");
        let rules = text["rules"].as_str().unwrap();
        assert_eq!(rules.matches("- Rule two.").count(), 1);
        let context = text["project_context"].as_str().unwrap();
        assert!(context.contains(
            "<project_instructions path=\"/a&quot;b\">\nBe kind.\n</project_instructions>\n</project_context>"
        ));
        for (name, text) in text.iter().skip(1) {
            let text = text.as_str().unwrap();
            assert!(
                text.starts_with(&format!("<{name}>\n")) && text.ends_with(&format!("\n</{name}>")),
                "{name}"
            );
        }
        let message = build_system(&input);
        assert_eq!(message.timestamp, 7);
        assert_eq!(message.tools_added.unwrap().len(), 2);
    }

    #[test]
    fn a_custom_prompt_replaces_our_text_and_keeps_the_tools_declared() {
        let read = definition("read");
        let tools = [PromptTool { definition: &read, snippet: "Read a file", guidelines: &[] }];
        let sources = PromptSources { custom: Some("You are X.".into()), appended: Vec::new() };
        let input = PromptInput { tools: &tools, date: None, ..plain(&sources) };
        let (names, text) = build(&input);
        assert_eq!(names, ["preamble", "cwd"]);
        assert_eq!(text["preamble"], "You are X.");
        assert_eq!(build_system(&input).tools_added.unwrap()[0].name, "read");
    }

    #[test]
    fn without_tools_the_prompt_says_so_and_declares_none() {
        let sources = PromptSources::default();
        let input = plain(&sources);
        assert!(build(&input).1["tools"].as_str().unwrap().contains("No tools are available"));
        assert_eq!(build_system(&input).tools_added, None);
    }
}
