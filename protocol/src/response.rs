//! The response envelope.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::maybe::Maybe;
use crate::request_id::{self, RequestId};

/// The answer to one command.
///
/// A success may carry `data`; a failure carries `error`, a text for people, and `code`, which Sampi
/// adds for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Response {
    /// The command's id, repeated as it came; absent when the command had none or could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "request_id::present")]
    pub id: Option<RequestId>,
    /// Always `response`.
    #[serde(rename = "type")]
    pub kind: ResponseTag,
    /// The command's name; `parse` when the record could not be read; absent when it named none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// True when the command did what it says.
    pub success: bool,
    /// The result.
    #[serde(default, skip_serializing_if = "Maybe::is_absent")]
    pub data: Maybe<Value>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The kind of failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
}

/// The tag of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ResponseTag {
    /// `response`
    #[default]
    #[serde(rename = "response")]
    Response,
}

/// The kind of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The record is not a JSON object, is not UTF-8 or is too long.
    Parse,
    /// The command is not known.
    UnknownCommand,
    /// A parameter is missing or wrong; the text names it.
    InvalidParams,
    /// What is going on must end first.
    Busy,
    /// A model, session, entry or file does not exist.
    NotFound,
    /// No model could be chosen, or none has credentials.
    NoModel,
    /// The credentials are missing or could not be read.
    Auth,
    /// It was stopped before it was done.
    Cancelled,
    /// The version at the other end cannot do it yet. This one never sends it.
    Unsupported,
    /// Reading or writing a file failed.
    Io,
    /// A fault of the daemon.
    Internal,
    /// A code that this version does not know.
    #[serde(untagged)]
    Other(String),
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parse => "parse",
            Self::UnknownCommand => "unknown_command",
            Self::InvalidParams => "invalid_params",
            Self::Busy => "busy",
            Self::NotFound => "not_found",
            Self::NoModel => "no_model",
            Self::Auth => "auth",
            Self::Cancelled => "cancelled",
            Self::Unsupported => "unsupported",
            Self::Io => "io",
            Self::Internal => "internal",
            Self::Other(code) => code,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_survives_a_round_trip_with_null_data_and_any_id() {
        for text in [
            r#"{"id":"a","type":"response","command":"cycle_model","success":true,"data":null}"#,
            r#"{"id":7,"type":"response","command":"abort","success":true}"#,
            r#"{"id":[1e400,9007199254740993],"type":"response","command":"abort","success":true}"#,
            r#"{"id":null,"type":"response","success":false,"error":"e","code":"busy"}"#,
            r#"{"type":"response","command":"parse","success":false,"error":"e","code":"teapot"}"#,
        ] {
            let response: Response = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&response).unwrap(), text);
        }
    }
}
