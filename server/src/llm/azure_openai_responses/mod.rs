//! The Responses API as Azure offers it: the same stream under other addresses and keys.

mod endpoint;

use tokio_util::sync::CancellationToken;

use super::exchange::{Fault, exchange, json_post};
use super::headers::{Headers, json_headers, key_header};
use super::http::{Http, Post};
use super::openai_responses::{Compat, Decoder, Service, body};
use super::{Completion, ModelRequest, Provider, UpdateSink};
use crate::BoxFuture;
pub(crate) use endpoint::Endpoint;

/// The wire name of the API.
pub const API: &str = "azure-openai-responses";

/// The provider whose models are at the user's own Azure, whatever their API.
pub(crate) const PROVIDER: &str = "azure";

/// Speaks `azure-openai-responses`.
#[derive(Debug, Clone)]
pub struct AzureOpenAiResponses {
    http: Http,
}

impl AzureOpenAiResponses {
    /// A provider that sends through this client, to where the environment says.
    pub fn new(http: Http) -> Self {
        Self { http }
    }
}

impl Provider for AzureOpenAiResponses {
    fn stream<'a>(
        &'a self,
        request: &'a ModelRequest,
        updates: &'a UpdateSink,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Completion> {
        Box::pin(async move {
            let endpoint = Endpoint::from_env(|name| request.credentials.variable(name));
            let post = post(request, &endpoint);
            let decoder = Decoder::new(Service::Azure.name(&request.model));
            exchange(&self.http, post, decoder, request, updates, cancel).await
        })
    }
}

fn post(request: &ModelRequest, endpoint: &Endpoint) -> Result<Post, Fault> {
    let url = endpoint.responses_url(&request.model.base_url)?;
    let compat = Compat::of(&request.model, Service::Azure);
    json_post(url, headers(request), &body(request, &compat, endpoint.deployment(&request.model.id)))
}

fn headers(request: &ModelRequest) -> Headers {
    let mut headers = json_headers("application/json");
    headers.extend(key_header(&request.credentials, "api-key"));
    headers.extend(request.credentials.headers.iter().cloned());
    headers
}

#[cfg(test)]
mod tests {
    use sampi_protocol::data::ThinkingLevel;
    use secrecy::ExposeSecret;
    use serde_json::{Value, json};

    use super::*;
    use crate::llm::testing::{answer, call, model, request, result, system, user};

    fn ask(fields: Value, messages: Value) -> ModelRequest {
        let mut all = json!({ "provider": "azure", "reasoning": true, "contextWindow": 0,
            "baseUrl": "https://r.openai.azure.com" });
        for (name, value) in fields.as_object().unwrap() {
            all[name] = value.clone();
        }
        let mut request = request(model(API, all), ThinkingLevel::Low, messages);
        request.options.session_id = Some("sid".into());
        request
    }

    fn sent(request: &ModelRequest, endpoint: &Endpoint) -> Value {
        serde_json::from_slice(&post(request, endpoint).unwrap().body).unwrap()
    }

    #[test]
    fn a_request_is_that_of_openai_with_the_deployment_as_the_model() {
        let endpoint = Endpoint::from_env(|name| {
            (name == "AZURE_OPENAI_DEPLOYMENT_NAME_MAP").then(|| "m1=dep1".to_owned())
        });
        let request = ask(json!({}), json!([system(), user("q")]));
        let expected = json!({
            "model": "dep1",
            "input": [
                { "role": "developer", "content": "<SYSTEM>" },
                { "role": "user", "content": [{ "type": "input_text", "text": "q" }] },
            ],
            "stream": true,
            "prompt_cache_key": "sid",
            "store": false,
            "max_output_tokens": 4096,
            "tools": [{ "type": "function", "name": "read", "description": "reads", "parameters": {
                "type": "object", "required": ["path"], "properties": { "path": { "type": "string" } } },
                "strict": false }],
            "reasoning": { "effort": "low", "summary": "auto" },
            "include": ["reasoning.encrypted_content"],
        });
        assert_eq!(sent(&request, &endpoint).to_string(), expected.to_string());
        let url = post(&request, &endpoint).unwrap().url;
        assert_eq!(url, "https://r.openai.azure.com/openai/v1/responses?api-version=v1");
    }

    #[test]
    fn the_key_has_a_header_of_its_own_and_no_session_headers_are_sent() {
        let names = |request: &ModelRequest| -> Vec<String> {
            let headers = headers(request).into_iter().skip(2);
            headers.map(|(name, value)| format!("{name}={}", value.expose_secret())).collect()
        };
        let mut request = ask(json!({}), json!([user("q")]));
        assert_eq!(names(&request), ["api-key=k"]);
        request.credentials.bearer = true;
        assert_eq!(names(&request), ["authorization=Bearer k"]);
    }

    #[test]
    fn caches_are_kept_the_usual_time_only_and_calls_of_other_models_keep_their_id() {
        let mut foreign = answer(API, "toolUse", json!([call("call_a|fc_0", json!({}))]));
        foreign["model"] = json!("other");
        let mut request = ask(
            json!({ "compat": { "sessionAffinityFormat": "openai" } }),
            json!([user("q"), foreign, result("call_a|fc_0", json!([]))]),
        );
        request.options.cache_retention = crate::llm::CacheRetention::Long;
        let body = sent(&request, &Endpoint::default());
        assert_eq!(body.get("prompt_cache_retention"), None);
        assert_eq!(body["input"][1]["call_id"], "call_a");
        assert_eq!(body["input"][1].get("id"), None);
    }
}
