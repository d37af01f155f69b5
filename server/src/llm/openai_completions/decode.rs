//! The stream of Chat Completions.

use std::ops::ControlFlow;

use sampi_protocol::data::{StopReason, ThinkingContent, Usage};
use sampi_protocol::number::optional_count;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::request::REASONING_FIELDS;
use crate::llm::FailureKind;
use crate::llm::call_blocks::CallBlocks;
use crate::llm::draft::Draft;
use crate::llm::exchange::{self, Fault, Flow};
use crate::llm::loose::Loose;
use crate::llm::sse::SseEvent;

/// Decodes one response. There is one block of text and one of thinking, however they interleave, as the
/// API has one field for each; blocks end when the stream ends.
#[derive(Debug)]
pub(crate) struct Decoder {
    needs_finish_reason: bool,
    finish_reason: Option<String>,
    text: Option<usize>,
    thinking: Option<usize>,
    details: Vec<Value>,
    calls: CallBlocks,
}

impl Decoder {
    pub(crate) fn new(needs_finish_reason: bool) -> Self {
        Self {
            needs_finish_reason,
            finish_reason: None,
            text: None,
            thinking: None,
            details: Vec::new(),
            calls: CallBlocks::default(),
        }
    }

    fn chunk(&mut self, chunk: Chunk<'_>, draft: &mut Draft) -> Flow {
        if let Some(error) = chunk.error {
            return ControlFlow::Break(Err(error_fault(error)));
        }
        if let Some(id) = chunk.id {
            draft.set_response_id(&id.text());
        }
        if let Some(model) = chunk.model {
            draft.set_response_model(&model.text());
        }
        read_usage(chunk.usage, draft);
        for choice in chunk.choices.into_iter().flatten().take(1) {
            read_usage(choice.usage.filter(|_| chunk.usage.is_none()), draft);
            if let Some(delta) = choice.delta {
                self.delta(delta, draft);
            }
            let reason = choice.finish_reason.map(|reason| reason.text());
            if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
                self.finish_reason = Some(reason.into_owned());
            }
        }
        ControlFlow::Continue(())
    }

    fn delta(&mut self, delta: Delta<'_>, draft: &mut Draft) {
        for text in [delta.content, delta.refusal].into_iter().flatten() {
            let text = text.text();
            if !text.is_empty() {
                let index = *self.text.get_or_insert_with(|| draft.begin_text());
                draft.append(index, &text);
            }
        }
        let fields = [delta.reasoning_content, delta.reasoning, delta.reasoning_text];
        let named = REASONING_FIELDS.iter().zip(fields);
        // Some servers send the same text in two fields.
        let thought =
            named.filter_map(|(field, text)| Some((field, text?.text()))).find(|(_, text)| !text.is_empty());
        if let Some((field, text)) = thought {
            let index = self.thinking_block(draft, field);
            draft.append(index, &text);
        }
        let details =
            delta.reasoning_details.and_then(|raw| serde_json::from_str::<Vec<Value>>(raw.get()).ok());
        for detail in details.into_iter().flatten() {
            self.thinking_block(draft, "");
            self.add_detail(detail);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.tool_call(call, draft);
        }
    }

    fn thinking_block(&mut self, draft: &mut Draft, field: &str) -> usize {
        *self.thinking.get_or_insert_with(|| {
            draft.begin_thinking(ThinkingContent {
                thinking_signature: (!field.is_empty()).then(|| field.to_owned()),
                ..ThinkingContent::default()
            })
        })
    }

    /// Pieces of one detail come one by one: they have the same index and type.
    fn add_detail(&mut self, mut detail: Value) {
        if let Some(last) = self.details.last_mut()
            && last.get("index").is_some()
            && last.get("index") == detail.get("index")
            && last.get("type") == detail.get("type")
            && let Some(fields) = detail.as_object_mut()
        {
            for (name, value) in std::mem::take(fields) {
                match (last.get_mut(&name), value) {
                    (Some(Value::String(text)), Value::String(more))
                        if matches!(name.as_str(), "text" | "summary" | "data") =>
                    {
                        text.push_str(&more);
                    }
                    (_, value) => last[&name] = value,
                }
            }
            return;
        }
        self.details.push(detail);
    }

    fn tool_call(&mut self, call: CallDelta<'_>, draft: &mut Draft) {
        let function = call.function.unwrap_or_default();
        let id = call.id.map(|id| id.text()).unwrap_or_default();
        let name = function.name.map(|name| name.text()).unwrap_or_default();
        let (id, name) = (id.as_ref(), name.as_ref());
        let block = self.calls.block(call.index, id, || {
            // A call needs an id, or its result could not name it.
            let made = id.is_empty().then(|| format!("call_{}", uuid::Uuid::new_v4().simple()));
            draft.begin_tool_call(made.as_deref().unwrap_or(id), name)
        });
        if !name.is_empty()
            && let Some(call) = draft.tool_call_mut(block)
            && call.name.is_empty()
        {
            call.name = name.to_owned();
        }
        if let Some(arguments) = function.arguments {
            let text = arguments.text();
            if !text.is_empty() {
                draft.append(block, &text);
            }
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
                Ok(chunk) => self.chunk(chunk, draft),
                Err(error) => {
                    let text = format!("Error reading response: malformed server-sent event JSON: {error}");
                    ControlFlow::Break(Err(Fault::of_kind(FailureKind::Server, text)))
                }
            },
        }
    }

    fn ended(&mut self, draft: &mut Draft) -> Result<StopReason, Fault> {
        if !self.details.is_empty()
            && let Some(thinking) = self.thinking.and_then(|index| draft.thinking_mut(index))
        {
            thinking.thinking_signature = serde_json::to_string(&self.details).ok();
        }
        draft.end_all();
        draft.message.raw_stop_reason = self.finish_reason.clone();
        let done = if self.calls.is_empty() { StopReason::Stop } else { StopReason::ToolUse };
        match self.finish_reason.as_deref() {
            // Some servers say `stop` behind tool calls.
            Some("stop" | "end") => Ok(done),
            Some("length") => Ok(StopReason::Length),
            Some("tool_calls" | "function_call") => Ok(StopReason::ToolUse),
            Some(other) => Err(Fault::new(format!("Provider finish_reason: {other}"), [Some(other), None])),
            None if !self.needs_finish_reason => Ok(done),
            None => Err(Fault::cut("Stream ended without finish_reason")),
        }
    }

    fn aborted(&mut self, draft: &mut Draft) {
        draft.end_all();
    }

    fn error_text(&self, status: u16, body: &str) -> String {
        let json: Option<Value> = serde_json::from_str(body).ok();
        match json.as_ref().map(|json| json.get("error").filter(|error| !error.is_null()).unwrap_or(json)) {
            Some(error @ Value::Object(_)) => format!("{status}: {error}"),
            Some(error) => format!("{status} {error}"),
            None => format!("{status} {body}"),
        }
    }
}

