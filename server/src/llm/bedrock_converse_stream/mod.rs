//! The Converse API of Amazon Bedrock, which many vendors' models stand behind.

mod claude;
mod credentials;
mod decode;
mod endpoint;
mod request;
mod sign;

#[cfg(test)]
pub(super) use decode::Decoder;

use tokio_util::sync::CancellationToken;

use super::exchange::{Fault, exchange, json_post};
use super::headers::{bearer, json_headers};
use super::http::{Http, Post};
use super::{Completion, FailureKind, ModelRequest, Provider, UpdateSink};
use crate::BoxFuture;
use credentials::{Authority, Environment};

/// The wire name of the API.
pub const API: &str = "bedrock-converse-stream";

/// Speaks `bedrock-converse-stream`.
#[derive(Debug, Clone)]
pub struct BedrockConverseStream {
    http: Http,
}

impl BedrockConverseStream {
    /// A provider that sends through this client, with what the environment authorises.
    pub fn new(http: Http) -> Self {
        Self { http }
    }
}

impl Provider for BedrockConverseStream {
    fn stream<'a>(
        &'a self,
        request: &'a ModelRequest,
        updates: &'a UpdateSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            let environment = Environment::read(&request.credentials).await;
            let post = post(request, &environment, jiff::Timestamp::now());
            let decoder = decode::Decoder::default();
            let mut completion = exchange(&self.http, post, decoder, request, updates, cancel).await;
            let error = completion.message.error_message.take();
            completion.message.error_message = error.map(|text| environment.redact(&text));
            completion
        })
    }
}

fn post(request: &ModelRequest, environment: &Environment, now: jiff::Timestamp) -> Result<Post, Fault> {
    let region = endpoint::region(&request.model, environment);
    let url = endpoint::url(&request.model, &region);
    let mut post = json_post(url, Vec::new(), &request::body(request))?;
    let authority = environment.authority(&request.credentials).ok_or_else(|| {
        let text = "no credentials for Amazon Bedrock: set AWS_BEARER_TOKEN_BEDROCK, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE";
        Fault::of_kind(FailureKind::Auth, text)
    })?;
    post.headers = json_headers("application/vnd.amazon.eventstream");
    match authority {
        Authority::Bearer(token) => post.headers.push(bearer(&token)),
        Authority::Keys(keys) => {
            post.headers.extend(sign::headers(&keys, &region, &post.url, &post.body, now)?)
        }
    }
    post.headers.extend(request.credentials.headers.iter().cloned());
    Ok(post)
}

#[cfg(test)]
mod tests;
