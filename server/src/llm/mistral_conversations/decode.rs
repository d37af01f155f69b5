//! The stream of Mistral's API.

use std::ops::ControlFlow;

use sampi_protocol::data::{StopReason, ThinkingContent, Usage};
use sampi_protocol::number::optional_count;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::llm::FailureKind;
use crate::llm::call_blocks::CallBlocks;
use crate::llm::draft::Draft;
use crate::llm::exchange::{self, Fault, Flow};
use crate::llm::loose::Loose;
use crate::llm::sse::SseEvent;

/// Letters and digits of a call's id.
const CALL_ID_LENGTH: usize = 9;

/// Decodes one response.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    open: Option<Open>,
    calls: CallBlocks,
    finish_reason: Option<String>,
}

/// The block of text or thinking that goes on.
#[derive(Debug, Clone, Copy)]
struct Open {
    block: usize,
    is_thought: bool,
}

impl Decoder {
    fn chunk(&mut self, chunk: Chunk<'_>, data: &str, draft: &mut Draft) -> Flow {
        let is_error = chunk.object.is_some_and(|object| object.text() == "error");
        if is_error || chunk.error.is_some_and(|error| error.get() != "null") {
            return ControlFlow::Break(Err(error_fault(data)));
        }
        if let Some(id) = chunk.id {
            draft.set_response_id(&id.text());
        }
        // Counts that cannot be read are no reason to lose the answer.
        let usage = chunk.usage.and_then(|raw| serde_json::from_str::<WireUsage>(raw.get()).ok());
        if let Some(usage) = usage {
            draft.set_usage(usage.counts());
        }
        for choice in chunk.choices.into_iter().flatten().take(1) {
            if let Some(delta) = choice.delta {
                self.content(delta.content, draft);
                for call in delta.tool_calls.into_iter().flatten() {
                    self.tool_call(call, draft);
                }
            }
            let reason = choice.finish_reason.map(|reason| reason.text());
            if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
                self.finish_reason = Some(reason.into_owned());
            }
        }
        ControlFlow::Continue(())
    }

    /// Content is a string, or a list of parts when the model thinks.
    fn content(&mut self, content: Option<&RawValue>, draft: &mut Draft) {
        let Some(content) = content else { return };
        if content.get().starts_with('"') {
            if let Ok(text) = serde_json::from_str::<Loose<'_>>(content.get()) {
                self.append(&text.text(), false, draft);
            }
            return;
        }
        let parts: Vec<ContentPart<'_>> = serde_json::from_str(content.get()).unwrap_or_default();
        for part in parts {
            // Thinking is a list of text parts, whose texts are put together.
            match (part.kind.map(|kind| kind.text()).as_deref(), part.text, part.thinking) {
                (Some("thinking"), _, Some(thinking)) => self.append(&thinking.text(), true, draft),
                (Some("text"), Some(text), _) => self.append(&text.text(), false, draft),
                _ => {}
            }
        }
    }

    fn append(&mut self, text: &str, is_thought: bool, draft: &mut Draft) {
        if text.is_empty() {
            return;
        }
        let block = match self.open {
            Some(open) if open.is_thought == is_thought => open.block,
            _ => {
                close(&mut self.open, draft);
                let block = if is_thought {
                    draft.begin_thinking(ThinkingContent::default())
                } else {
                    draft.begin_text()
                };
                self.open = Some(Open { block, is_thought });
                block
            }
        };
        draft.append(block, text);
    }

    fn tool_call(&mut self, call: CallDelta<'_>, draft: &mut Draft) {
        let function = call.function.unwrap_or_default();
        // Pieces after the first have the id "null".
        let id = call.id.map(|id| id.text()).filter(|id| id != "null").unwrap_or_default();
        let open = &mut self.open;
        let block = self.calls.block(call.index, &id, || {
            close(open, draft);
            let name = function.name.map(|name| name.text()).unwrap_or_default();
            let made = id.is_empty().then(made_id);
            draft.begin_tool_call(made.as_deref().unwrap_or(&id), &name)
        });
        // Arguments are a string, or at times the object itself.
        if let Some(arguments) = function.arguments.map(|arguments| arguments.text())
            && !arguments.is_empty()
        {
            draft.append(block, &arguments);
        }
    }
}

