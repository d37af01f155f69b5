//! One request to a model over HTTP: send, stream, decode, report. Knows no vendor; the headers that some want are
//! those of [`provider_headers`].

use std::ops::ControlFlow;
use std::time::Duration;

use sampi_protocol::data::StopReason;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::draft::Draft;
use super::event_stream::EventStream;
use super::failure::ErrorReport;
use super::http::{Http, HttpError, Patience, Post, Response};
use super::provider_headers::provider_headers;
use super::sse::{SseDecoder, SseEvent};
use super::{Completion, Failure, FailureKind, ModelRequest, UpdateSink};

/// How long the last updates of an aborted request may wait for a slow reader.
const ABORT_FLUSH: Duration = Duration::from_millis(200);

/// How much of an error text is kept.
const MAX_ERROR_CHARS: usize = 4000;

/// The text of an abort before the response began.
pub(crate) const ABORTED_BEFORE: &str = "This operation was aborted";

/// The text of an abort of a response that had begun.
pub(crate) const ABORTED_DURING: &str = "Request was aborted";

/// Why a request ended in an error.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fault {
    /// What the message says.
    pub(crate) text: String,
    /// Of what kind it is.
    pub(crate) failure: Failure,
}

impl Fault {
    /// A fault whose kind follows from its text and the provider's names for it.
    pub(crate) fn new(text: impl Into<String>, kinds: [Option<&str>; 2]) -> Self {
        let text = text.into();
        let failure = ErrorReport { kinds, text: &text, ..ErrorReport::default() }.classify();
        Self { text, failure }
    }

    /// A fault of this kind.
    pub(crate) fn of_kind(kind: FailureKind, text: impl Into<String>) -> Self {
        Self { text: text.into(), failure: Failure::of(kind) }
    }

    /// The stream ended before the answer was whole.
    pub(crate) fn cut(text: impl Into<String>) -> Self {
        Self::of_kind(FailureKind::Network, text)
    }
}

/// What an event means for the stream: go on, or stop because the answer is whole or went wrong.
pub(crate) type Flow = ControlFlow<Result<(), Fault>>;

/// How events are cut out of the bytes of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events.
    Sse,
    /// The binary event stream of AWS.
    AwsEvents,
}

/// Reads the stream of one response. Without I/O.
pub(crate) trait Decoder: Send + Sync {
    /// How the events come.
    fn framing(&self) -> Framing {
        Framing::Sse
    }

    /// The head of the response came and is good.
    fn opened(&mut self, draft: &mut Draft);

    /// An event came.
    fn event(&mut self, event: SseEvent<'_>, draft: &mut Draft) -> Flow;

    /// The stream ended well as far as the transport can tell. Says how the answer ended.
    fn ended(&mut self, draft: &mut Draft) -> Result<StopReason, Fault>;

    /// The request is aborted after the head of the response came.
    fn aborted(&mut self, draft: &mut Draft);

    /// What the message of such a request says.
    fn aborted_text(&self) -> &'static str {
        ABORTED_DURING
    }

    /// The text of a response with an error status. The body is not blank.
    fn error_text(&self, status: u16, body: &str) -> String;

    /// The text of a response with an error status and nothing else.
    fn bare_error_text(&self, status: u16) -> String {
        format!("{status} status code (no body)")
    }

    /// How long the body of an error asks to wait, where no header does.
    fn retry_after(&self, _body: &str) -> Option<Duration> {
        None
    }
}

/// A request with a JSON body.
pub(crate) fn json_post(
    url: String,
    headers: Vec<(String, SecretString)>,
    body: &serde_json::Value,
) -> Result<Post, Fault> {
    let body = serde_json::to_vec(body)
        .map_err(|error| Fault::of_kind(FailureKind::Other, format!("cannot write the request: {error}")))?;
    Ok(Post { url, headers, body: body.into() })
}

