//! The stream of the Responses API.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;

use sampi_protocol::data::{StopReason, ThinkingContent, Usage};
use sampi_protocol::number::optional_count;
use sampi_protocol::wire::repair_lone_surrogates;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::llm::FailureKind;
use crate::llm::draft::Draft;
use crate::llm::exchange::{self, Fault, Flow};
use crate::llm::loose::Loose;
use crate::llm::sse::SseEvent;

/// Between the parts of a summary.
const PART_BREAK: &str = "\n\n";

/// Decodes one response.
#[derive(Debug)]
pub(crate) struct Decoder {
    service: String,
    // The stream's index of an item to the index of our block; items that we do not know have none.
    blocks: HashMap<u64, usize>,
    last: Option<usize>,
    has_calls: bool,
    end: Option<End>,
    effort: Option<String>,
}

/// How the response ended, by its own account.
#[derive(Debug)]
struct End {
    status: String,
    incomplete: Option<String>,
}

impl Decoder {
    /// A decoder for one response of a service of this name.
    pub(crate) fn new(service: String) -> Self {
        Self { service, blocks: HashMap::new(), last: None, has_calls: false, end: None, effort: None }
    }

    /// The same for an answer that was asked for with this effort.
    pub(super) fn with_effort(self, effort: Option<String>) -> Self {
        Self { effort, ..self }
    }

    fn block(&self, index: Option<u64>) -> Option<usize> {
        match index {
            Some(index) => self.blocks.get(&index).copied(),
            None => self.last,
        }
    }

