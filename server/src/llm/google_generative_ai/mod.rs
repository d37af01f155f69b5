//! The Gemini API of Google.

mod decode;
mod family;
mod request;
mod schema;
mod thinking;

pub(super) use decode::Decoder;
pub(super) use request::{KEY_HEADER, body, method};

use tokio_util::sync::CancellationToken;

use super::exchange::exchange;
use super::http::Http;
use super::{Completion, ModelRequest, Provider, UpdateSink};
use crate::BoxFuture;

/// The wire name of the API.
pub const API: &str = "google-generative-ai";

/// Speaks `google-generative-ai`.
#[derive(Debug, Clone)]
pub struct GoogleGenerativeAi {
    http: Http,
}

impl GoogleGenerativeAi {
    /// A provider that sends through this client.
    pub fn new(http: Http) -> Self {
        Self { http }
    }
}

impl Provider for GoogleGenerativeAi {
    fn stream<'a>(
        &'a self,
        request: &'a ModelRequest,
        updates: &'a UpdateSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            let post = request::post(request);
            exchange(&self.http, post, Decoder::default(), request, updates, cancel).await
        })
    }
}

#[cfg(test)]
mod tests;