/// Sends a request and decodes the response.
pub(crate) async fn exchange(
    http: &Http,
    post: Result<Post, Fault>,
    mut decoder: impl Decoder,
    request: &ModelRequest,
    updates: &UpdateSink,
    cancel: &CancellationToken,
) -> Completion {
    let model = &request.model;
    let post = post.map(|mut post| {
        // In front, so that those of the user's configuration replace them.
        post.headers.splice(0..0, provider_headers(request));
        post
    });
    if let Ok(Post { url, body, .. }) = &post {
        let (provider, url, bytes) = (&model.provider, public_part(url), body.len());
        tracing::debug!(provider, model = model.id, url, bytes, "request");
    }
    let started = std::time::Instant::now();
    // One code for all decoders: a call for each event costs less than seven copies of it.
    let completion = send_and_decode(http, post, &mut decoder, request, updates, cancel).await;
    let (stop, usage) = (&completion.message.stop_reason, &completion.message.usage);
    let failure = completion.failure.as_ref();
    tracing::debug!(
        provider = model.provider,
        model = model.id,
        ?stop,
        failure = failure.map(|failure| tracing::field::debug(failure.kind)),
        status = failure.and_then(|failure| failure.status),
        input = usage.input,
        output = usage.output,
        milliseconds = started.elapsed().as_millis(),
        "answer"
    );
    completion
}

async fn send_and_decode(
    http: &Http,
    post: Result<Post, Fault>,
    decoder: &mut dyn Decoder,
    request: &ModelRequest,
    updates: &UpdateSink,
    cancel: &CancellationToken,
) -> Completion {
    let mut draft = Draft::new(request);
    // What fails while an abort ends it has not failed.
    if cancel.is_cancelled() {
        return aborted(draft, request, ABORTED_BEFORE);
    }
    let post = match post {
        Ok(post) => post,
        Err(fault) => return failed(draft, request, fault),
    };
    let mut response = match open(http, post, decoder, request, cancel).await {
        Ok(response) => response,
        Err(End::Cancelled) => return aborted(draft, request, ABORTED_BEFORE),
        Err(End::Fault(fault)) => return failed(draft, request, fault),
    };
    let patience = Patience { idle: request.options.idle_timeout, cancel };

    decoder.opened(&mut draft);
    let mut outlet = Outlet { updates, open: true };
    let mut body = Body::default();
    let end = stream(&mut response, &mut body, decoder, &mut draft, &mut outlet, patience).await;
    let (stop, fault) = match end {
        Ok(()) => match decoder.ended(&mut draft) {
            Ok(stop) => (stop, None),
            Err(fault) => (StopReason::Error, Some(body.fault_of_no_stream().unwrap_or(fault))),
        },
        Err(End::Fault(fault)) => (StopReason::Error, Some(fault)),
        Err(End::Cancelled) => {
            decoder.aborted(&mut draft);
            // A reader that is gone or stuck must not keep an abort from ending.
            let _ = tokio::time::timeout(ABORT_FLUSH, outlet.flush(&mut draft)).await;
            return aborted(draft, request, decoder.aborted_text());
        }
    };
    tokio::select! {
        biased;
        () = outlet.flush(&mut draft) => {}
        () = cancel.cancelled() => {}
    }
    match fault {
        None => {
            response.release();
            draft.complete(request, stop, None)
        }
        Some(fault) => failed(draft, request, fault),
    }
}

/// Sends the request until its response is a good one, as often as the options allow.
async fn open(
    http: &Http,
    post: Post,
    decoder: &dyn Decoder,
    request: &ModelRequest,
    cancel: &CancellationToken,
) -> Result<Response, End> {
    let options = &request.options;
    let patience = Patience { idle: options.head_timeout.or(options.idle_timeout), cancel };
    let mut made = 0;
    loop {
        let fault = match http.post(post.clone(), patience).await {
            Ok(mut response) => {
                tracing::debug!(status = response.status(), "response");
                if (200..300).contains(&response.status()) {
                    return Ok(response);
                }
                status_fault(&mut response, decoder, patience).await.map_err(|_| End::Cancelled)?
            }
            Err(HttpError::Cancelled) => return Err(End::Cancelled),
            Err(error) => transport_fault(&error),
        };
        let Some(delay) = options.attempts.delay(made, &fault.failure) else { return Err(End::Fault(fault)) };
        made += 1;
        tracing::debug!(attempt = made, milliseconds = delay.as_millis(), error = fault.text, "asked again");
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(End::Cancelled),
            () = tokio::time::sleep(delay) => {}
        }
    }
}