    /// Begins the block of an item, or finds it.
    fn begin(&mut self, event: &ItemEvent<'_>, item: &Item<'_>, draft: &mut Draft) -> Option<usize> {
        // Servers that do not count their items finish one before the next.
        let known = event.output_index.and_then(|index| self.blocks.get(&index).copied());
        if known.is_some() {
            return known;
        }
        let block = match item.kind.text().as_ref() {
            "message" => draft.begin_text(),
            "reasoning" => draft.begin_thinking(ThinkingContent::default()),
            "function_call" => {
                self.has_calls = true;
                let text = |field: &Option<Loose<'_>>| {
                    field.as_ref().map(|field| field.text().into_owned()).unwrap_or_default()
                };
                draft.begin_tool_call(&call_id(&text(&item.call_id), &text(&item.id)), &text(&item.name))
            }
            // An item that the provider works on itself.
            _ => return None,
        };
        self.last = Some(block);
        if let Some(index) = event.output_index {
            self.blocks.insert(index, block);
        }
        Some(block)
    }

    fn item_added(&mut self, event: &ItemEvent<'_>, draft: &mut Draft) -> Result<(), serde_json::Error> {
        let item: Item<'_> = serde_json::from_str(event.item.get())?;
        if let Some(block) = self.begin(event, &item, draft)
            && let Some(arguments) = item.arguments
        {
            draft.replace(block, &arguments.text());
        }
        Ok(())
    }

    /// The item as a whole: it is right where the pieces were not.
    fn item_done(&mut self, event: &ItemEvent<'_>, draft: &mut Draft) -> Result<(), serde_json::Error> {
        let raw = event.item.get();
        let item: Item<'_> = serde_json::from_str(raw)?;
        let open = if event.output_index.is_none() { self.last } else { None };
        let Some(block) = open.or_else(|| self.begin(event, &item, draft)) else { return Ok(()) };
        match item.kind.text().as_ref() {
            "message" => {
                let text: String = parts(item.content).iter().map(Part::text).collect();
                if !text.is_empty() {
                    draft.replace(block, &text);
                }
                if let Some(block) = draft.text_mut(block) {
                    block.text_signature = text_signature(&item);
                }
            }
            "reasoning" => {
                let (summary, content) = (parts(item.summary), parts(item.content));
                let whole = if summary.is_empty() { content } else { summary };
                let texts: Vec<Cow<'_, str>> = whole.iter().map(Part::text).collect();
                if !texts.is_empty() {
                    draft.replace(block, &texts.join(PART_BREAK));
                }
                if let Some(thinking) = draft.thinking_mut(block) {
                    thinking.thinking_signature = Some(compact(raw)?);
                }
            }
            "function_call" => {
                let arguments = item.arguments.map(|arguments| arguments.text()).unwrap_or_default();
                if !arguments.is_empty() {
                    draft.replace(block, &arguments);
                }
                if let (Some(call), Some(namespace)) = (draft.tool_call_mut(block), item.namespace) {
                    call.namespace = Some(namespace.text().into_owned()).filter(|text| !text.is_empty());
                }
            }
            _ => return Ok(()),
        }
        draft.end(block);
        self.last = None;
        Ok(())
    }

    /// The arguments as a whole; what was not streamed of them is reported now.
    fn arguments_done(&self, event: &Delta<'_>, draft: &mut Draft) {
        let (Some(block), Some(whole)) = (self.block(event.output_index), &event.arguments) else { return };
        let whole = whole.text();
        match whole.strip_prefix(draft.arguments(block)) {
            Some("") => {}
            Some(rest) => {
                let rest = rest.to_owned();
                draft.append(block, &rest);
            }
            None => draft.replace(block, &whole),
        }
    }

    fn response(&mut self, response: Response<'_>, draft: &mut Draft) -> Option<Ending> {
        if let Some(id) = response.id.map(|id| id.text()).filter(|id| !id.is_empty()) {
            draft.message.response_id = Some(id.into_owned());
        }
        // Counts that cannot be read are no reason to lose the answer.
        if let Some(usage) = response.usage.and_then(|raw| serde_json::from_str::<WireUsage>(raw.get()).ok())
        {
            draft.set_usage(usage.counts());
        }
        let value =
            |raw: Option<&RawValue>| raw.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        let error = value(response.error).filter(|error| !error.is_null());
        let incomplete = value(response.incomplete_details)
            .and_then(|details| details.get("reason").and_then(Value::as_str).map(str::to_owned));
        Some(Ending { status: response.status?.text().into_owned(), incomplete, error })
    }

    fn read(&mut self, event: SseEvent<'_>, draft: &mut Draft) -> Result<Flow, serde_json::Error> {
        let kind: Kind<'_> = serde_json::from_str(event.data)?;
        let kind = kind.kind.map(|kind| kind.text()).unwrap_or(Cow::Borrowed(event.name));
        match kind.as_ref() {
            "response.created" | "response.in_progress" | "response.queued" => {
                let event: ResponseEvent<'_> = serde_json::from_str(event.data)?;
                self.response(event.response, draft);
            }
            "response.output_item.added" => self.item_added(&serde_json::from_str(event.data)?, draft)?,
            "response.output_item.done" => self.item_done(&serde_json::from_str(event.data)?, draft)?,
            "response.output_text.delta"
            | "response.refusal.delta"
            | "response.reasoning_summary_text.delta"
            | "response.reasoning_text.delta"
            | "response.function_call_arguments.delta" => {
                let event: Delta<'_> = serde_json::from_str(event.data)?;
                let delta = event.delta.map(|delta| delta.text()).unwrap_or_default();
                if let Some(block) = self.block(event.output_index).filter(|_| !delta.is_empty()) {
                    draft.append(block, &delta);
                }
            }
            "response.reasoning_summary_part.done" => {
                let event: Delta<'_> = serde_json::from_str(event.data)?;
                if let Some(block) = self.block(event.output_index) {
                    draft.append(block, PART_BREAK);
                }
            }
            "response.function_call_arguments.done" => {
                self.arguments_done(&serde_json::from_str(event.data)?, draft);
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                let event: ResponseEvent<'_> = serde_json::from_str(event.data)?;
                let ending = self.response(event.response, draft);
                let default = if kind == "response.incomplete" { "incomplete" } else { "completed" };
                let (status, incomplete) = match ending {
                    Some(ending) => (ending.status, ending.incomplete),
                    None => (default.to_owned(), None),
                };
                self.end = Some(End { status, incomplete });
                return Ok(ControlFlow::Break(Ok(())));
            }
            "response.failed" => {
                let event: ResponseEvent<'_> = serde_json::from_str(event.data)?;
                let ending = self.response(event.response, draft).unwrap_or_default();
                draft.message.raw_stop_reason = Some("failed".to_owned());
                return Ok(ControlFlow::Break(Err(failed(&ending))));
            }
            "error" => return Ok(ControlFlow::Break(Err(error_fault(event.data)))),
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl exchange::Decoder for Decoder {
    fn opened(&mut self, draft: &mut Draft) {
        draft.message.provider_thinking_level = self.effort.take();
        draft.start();
    }

    fn event(&mut self, event: SseEvent<'_>, draft: &mut Draft) -> Flow {
        if matches!(event.data.trim(), "" | "[DONE]") {
            return ControlFlow::Continue(());
        }
        self.read(event, draft).unwrap_or_else(|error| {
            let text = format!("Error reading response: malformed server-sent event JSON: {error}");
            ControlFlow::Break(Err(Fault::of_kind(FailureKind::Server, text)))
        })
    }

    fn ended(&mut self, draft: &mut Draft) -> Result<StopReason, Fault> {
        let Some(end) = self.end.take() else {
            return Err(Fault::cut("OpenAI Responses stream ended before a terminal response event"));
        };
        draft.end_all();
        let reason = end.incomplete.filter(|_| end.status == "incomplete");
        draft.message.raw_stop_reason = Some(match &reason {
            Some(reason) => format!("{}.{reason}", end.status),
            None => end.status.clone(),
        });
        match (end.status.as_str(), reason.as_deref()) {
            ("incomplete", Some("max_output_tokens")) => Ok(StopReason::Length),
            ("incomplete", Some(reason)) => {
                Err(Fault::new(format!("Response incomplete: {reason}"), [Some(reason), None]))
            }
            ("incomplete", None) => {
                Err(Fault::of_kind(FailureKind::Other, "Response incomplete without a provider reason"))
            }
            ("failed" | "cancelled", _) => {
                Err(Fault::of_kind(FailureKind::Other, "An unknown error occurred"))
            }
            _ if self.has_calls => Ok(StopReason::ToolUse),
            _ => Ok(StopReason::Stop),
        }
    }

    fn aborted(&mut self, _: &mut Draft) {}

    fn error_text(&self, status: u16, body: &str) -> String {
        let json: Option<Value> = serde_json::from_str(body).ok();
        let said = match json.as_ref().map(|json| (json, json.get("error"))) {
            Some((_, Some(error @ Value::Object(_)))) => error.to_string(),
            Some((json, error)) => format!("{status} {}", error.unwrap_or(json)),
            None => format!("{status} {body}"),
        };
        format!("{} API error ({status}): {said}", self.service)
    }

    fn bare_error_text(&self, status: u16) -> String {
        format!("{} API error ({status}): {status} status code (no body)", self.service)
    }
}

/// The id of our call: its own and that of the item it came in, which both go back to the API.
fn call_id(call: &str, item: &str) -> String {
    match (call.is_empty(), item.is_empty()) {
        (false, false) => format!("{call}|{item}"),
        (false, true) => call.to_owned(),
        (true, false) => item.to_owned(),
        // A call needs an id, or its result could not name it.
        (true, true) => format!("call_{}", uuid::Uuid::new_v4().simple()),
    }
}

fn text_signature(item: &Item<'_>) -> Option<String> {
    let text = |field: &Option<Loose<'_>>| {
        field.as_ref().map(|field| field.text().into_owned()).filter(|text| !text.is_empty())
    };
    let mut signature = json!({ "v": 1, "id": text(&item.id)? });
    if let Some(phase) = text(&item.phase) {
        signature["phase"] = json!(phase);
    }
    Some(signature.to_string())
}

/// The JSON without the spaces that some servers put in.
fn compact(raw: &str) -> Result<String, serde_json::Error> {
    let repaired = repair_lone_surrogates(raw);
    let value: Value = serde_json::from_str(repaired.as_deref().unwrap_or(raw))?;
    Ok(value.to_string())
}

fn parts(raw: Option<&RawValue>) -> Vec<Part<'_>> {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

fn failed(ending: &Ending) -> Fault {
    let error = |name: &str| ending.error.as_ref().and_then(|error| error.get(name)).and_then(Value::as_str);
    match (error("code"), error("message"), &ending.incomplete) {
        (None, None, Some(reason)) => Fault::new(format!("incomplete: {reason}"), [Some(reason), None]),
        (None, None, None) => {
            Fault::of_kind(FailureKind::Other, "Unknown error (no error details in response)")
        }
        (code, message, _) => {
            let text = format!("{}: {}", code.unwrap_or("unknown"), message.unwrap_or("no message"));
            Fault::new(text, [code, None])
        }
    }
}

fn error_fault(data: &str) -> Fault {
    let value: Value = serde_json::from_str(data).unwrap_or_default();
    let field = |name: &str| {
        let here = value.get(name).filter(|field| field.is_string());
        here.or_else(|| value.get("error").and_then(|error| error.get(name))).and_then(Value::as_str)
    };
    let kind = value.pointer("/error/type").and_then(Value::as_str);
    Fault::new(field("message").unwrap_or(data), [field("code"), kind])
}

#[derive(Default)]
struct Ending {
    status: String,
    incomplete: Option<String>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Loose<'a>>,
}

#[derive(Deserialize)]
struct ItemEvent<'a> {
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(borrow)]
    item: &'a RawValue,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, rename = "type")]
    kind: Loose<'a>,
    #[serde(borrow, default)]
    id: Option<Loose<'a>>,
    #[serde(borrow, default)]
    phase: Option<Loose<'a>>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default)]
    summary: Option<&'a RawValue>,
    #[serde(borrow, default)]
    call_id: Option<Loose<'a>>,
    #[serde(borrow, default)]
    name: Option<Loose<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Loose<'a>>,
    #[serde(borrow, default)]
    namespace: Option<Loose<'a>>,
}

