//! How the run task and the agent talk: the task asks for a turn, reports what happens in it, and is
//! told what to do next. The agent alone touches the session, the queues and the outbox.

use std::path::PathBuf;
use std::sync::Arc;

use sampi_protocol::Shared;
use sampi_protocol::data::{AgentMessage, AssistantMessage, ToolCall, ToolOutput, ToolResultMessage, Usage};
use sampi_protocol::stream::AssistantMessageEvent;
use tokio::sync::{mpsc, oneshot};

use super::{Inbox, InboxMessage};
use crate::llm::{Failure, ModelRequest, Provider};
use crate::resources::models::ModelRegistry;
use crate::tools::{ImageSettings, ShellSettings, Tool};

/// What the run task needs for one turn.
pub(super) struct TurnPlan {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) request: ModelRequest,
    pub(super) models: Arc<ModelRegistry>,
    pub(super) tools: Arc<[Arc<dyn Tool>]>,
    pub(super) cwd: PathBuf,
    pub(super) env: Vec<(String, Option<String>)>,
    pub(super) shell: ShellSettings,
    pub(super) images: ImageSettings,
}

/// Takes the next turn; `None` when there is none.
pub(super) type TurnReply = oneshot::Sender<Option<Box<TurnPlan>>>;

/// What the run task reports.
pub(super) enum RunMessage {
    /// Messages that an extension adds before the first turn.
    Inject(Vec<AgentMessage>),
    /// The first turn begins. No answer means that the run cannot go on.
    BeginTurn { reply: oneshot::Sender<Box<TurnPlan>> },
    /// The response began.
    AssistantStart(Box<AssistantMessage>),
    /// The response went on.
    Update { event: AssistantMessageEvent, usage: Usage },
    /// The response ended.
    AssistantEnd {
        message: Box<AssistantMessage>,
        failure: Option<Failure>,
        started: bool,
        reply: oneshot::Sender<Shared<AgentMessage>>,
    },
    /// A tool call is about to run.
    ToolStart(ToolCall),
    /// A tool call has a result so far.
    ToolProgress { call: Arc<ToolCall>, output: ToolOutput },
    /// A tool call is done.
    ToolEnd { call: Arc<ToolCall>, output: ToolOutput, is_error: bool, duration_ms: Option<u64> },
    /// All tool calls of the turn are done; their results in the order of the calls.
    ToolResults { results: Vec<ToolResultMessage>, reply: oneshot::Sender<Vec<Shared<AgentMessage>>> },
    /// The turn ended. The answer is the next turn, which has begun, if there is one.
    EndTurn { message: Shared<AgentMessage>, results: Vec<Shared<AgentMessage>>, reply: TurnReply },
    /// The task is over. The text says why, when it did not end by itself.
    Finished { broken: Option<String> },
}

/// The run task's end of the link. A failed call means that the agent has given the run up.
#[derive(Clone)]
pub(super) struct RunLink {
    run: u64,
    inbox: mpsc::Sender<Inbox>,
}

/// The agent has given the run up.
#[derive(Debug)]
pub(super) struct GivenUp;

impl RunLink {
    pub(super) fn new(run: u64, inbox: mpsc::Sender<Inbox>) -> Self {
        Self { run, inbox }
    }

    pub(super) async fn send(&self, message: RunMessage) -> Result<(), GivenUp> {
        self.inbox.send(Inbox(InboxMessage::Run { run: self.run, message })).await.map_err(|_| GivenUp)
    }

    pub(super) async fn ask<T>(
        &self,
        message: impl FnOnce(oneshot::Sender<T>) -> RunMessage,
    ) -> Result<T, GivenUp> {
        let (reply, answer) = oneshot::channel();
        self.send(message(reply)).await?;
        answer.await.map_err(|_| GivenUp)
    }
}
