//! What came of a prompt.

use std::sync::Arc;

use pyo3::prelude::*;
use sampi_client::protocol::Shared;
use sampi_client::protocol::commands::Disposition;
use sampi_client::protocol::data::{AgentMessage, StopReason, Usage};
use serde::{Deserialize, Serialize};

use super::declare::{records, repr};
use crate::convert::{ToPy, from_json, loads, to_json};

/// The client's outcome in a form that can be written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Outcome {
    disposition: Disposition,
    text: String,
    messages: Vec<Shared<AgentMessage>>,
    usage: Usage,
    stop_reason: Option<StopReason>,
    aborted: bool,
    error: Option<String>,
}

impl From<sampi_client::RunOutcome> for Outcome {
    fn from(outcome: sampi_client::RunOutcome) -> Self {
        Self {
            disposition: outcome.disposition,
            text: outcome.text,
            messages: outcome.messages,
            usage: outcome.usage,
            stop_reason: outcome.stop_reason,
            aborted: outcome.aborted,
            error: outcome.error,
        }
    }
}

records! {
    /// What came of a prompt.
    RunOutcome(v: Outcome) {
        /// The text of the last answer that has any.
        text = v.text,
        /// Why the last answer ended; `None` without an answer.
        stop_reason = v.stop_reason,
        /// What went wrong: the last answer's error, or that a queued prompt was never delivered.
        error = v.error,
        /// True when the run was aborted.
        aborted = v.aborted,
        /// Tokens and cost of all answers, and of model work that tools did themselves.
        usage = v.usage,
        /// The messages that ended during the run, in order.
        messages = v.messages,
        /// What became of the prompt: `started`, `queued` or `handled`. With `handled` there was no run.
        disposition = v.disposition,
        /// True when the run neither failed nor was aborted.
        ok = v.error.is_none() && !v.aborted,
    }
}
