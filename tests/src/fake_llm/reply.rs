use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::response::Response;
use serde_json::json;

use super::answer::Answer;
use super::exchange::{Api, Exchange};
use super::{Gate, anthropic, openai, whole_body};

/// How one request is answered.
#[derive(Debug, Clone)]
pub struct Reply(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Answer(Answer),
    Whole { status: u16, body: String, headers: Vec<(&'static str, String)> },
    Silence,
}

/// One step of a streamed reply.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Send(String),
    Wait(Gate),
    Cut,
    End,
    Hang,
}

impl Reply {
    /// An error in the form that both APIs share.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let body = json!({ "type": "error", "error": { "type": kind, "message": message } }).to_string();
        Self(Kind::Whole { status, body, headers: Vec::new() })
    }

    /// An access token for so many seconds.
    pub fn access_token(token: &str, seconds: u32) -> Self {
        let body = json!({ "access_token": token, "token_type": "Bearer", "expires_in": seconds });
        Self(Kind::Whole { status: 200, body: body.to_string(), headers: Vec::new() })
    }

    /// Adds a `retry-after` header to an error.
    pub fn retry_after(self, seconds: u32) -> Self {
        match self.0 {
            Kind::Whole { status, body, mut headers } => {
                headers.push(("retry-after", seconds.to_string()));
                Self(Kind::Whole { status, body, headers })
            }
            other => panic!("only an error has retry-after, not {other:?}"),
        }
    }

    /// Accepts the request and never answers, not even with a status.
    pub fn silence() -> Self {
        Self(Kind::Silence)
    }

    pub(super) async fn respond(self, exchange: &Arc<Exchange>) -> Response {
        let guard = EndOnDrop(exchange.clone());
        match self.0 {
            Kind::Silence => std::future::pending().await,
            Kind::Whole { status, body, headers } => {
                let mut response =
                    Response::builder().status(status).header("content-type", "application/json");
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                response.body(whole_body(body)).expect("a valid response")
            }
            Kind::Answer(answer) => {
                let steps = match exchange.request.api().expect("checked before") {
                    Api::OpenAi => openai::steps(&answer, &exchange.request),
                    Api::Anthropic => anthropic::steps(&answer, &exchange.request),
                    Api::TokenExchange => panic!("an answer of a model is no access token: {answer:?}"),
                };
                Response::builder()
                    .header("content-type", "text/event-stream")
                    .body(stream(steps.into(), guard))
                    .expect("a valid response")
            }
        }
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self(Kind::Answer(answer))
    }
}

struct EndOnDrop(Arc<Exchange>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn stream(steps: VecDeque<Step>, guard: EndOnDrop) -> Body {
    Body::from_stream(futures::stream::unfold((steps, guard), |(mut steps, guard)| async move {
        loop {
            match steps.pop_front()? {
                Step::Send(text) => {
                    guard.0.count_piece();
                    return Some((Ok(Bytes::from(text)), (steps, guard)));
                }
                Step::Wait(gate) => gate.pass().await,
                Step::Cut => {
                    steps.clear();
                    return Some((Err(io::Error::from(io::ErrorKind::ConnectionReset)), (steps, guard)));
                }
                Step::End => return None,
                Step::Hang => std::future::pending().await,
            }
        }
    }))
}
