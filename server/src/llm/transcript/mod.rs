//! The context as every API needs it: one system prompt, the tools, and the turns of user, assistant and
//! tools. Knows no vendor.

mod ids;
mod images;
mod in_place;
mod wording;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use sampi_protocol::data::{
    AgentMessage, AssistantMessage, Content, ContentBlock, Model, StopReason, ToolCall, ToolDefinition,
    ToolResultMessage,
};
use serde_json::{Map, Value};

use super::ModelRequest;
use crate::system_state::SystemPrompt;
pub(crate) use ids::safe_id;
pub(crate) use images::{Crowd, ImageLimits, as_base64};
use in_place::Opening;
pub(crate) use in_place::{EffortOf, InPlace, SystemTurn, ToolChanges};
use wording::{ImageOmitted, NO_RESULT, Omission};

/// The context, ready to be written in the terms of an API.
#[derive(Debug, Default)]
pub(crate) struct Transcript<'a> {
    /// The system prompt; empty when there is none.
    pub(crate) system: String,
    /// The tools that the model may call, but for what turns change about them.
    pub(crate) tools: Vec<ToolDefinition>,
    /// Which changes of tools there are among the turns.
    pub(crate) tool_changes: ToolChanges,
    /// The conversation. Every tool call is followed by its result, and every result has its call.
    pub(crate) turns: Vec<Turn<'a>>,
}

/// One turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Turn<'a> {
    /// What the user said.
    User(UserTurn<'a>),
    /// What the model answered.
    Assistant(Vec<AssistantPart<'a>>),
    /// What a tool gave back.
    ToolResult(ToolTurn<'a>),
    /// A change of the system prompt or the tools, where it was asked for in place. Never stands between a call
    /// and its result.
    System(SystemTurn),
    /// The effort that the answer behind it was made with, where it was asked for.
    Effort(&'a str),
}

/// What the user said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UserTurn<'a> {
    /// Text and images.
    pub(crate) parts: Vec<Part<'a>>,
    /// True when the message was one string and no list of blocks.
    pub(crate) plain: bool,
}

/// Text or an image.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// An image.
    Image {
        /// The media type.
        mime_type: &'a str,
        /// The bytes as base64.
        data: &'a str,
    },
}

/// A part of the model's answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AssistantPart<'a> {
    /// Text.
    Text {
        /// The text; blank only when there is a signature.
        text: &'a str,
        /// The provider's metadata, when the very model that is asked now made it.
        signature: Option<&'a str>,
    },
    /// Thinking of the very model that is asked now; other models' thinking is left out.
    Thinking {
        /// The text.
        text: &'a str,
        /// The provider's signature.
        signature: Option<&'a str>,
        /// True when the signature is the encrypted thinking itself.
        redacted: bool,
    },
    /// A tool call.
    ToolCall {
        /// The call's id, made valid for the API.
        id: Cow<'a, str>,
        /// The tool's name.
        name: &'a str,
        /// The arguments.
        arguments: &'a Map<String, Value>,
        /// The provider's signature, when the very model that is asked now made it.
        signature: Option<&'a str>,
        /// The namespace of the tool, when the very model that is asked now gave one.
        namespace: Option<&'a str>,
    },
}

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolTurn<'a> {
    /// The call's id, as the call has it.
    pub(crate) id: Cow<'a, str>,
    /// The tool's name.
    pub(crate) name: &'a str,
    /// Text and images.
    pub(crate) parts: Vec<Part<'a>>,
    /// True when the tool failed.
    pub(crate) is_error: bool,
}

impl ToolTurn<'_> {
    /// The text parts, a line feed between them.
    pub(crate) fn text(&self) -> String {
        let texts: Vec<&str> = self.parts.iter().filter_map(Part::as_text).collect();
        texts.join("\n")
    }
}

/// A run of tool results, which stand in one message of the API: what `write` makes of each, what it puts
/// behind all of them, and the turns that follow.
pub(crate) fn tool_results<'t, 'a>(
    mut turns: &'t [Turn<'a>],
    mut write: impl FnMut(&ToolTurn<'a>, &mut Vec<Value>) -> Value,
) -> (Vec<Value>, Vec<Value>, &'t [Turn<'a>]) {
    let mut results = Vec::new();
    let mut behind = Vec::new();
    while let Some((Turn::ToolResult(result), rest)) = turns.split_first() {
        results.push(write(result, &mut behind));
        turns = rest;
    }
    (results, behind, turns)
}

impl Part<'_> {
    /// The text of a text part.
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Image { .. } => None,
        }
    }
}

/// How an API wants the ids of calls that another model made.
pub(crate) type ForeignId = fn(&str) -> String;

impl<'a> Transcript<'a> {
    /// Reads the context of a request, without the images that are over the limits of its API, and with every
    /// change of the prompt and the tools at the beginning.
    pub(crate) fn new(request: &'a ModelRequest, foreign_id: ForeignId, limits: ImageLimits) -> Self {
        Self::with_changes(request, foreign_id, limits, InPlace::default())
    }

