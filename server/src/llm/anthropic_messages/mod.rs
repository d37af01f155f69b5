//! The Messages API of Anthropic.

mod decode;
mod fallback;
mod request;

pub(super) use request::{INTERLEAVED_THINKING, cache_mark};

#[cfg(test)]
pub(super) use decode::Decoder;

use tokio_util::sync::CancellationToken;

use super::exchange::exchange;
use super::http::Http;
use super::{Completion, ModelRequest, Provider, UpdateSink};
use crate::BoxFuture;

/// The wire name of the API.
pub const API: &str = "anthropic-messages";

/// Speaks `anthropic-messages`.
#[derive(Debug, Clone)]
pub struct AnthropicMessages {
    http: Http,
}

impl AnthropicMessages {
    /// A provider that sends through this client.
    pub fn new(http: Http) -> Self {
        Self { http }
    }
}

impl Provider for AnthropicMessages {
    fn stream<'a>(
        &'a self,
        request: &'a ModelRequest,
        updates: &'a UpdateSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            let post = request::post(request);
            let decoder = decode::Decoder::of(request);
            exchange(&self.http, post, decoder, request, updates, cancel).await
        })
    }
}

#[cfg(test)]
mod tests;
