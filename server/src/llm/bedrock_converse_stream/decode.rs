//! The stream of the Converse API.

use std::collections::HashMap;
use std::ops::ControlFlow;

use sampi_protocol::data::{StopReason, ThinkingContent, Usage};
use sampi_protocol::number::optional_count;
use serde::Deserialize;
use serde_json::Value;

use crate::llm::FailureKind;
use crate::llm::draft::{Draft, REDACTED};
use crate::llm::exchange::{self, Fault, Flow, Framing};
use crate::llm::failure::ErrorReport;
use crate::llm::loose::Loose;
use crate::llm::sse::SseEvent;

/// Decodes one response.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    blocks: HashMap<u64, usize>,
    has_calls: bool,
    stop_reason: Option<String>,
}

impl Decoder {
    fn block_start(&mut self, start: BlockStart<'_>, draft: &mut Draft) {
        let Some(call) = start.start.and_then(|start| start.tool_use) else { return };
        let text =
            |field: Option<Loose<'_>>| field.map(|field| field.text().into_owned()).unwrap_or_default();
        self.has_calls = true;
        let block = draft.begin_tool_call(&text(call.tool_use_id), &text(call.name));
        self.blocks.insert(start.content_block_index, block);
    }

    fn delta(&mut self, event: BlockDelta<'_>, draft: &mut Draft) {
        let index = event.content_block_index;
        let Some(delta) = event.delta else { return };
        if let Some(text) = delta.text.map(|text| text.text()).filter(|text| !text.is_empty()) {
            // Text and thinking begin without an event of their own.
            let block = *self.blocks.entry(index).or_insert_with(|| draft.begin_text());
            draft.append(block, &text);
        }
        if let Some(reasoning) = delta.reasoning_content {
            self.reasoning(index, reasoning, draft);
        }
        if let Some(input) = delta.tool_use.and_then(|call| call.input)
            && let Some(block) = self.blocks.get(&index)
        {
            let input = input.text();
            if !input.is_empty() {
                draft.append(*block, &input);
            }
        }
    }

    fn reasoning(&mut self, index: u64, reasoning: Reasoning<'_>, draft: &mut Draft) {
        let block =
            *self.blocks.entry(index).or_insert_with(|| draft.begin_thinking(ThinkingContent::default()));
        if let Some(text) = reasoning.text.map(|text| text.text()).filter(|text| !text.is_empty()) {
            draft.append(block, &text);
        }
        if let (Some(thinking), Some(more)) = (draft.thinking_mut(block), reasoning.signature) {
            thinking.thinking_signature.get_or_insert_default().push_str(&more.text());
        }
        if let Some(data) = reasoning.redacted_content {
            let is_first = draft.thinking_mut(block).is_some_and(|thinking| thinking.thinking.is_empty());
            if is_first {
                draft.append(block, REDACTED);
            }
            if let Some(thinking) = draft.thinking_mut(block) {
                thinking.redacted = Some(true);
                thinking.thinking_signature.get_or_insert_default().push_str(&data.text());
            }
        }
    }

