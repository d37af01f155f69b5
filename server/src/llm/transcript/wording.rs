//! The words for what the model sees but nobody typed.

use sampi_protocol::data::BashExecutionMessage;

/// The result of a call that never got one.
pub(super) const NO_RESULT: &str = "No result provided";

/// Where an image was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImageOmitted {
    User,
    Tool,
}

/// Why it was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Omission {
    NotTaken,
    Blocked,
    TooMany,
    TooLarge,
}

impl ImageOmitted {
    pub(super) fn note(self, why: Omission) -> &'static str {
        match (self, why) {
            (Self::User, Omission::NotTaken) => "(image omitted: model does not support images)",
            (Self::Tool, Omission::NotTaken) => "(tool image omitted: model does not support images)",
            (Self::User, Omission::Blocked) => "(image omitted: images are turned off in the settings)",
            (Self::Tool, Omission::Blocked) => "(tool image omitted: images are turned off in the settings)",
            (Self::User, Omission::TooMany) => {
                "(image omitted: the conversation has more images than the model takes)"
            }
            (Self::Tool, Omission::TooMany) => {
                "(tool image omitted: the conversation has more images than the model takes)"
            }
            (Self::User, Omission::TooLarge) => "(image omitted: it is larger than the model takes)",
            (Self::Tool, Omission::TooLarge) => "(tool image omitted: it is larger than the model takes)",
        }
    }
}

/// A section of the system prompt that reads otherwise from here on.
pub(super) fn section_now(name: &str, text: &str) -> String {
    format!("From here on the section \"{name}\" of the system prompt reads:\n\n{text}")
}

/// A section of the system prompt that is no more.
pub(super) fn section_gone(name: &str) -> String {
    format!("From here on the section \"{name}\" of the system prompt does not apply.")
}

pub(super) fn bash_execution(run: &BashExecutionMessage) -> String {
    let mut text = format!("Ran `{}`\n", run.command);
    if run.output.is_empty() {
        text.push_str("(no output)");
    } else {
        text.push_str(&format!("```\n{}\n```", run.output));
    }
    if run.cancelled {
        text.push_str("\n\n(command cancelled)");
    } else if let Some(code) = run.exit_code.filter(|code| *code != 0) {
        text.push_str(&format!("\n\nCommand exited with code {code}"));
    }
    if let Some(path) = run.full_output_path.as_ref().filter(|_| run.truncated) {
        text.push_str(&format!("\n\n[Output truncated. Full output: {path}]"));
    }
    text
}

pub(super) fn branch_summary(summary: &str) -> String {
    format!(
        "Earlier, this conversation went down another branch, which was then left. What happened there:\n\n<summary>\n{summary}\n</summary>"
    )
}

pub(super) fn compaction_summary(summary: &str) -> String {
    format!(
        "The earlier part of this conversation was condensed to save space. This summary stands in for it:\n\n<summary>\n{summary}\n</summary>"
    )
}
