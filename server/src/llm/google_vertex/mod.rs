//! Gemini as Google Cloud offers it (Vertex AI): the requests and streams of the Gemini API under other
//! addresses, with an API key or with Application Default Credentials.

mod credentials;
mod endpoint;

use tokio_util::sync::CancellationToken;

use super::exchange::{Fault, exchange, json_post};
use super::google_generative_ai::{Decoder, KEY_HEADER, body};
use super::headers::{bearer, header, key_header};
use super::http::{Http, Patience, Post};
use super::transcript::{ImageLimits, as_base64};
use super::{Completion, FailureKind, ModelRequest, Provider, UpdateSink};
use crate::BoxFuture;
use credentials::{Access, Place, Tokens};
use endpoint::Project;

/// The wire name of the API.
pub const API: &str = "google-vertex";

/// The project that pays for a request and whose quota it counts for.
const QUOTA_HEADER: &str = "x-goog-user-project";

/// What Vertex AI takes:
/// <https://cloud.google.com/vertex-ai/generative-ai/docs/multimodal/image-understanding#supported_models>
const IMAGES: ImageLimits = ImageLimits {
    // "Maximum images per prompt: 3,000".
    per_request: Some(3000),
    // "Maximum file size per file for inline data: 7 MB".
    image_bytes: Some(as_base64(7_000_000)),
    ..ImageLimits::NONE
};

/// Speaks `google-vertex`.
#[derive(Debug, Clone)]
pub struct GoogleVertex {
    http: Http,
    tokens: Tokens,
}

impl GoogleVertex {
    /// A provider that sends through this client, with what the environment authorises.
    pub fn new(http: Http) -> Self {
        Self { http, tokens: Tokens::default() }
    }

    /// What authorises a request that has no key.
    async fn access(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<Option<Access>, Fault> {
        if request.credentials.api_key.is_some() {
            return Ok(None);
        }
        let variable = |name: &str| request.credentials.variable(name);
        let place = Place::find(variable).ok_or_else(|| {
            let text = "no credentials for Google Cloud: set GOOGLE_CLOUD_API_KEY or GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`";
            Fault::of_kind(FailureKind::Auth, text)
        })?;
        let patience = Patience { idle: request.options.idle_timeout, cancel };
        let mut access = self.tokens.access(&place, &self.http, patience).await?;
        access.quota_project = variable("GOOGLE_CLOUD_QUOTA_PROJECT").or(access.quota_project);
        Ok(Some(access))
    }
}

impl Provider for GoogleVertex {
    fn stream<'a>(
        &'a self,
        request: &'a ModelRequest,
        updates: &'a UpdateSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            let access = self.access(request, cancel).await;
            let post = match &access {
                Ok(access) => post(request, access.as_ref()),
                Err(fault) => Err(fault.clone()),
            };
            let decoder = Decoder::default();
            let mut completion = exchange(&self.http, post, decoder, request, updates, cancel).await;
            if let Ok(Some(access)) = &access {
                self.tokens.cache.learn(&access.token, &mut completion);
            }
            completion
        })
    }
}

/// What authorises requests without a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DefaultCredentials {
    /// All that is needed is there.
    Usable,
    /// There are credentials, and this is missing.
    Incomplete(String),
    /// There are none.
    Absent,
}

impl DefaultCredentials {
    /// What these variables, and the files that they name, have. Asks no server.
    pub fn find(variable: impl Fn(&str) -> Option<String>) -> Self {
        if !Place::find(&variable).is_some_and(|place| place.is_there()) {
            return Self::Absent;
        }
        match Project::of(&variable) {
            Ok(_) => Self::Usable,
            Err(fault) => Self::Incomplete(fault.text),
        }
    }
}

/// The request. Without `access` it has a key of its own.
fn post(request: &ModelRequest, access: Option<&Access>) -> Result<Post, Fault> {
    let variable = |name: &str| request.credentials.variable(name);
    let url = match access {
        None => endpoint::url(&request.model, None),
        Some(_) if endpoint::is_custom(&request.model) => endpoint::url(&request.model, None),
        Some(_) => endpoint::url(&request.model, Some(&Project::of(variable)?)),
    };
    let mut headers = vec![header("content-type", "application/json")];
    headers.extend(key_header(&request.credentials, KEY_HEADER));
    if let Some(access) = access {
        headers.push(bearer(&access.token));
        headers.extend(access.quota_project.as_ref().map(|project| header(QUOTA_HEADER, project)));
    }
    headers.extend(request.credentials.headers.iter().cloned());
    json_post(url, headers, &body(request, IMAGES)?)
}

#[cfg(test)]
mod tests;