    /// The same with the changes that the model takes in their place.
    pub(crate) fn with_changes(
        request: &'a ModelRequest,
        foreign_id: ForeignId,
        limits: ImageLimits,
        in_place: InPlace,
    ) -> Self {
        let messages: Vec<&AgentMessage> = request.messages.iter().map(|message| &**message).collect();
        let opening = Opening::of(&messages, in_place);
        let reader = Reader {
            model: &request.model,
            opening: &opening,
            effort_of: in_place.effort,
            without_images: if request.options.block_images {
                Some(Omission::Blocked)
            } else {
                (!request.model.takes_images()).then_some(Omission::NotTaken)
            },
            foreign_id,
        };
        let turns = reader.turns(&messages);
        let Opening { prompt: SystemPrompt { text: system, tools }, tools: tool_changes, .. } = opening;
        let mut transcript = Self { system, tools, tool_changes, turns };
        images::enforce(&mut transcript, &request.model, limits);
        transcript
    }

    /// True when any tool was ever called in the conversation.
    pub(crate) fn has_tool_history(&self) -> bool {
        self.turns.iter().any(|turn| match turn {
            Turn::Assistant(parts) => parts.iter().any(|part| matches!(part, AssistantPart::ToolCall { .. })),
            Turn::ToolResult(_) => true,
            Turn::User(_) | Turn::System(_) | Turn::Effort(_) => false,
        })
    }
}

struct Reader<'a, 'o> {
    model: &'a Model,
    opening: &'o Opening,
    effort_of: Option<EffortOf>,
    /// Why no image at all is sent, when that is so.
    without_images: Option<Omission>,
    foreign_id: ForeignId,
}

/// The ids of the calls of a conversation.
#[derive(Default)]
struct CallIds {
    taken: HashSet<String>,
    /// For an id that was wanted again, the number that was tried last.
    tried: HashMap<String, usize>,
}

impl CallIds {
    /// An id that no call has yet. Some servers number the calls of each answer anew, which other APIs
    /// refuse.
    fn unique(&mut self, id: String, foreign_id: ForeignId) -> String {
        if !self.taken.contains(&id) {
            return id;
        }
        let tried = self.tried.entry(id.clone()).or_insert(1);
        // The number stands in front, as some ids are cut at their end.
        let mut others = (*tried + 1..=self.taken.len() + 2).map(|n| (n, foreign_id(&format!("{n}_{id}"))));
        match others.find(|(_, other)| !self.taken.contains(other)) {
            Some((n, other)) => {
                *tried = n;
                other
            }
            None => id,
        }
    }
}

