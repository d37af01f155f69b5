//! The stream of the Gemini API.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sampi_protocol::data::{StopReason, ThinkingContent, Usage};
use sampi_protocol::number::optional_count;
use sampi_protocol::wire::repair_lone_surrogates;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::llm::FailureKind;
use crate::llm::draft::Draft;
use crate::llm::exchange::{self, Fault, Flow};
use crate::llm::failure::ErrorReport;
use crate::llm::loose::Loose;
use crate::llm::sse::SseEvent;

/// Numbers the calls of this process that the API gave no id.
static CALLS: AtomicU64 = AtomicU64::new(1);

/// Decodes one response. The API has no events for the beginning and end of a block: a block goes on as
/// long as parts of its kind come.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    open: Option<Open>,
    call_ids: HashSet<String>,
    finish_reason: Option<String>,
    blocked: Option<String>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    block: usize,
    is_thought: bool,
}

impl Decoder {
    fn chunk(&mut self, chunk: Chunk<'_>, data: &str, draft: &mut Draft) -> Flow {
        if let Some(error) = chunk.error.filter(|error| error.get() != "null") {
            draft.start();
            return ControlFlow::Break(Err(error_fault(error, data)));
        }
        if let Some(id) = chunk.response_id {
            draft.set_response_id(&id.text());
        }
        // Counts that cannot be read are no reason to lose the answer.
        let usage = chunk.usage_metadata.and_then(|raw| serde_json::from_str::<WireUsage>(raw.get()).ok());
        if let Some(usage) = usage {
            draft.set_usage(usage.counts());
        }
        draft.start();
        if let Some(reason) = chunk.prompt_feedback.and_then(blocked) {
            self.blocked = Some(reason);
        }
        for candidate in chunk.candidates.into_iter().flatten().take(1) {
            let parts = candidate.content.and_then(|content| content.parts);
            for part in parts.into_iter().flatten() {
                self.part(part, draft);
            }
            let reason = candidate.finish_reason.map(|reason| reason.text());
            if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
                self.finish_reason = Some(reason.into_owned());
            }
        }
        ControlFlow::Continue(())
    }

    fn part(&mut self, part: Part<'_>, draft: &mut Draft) {
        let signature =
            part.thought_signature.map(|signature| signature.text()).filter(|text| !text.is_empty());
        if let Some(text) = part.text {
            self.text(&text.text(), part.thought == Some(true), signature.as_deref(), draft);
        }
        if let Some(call) = part.function_call {
            self.call(call, signature.as_deref(), draft);
        }
    }

    fn text(&mut self, text: &str, is_thought: bool, signature: Option<&str>, draft: &mut Draft) {
        let block = match self.open {
            Some(open) if open.is_thought == is_thought => open.block,
            _ => {
                draft.end_all();
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
        let Some(signature) = signature.map(str::to_owned) else { return };
        if is_thought {
            if let Some(thinking) = draft.thinking_mut(block) {
                thinking.thinking_signature = Some(signature);
            }
        } else if let Some(text) = draft.text_mut(block) {
            text.text_signature = Some(signature);
        }
    }

    fn call(&mut self, call: FunctionCall<'_>, signature: Option<&str>, draft: &mut Draft) {
        draft.end_all();
        self.open = None;
        let name = call.name.map(|name| name.text()).unwrap_or_default();
        let given = call.id.map(|id| id.text().into_owned()).unwrap_or_default();
        // Two calls with one id could not be told apart by their results.
        let id = if given.is_empty() || self.call_ids.contains(&given) { made_id(&name) } else { given };
        let block = draft.begin_tool_call(&id, &name);
        self.call_ids.insert(id);
        draft.append(block, &arguments(call.args));
        if let (Some(call), Some(signature)) = (draft.tool_call_mut(block), signature) {
            call.thought_signature = Some(signature.to_owned());
        }
        draft.end(block);
    }
}

impl exchange::Decoder for Decoder {
    // The first chunk says more about the message than the head of the response.
    fn opened(&mut self, _: &mut Draft) {}

    fn event(&mut self, event: SseEvent<'_>, draft: &mut Draft) -> Flow {
        let data = event.data.trim();
        if matches!(data, "" | "[DONE]") {
            return ControlFlow::Continue(());
        }
        match serde_json::from_str(data) {
            Ok(chunk) => self.chunk(chunk, data, draft),
            Err(error) => {
                let text = format!("Error reading response: malformed server-sent event JSON: {error}");
                ControlFlow::Break(Err(Fault::of_kind(FailureKind::Server, text)))
            }
        }
    }

    fn ended(&mut self, draft: &mut Draft) -> Result<StopReason, Fault> {
        draft.start();
        draft.end_all();
        draft.message.raw_stop_reason = self.finish_reason.clone();
        match self.finish_reason.as_deref() {
            Some("STOP") if !self.call_ids.is_empty() => Ok(StopReason::ToolUse),
            Some("STOP") => Ok(StopReason::Stop),
            Some("MAX_TOKENS") => Ok(StopReason::Length),
            Some(reason) => Err(stopped(reason)),
            None => Err(match self.blocked.take() {
                Some(reason) => {
                    Fault::of_kind(FailureKind::ContentFilter, format!("Google blocked the prompt: {reason}"))
                }
                None => Fault::cut("Google stream ended without a finish reason"),
            }),
        }
    }

    fn aborted(&mut self, _: &mut Draft) {}

    fn aborted_text(&self) -> &'static str {
        exchange::ABORTED_BEFORE
    }

    fn error_text(&self, status: u16, body: &str) -> String {
        match serde_json::from_str::<Value>(body) {
            Ok(json) => json.to_string(),
            Err(_) => format!("{status} {body}"),
        }
    }

    fn retry_after(&self, body: &str) -> Option<Duration> {
        let json: Value = serde_json::from_str(body).ok()?;
        retry_delay(json.get("error").or_else(|| json.pointer("/0/error"))?)
    }
}

