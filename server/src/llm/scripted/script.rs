//! The script: which answers the demo model gives.

use sampi_protocol::wire;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::llm::FailureKind;

/// A list of answers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    pub(super) steps: Vec<Step>,
}

/// One answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Step {
    pub(super) thinking: String,
    pub(super) text: String,
    pub(super) tools: Vec<Call>,
    pub(super) deltas: usize,
    pub(super) delta_size: Option<usize>,
    pub(super) first_delay_ms: u64,
    pub(super) delay_ms: u64,
    pub(super) usage: Option<StepUsage>,
    pub(super) stop_reason: Option<StepStop>,
    pub(super) fail: Option<Fail>,
    pub(super) cut: bool,
    pub(super) hang: bool,
}

/// A tool call.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Call {
    pub(super) name: String,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) args: Map<String, Value>,
    #[serde(default)]
    pub(super) raw: Option<String>,
}

/// Tokens to report.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct StepUsage {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
}

/// How an answer may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum StepStop {
    Stop,
    Length,
    ToolUse,
}

/// A failure in place of an answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Fail {
    pub(super) kind: Option<FailureKind>,
    pub(super) status: Option<u16>,
    pub(super) message: String,
    pub(super) retry_after_ms: Option<u64>,
    pub(super) times: Option<u32>,
}

impl Script {
    /// Reads a script; what follows it in the text is ignored.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        match values.next() {
            Some(Ok(value @ Value::Object(_))) => wire::from_value(value).map_err(|error| error.to_string()),
            Some(Ok(_)) => Err("expected an object with `steps`".to_owned()),
            Some(Err(error)) => Err(error.to_string()),
            None => Err("it is empty".to_owned()),
        }
    }

    /// A step, or a note that there is none.
    pub(super) fn step(&self, index: usize) -> Step {
        self.steps.get(index).cloned().unwrap_or_else(|| Step::saying("The script has no more steps."))
    }
}

impl Step {
    pub(super) fn saying(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// A request that cannot succeed.
    pub(super) fn failing(text: String) -> Self {
        let fail = Fail { kind: Some(FailureKind::InvalidRequest), message: text, ..Fail::default() };
        Self { fail: Some(fail), ..Self::default() }
    }
}
