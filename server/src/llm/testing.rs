//! What the tests of the providers share.

use std::ops::ControlFlow;

use sampi_protocol::data::{Model, ThinkingLevel};
use sampi_protocol::stream::AssistantMessageEvent as Event;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::draft::Draft;
use super::exchange::{Decoder, Frames};
use super::sse::SseEvent;
use super::{Completion, Credentials, ModelRequest, Provider, RequestOptions, StreamUpdate};

/// A model from JSON, laid over usual values.
pub(crate) fn model(api: &str, fields: Value) -> Model {
    let mut model = json!({
        "id": "m1", "name": "M", "api": api, "provider": "mock", "baseUrl": "http://h/v1", "reasoning": false,
        "input": ["text", "image"], "cost": { "input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0 },
        "contextWindow": 100_000, "maxTokens": 4096,
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        model[name] = value.clone();
    }
    serde_json::from_value(model).unwrap()
}

/// A request with these messages; `timestamp` is filled in.
pub(crate) fn request(model: Model, thinking: ThinkingLevel, mut messages: Value) -> ModelRequest {
    for message in messages.as_array_mut().into_iter().flatten() {
        if message.get("timestamp").is_none() {
            message["timestamp"] = json!(1);
        }
    }
    ModelRequest {
        model,
        credentials: Credentials { api_key: Some("k".to_owned().into()), ..Credentials::default() },
        messages: serde_json::from_value(messages).unwrap(),
        thinking,
        options: RequestOptions::default(),
    }
}

/// How a request to this provider ends.
pub(crate) async fn run(provider: &impl Provider, request: &ModelRequest) -> Completion {
    let (updates, mut reader) = mpsc::channel(16);
    let cancel = CancellationToken::new();
    let (end, ()) = tokio::join!(
        async {
            let updates = updates;
            provider.stream(request, &updates, &cancel).await
        },
        async { while reader.recv().await.is_some() {} }
    );
    end
}

/// The system message of most tests: a prompt and the tool `read`.
pub(crate) fn system() -> Value {
    json!({ "role": "system", "content": "<SYSTEM>", "toolsAdded": [{
        "name": "read", "description": "reads",
        "parameters": { "type": "object", "required": ["path"], "properties": { "path": { "type": "string" } } },
    }] })
}

/// A user's message.
pub(crate) fn user(text: &str) -> Value {
    json!({ "role": "user", "content": [{ "type": "text", "text": text }] })
}

/// An answer of the model `mock/m1` over this API.
pub(crate) fn answer(api: &str, stop: &str, content: Value) -> Value {
    json!({ "role": "assistant", "content": content, "api": api, "provider": "mock", "model": "m1",
        "stopReason": stop })
}

/// A tool call.
pub(crate) fn call(id: &str, args: Value) -> Value {
    json!({ "type": "toolCall", "id": id, "name": "read", "arguments": args })
}

/// A tool result.
pub(crate) fn result(id: &str, content: Value) -> Value {
    json!({ "role": "toolResult", "toolCallId": id, "toolName": "read", "content": content, "isError": false })
}

/// Decodes a stream without a network: all updates in short form, and the end.
pub(crate) fn replay(
    request: &ModelRequest,
    mut decoder: impl Decoder,
    chunks: &[&[u8]],
) -> (Vec<String>, Completion) {
    let mut draft = Draft::new(request);
    let mut frames = Frames::new(decoder.framing());
    decoder.opened(&mut draft);
    let bodies = chunks.iter().copied().map(Some).chain([None]);
    let end = bodies
        .map(|chunk| frames.read(chunk, &mut |event: SseEvent<'_>| decoder.event(event, &mut draft)).unwrap())
        .find_map(ControlFlow::break_value);
    let end = match end {
        Some(Err(fault)) => Err(fault),
        Some(Ok(())) | None => decoder.ended(&mut draft),
    };
    let updates = std::iter::from_fn(|| draft.next_update()).map(|update| short(&update)).collect();
    let completion = match end {
        Ok(stop) => draft.complete(request, stop, None),
        Err(fault) => draft.complete(
            request,
            sampi_protocol::data::StopReason::Error,
            Some((fault.text, fault.failure)),
        ),
    };
    (updates, completion)
}

/// An update in short form, such as `text_delta 0 Hello`.
pub(crate) fn short(update: &StreamUpdate) -> String {
    let event = match update {
        StreamUpdate::Start(message) => return format!("start {}", message.usage.total_tokens),
        StreamUpdate::Event { event, .. } => event,
    };
    match event {
        Event::TextStart(start) => format!("text_start {}", start.content_index),
        Event::TextDelta(delta) => format!("text_delta {} {}", delta.content_index, delta.delta),
        Event::TextEnd(end) => format!("text_end {} {}", end.content_index, end.content),
        Event::ThinkingStart(start) => format!("thinking_start {}", start.content_index),
        Event::ThinkingDelta(delta) => format!("thinking_delta {} {}", delta.content_index, delta.delta),
        Event::ThinkingEnd(end) => format!("thinking_end {} {}", end.content_index, end.content),
        Event::ToolCallStart(start) => {
            format!("toolcall_start {} {} {}", start.content_index, start.id, start.tool_name)
        }
        Event::ToolCallDelta(delta) => format!("toolcall_delta {} {}", delta.content_index, delta.delta),
        Event::ToolCallEnd(end) => {
            format!("toolcall_end {} {}", end.content_index, serde_json::to_string(&end.tool_call).unwrap())
        }
        other => panic!("a provider must not send {other:?}"),
    }
}
