//! From a frame to a command, or to the error that answers it.

use sampi_protocol::RequestId;
use sampi_protocol::commands::Command;
use sampi_protocol::jsonl::Frame;
use sampi_protocol::response::ErrorCode;
use sampi_protocol::ui::UiResponse;
use sampi_protocol::wire::{self, Head};

use super::frame_head::id_in_start;

/// What a frame says.
pub(super) enum Received {
    Command { id: Option<RequestId>, command: Command },
    UiResponse(UiResponse),
    Refused(Refusal),
}

/// Why a frame is no command.
pub(super) struct Refusal {
    pub(super) id: Option<RequestId>,
    pub(super) command: Option<String>,
    pub(super) error: String,
    pub(super) code: ErrorCode,
}

/// The name under which Pi answers a record that cannot be read.
const PARSE: &str = "parse";

/// Reads one frame.
pub(super) fn read_frame(frame: Frame, limit: usize) -> Received {
    let received = read(frame, limit);
    match &received {
        Received::Command { id, command } => {
            tracing::debug!(name = command.name(), id = id.as_ref().map(RequestId::json), "command");
        }
        Received::UiResponse(response) => tracing::debug!(id = response.id, "answer to a dialog"),
        Received::Refused(refusal) => {
            tracing::debug!(name = refusal.command, code = %refusal.code, "a record was refused");
        }
    }
    received
}

fn read(frame: Frame, limit: usize) -> Received {
    let bytes = match frame {
        Frame::Line(bytes) => bytes,
        Frame::TooLong { length, start } => {
            let error = format!("the record has {length} bytes, the limit is {limit}");
            return Received::Refused(unreadable(id_in_start(&start), &error));
        }
    };
    match String::from_utf8(bytes) {
        Ok(text) => read_text(&text),
        Err(error) => {
            let lossy = String::from_utf8_lossy(error.as_bytes());
            let id = Head::read(&lossy).ok().and_then(|head| head.owned_id());
            Received::Refused(unreadable(id, "the record is not valid UTF-8"))
        }
    }
}

fn read_text(text: &str) -> Received {
    let repaired;
    let (text, head) = match Head::read(text) {
        Ok(head) => (text, head),
        Err(error) => {
            // JavaScript writes half a character as an escape that serde_json refuses.
            repaired = wire::repair_lone_surrogates(text);
            match repaired.as_deref().map(|text| (text, Head::read(text))) {
                Some((text, Ok(head))) => (text, head),
                _ => return Received::Refused(unreadable(None, &error.to_string())),
            }
        }
    };
    let id = head.owned_id();
    let Some(kind) = head.kind else {
        return Received::Refused(unreadable(id, "type: missing or not a string"));
    };
    if kind == wire::UI_RESPONSE {
        return match wire::read_ui_response(text) {
            Ok(response) => Received::UiResponse(response),
            Err(error) => Received::Refused(invalid(id, &kind, &error)),
        };
    }
    match Command::read(&kind, text) {
        Some(Ok(command)) => Received::Command { id, command },
        Some(Err(error)) => {
            let repaired = wire::repair_lone_surrogates(text);
            match repaired.and_then(|repaired| Command::read(&kind, &repaired)) {
                Some(Ok(command)) => Received::Command { id, command },
                _ => Received::Refused(invalid(id, &kind, &error)),
            }
        }
        None => Received::Refused(Refusal {
            id,
            error: format!("Unknown command: {kind}"),
            command: Some(kind.into_owned()),
            code: ErrorCode::UnknownCommand,
        }),
    }
}

fn unreadable(id: Option<RequestId>, error: &str) -> Refusal {
    Refusal {
        id,
        command: Some(PARSE.to_owned()),
        error: format!("Failed to parse command: {error}"),
        code: ErrorCode::Parse,
    }
}

fn invalid(id: Option<RequestId>, command: &str, error: &wire::WireError) -> Refusal {
    Refusal {
        id,
        command: Some(command.to_owned()),
        error: format!("Invalid parameters for {command}: {error}"),
        code: ErrorCode::InvalidParams,
    }
}
