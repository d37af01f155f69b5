//! The seam at which extensions hook in.
//!
//! The agent calls these points of one [`Extension`]; an extension runner implements the trait and
//! calls its extensions in order. The default of every point is to do nothing.

use sampi_protocol::Shared;
use sampi_protocol::data::{AgentMessage, ContentBlock, ImageContent, ToolCall, ToolOutput};

use crate::BoxFuture;
use crate::llm::{Completion, ModelRequest};

/// A message of the user on its way in.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Input {
    /// The text.
    pub text: String,
    /// Images that go with it.
    pub images: Vec<ImageContent>,
    /// What the model should know of the images, such as that one was left out.
    pub notes: Vec<String>,
}

/// What an extension did with a message.
#[derive(Debug, Clone, PartialEq)]
pub enum InputVerdict {
    /// Go on with this message, possibly changed.
    Continue(Input),
    /// The extension consumed it; the prompt is answered as handled.
    Handled,
}

/// What an extension says of a tool call.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ToolVerdict {
    /// Run it.
    #[default]
    Run,
    /// Do not run it; the model is told the reason.
    Block {
        /// The reason.
        reason: String,
    },
}

/// A change of session that an extension may prevent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionTransition {
    /// `new_session`
    New,
    /// `switch_session`, to this file.
    Switch(String),
    /// `fork`, from this entry.
    Fork(String),
    /// `clone`
    Clone,
    /// `navigate_tree`, to this entry.
    Navigate(String),
}

/// The points at which the agent calls out. Points that return a value may change what happens.
pub trait Extension: Send + Sync {
    /// False when no extension is loaded: messages and changes of session then need not wait.
    fn is_active(&self) -> bool {
        true
    }

    /// A prompt, steering or follow-up message came in.
    fn input(&self, input: Input) -> BoxFuture<'_, InputVerdict> {
        Box::pin(async { InputVerdict::Continue(input) })
    }

    /// A run is about to start. Messages given back are appended after the user's.
    fn before_agent_start<'a>(&'a self, _input: &'a Input) -> BoxFuture<'a, Vec<AgentMessage>> {
        Box::pin(async { Vec::new() })
    }

    /// The context of a request; what is given back is sent instead.
    fn context(&self, messages: Vec<Shared<AgentMessage>>) -> BoxFuture<'_, Vec<Shared<AgentMessage>>> {
        Box::pin(async { messages })
    }

    /// A request is about to go to the provider and may be changed.
    fn before_provider_request(&self, request: ModelRequest) -> BoxFuture<'_, ModelRequest> {
        Box::pin(async { request })
    }

    /// The provider's response has ended.
    fn after_provider_response<'a>(&'a self, _completion: &'a Completion) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// A tool call is about to run. `call.arguments` may be changed.
    fn tool_call<'a>(&'a self, _call: &'a mut ToolCall) -> BoxFuture<'a, ToolVerdict> {
        Box::pin(async { ToolVerdict::Run })
    }

    /// A tool call has a result, which may be changed.
    fn tool_result<'a>(&'a self, _call: &'a ToolCall, output: ToolOutput) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async { output })
    }

    /// A message is about to be kept; content given back replaces its own.
    fn message_end<'a>(&'a self, _message: &'a AgentMessage) -> BoxFuture<'a, Option<Vec<ContentBlock>>> {
        Box::pin(async { None })
    }

    /// A turn ended.
    fn turn_end<'a>(&'a self, _message: &'a AgentMessage) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// The agent stopped; it may go on by itself.
    fn agent_end<'a>(&'a self, _messages: &'a [Shared<AgentMessage>]) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// The run is over for good.
    fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// The session is about to change; `false` prevents it.
    fn session_before_change<'a>(&'a self, _transition: &'a SessionTransition) -> BoxFuture<'a, bool> {
        Box::pin(async { true })
    }
}

/// No extension at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoExtensions;

impl Extension for NoExtensions {
    fn is_active(&self) -> bool {
        false
    }
}