fn stopped(reason: &str) -> Fault {
    match reason {
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "LANGUAGE" => {
            Fault::of_kind(FailureKind::ContentFilter, format!("Provider stopped with: {reason}"))
        }
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "NO_IMAGE"
        | "IMAGE_OTHER"
        | "OTHER"
        | "FINISH_REASON_UNSPECIFIED" => {
            Fault::of_kind(FailureKind::Other, format!("Provider stopped with: {reason}"))
        }
        _ => Fault::of_kind(FailureKind::Other, format!("Unhandled stop reason: {reason}")),
    }
}

fn error_fault(error: &RawValue, data: &str) -> Fault {
    let value: Value = serde_json::from_str(error.get()).unwrap_or_default();
    let name = value.get("status").and_then(Value::as_str).unwrap_or("unknown");
    let text = format!("got status: {name}. {data}");
    let status = value.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let report = ErrorReport {
        status: status.filter(|status| (400..600).contains(status)),
        kinds: [Some(name), None],
        text: &text,
        retry_after: retry_delay(&value),
    };
    let failure = report.classify();
    Fault { text, failure }
}

/// Errors say in a detail how long to wait, such as `17.5s`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
}

fn blocked(feedback: &RawValue) -> Option<String> {
    let feedback: Value = serde_json::from_str(feedback.get()).ok()?;
    let text = |name: &str| feedback.get(name).and_then(Value::as_str);
    let reason = text("blockReason")?;
    Some(match text("blockReasonMessage") {
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    })
}

fn made_id(name: &str) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{name}_{}_{}", since.as_millis(), CALLS.fetch_add(1, Ordering::Relaxed))
}

/// The arguments as compact JSON, which stands for what other APIs stream.
fn arguments(raw: Option<&RawValue>) -> String {
    let raw = raw.map_or("{}", RawValue::get);
    let repaired = repair_lone_surrogates(raw);
    match serde_json::from_str::<Value>(repaired.as_deref().unwrap_or(raw)) {
        Ok(Value::Null) => "{}".to_owned(),
        Ok(value) => value.to_string(),
        // Too deep to be read here; the reader of arguments has no such limit, or says what is wrong.
        Err(_) => raw.to_owned(),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'a> {
    #[serde(borrow, default)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow, default)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    prompt_feedback: Option<&'a RawValue>,
    #[serde(borrow, default)]
    response_id: Option<Loose<'a>>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<Loose<'a>>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow, default)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<Loose<'a>>,
    #[serde(default)]
    thought: Option<bool>,
    #[serde(borrow, default)]
    thought_signature: Option<Loose<'a>>,
    #[serde(borrow, default)]
    function_call: Option<FunctionCall<'a>>,
}

#[derive(Deserialize)]
struct FunctionCall<'a> {
    #[serde(borrow, default)]
    id: Option<Loose<'a>>,
    #[serde(borrow, default)]
    name: Option<Loose<'a>>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireUsage {
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    candidates_token_count: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    thoughts_token_count: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    cached_content_token_count: Option<u64>,
}

impl WireUsage {
    /// Google counts cached tokens as part of the prompt, and thinking beside the answer.
    fn counts(&self) -> Usage {
        let cache_read = self.cached_content_token_count.unwrap_or(0);
        let thoughts = self.thoughts_token_count.unwrap_or(0);
        let prompt = self.prompt_token_count.unwrap_or(0);
        let prompt = prompt.saturating_add(self.tool_use_prompt_token_count.unwrap_or(0));
        Usage {
            input: prompt.saturating_sub(cache_read),
            output: self.candidates_token_count.unwrap_or(0).saturating_add(thoughts),
            cache_read,
            reasoning: Some(thoughts),
            ..Usage::default()
        }
    }
}