    fn read(&mut self, event: SseEvent<'_>, draft: &mut Draft) -> Result<Flow, serde_json::Error> {
        match event.name {
            "messageStart" => draft.start(),
            "contentBlockStart" => self.block_start(serde_json::from_str(event.data)?, draft),
            "contentBlockDelta" => self.delta(serde_json::from_str(event.data)?, draft),
            "contentBlockStop" => {
                let stop: BlockStop = serde_json::from_str(event.data)?;
                if let Some(block) = self.blocks.get(&stop.content_block_index) {
                    draft.end(*block);
                }
            }
            "messageStop" => {
                let stop: MessageStop<'_> = serde_json::from_str(event.data)?;
                self.stop_reason = stop.stop_reason.map(|reason| reason.text().into_owned());
            }
            "metadata" => {
                // Counts that cannot be read are no reason to lose the answer.
                let metadata = serde_json::from_str::<Metadata>(event.data).ok();
                if let Some(usage) = metadata.and_then(|metadata| metadata.usage) {
                    draft.set_usage(usage.counts());
                }
            }
            name if name.ends_with("Exception") || name.ends_with("Error") => {
                return Ok(ControlFlow::Break(Err(exception(name, message(event.data)))));
            }
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl exchange::Decoder for Decoder {
    fn framing(&self) -> Framing {
        Framing::AwsEvents
    }

    // The first event says that the model answers.
    fn opened(&mut self, _: &mut Draft) {}

    fn event(&mut self, event: SseEvent<'_>, draft: &mut Draft) -> Flow {
        self.read(event, draft).unwrap_or_else(|error| {
            let text = format!("Error reading response: malformed {} event: {error}", event.name);
            ControlFlow::Break(Err(Fault::of_kind(FailureKind::Server, text)))
        })
    }

    fn ended(&mut self, draft: &mut Draft) -> Result<StopReason, Fault> {
        draft.message.raw_stop_reason = self.stop_reason.clone();
        let Some(reason) = self.stop_reason.as_deref() else {
            return Err(Fault::cut("Bedrock stream ended without a stop reason"));
        };
        draft.end_all();
        let stopped = |kind| Err(Fault::of_kind(kind, format!("Provider stopped with: {reason}")));
        match reason {
            "end_turn" | "stop_sequence" if self.has_calls => Ok(StopReason::ToolUse),
            "end_turn" | "stop_sequence" => Ok(StopReason::Stop),
            "tool_use" => Ok(StopReason::ToolUse),
            "max_tokens" | "model_context_window_exceeded" => Ok(StopReason::Length),
            "guardrail_intervened" | "content_filtered" => stopped(FailureKind::ContentFilter),
            _ => stopped(FailureKind::Other),
        }
    }

    fn aborted(&mut self, _: &mut Draft) {}

    fn error_text(&self, status: u16, body: &str) -> String {
        let json: Value = serde_json::from_str(body).unwrap_or_default();
        let kind = json.get("__type").and_then(Value::as_str);
        let kind = kind.and_then(|kind| kind.rsplit('#').next());
        let known = match status {
            400 => "ValidationException",
            403 => "AccessDeniedException",
            404 => "ResourceNotFoundException",
            408 => "ModelTimeoutException",
            424 => "ModelErrorException",
            429 => "ThrottlingException",
            500 => "InternalServerException",
            503 => "ServiceUnavailableException",
            _ => "Error",
        };
        described(kind.unwrap_or(known), message(body))
    }
}

/// The message of an error; all of it when it has no such field.
fn message(body: &str) -> String {
    let json: Value = serde_json::from_str(body).unwrap_or_default();
    let field = json.get("message").or_else(|| json.get("Message")).and_then(Value::as_str);
    field.unwrap_or(body).to_owned()
}

fn described(kind: &str, message: String) -> String {
    let prefix = match kind.to_ascii_lowercase().as_str() {
        "throttlingexception" => "Throttling error",
        "validationexception" => "Validation error",
        "internalserverexception" => "Internal server error",
        "modelstreamerrorexception" => "Model stream error",
        "serviceunavailableexception" => "Service unavailable",
        _ => kind,
    };
    format!("{prefix}: {message}")
}

fn exception(kind: &str, message: String) -> Fault {
    let status = match kind.to_ascii_lowercase().as_str() {
        "throttlingexception" | "modelnotreadyexception" => Some(429),
        "validationexception" => Some(400),
        "accessdeniedexception" => Some(403),
        "modeltimeoutexception" => Some(408),
        "serviceunavailableexception" => Some(503),
        "internalserverexception" | "modelstreamerrorexception" => Some(500),
        _ => None,
    };
    let text = described(kind, message);
    let failure =
        ErrorReport { status, kinds: [Some(kind), None], text: &text, retry_after: None }.classify();
    Fault { text, failure }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockStart<'a> {
    content_block_index: u64,
    #[serde(borrow, default)]
    start: Option<Start<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start<'a> {
    #[serde(borrow, default)]
    tool_use: Option<ToolUse<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolUse<'a> {
    #[serde(borrow, default)]
    tool_use_id: Option<Loose<'a>>,
    #[serde(borrow, default)]
    name: Option<Loose<'a>>,
    #[serde(borrow, default)]
    input: Option<Loose<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockDelta<'a> {
    content_block_index: u64,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta<'a> {
    #[serde(borrow, default)]
    text: Option<Loose<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Reasoning<'a>>,
    #[serde(borrow, default)]
    tool_use: Option<ToolUse<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reasoning<'a> {
    #[serde(borrow, default)]
    text: Option<Loose<'a>>,
    #[serde(borrow, default)]
    signature: Option<Loose<'a>>,
    #[serde(borrow, default)]
    redacted_content: Option<Loose<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockStop {
    content_block_index: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MessageStop<'a> {
    #[serde(borrow, default)]
    stop_reason: Option<Loose<'a>>,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireUsage {
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    cache_write_input_tokens: Option<u64>,
    #[serde(default)]
    cache_details: Option<Vec<CacheDetail>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CacheDetail {
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    input_tokens: Option<u64>,
    #[serde(default)]
    ttl: Option<String>,
}

impl WireUsage {
    fn counts(self) -> Usage {
        let details = self.cache_details.map(|details| {
            let long = details.iter().filter(|detail| detail.ttl.as_deref() == Some("1h"));
            long.filter_map(|detail| detail.input_tokens).fold(0, u64::saturating_add)
        });
        Usage {
            input: self.input_tokens.unwrap_or(0),
            output: self.output_tokens.unwrap_or(0),
            cache_read: self.cache_read_input_tokens.unwrap_or(0),
            cache_write: self.cache_write_input_tokens.unwrap_or(0),
            cache_write1h: details.filter(|long| *long > 0),
            ..Usage::default()
        }
    }
}
