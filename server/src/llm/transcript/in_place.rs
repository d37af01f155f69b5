//! What changes inside the conversation: the system prompt, the tools and the effort. A model that takes such
//! changes where they happened keeps its cache of what stands before them; for all others they go into the one
//! prompt and the one list at the beginning.

use std::collections::HashSet;

use sampi_protocol::data::{AgentMessage, AssistantMessage, Model, SystemMessage, ToolDefinition};

use super::wording;
use crate::system_state::{SystemPrompt, SystemState, text_of};

/// Which effort an earlier answer was made with, as far as the API may be told again.
pub(crate) type EffortOf = for<'a> fn(&Model, &'a AssistantMessage) -> Option<&'a str>;

/// What the model takes inside the conversation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct InPlace {
    /// True when it takes changes of the system prompt.
    pub(crate) prompt: bool,
    /// The changes of tools that it takes; none without those of the prompt.
    pub(crate) tools: ToolChanges,
    /// Where earlier answers are to be preceded by the effort that they were made with.
    pub(crate) effort: Option<EffortOf>,
}

/// Which changes of tools a model takes inside the conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ToolChanges {
    /// None: the tools of now stand at the beginning.
    #[default]
    None,
    /// New tools. Where one was ever taken back or changed, the tools of now stand at the beginning.
    Additions,
    /// All: the first tools stand at the beginning, and what became of them in its place.
    All,
}

/// A change of the system prompt or of the tools.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct SystemTurn {
    /// What is new in the system prompt, in words; empty when the tools alone change.
    pub(crate) text: String,
    /// Tools that are there from now on, or under a new definition.
    pub(crate) added: Vec<ToolDefinition>,
    /// Names of tools that are not there any more.
    pub(crate) removed: Vec<String>,
}

/// The prompt and the tools at the beginning, and which messages are changes in their place.
pub(super) struct Opening {
    pub(super) prompt: SystemPrompt,
    /// How many of the messages are part of the prompt already, when they are system messages.
    folded: usize,
    pub(super) tools: ToolChanges,
}

impl Opening {
    /// Reads the system messages.
    pub(super) fn of(messages: &[&AgentMessage], in_place: InPlace) -> Self {
        let replay = |messages: &[&AgentMessage]| SystemState::replay(messages.iter().copied());
        if !in_place.prompt {
            let prompt = replay(messages).into_prompt();
            return Self { prompt, folded: messages.len(), tools: ToolChanges::None };
        }
        let folded = folded(messages);
        let (head, tail) = messages.split_at(folded);
        let first = replay(head);
        // Without a tool at the beginning there is no list that later ones could be added to.
        let tools = match in_place.tools {
            _ if first.tools().is_empty() => ToolChanges::None,
            ToolChanges::Additions if !adds_only(&first, tail) => ToolChanges::None,
            tools => tools,
        };
        let mut prompt = first.into_prompt();
        if tools == ToolChanges::None {
            prompt.tools = replay(messages).into_prompt().tools;
        }
        Self { prompt, folded, tools }
    }

    /// What the system message at this place of the conversation changes, if it is not in the prompt.
    pub(super) fn change(&self, index: usize, message: &SystemMessage) -> Option<SystemTurn> {
        if index < self.folded {
            return None;
        }
        let mut turn = SystemTurn { text: told(message), ..SystemTurn::default() };
        if self.tools != ToolChanges::None {
            turn.added = message.tools_added.clone().unwrap_or_default();
            // A tool that changed was removed and added again.
            let anew = |name: &str| turn.added.iter().any(|tool| tool.name == name);
            let removed = message.tools_removed.iter().flatten().filter(|tool| !anew(&tool.name));
            turn.removed = removed.map(|tool| tool.name.clone()).collect();
        }
        (turn != SystemTurn::default()).then_some(turn)
    }
}

/// How many messages there are up to where the conversation has its first prompt: the system messages at the very
/// beginning, or else the first one, as sessions have it that are older than system messages. One that starts
/// from nothing takes everything before it along.
fn folded(messages: &[&AgentMessage]) -> usize {
    let is_system = |message: &&AgentMessage| matches!(message, AgentMessage::System(_));
    let starts_anew = |message: &&AgentMessage| matches!(message, AgentMessage::System(system) if system.replace == Some(true));
    let leading = messages.iter().take_while(|message| is_system(message)).count();
    let first =
        if leading > 0 { leading } else { messages.iter().position(is_system).map_or(0, |index| index + 1) };
    let anew = messages.iter().rposition(starts_anew).map_or(0, |index| index + 1);
    first.max(anew)
}

/// True when these messages add tools to the first ones, and nothing else.
fn adds_only(first: &SystemState, messages: &[&AgentMessage]) -> bool {
    let mut known: HashSet<&str> = first.tools().iter().map(|tool| tool.name.as_str()).collect();
    messages.iter().all(|message| match message {
        AgentMessage::System(system) => {
            let removes = system.tools_removed.as_ref().is_some_and(|tools| !tools.is_empty());
            !removes && system.tools_added.iter().flatten().all(|tool| known.insert(&tool.name))
        }
        _ => true,
    })
}

/// The change in words, each section by its name.
fn told(message: &SystemMessage) -> String {
    let sections = message.sections.iter().flatten().filter_map(|(name, text)| match text.as_str() {
        Some(text) => Some(wording::section_now(name, text)),
        None if text.is_null() => Some(wording::section_gone(name)),
        None => None,
    });
    let parts: Vec<String> =
        std::iter::once(text_of(&message.content)).chain(sections).filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}