fn read_usage(usage: Option<&RawValue>, draft: &mut Draft) {
    // Counts that cannot be read are no reason to lose the answer.
    if let Some(usage) = usage.and_then(|raw| serde_json::from_str::<WireUsage>(raw.get()).ok()) {
        draft.set_usage(usage.counts());
    }
}

fn error_fault(error: &RawValue) -> Fault {
    let value: Value = serde_json::from_str(error.get()).unwrap_or_default();
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let message = text("message").map_or_else(|| error.get().to_owned(), str::to_owned);
    let status = value.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let mut fault = Fault::new(message, [text("code"), text("type")]);
    if let Some(status) = status.filter(|status| (400..600).contains(status)) {
        let report = crate::llm::failure::ErrorReport {
            status: Some(status),
            kinds: [text("code"), text("type")],
            text: &fault.text,
            retry_after: None,
        };
        fault.failure = report.classify();
    }
    fault
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    id: Option<Loose<'a>>,
    #[serde(borrow, default)]
    model: Option<Loose<'a>>,
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
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<Loose<'a>>,
    #[serde(borrow, default)]
    refusal: Option<Loose<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Loose<'a>>,
    #[serde(borrow, default)]
    reasoning: Option<Loose<'a>>,
    #[serde(borrow, default)]
    reasoning_text: Option<Loose<'a>>,
    #[serde(borrow, default)]
    reasoning_details: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallDelta<'a>>>,
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

#[derive(Deserialize, Default)]
struct WireUsage {
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    prompt_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    completion_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    prompt_cache_hit_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize, Default)]
struct PromptDetails {
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
struct CompletionDetails {
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    reasoning_tokens: Option<u64>,
}

impl WireUsage {
    /// OpenAI counts cached tokens as part of the prompt; we count them apart.
    fn counts(&self) -> Usage {
        let details = self.prompt_tokens_details.as_ref();
        let cached = details.and_then(|details| details.cached_tokens).or(self.prompt_cache_hit_tokens);
        let cache_read = cached.unwrap_or(0);
        let cache_write = details.and_then(|details| details.cache_write_tokens).unwrap_or(0);
        let reasoning = self.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
        Usage {
            input: self.prompt_tokens.unwrap_or(0).saturating_sub(cache_read).saturating_sub(cache_write),
            output: self.completion_tokens.unwrap_or(0),
            cache_read,
            cache_write,
            reasoning: Some(reasoning.unwrap_or(0)),
            ..Usage::default()
        }
    }
}
