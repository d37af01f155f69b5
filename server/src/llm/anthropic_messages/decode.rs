//! The stream of the Messages API.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;

use sampi_protocol::data::{ContentBlock, StopReason, ThinkingContent, Usage};
use sampi_protocol::number::optional_count;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::fallback::{Fallback, fallbacks};
use super::request::effort_in_place;
use crate::llm::draft::{Draft, REDACTED};
use crate::llm::exchange::{self, Fault, Flow};
use crate::llm::loose::Loose;
use crate::llm::sse::SseEvent;
use crate::llm::{FailureKind, ModelRequest};

/// Decodes one response.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    // The stream's index of a block to ours; they differ when there are blocks that we do not know.
    blocks: HashMap<u64, usize>,
    stop_reason: Option<String>,
    explanation: Option<String>,
    usage: Usage,
    stopped: bool,
    effort: Option<String>,
    fallbacks: Vec<Fallback>,
}

impl Decoder {
    /// A decoder for the answer to this request.
    pub(super) fn of(request: &ModelRequest) -> Self {
        Self { effort: effort_in_place(request), fallbacks: fallbacks(&request.model), ..Self::default() }
    }

    /// Another model answers from here on, and what it takes is paid.
    fn answered_by(&self, model: &str, draft: &mut Draft) {
        let fallback = self.fallbacks.iter().find(|fallback| fallback.model == model);
        if let Some(cost) = fallback.and_then(|fallback| fallback.cost.clone()) {
            draft.set_prices(cost);
        }
        draft.set_response_model(model);
    }

    /// A model that had begun gave way to another one.
    fn gave_way(&self, model: &str, draft: &mut Draft) {
        draft.message.response_model = None;
        self.answered_by(model, draft);
        // The API refuses the thinking of two models in one answer.
        for block in &mut draft.message.content {
            if let ContentBlock::Thinking(thinking) = block {
                thinking.thinking_signature = None;
            }
        }
    }

    fn message_start(&mut self, message: Message<'_>, draft: &mut Draft) {
        if let Some(id) = message.id {
            draft.set_response_id(&id.text());
        }
        if let Some(model) = message.model {
            self.answered_by(&model.text(), draft);
        }
        // The split of the cache writes is always told, if only as zero.
        self.usage.cache_write1h = Some(0);
        self.read_usage(message.usage, draft);
        draft.start();
    }