impl exchange::Decoder for Decoder {
    fn opened(&mut self, draft: &mut Draft) {
        draft.start();
    }

    fn event(&mut self, event: SseEvent<'_>, draft: &mut Draft) -> Flow {
        match event.data.trim() {
            "[DONE]" => ControlFlow::Break(Ok(())),
            "" => ControlFlow::Continue(()),
            data => match serde_json::from_str(data) {
                Ok(chunk) => self.chunk(chunk, data, draft),
                Err(error) => {
                    let text = format!("Error reading response: malformed server-sent event JSON: {error}");
                    ControlFlow::Break(Err(Fault::of_kind(FailureKind::Server, text)))
                }
            },
        }
    }

    fn ended(&mut self, draft: &mut Draft) -> Result<StopReason, Fault> {
        draft.end_all();
        draft.message.raw_stop_reason = self.finish_reason.clone();
        match self.finish_reason.as_deref() {
            Some("stop") if self.calls.is_empty() => Ok(StopReason::Stop),
            Some("stop" | "tool_calls") => Ok(StopReason::ToolUse),
            Some("length" | "model_length") => Ok(StopReason::Length),
            Some("error") => {
                Err(Fault::of_kind(FailureKind::Server, "Provider stopped with: error (server error)"))
            }
            Some(other) => Err(Fault::new(format!("Provider stopped with: {other}"), [Some(other), None])),
            None => Err(Fault::cut("Mistral stream ended without a finish reason")),
        }
    }

    fn aborted(&mut self, _: &mut Draft) {}

    fn aborted_text(&self) -> &'static str {
        exchange::ABORTED_BEFORE
    }

    fn error_text(&self, status: u16, body: &str) -> String {
        match serde_json::from_str::<Value>(body) {
            Ok(json) => format!("Mistral API error ({status}): {json}"),
            Err(_) => format!("Mistral API error ({status}): {body}"),
        }
    }

    fn bare_error_text(&self, status: u16) -> String {
        let reason = reqwest::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        format!("Mistral API error ({status}): {}", reason.unwrap_or("no body"))
    }
}

fn close(open: &mut Option<Open>, draft: &mut Draft) {
    if let Some(open) = open.take() {
        draft.end(open.block);
    }
}

/// A call needs an id, or its result could not name it.
fn made_id() -> String {
    uuid::Uuid::new_v4().simple().to_string().chars().take(CALL_ID_LENGTH).collect()
}

fn error_fault(data: &str) -> Fault {
    let value: Value = serde_json::from_str(data).unwrap_or_default();
    let error = value.get("error").filter(|error| error.is_object()).unwrap_or(&value);
    let text = |name: &str| error.get(name).and_then(Value::as_str);
    Fault::new(text("message").unwrap_or(data), [text("code"), text("type")])
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    id: Option<Loose<'a>>,
    #[serde(borrow, default)]
    object: Option<Loose<'a>>,
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Loose<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallDelta<'a>>>,
}

#[derive(Deserialize)]
struct ContentPart<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Loose<'a>>,
    #[serde(borrow, default)]
    text: Option<Loose<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Loose<'a>>,
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    id: Option<Loose<'a>>,
    #[serde(borrow, default)]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Deserialize, Default)]
struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    name: Option<Loose<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Loose<'a>>,
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    num_cached_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    cached_tokens: Option<u64>,
}

impl WireUsage {
    /// Mistral counts cached tokens as part of the prompt; we count them apart.
    fn counts(&self) -> Usage {
        let details = self.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens);
        let cache_read = details.or(self.num_cached_tokens).unwrap_or(0);
        Usage {
            input: self.prompt_tokens.unwrap_or(0).saturating_sub(cache_read),
            output: self.completion_tokens.unwrap_or(0),
            cache_read,
            ..Usage::default()
        }
    }
}