enum End {
    Cancelled,
    Fault(Fault),
}

/// What is known about the body of a response.
#[derive(Default)]
struct Body {
    /// True when an event was found in it.
    has_events: bool,
    /// Its beginning, as long as there was no event.
    head: Vec<u8>,
}

impl Body {
    fn see(&mut self, chunk: &[u8]) {
        let room = MAX_ERROR_CHARS.saturating_sub(self.head.len()).min(chunk.len());
        if !self.has_events {
            self.head.extend_from_slice(chunk.get(..room).unwrap_or_default());
        }
    }

    /// Some servers and gateways report errors with the status of a success and no stream behind it.
    fn fault_of_no_stream(&self) -> Option<Fault> {
        let head = String::from_utf8_lossy(&self.head);
        if self.has_events || head.trim().is_empty() {
            return None;
        }
        let text = format!("The provider sent no event stream: {}", head.trim());
        Some(error_fault(&head, text, ErrorReport::default()))
    }
}

async fn stream(
    response: &mut Response,
    body: &mut Body,
    decoder: &mut dyn Decoder,
    draft: &mut Draft,
    outlet: &mut Outlet<'_>,
    patience: Patience<'_>,
) -> Result<(), End> {
    let mut frames = Frames::new(decoder.framing());
    loop {
        tokio::select! {
            biased;
            () = patience.cancel.cancelled() => return Err(End::Cancelled),
            () = outlet.flush(draft) => {}
        }
        let chunk = match response.chunk(patience).await {
            Ok(chunk) => chunk,
            Err(HttpError::Cancelled) => return Err(End::Cancelled),
            // The body gives nothing after its first error: see Response::chunk.
            Err(error) => return Err(End::Fault(transport_fault(&error))),
        };
        let mut on_event = |event: SseEvent<'_>| {
            body.has_events = true;
            decoder.event(event, draft)
        };
        let flow = frames.read(chunk.as_deref(), &mut on_event);
        body.see(chunk.as_deref().unwrap_or_default());
        match flow {
            Err(error) => return Err(End::Fault(Fault::of_kind(FailureKind::Server, error))),
            Ok(ControlFlow::Break(Ok(()))) => return Ok(()),
            Ok(ControlFlow::Break(Err(fault))) => return Err(End::Fault(fault)),
            Ok(ControlFlow::Continue(())) if chunk.is_none() => return Ok(()),
            Ok(ControlFlow::Continue(())) => {}
        }
    }
}

/// Cuts a body into events.
pub(super) enum Frames {
    Sse(SseDecoder),
    AwsEvents(EventStream),
}

impl Frames {
    pub(super) fn new(framing: Framing) -> Self {
        match framing {
            Framing::Sse => Self::Sse(SseDecoder::new()),
            Framing::AwsEvents => Self::AwsEvents(EventStream::default()),
        }
    }

    /// Reads a chunk, or the end of the body.
    pub(super) fn read(
        &mut self,
        chunk: Option<&[u8]>,
        on_event: &mut impl FnMut(SseEvent<'_>) -> Flow,
    ) -> Result<Flow, String> {
        match (self, chunk) {
            (Self::Sse(sse), Some(chunk)) => sse.push(chunk, on_event).map_err(|error| error.to_string()),
            (Self::Sse(sse), None) => sse.finish(on_event).map_err(|error| error.to_string()),
            (Self::AwsEvents(events), Some(chunk)) => {
                events.push(chunk, on_event).map_err(|error| error.to_string())
            }
            // What is left over is the beginning of a message that was cut.
            (Self::AwsEvents(_), None) => Ok(ControlFlow::Continue(())),
        }
    }
}

/// Where updates go, until nobody reads them any more.
struct Outlet<'a> {
    updates: &'a UpdateSink,
    open: bool,
}

