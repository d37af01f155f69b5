use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::Request;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::harness::within_timeout;

/// The API that a request speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// `openai-completions`
    OpenAi,
    /// `anthropic-messages`
    Anthropic,
    /// The exchange of an identity token for an access token of `anthropic-messages`.
    TokenExchange,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// Path and query.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
}

impl RecordedRequest {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The API, by the path; `None` for a path that no API has.
    pub fn api(&self) -> Option<Api> {
        match self.path.split('?').next() {
            Some("/v1/chat/completions") => Some(Api::OpenAi),
            Some("/v1/messages") => Some(Api::Anthropic),
            Some("/v1/oauth/token") => Some(Api::TokenExchange),
            _ => None,
        }
    }

    /// The messages of the body.
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// The messages with this role.
    pub fn messages_of(&self, role: &str) -> Vec<&Value> {
        self.messages().iter().filter(|message| message["role"] == role).collect()
    }

    /// The text of a message, whatever form its content has.
    pub fn text_of(message: &Value) -> String {
        match &message["content"] {
            Value::String(text) => text.clone(),
            Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
            _ => String::new(),
        }
    }

    /// The texts of the user's messages.
    pub fn user_texts(&self) -> Vec<String> {
        self.messages_of("user").into_iter().map(Self::text_of).collect()
    }

    /// The names of the tools that the model may call.
    pub fn tool_names(&self) -> Vec<String> {
        let tools = self.body["tools"].as_array().into_iter().flatten();
        let name =
            |tool: &Value| tool["function"]["name"].as_str().or(tool["name"].as_str()).map(str::to_owned);
        tools.filter_map(name).collect()
    }

    pub(super) async fn read(request: Request) -> Self {
        let (head, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
        Self {
            path: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            headers: (head.headers.iter())
                .map(|(name, value)| {
                    (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
                })
                .collect(),
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        }
    }
}

/// A request and what became of its reply.
#[derive(Debug)]
pub struct Exchange {
    /// The request.
    pub request: RecordedRequest,
    sent: AtomicUsize,
    ended: CancellationToken,
}

impl Exchange {
    pub(super) fn new(request: RecordedRequest) -> Self {
        Self { request, sent: AtomicUsize::new(0), ended: CancellationToken::new() }
    }

    /// How many pieces of the reply have been handed to the socket.
    pub fn pieces_sent(&self) -> usize {
        self.sent.load(Ordering::Acquire)
    }

    /// Ends when the reply is over: it was sent to its end, or the client hung up.
    pub async fn over(&self) {
        within_timeout("the client to hang up", self.ended.cancelled()).await;
    }

    pub(super) fn count_piece(&self) {
        self.sent.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn end(&self) {
        self.ended.cancel();
    }
}
