//! The Responses API of OpenAI, and of the servers that copy it.

mod compat;
mod decode;
mod input;
mod request;

pub(super) use compat::{Compat, OPENAI_IMAGES, Service};
pub(super) use decode::Decoder;
pub(super) use request::body;

use tokio_util::sync::CancellationToken;

use super::exchange::exchange;
use super::http::Http;
use super::{Completion, ModelRequest, Provider, UpdateSink};
use crate::BoxFuture;

/// The wire name of the API.
pub const API: &str = "openai-responses";

/// Speaks `openai-responses`.
#[derive(Debug, Clone)]
pub struct OpenAiResponses {
    http: Http,
}

impl OpenAiResponses {
    /// A provider that sends through this client.
    pub fn new(http: Http) -> Self {
        Self { http }
    }
}

impl Provider for OpenAiResponses {
    fn stream<'a>(
        &'a self,
        request: &'a ModelRequest,
        updates: &'a UpdateSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            let compat = Compat::of(&request.model, Service::OpenAi);
            let post = request::post(request, &compat);
            let effort = request::effort_in_place(request, &compat);
            let decoder = Decoder::new(Service::OpenAi.name(&request.model)).with_effort(effort);
            exchange(&self.http, post, decoder, request, updates, cancel).await
        })
    }
}

#[cfg(test)]
mod tests;