impl Outlet<'_> {
    async fn flush(&mut self, draft: &mut Draft) {
        while draft.has_updates() {
            // An update is taken when there is room for it: an abort that ends the wait loses none.
            let room = if self.open { self.updates.reserve().await.ok() } else { None };
            // When nobody reads, the answer itself is still wanted.
            self.open = room.is_some();
            if let (Some(update), Some(room)) = (draft.next_update(), room) {
                room.send(update);
            }
        }
    }
}

fn failed(draft: Draft, request: &ModelRequest, fault: Fault) -> Completion {
    draft.complete(request, StopReason::Error, Some((fault.text, fault.failure)))
}

fn aborted(mut draft: Draft, request: &ModelRequest, text: &str) -> Completion {
    draft.message.error_message = Some(text.to_owned());
    draft.complete(request, StopReason::Aborted, None)
}

fn transport_fault(error: &HttpError) -> Fault {
    tracing::debug!(%error, "the connection failed");
    match error {
        HttpError::Request(text) => Fault::of_kind(FailureKind::Other, text.clone()),
        error => Fault::of_kind(FailureKind::Network, format!("Connection error.: {error}")),
    }
}

async fn status_fault(
    response: &mut Response,
    decoder: &dyn Decoder,
    patience: Patience<'_>,
) -> Result<Fault, HttpError> {
    let (status, retry_after) = (response.status(), response.retry_after());
    let body = response.error_text(patience).await?;
    let retry_after = retry_after.or_else(|| decoder.retry_after(&body));
    let text = match body.trim() {
        "" => decoder.bare_error_text(status),
        body => shorten(decoder.error_text(status, body)),
    };
    Ok(error_fault(&body, text, ErrorReport { status: Some(status), retry_after, ..ErrorReport::default() }))
}

/// A fault of a kind that the JSON of an error body tells, as far as it does.
fn error_fault(body: &str, text: String, report: ErrorReport<'_>) -> Fault {
    let json: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let error = json.get("error").unwrap_or(&json);
    let kind = |name: &str| error.get(name).and_then(serde_json::Value::as_str);
    let failure = ErrorReport { kinds: [kind("code"), kind("type")], text: &text, ..report }.classify();
    Fault { text, failure }
}

/// A URL without what may be secret in it: user, password, query.
fn public_part(url: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(url) else { return "not a URL".to_owned() };
    url.set_query(None);
    url.set_fragment(None);
    // These fail for a URL that can have neither.
    url.set_username("").ok();
    url.set_password(None).ok();
    url.to_string()
}

fn shorten(text: String) -> String {
    match text.char_indices().nth(MAX_ERROR_CHARS) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use sampi_protocol::data::ThinkingLevel;
    use serde_json::json;

    use super::*;
    use crate::llm::testing::{model, request, short, user};

    #[test]
    fn the_log_shows_where_a_request_goes_and_no_secret_of_its_url() {
        for (url, public) in [
            ("https://me:s3cret@h:8443/v1/x?key=s3cret#s3cret", "https://h:8443/v1/x"),
            ("http://127.0.0.1:1/v1", "http://127.0.0.1:1/v1"),
            ("s3cret", "not a URL"),
        ] {
            assert_eq!(public_part(url), public);
        }
    }

    #[tokio::test]
    async fn an_abort_while_updates_wait_for_a_slow_reader_loses_none_of_them() {
        let request = request(model("x", json!({})), ThinkingLevel::Off, json!([user("q")]));
        let mut draft = Draft::new(&request);
        draft.start();
        let block = draft.begin_text();
        draft.append(block, "a");
        draft.append(block, "b");
        let (updates, mut reader) = tokio::sync::mpsc::channel(1);
        let mut outlet = Outlet { updates: &updates, open: true };
        let mut seen = Vec::new();
        while draft.has_updates() {
            tokio::select! {
                biased;
                () = outlet.flush(&mut draft) => {}
                () = std::future::ready(()) => {}
            }
            seen.push(short(&reader.try_recv().unwrap()));
        }
        assert_eq!(seen, ["start 0", "text_start 0", "text_delta 0 a", "text_delta 0 b"]);
    }
}
