//! Which step answers a request.

use std::borrow::Cow;
use std::path::Path;

use sampi_protocol::data::{AgentMessage, Content, ContentBlock, StopReason, ToolResultMessage};
use serde_json::{Map, Value, json};

use super::script::{Call, Script, Step};
use crate::branding::BRANDING;
use crate::llm::ModelRequest;
use crate::llm::transcript::{ImageLimits, Transcript};

/// How a message begins that carries a script.
const SCRIPT_PREFIX: &str = "@script ";

/// How fast the built-in answers come.
const BUILT_IN_DELAY_MS: u64 = 15;

/// Longest line of a tool result that the built-in summary repeats.
const MAX_QUOTE_CHARS: usize = 80;

/// A step, and its place for telling tries apart.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) step: Step,
    pub(super) index: usize,
    /// When the message came that the step answers.
    pub(super) since: u64,
}

/// Chooses the step: the newest script of the user, else the script of the file, else what is built in.
pub(super) async fn choose(request: &ModelRequest, file: Option<&Path>) -> Choice {
    let mut answers = 0;
    let mut since_user = None;
    for message in request.messages.iter().rev() {
        match &**message {
            AgentMessage::Assistant(answer)
                if !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) =>
            {
                answers += 1;
            }
            AgentMessage::User(user) => {
                let text = leading_text(&user.content);
                since_user.get_or_insert((answers, user.timestamp, text.clone()));
                if let Some(script) = text.strip_prefix(SCRIPT_PREFIX) {
                    return Choice {
                        step: scripted(script, "the script", answers),
                        index: answers,
                        since: user.timestamp,
                    };
                }
            }
            _ => {}
        }
    }
    if let Some(file) = file {
        let step = match tokio::fs::read_to_string(file).await {
            Ok(script) => scripted(&script, &format!("the script {}", file.display()), answers),
            Err(error) => Step::failing(format!("the script {} cannot be read: {error}", file.display())),
        };
        return Choice { step, index: answers, since: 0 };
    }
    let (index, since, text) = since_user.unwrap_or_default();
    Choice { step: built_in(request, &text, index), index, since }
}

fn leading_text(content: &Content) -> Cow<'_, str> {
    match content {
        Content::Text(text) => Cow::Borrowed(text),
        Content::Blocks(blocks) => Cow::Borrowed(blocks.iter().find_map(ContentBlock::as_text).unwrap_or("")),
    }
}

fn scripted(text: &str, name: &str, index: usize) -> Step {
    match Script::parse(text) {
        Ok(script) => script.step(index),
        Err(error) => Step::failing(format!("{name} cannot be read: {error}")),
    }
}

/// What the model does without a script: it says what it is, uses a tool or two, and sums up.
fn built_in(request: &ModelRequest, prompt: &str, index: usize) -> Step {
    let has_tool = |name: &str| tools(request).iter().any(|tool| tool == name);
    let file = mentioned_file(prompt);
    let call = |name: &str, args: Value| Call {
        name: name.to_owned(),
        args: args.as_object().cloned().unwrap_or_default(),
        ..Call::default()
    };
    let mut calls: Vec<(String, Call)> = Vec::new();
    if let Some(file) = file.filter(|_| has_tool("read")) {
        calls.push((format!("I will read {file} first."), call("read", json!({ "path": file }))));
    }
    if has_tool("bash") {
        let say = if calls.is_empty() { "I will look at the directory." } else { "Now the directory." };
        calls.push((say.to_owned(), call("bash", json!({ "command": "ls" }))));
    }
    let total = calls.len();
    let mut step = Step { delay_ms: BUILT_IN_DELAY_MS, ..Step::default() };
    if index == 0 {
        step.text = format!(
            "I am the demo model of {}: I work offline and follow a script, so nothing I say is clever. ",
            BRANDING.title()
        );
        if request.model.reasoning && request.thinking != sampi_protocol::data::ThinkingLevel::Off {
            step.thinking = "The user wants to see how an agent works. A harmless tool will do.".to_owned();
        }
    }
    match calls.into_iter().nth(index) {
        Some((say, call)) => {
            step.text.push_str(&say);
            step.tools.push(call);
        }
        None => step.text.push_str(&summary(request, total)),
    }
    step
}

fn summary(request: &ModelRequest, used: usize) -> String {
    let last = request.messages.iter().rev().find_map(|message| match &**message {
        AgentMessage::ToolResult(result) => Some(result),
        _ => None,
    });
    match last.filter(|_| used > 0) {
        Some(result) => format!(
            "Done. {} Start a message with `@script` to choose what I do; the documentation has the format.",
            describe(result)
        ),
        None => "There is no tool that I could use, so this is all.".to_owned(),
    }
}

fn describe(result: &ToolResultMessage) -> String {
    let text: String = result.content.iter().filter_map(ContentBlock::as_text).collect();
    let lines = text.lines().count();
    let first: String = text.lines().next().unwrap_or_default().chars().take(MAX_QUOTE_CHARS).collect();
    let verb = if result.is_error { "failed with" } else { "gave back" };
    match lines {
        0 => format!("The tool `{}` gave back nothing.", result.tool_name),
        1 => format!("The tool `{}` {verb} one line: {first}.", result.tool_name),
        lines => format!("The tool `{}` {verb} {lines} lines; the first is: {first}.", result.tool_name),
    }
}

fn tools(request: &ModelRequest) -> Vec<String> {
    let transcript = Transcript::new(request, str::to_owned, ImageLimits::NONE);
    transcript.tools.iter().map(|tool| tool.name.clone()).collect()
}

/// The first word of a prompt that looks like the name of a file.
fn mentioned_file(prompt: &str) -> Option<&str> {
    prompt
        .split_whitespace()
        .map(|word| word.trim_end_matches(|c: char| !c.is_alphanumeric()))
        .map(|word| {
            word.trim_start_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '/' | '_' | '.' | '~'))
        })
        .find(|word| {
            let Some((stem, extension)) = word.rsplit_once('.') else { return false };
            !word.contains("://")
                && stem.chars().any(char::is_alphanumeric)
                && (1..=5).contains(&extension.len())
                && extension.chars().all(|c| c.is_ascii_alphanumeric())
                && extension.chars().any(|c| c.is_ascii_alphabetic())
        })
}

/// The arguments of a call as the model would write them.
pub(super) fn argument_text(call: &Call) -> String {
    let args: &Map<String, Value> = &call.args;
    call.raw.clone().unwrap_or_else(|| serde_json::to_string(args).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_in_a_prompt_and_other_words_are_not() {
        for (prompt, file) in [
            ("please fix src/main.rs, thanks", Some("src/main.rs")),
            ("read `notes.txt`.", Some("notes.txt")),
            ("what is 3.14?", None),
            ("see https://a.example/x.html", None),
            ("Hello. World", None),
            ("", None),
        ] {
            assert_eq!(mentioned_file(prompt), file, "{prompt}");
        }
    }
}
