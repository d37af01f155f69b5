//! Model providers: one trait, one folder an API. The shared parts (http, sse) know no vendor.
//!
//! A provider never fails as a function: whatever happens ends in a [`Completion`] whose message says
//! so in `stopReason` and `errorMessage`, and whose [`Failure`] says of what kind it was.

pub mod anthropic_messages;
pub mod azure_openai_responses;
pub mod bedrock_converse_stream;
mod budget;
mod call_blocks;
mod cost;
mod draft;
mod effort;
mod event_stream;
mod exchange;
mod failure;
#[cfg(test)]
pub(crate) mod fake_server;
mod github_copilot;
pub mod google_generative_ai;
pub mod google_vertex;
mod headers;
pub mod http;
mod loose;
pub mod mistral_conversations;
pub mod openai_completions;
pub mod openai_responses;
mod partial_json;
mod percent;
mod provider_headers;
mod registry;
mod sampling;
mod scripted;
#[cfg(test)]
mod socket_tests;
mod sse;
#[cfg(test)]
mod stream_matrix;
mod strict_schema;
#[cfg(test)]
mod switching_tests;
#[cfg(test)]
mod testing;
mod token_cache;
pub(crate) mod token_endpoint;
mod transcript;

pub use registry::{APIS, Providers};
pub use scripted::{API as DEMO_API, PROVIDER as DEMO_PROVIDER, SCRIPT_FORMAT, demo_models};

use std::time::Duration;

use sampi_protocol::Shared;
use sampi_protocol::data::{AgentMessage, AssistantMessage, Model, ThinkingLevel, Usage};
use sampi_protocol::stream::AssistantMessageEvent;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::BoxFuture;
use crate::environment::Environment;

/// One request to a model.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// The model.
    pub model: Model,
    /// What authorises the request.
    pub credentials: Credentials,
    /// The context as the session gives it: system messages where they stand, all eight roles.
    pub messages: Vec<Shared<AgentMessage>>,
    /// The thinking level, one that the model supports.
    pub thinking: ThinkingLevel,
    /// The rest.
    pub options: RequestOptions,
}

impl ModelRequest {
    /// Gives the request what authorises it. Some credentials name the address that they are for.
    pub fn authorise(&mut self, credentials: Credentials) {
        self.credentials = credentials;
        github_copilot::follow_token(self);
    }

    /// What the model's `compat` says of something that is so or not.
    fn compat_flag(&self, name: &str) -> Option<bool> {
        self.model.compat.as_ref()?.get(name)?.as_bool()
    }
}

/// What authorises a request. Never shown by `Debug`.
#[derive(Debug, Clone, Default)]
pub struct Credentials {
    /// The API key, sent the way the API wants it.
    pub api_key: Option<SecretString>,
    /// Further headers, with resolved values.
    pub headers: Vec<(String, SecretString)>,
    /// True to send the key as `Authorization: Bearer` whatever the API wants.
    pub bearer: bool,
    /// True when the key is the access token of a sign-in.
    pub signed_in: bool,
    /// Where the company is whose own service the sign-in is for, as it was saved.
    pub enterprise_url: Option<String>,
    /// Variables that go before those of the environment.
    pub variables: Vec<(String, SecretString)>,
    /// The environment, which may say where a provider is and who asks.
    pub environment: Environment,
}

/// The shortest secret that is looked for in texts; a shorter one would take ordinary words out.
const SHORTEST_REDACTED: usize = 8;

impl Credentials {
    /// The text without the secrets that a provider may have repeated in it.
    pub fn redact(&self, text: &str) -> String {
        redact(text, self.api_key.iter().chain(self.headers.iter().map(|(_, value)| value)))
    }

    /// A variable: that of the credentials, else that of the environment. An empty one is none.
    fn variable(&self, name: &str) -> Option<String> {
        let own = self.variables.iter().find(|(known, _)| known == name);
        let value = match own {
            Some((_, value)) => value.expose_secret(),
            None => self.environment.get(name)?,
        };
        Some(value.to_owned()).filter(|value| !value.is_empty())
    }
}

/// The text without these secrets.
fn redact<'a>(text: &str, secrets: impl Iterator<Item = &'a SecretString>) -> String {
    secrets
        // A header may hold the key behind a word, such as `Bearer`.
        .filter_map(|secret| secret.expose_secret().split_whitespace().next_back())
        .filter(|secret| secret.len() >= SHORTEST_REDACTED)
        .fold(text.to_owned(), |text, secret| text.replace(secret, "[redacted]"))
}

