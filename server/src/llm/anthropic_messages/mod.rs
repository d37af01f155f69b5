//! The Messages API of Anthropic.

mod decode;
mod fallback;
mod federation;
mod request;

pub use federation::Federation;

pub(super) use request::{INTERLEAVED_THINKING, cache_mark};

#[cfg(test)]
pub(super) use decode::Decoder;

use tokio_util::sync::CancellationToken;

use super::exchange::exchange;
use super::http::{Http, Patience};
use super::token_cache::TokenCache;
use super::token_endpoint::Asker;
use super::{Completion, ModelRequest, Provider, UpdateSink};
use crate::BoxFuture;

/// The wire name of the API.
pub const API: &str = "anthropic-messages";

/// Speaks `anthropic-messages`.
#[derive(Debug, Clone)]
pub struct AnthropicMessages {
    http: Http,
    tokens: TokenCache,
}

impl AnthropicMessages {
    /// A provider that sends through this client.
    pub fn new(http: Http) -> Self {
        Self { http, tokens: TokenCache::new(federation::MARGINS) }
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
            let send =
                |post| exchange(&self.http, post, decode::Decoder::of(request), request, updates, cancel);
            let Some(federation) = Federation::of(request) else {
                return send(request::post(request, None)).await;
            };
            let patience = Patience { idle: request.options.idle_timeout, cancel };
            let asker = Asker::for_request(&self.http, patience);
            let origin = federation.origin();
            match self.tokens.token(origin, federation.exchange(asker), cancel).await {
                Err(fault) => send(Err(fault)).await,
                Ok(token) => {
                    let work = send(request::post(request, Some(&token)));
                    let mut completion = self.tokens.beside(origin, federation.exchange(asker), work).await;
                    self.tokens.learn(&token, &mut completion);
                    completion
                }
            }
        })
    }
}

#[cfg(test)]
mod tests;
