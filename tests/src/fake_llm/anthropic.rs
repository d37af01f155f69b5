//! The events of the Anthropic messages API.

use serde_json::{Value, json};

use super::answer::{Answer, Part};
use super::exchange::RecordedRequest;
use super::reply::Step;

/// The signature of every thinking block.
pub const SIGNATURE: &str = "c2lnbmF0dXJl";

/// One event of the stream.
pub fn event(kind: &str, mut payload: Value) -> String {
    payload["type"] = json!(kind);
    format!("event: {kind}\ndata: {payload}\n\n")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Text,
    Thinking,
}

struct Writer {
    steps: Vec<Step>,
    open: Open,
    index: usize,
}

impl Writer {
    fn send(&mut self, kind: &str, payload: Value) {
        self.steps.push(Step::Send(event(kind, payload)));
    }

    fn start(&mut self, block: Value) {
        self.send("content_block_start", json!({ "index": self.index, "content_block": block }));
    }

    fn delta(&mut self, delta: Value) {
        self.send("content_block_delta", json!({ "index": self.index, "delta": delta }));
    }

    fn stop(&mut self) {
        self.send("content_block_stop", json!({ "index": self.index }));
        self.index += 1;
    }

    /// Closes the block that is open unless it is of this kind; returns true when one must be opened.
    fn turn_to(&mut self, kind: Open) -> bool {
        if self.open == kind {
            return false;
        }
        match self.open {
            Open::Nothing => {}
            Open::Text => self.stop(),
            Open::Thinking => {
                self.delta(json!({ "type": "signature_delta", "signature": SIGNATURE }));
                self.stop();
            }
        }
        self.open = kind;
        true
    }
}

pub(super) fn steps(answer: &Answer, request: &RecordedRequest) -> Vec<Step> {
    let tokens = answer.tokens;
    let mut writer = Writer { steps: Vec::new(), open: Open::Nothing, index: 0 };
    let usage = json!({
        "input_tokens": tokens.input,
        "output_tokens": 1,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation_input_tokens": tokens.cache_write,
    });
    let message = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": request.body["model"],
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    writer.send("message_start", json!({ "message": message }));
    for part in &answer.parts {
        match part {
            Part::Text(deltas) => {
                if writer.turn_to(Open::Text) {
                    writer.start(json!({ "type": "text", "text": "" }));
                }
                for text in deltas {
                    writer.delta(json!({ "type": "text_delta", "text": text }));
                }
            }
            Part::Thinking(deltas) => {
                if writer.turn_to(Open::Thinking) {
                    writer.start(json!({ "type": "thinking", "thinking": "", "signature": "" }));
                }
                for text in deltas {
                    writer.delta(json!({ "type": "thinking_delta", "thinking": text }));
                }
            }
            Part::RedactedThinking(data) => {
                writer.turn_to(Open::Nothing);
                writer.start(json!({ "type": "redacted_thinking", "data": data }));
                writer.stop();
            }
            Part::ToolCall { id, name, arguments } => {
                writer.turn_to(Open::Nothing);
                writer.start(json!({ "type": "tool_use", "id": id, "name": name, "input": {} }));
                for text in arguments {
                    writer.delta(json!({ "type": "input_json_delta", "partial_json": text }));
                }
                writer.stop();
            }
            Part::Wait(gate) => writer.steps.push(Step::Wait(gate.clone())),
            Part::Cut => writer.steps.push(Step::Cut),
            Part::End => writer.steps.push(Step::End),
            Part::Hang => writer.steps.push(Step::Hang),
        }
    }
    writer.turn_to(Open::Nothing);
    let usual = if answer.calls_tools() { "tool_use" } else { "end_turn" };
    let reason = answer.stop.as_deref().unwrap_or(usual);
    let delta = json!({ "stop_reason": reason, "stop_sequence": null });
    writer.send("message_delta", json!({ "delta": delta, "usage": { "output_tokens": tokens.output } }));
    writer.send("message_stop", json!({}));
    writer.steps
}