/// Options of a request.
#[derive(Debug, Clone, Default)]
pub struct RequestOptions {
    /// The session, for cache affinity.
    pub session_id: Option<String>,
    /// The most output tokens; the model's own limit when absent.
    pub max_tokens: Option<u64>,
    /// How long the stream may be silent, headers included; no limit when absent.
    pub idle_timeout: Option<Duration>,
    /// How long the head of the response may take; as long as the stream may be silent when absent.
    pub head_timeout: Option<Duration>,
    /// How often the provider is asked again before the failure is one of the run.
    pub attempts: Attempts,
    /// How long to keep the prompt cache.
    pub cache_retention: CacheRetention,
    /// Tokens of thinking for each level, where the user set them.
    pub thinking_budgets: ThinkingBudgets,
    /// True to leave images out (`images.blockImages`).
    pub block_images: bool,
}

/// Further attempts inside one request, before anything of an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Attempts {
    /// How many, at most.
    pub more: u32,
    /// The longest wait that a provider may ask for; any when absent.
    pub max_requested_delay: Option<Duration>,
}

impl Attempts {
    /// How long to wait before the next attempt, after so many further ones; `None` when there is none.
    fn delay(self, made: u32, failure: &Failure) -> Option<Duration> {
        /// Doubles with each attempt.
        const FIRST: Duration = Duration::from_millis(500);
        const LONGEST: Duration = Duration::from_secs(8);
        if made >= self.more || !failure.kind.is_retryable() {
            return None;
        }
        match (failure.retry_after, self.max_requested_delay) {
            (Some(asked), Some(most)) if asked > most => None,
            (Some(asked), _) => Some(asked),
            (None, _) => Some(FIRST.saturating_mul(2u32.saturating_pow(made)).min(LONGEST)),
        }
    }
}

/// How long the provider should keep the prompt cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheRetention {
    /// No caching.
    None,
    /// The provider's usual time.
    #[default]
    Short,
    /// As long as the provider offers.
    Long,
}

impl CacheRetention {
    /// What is left of it with a provider that offers its usual time alone.
    fn without_long(self) -> Self {
        if self == Self::Long { Self::Short } else { self }
    }
}

/// Tokens of thinking for each level, where the user set them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThinkingBudgets {
    /// For `minimal`.
    pub minimal: Option<u64>,
    /// For `low`.
    pub low: Option<u64>,
    /// For `medium`.
    pub medium: Option<u64>,
    /// For `high`.
    pub high: Option<u64>,
}

/// What a provider reports while it streams.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamUpdate {
    /// The response began. At most one, before any event; the message has the stop reason `pending`.
    Start(Box<AssistantMessage>),
    /// A block began, grew or ended. Never `start`, `done` or `error`.
    Event {
        /// What happened.
        event: AssistantMessageEvent,
        /// The usage so far.
        usage: Usage,
    },
}

/// Where a provider reports to. Bounded: a slow reader slows the stream down.
pub type UpdateSink = mpsc::Sender<StreamUpdate>;

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// The whole message, or what there is of it. Its stop reason is never `pending`.
    pub message: AssistantMessage,
    /// Set when the stop reason is `error`.
    pub failure: Option<Failure>,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The kind, which decides about retry and overflow recovery.
    pub kind: FailureKind,
    /// The HTTP status.
    pub status: Option<u16>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
}

impl Failure {
    /// A failure of which nothing but the kind is known.
    pub fn of(kind: FailureKind) -> Self {
        Self { kind, status: None, retry_after: None }
    }
}

/// Kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureKind {
    /// The credentials are missing, wrong or not allowed to do this.
    Auth,
    /// Too many requests. Worth another try.
    RateLimit,
    /// The provider has no capacity now. Worth another try.
    Overloaded,
    /// The request is longer than the model's context.
    Overflow,
    /// The provider refuses the request as such.
    InvalidRequest,
    /// The connection failed, was cut, or stayed silent for too long. Worth another try.
    Network,
    /// The provider failed. Worth another try.
    Server,
    /// The provider's filter stopped the answer.
    ContentFilter,
    /// The account's quota or balance is used up.
    Quota,
    /// Anything else.
    Other,
}

impl FailureKind {
    /// True when the same request may succeed later.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimit | Self::Overloaded | Self::Network | Self::Server)
    }
}

/// An API of a vendor.
pub trait Provider: Send + Sync {
    /// Sends a request and reports the response as it comes. Ends soon after `cancel` is cancelled, with
    /// a message that has the stop reason `aborted`.
    fn stream<'a>(
        &'a self,
        request: &'a ModelRequest,
        updates: &'a UpdateSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Completion>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_be_a_secret_is_taken_out_of_a_text() {
        let credentials = Credentials {
            api_key: Some("sk-12345678".to_owned().into()),
            headers: [
                ("authorization", "Bearer tok-1234"),
                ("user-agent", "My Client v1"),
                ("x", "ends in space "),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned().into()))
            .into(),
            ..Credentials::default()
        };
        let text = "v1/models: sk-12345678 is no key, tok-1234 no token; a space";
        let redacted = "v1/models: [redacted] is no key, [redacted] no token; a space";
        assert_eq!(credentials.redact(text), redacted);
    }
}