    fn block_start(&mut self, index: u64, block: Block<'_>, draft: &mut Draft) {
        let text =
            |value: Option<Loose<'_>>| value.map(|value| value.text().into_owned()).unwrap_or_default();
        let own = match block.kind.text().as_ref() {
            "text" => {
                let own = draft.begin_text();
                draft.prefill_text(own, &text(block.text));
                own
            }
            "thinking" => draft.begin_thinking(ThinkingContent {
                thinking: text(block.thinking),
                thinking_signature: Some(text(block.signature)),
                ..ThinkingContent::default()
            }),
            "redacted_thinking" => draft.begin_thinking(ThinkingContent {
                thinking: REDACTED.to_owned(),
                thinking_signature: Some(text(block.data)),
                redacted: Some(true),
                ..ThinkingContent::default()
            }),
            "tool_use" => draft.begin_tool_call(&text(block.id), &text(block.name)),
            "fallback" => {
                let to = block.to.and_then(|raw| serde_json::from_str::<Hop<'_>>(raw.get()).ok());
                if let Some(model) = to.and_then(|to| to.model) {
                    self.gave_way(&model.text(), draft);
                }
                return;
            }
            // A block that the provider works on itself.
            _ => return,
        };
        self.blocks.insert(index, own);
    }

    fn block_delta(&mut self, index: u64, delta: BlockDelta<'_>, draft: &mut Draft) {
        let Some(own) = self.blocks.get(&index).copied() else { return };
        let added = match delta.kind.text().as_ref() {
            "text_delta" => delta.text,
            "thinking_delta" => delta.thinking,
            "input_json_delta" => delta.partial_json,
            "signature_delta" => {
                if let (Some(block), Some(more)) = (draft.thinking_mut(own), delta.signature) {
                    block.thinking_signature.get_or_insert_default().push_str(&more.text());
                }
                None
            }
            _ => None,
        };
        if let Some(added) = added.map(|added| added.text()).filter(|added| !added.is_empty()) {
            draft.append(own, &added);
        }
    }

    fn read_usage(&mut self, usage: Option<&RawValue>, draft: &mut Draft) {
        // Counts that cannot be read are no reason to lose the answer.
        let Some(wire) = usage.and_then(|raw| serde_json::from_str::<WireUsage>(raw.get()).ok()) else {
            return;
        };
        let set = |place: &mut u64, value: Option<u64>| *place = value.unwrap_or(*place);
        set(&mut self.usage.input, wire.input_tokens);
        set(&mut self.usage.output, wire.output_tokens);
        set(&mut self.usage.cache_read, wire.cache_read_input_tokens);
        set(&mut self.usage.cache_write, wire.cache_creation_input_tokens);
        let long = wire.cache_creation.and_then(|split| split.ephemeral_1h_input_tokens);
        self.usage.cache_write1h = long.or(self.usage.cache_write1h);
        let thought = wire.output_tokens_details.and_then(|details| details.thinking_tokens);
        self.usage.reasoning = thought.or(self.usage.reasoning);
        draft.set_usage(self.usage.clone());
    }

    fn read(&mut self, event: SseEvent<'_>, draft: &mut Draft) -> Result<Flow, serde_json::Error> {
        let kind: Kind<'_> = serde_json::from_str(event.data)?;
        let kind = kind.kind.map(|kind| kind.text()).unwrap_or(Cow::Borrowed(event.name));
        match kind.as_ref() {
            "message_start" => {
                let start: MessageStart<'_> = serde_json::from_str(event.data)?;
                self.message_start(start.message, draft);
            }
            "content_block_start" => {
                let start: BlockStart<'_> = serde_json::from_str(event.data)?;
                self.block_start(start.index, start.content_block, draft);
            }
            "content_block_delta" => {
                let delta: DeltaEvent<'_> = serde_json::from_str(event.data)?;
                self.block_delta(delta.index, delta.delta, draft);
            }
            "content_block_stop" => {
                let stop: BlockStop = serde_json::from_str(event.data)?;
                if let Some(own) = self.blocks.get(&stop.index) {
                    draft.end(*own);
                }
            }
            "message_delta" => {
                let delta: MessageDelta<'_> = serde_json::from_str(event.data)?;
                if let Some(reason) = delta.delta.stop_reason {
                    self.stop_reason = Some(reason.text().into_owned());
                }
                let details =
                    delta.delta.stop_details.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
                let explanation = details.as_ref().and_then(|details| details.get("explanation"));
                self.explanation = explanation.and_then(Value::as_str).map(str::to_owned);
                self.read_usage(delta.usage, draft);
            }
            "message_stop" => {
                self.stopped = true;
                return Ok(ControlFlow::Break(Ok(())));
            }
            "error" => {
                let value: Value = serde_json::from_str(event.data)?;
                let kind = value.pointer("/error/type").and_then(Value::as_str);
                return Ok(ControlFlow::Break(Err(Fault::new(event.data, [kind, None]))));
            }
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl exchange::Decoder for Decoder {
    // The first event says more about the message than the head of the response.
    fn opened(&mut self, draft: &mut Draft) {
        draft.message.provider_thinking_level = self.effort.take();
    }

    fn event(&mut self, event: SseEvent<'_>, draft: &mut Draft) -> Flow {
        if event.data.trim().is_empty() {
            return ControlFlow::Continue(());
        }
        self.read(event, draft).unwrap_or_else(|error| {
            let text = format!("Could not parse Anthropic SSE event {}: {error}", event.name);
            ControlFlow::Break(Err(Fault::of_kind(FailureKind::Server, text)))
        })
    }

    fn ended(&mut self, draft: &mut Draft) -> Result<StopReason, Fault> {
        draft.message.raw_stop_reason = self.stop_reason.clone();
        if !self.stopped {
            return Err(Fault::cut("Anthropic stream ended before message_stop"));
        }
        draft.end_all();
        match self.stop_reason.as_deref() {
            Some("end_turn" | "stop_sequence" | "pause_turn") => Ok(StopReason::Stop),
            Some("max_tokens") => Ok(StopReason::Length),
            Some("tool_use") => Ok(StopReason::ToolUse),
            Some("refusal") => {
                let text = self.explanation.as_deref().unwrap_or("The model refused to complete the request");
                Err(Fault::of_kind(FailureKind::ContentFilter, text))
            }
            Some(reason @ "sensitive") => {
                Err(Fault::of_kind(FailureKind::ContentFilter, format!("Provider stopped with: {reason}")))
            }
            Some(other) => Err(Fault::new(format!("Unhandled stop reason: {other}"), [Some(other), None])),
            None => Err(Fault::cut("Anthropic stream ended without a stop reason")),
        }
    }

    fn aborted(&mut self, _: &mut Draft) {}

    fn error_text(&self, status: u16, body: &str) -> String {
        match serde_json::from_str::<Value>(body) {
            Ok(json) => format!("{status} {json}"),
            Err(_) => format!("{status} {body}"),
        }
    }
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Loose<'a>>,
}

#[derive(Deserialize)]
struct MessageStart<'a> {
    #[serde(borrow)]
    message: Message<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    id: Option<Loose<'a>>,
    #[serde(borrow, default)]
    model: Option<Loose<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct BlockStart<'a> {
    index: u64,
    #[serde(borrow)]
    content_block: Block<'a>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    text: Option<Loose<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Loose<'a>>,
    #[serde(borrow, default)]
    signature: Option<Loose<'a>>,
    #[serde(borrow, default)]
    data: Option<Loose<'a>>,
    #[serde(borrow, default)]
    id: Option<Loose<'a>>,
    #[serde(borrow, default)]
    name: Option<Loose<'a>>,
    #[serde(borrow, default)]
    to: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Hop<'a> {
    #[serde(borrow, default)]
    model: Option<Loose<'a>>,
}

#[derive(Deserialize)]
struct DeltaEvent<'a> {
    index: u64,
    #[serde(borrow)]
    delta: BlockDelta<'a>,
}

#[derive(Deserialize)]
struct BlockDelta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    text: Option<Loose<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Loose<'a>>,
    #[serde(borrow, default)]
    signature: Option<Loose<'a>>,
    #[serde(borrow, default)]
    partial_json: Option<Loose<'a>>,
}

#[derive(Deserialize)]
struct BlockStop {
    index: u64,
}

#[derive(Deserialize)]
struct MessageDelta<'a> {
    #[serde(borrow)]
    delta: Ending<'a>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Ending<'a> {
    #[serde(borrow, default)]
    stop_reason: Option<Loose<'a>>,
    #[serde(borrow, default)]
    stop_details: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation: Option<CacheCreation>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct CacheCreation {
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    thinking_tokens: Option<u64>,
}
