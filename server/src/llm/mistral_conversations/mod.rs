//! The native Chat Completions API of Mistral: like OpenAI's, but for ids, thinking and images.

mod decode;
mod request;

#[cfg(test)]
pub(super) use decode::Decoder;

use tokio_util::sync::CancellationToken;

use super::exchange::exchange;
use super::http::Http;
use super::{Completion, ModelRequest, Provider, UpdateSink};
use crate::BoxFuture;

/// The wire name of the API.
pub const API: &str = "mistral-conversations";

/// Speaks `mistral-conversations`.
#[derive(Debug, Clone)]
pub struct MistralConversations {
    http: Http,
}

impl MistralConversations {
    /// A provider that sends through this client.
    pub fn new(http: Http) -> Self {
        Self { http }
    }
}

impl Provider for MistralConversations {
    fn stream<'a>(
        &'a self,
        request: &'a ModelRequest,
        updates: &'a UpdateSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            let post = request::post(request);
            exchange(&self.http, post, decode::Decoder::default(), request, updates, cancel).await
        })
    }
}

#[cfg(test)]
mod tests;