/// A part of a message or of thinking.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<Loose<'a>>,
    #[serde(borrow, default)]
    refusal: Option<Loose<'a>>,
}

impl<'a> Part<'a> {
    fn text(&self) -> Cow<'a, str> {
        self.text.or(self.refusal).map(|text| text.text()).unwrap_or_default()
    }
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<Loose<'a>>,
    #[serde(borrow, default)]
    arguments: Option<Loose<'a>>,
}

#[derive(Deserialize)]
struct ResponseEvent<'a> {
    #[serde(borrow)]
    response: Response<'a>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    id: Option<Loose<'a>>,
    #[serde(borrow, default)]
    status: Option<Loose<'a>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    incomplete_details: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireUsage {
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    output_tokens: Option<u64>,
    #[serde(default)]
    input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Default)]
struct InputDetails {
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    cached_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
struct OutputDetails {
    #[serde(default, deserialize_with = "optional_count::deserialize")]
    reasoning_tokens: Option<u64>,
}

impl WireUsage {
    /// OpenAI counts cached tokens as part of the input; we count them apart.
    fn counts(self) -> Usage {
        let input = self.input_tokens_details.unwrap_or_default();
        let cache_read = input.cached_tokens.unwrap_or(0);
        let cache_write = input.cache_write_tokens.unwrap_or(0);
        let reasoning = self.output_tokens_details.unwrap_or_default().reasoning_tokens;
        Usage {
            input: self.input_tokens.unwrap_or(0).saturating_sub(cache_read).saturating_sub(cache_write),
            output: self.output_tokens.unwrap_or(0),
            cache_read,
            cache_write,
            reasoning: Some(reasoning.unwrap_or(0)),
            ..Usage::default()
        }
    }
}
