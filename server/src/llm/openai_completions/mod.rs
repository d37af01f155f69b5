//! The Chat Completions API of OpenAI, as OpenAI and the many servers that copy it speak it.

mod compat;
mod decode;
mod request;
mod thinking;

#[cfg(test)]
pub(super) use decode::Decoder;

use tokio_util::sync::CancellationToken;

use super::exchange::exchange;
use super::http::Http;
use super::{Completion, ModelRequest, Provider, UpdateSink};
use crate::BoxFuture;

/// The wire name of the API.
pub const API: &str = "openai-completions";

/// Speaks `openai-completions`.
#[derive(Debug, Clone)]
pub struct OpenAiCompletions {
    http: Http,
}

impl OpenAiCompletions {
    /// A provider that sends through this client.
    pub fn new(http: Http) -> Self {
        Self { http }
    }
}

impl Provider for OpenAiCompletions {
    fn stream<'a>(
        &'a self,
        request: &'a ModelRequest,
        updates: &'a UpdateSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            let compat = compat::Compat::of(&request.model);
            let decoder = decode::Decoder::new(compat.supports_finish_reason);
            let post = request::post(request, &compat);
            exchange(&self.http, post, decoder, request, updates, cancel).await
        })
    }
}

#[cfg(test)]
mod tests;
