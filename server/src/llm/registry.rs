//! Which provider speaks which API.

use std::collections::HashMap;
use std::sync::Arc;

use super::Provider;
use super::anthropic_messages::{self, AnthropicMessages};
use super::azure_openai_responses::{self, AzureOpenAiResponses};
use super::bedrock_converse_stream::{self, BedrockConverseStream};
use super::google_generative_ai::{self, GoogleGenerativeAi};
use super::google_vertex::{self, GoogleVertex};
use super::http::Http;
use super::mistral_conversations::{self, MistralConversations};
use super::openai_completions::{self, OpenAiCompletions};
use super::openai_responses::{self, OpenAiResponses};
use super::scripted::{self, Scripted};

/// The wire names of the APIs that this build speaks.
pub const APIS: [&str; 9] = [
    anthropic_messages::API,
    azure_openai_responses::API,
    bedrock_converse_stream::API,
    google_generative_ai::API,
    google_vertex::API,
    mistral_conversations::API,
    openai_completions::API,
    openai_responses::API,
    scripted::API,
];

/// The providers, by the wire name of their API. Cheap to clone; all share one HTTP client, which is built
/// with the first request.
#[derive(Clone)]
pub struct Providers {
    http: Http,
    by_api: Arc<HashMap<&'static str, Arc<dyn Provider>>>,
}

impl Providers {
    /// All providers of this build.
    pub fn new() -> Self {
        let http = Http::new();
        let mut by_api: HashMap<&'static str, Arc<dyn Provider>> = HashMap::new();
        by_api.insert(openai_completions::API, Arc::new(OpenAiCompletions::new(http.clone())));
        by_api.insert(openai_responses::API, Arc::new(OpenAiResponses::new(http.clone())));
        by_api.insert(azure_openai_responses::API, Arc::new(AzureOpenAiResponses::new(http.clone())));
        by_api.insert(mistral_conversations::API, Arc::new(MistralConversations::new(http.clone())));
        by_api.insert(bedrock_converse_stream::API, Arc::new(BedrockConverseStream::new(http.clone())));
        by_api.insert(google_generative_ai::API, Arc::new(GoogleGenerativeAi::new(http.clone())));
        by_api.insert(google_vertex::API, Arc::new(GoogleVertex::new(http.clone())));
        by_api.insert(anthropic_messages::API, Arc::new(AnthropicMessages::new(http.clone())));
        by_api.insert(scripted::API, Arc::new(Scripted::new()));
        Self { http, by_api: Arc::new(by_api) }
    }

    /// The HTTP client that all share.
    pub fn http(&self) -> &Http {
        &self.http
    }

    /// The wire names of all APIs.
    #[cfg(test)]
    pub(super) fn apis(&self) -> impl Iterator<Item = &'static str> {
        self.by_api.keys().copied()
    }

    /// The provider of an API.
    pub fn get(&self, api: &str) -> Option<Arc<dyn Provider>> {
        self.by_api.get(api).cloned()
    }
}

impl Default for Providers {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_that_is_not_known_has_no_provider() {
        let providers = Providers::new();
        assert!(APIS.iter().all(|api| providers.get(api).is_some()));
        assert_eq!(providers.by_api.len(), APIS.len());
        assert!(providers.get("telepathy").is_none());
    }
}