impl<'a> Reader<'a, '_> {
    fn turns(&self, messages: &[&'a AgentMessage]) -> Vec<Turn<'a>> {
        let mut turns = Vec::with_capacity(messages.len());
        let mut ids = CallIds::default();
        let mut rest = messages;
        while let Some((&message, after)) = rest.split_first() {
            rest = after;
            match message {
                AgentMessage::Assistant(answer) => {
                    // What was cut short may hold half of a call or of a signature, which APIs refuse.
                    if !matches!(answer.stop_reason, StopReason::Error | StopReason::Aborted) {
                        self.answer(answer, after, &mut ids, &mut turns);
                    }
                }
                // A result comes with its call; without one, APIs refuse it.
                AgentMessage::ToolResult(_) | AgentMessage::Unknown(_) => {}
                AgentMessage::System(system) => {
                    let index = messages.len() - after.len() - 1;
                    turns.extend(self.opening.change(index, system).map(Turn::System));
                }
                AgentMessage::User(user) => turns.extend(self.user(&user.content)),
                AgentMessage::Custom(custom) => turns.extend(self.user(&custom.content)),
                AgentMessage::BashExecution(run) if run.exclude_from_context == Some(true) => {}
                AgentMessage::BashExecution(run) => turns.push(said(wording::bash_execution(run))),
                AgentMessage::BranchSummary(branch) => {
                    turns.push(said(wording::branch_summary(&branch.summary)));
                }
                AgentMessage::CompactionSummary(compaction) => {
                    turns.push(said(wording::compaction_summary(&compaction.summary)));
                }
            }
        }
        turns
    }

    fn user(&self, content: &'a Content) -> Option<Turn<'a>> {
        let (parts, plain) = match content {
            Content::Text(text) => (vec![Part::Text(Cow::Borrowed(text))], true),
            Content::Blocks(blocks) => (self.parts(blocks, ImageOmitted::User), false),
        };
        let said_nothing = parts.iter().all(|part| part.as_text().is_some_and(str::is_empty));
        (!said_nothing).then_some(Turn::User(UserTurn { parts, plain }))
    }

    /// Text and images; where images cannot go, one note stands for each run of them.
    fn parts(&self, blocks: &'a [ContentBlock], place: ImageOmitted) -> Vec<Part<'a>> {
        let mut parts = Vec::with_capacity(blocks.len());
        let mut in_run = false;
        for block in blocks {
            match block {
                ContentBlock::Text(text) => {
                    parts.push(Part::Text(Cow::Borrowed(text.text.as_str())));
                    in_run = false;
                }
                ContentBlock::Image(image) => match self.without_images {
                    None => parts.push(Part::Image { mime_type: &image.mime_type, data: &image.data }),
                    Some(why) => {
                        if !std::mem::replace(&mut in_run, true) {
                            parts.push(Part::Text(Cow::Borrowed(place.note(why))));
                        }
                    }
                },
                ContentBlock::Thinking(_) | ContentBlock::ToolCall(_) | ContentBlock::Unknown(_) => {}
            }
        }
        parts
    }

    /// An answer and, right behind it, the results of its calls, wherever they stand before the next answer.
    fn answer(
        &self,
        answer: &'a AssistantMessage,
        after: &[&'a AgentMessage],
        ids: &mut CallIds,
        turns: &mut Vec<Turn<'a>>,
    ) {
        let own = answer.model == self.model.id
            && answer.provider == self.model.provider
            && answer.api == self.model.api;
        // Signatures mean something to the model alone that made them.
        let signed = |signature: &'a Option<String>| {
            signature.as_deref().filter(|signature| own && !signature.is_empty())
        };
        let mut parts = Vec::with_capacity(answer.content.len());
        let mut calls: Vec<(&ToolCall, Cow<'a, str>)> = Vec::new();
        for block in &answer.content {
            match block {
                ContentBlock::Text(block) => {
                    let signature = signed(&block.text_signature);
                    if signature.is_some() || !block.text.trim().is_empty() {
                        parts.push(AssistantPart::Text { text: &block.text, signature });
                    }
                }
                ContentBlock::Thinking(thinking) if own => parts.push(AssistantPart::Thinking {
                    text: &thinking.thinking,
                    signature: signed(&thinking.thinking_signature),
                    redacted: thinking.redacted == Some(true),
                }),
                ContentBlock::ToolCall(call) => {
                    let id = if own {
                        Cow::Borrowed(call.id.as_str())
                    } else {
                        Cow::Owned(ids.unique((self.foreign_id)(call.id.as_str()), self.foreign_id))
                    };
                    ids.taken.insert(id.clone().into_owned());
                    calls.push((call, id.clone()));
                    parts.push(AssistantPart::ToolCall {
                        id,
                        name: &call.name,
                        arguments: &call.arguments,
                        signature: signed(&call.thought_signature),
                        namespace: signed(&call.namespace),
                    });
                }
                ContentBlock::Thinking(_) | ContentBlock::Image(_) | ContentBlock::Unknown(_) => {}
            }
        }
        turns.extend(self.effort_of.and_then(|of| of(self.model, answer)).map(Turn::Effort));
        turns.push(Turn::Assistant(parts));
        self.results(calls, after, turns);
    }

    fn results(
        &self,
        calls: Vec<(&'a ToolCall, Cow<'a, str>)>,
        after: &[&'a AgentMessage],
        turns: &mut Vec<Turn<'a>>,
    ) {
        if calls.is_empty() {
            return;
        }
        let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, (call, _)) in calls.iter().enumerate().rev() {
            open.entry(call.id.as_str()).or_default().push(index);
        }
        let mut answered = vec![false; calls.len()];
        for message in after {
            let result = match message {
                AgentMessage::ToolResult(result) => result,
                AgentMessage::Assistant(next)
                    if !matches!(next.stop_reason, StopReason::Error | StopReason::Aborted) =>
                {
                    break;
                }
                _ => continue,
            };
            let Some(index) = open.get_mut(result.tool_call_id.as_str()).and_then(Vec::pop) else { continue };
            let Some((_, id)) = calls.get(index) else { continue };
            if let Some(done) = answered.get_mut(index) {
                *done = true;
            }
            turns.push(self.result(result, id.clone()));
        }
        for ((call, id), answered) in calls.into_iter().zip(answered) {
            if !answered {
                turns.push(Turn::ToolResult(ToolTurn {
                    id,
                    name: &call.name,
                    parts: vec![Part::Text(Cow::Borrowed(NO_RESULT))],
                    is_error: true,
                }));
            }
        }
    }

    fn result(&self, result: &'a ToolResultMessage, id: Cow<'a, str>) -> Turn<'a> {
        Turn::ToolResult(ToolTurn {
            id,
            name: &result.tool_name,
            parts: self.parts(&result.content, ImageOmitted::Tool),
            is_error: result.is_error,
        })
    }
}

fn said<'a>(text: String) -> Turn<'a> {
    Turn::User(UserTurn { parts: vec![Part::Text(Cow::Owned(text))], plain: false })
}

#[cfg(test)]
mod tests;
