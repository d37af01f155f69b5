//! Where Azure is: every customer has addresses and names of deployments of their own.

use reqwest::Url;

use crate::llm::FailureKind;
use crate::llm::exchange::Fault;

/// The API version when the environment names none.
const DEFAULT_VERSION: &str = "v1";

/// The field of the address that names the API version.
const VERSION_FIELD: &str = "api-version";

/// Hosts of Azure itself, below which the OpenAI API has a path of its own.
const AZURE_HOSTS: [&str; 3] = [".ai.azure.com", ".cognitiveservices.azure.com", ".openai.azure.com"];

/// What the environment says about the user's Azure.
#[derive(Debug, Clone, Default)]
pub(crate) struct Endpoint {
    base_url: Option<String>,
    resource: Option<String>,
    version: Option<String>,
    deployments: Vec<(String, String)>,
}

impl Endpoint {
    /// Reads the variables of the environment.
    pub(crate) fn from_env(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set =
            |name: &str| variable(name).map(|value| value.trim().to_owned()).filter(|it| !it.is_empty());
        let names = set("AZURE_OPENAI_DEPLOYMENT_NAME_MAP").unwrap_or_default();
        let pairs = names.split(',').filter_map(|pair| pair.split_once('='));
        Self {
            base_url: set("AZURE_OPENAI_BASE_URL"),
            resource: set("AZURE_OPENAI_RESOURCE_NAME"),
            version: set("AZURE_OPENAI_API_VERSION"),
            deployments: pairs
                .map(|(model, name)| (model.trim().to_owned(), name.trim().to_owned()))
                .filter(|(model, name)| !model.is_empty() && !name.is_empty())
                .collect(),
        }
    }

    /// The deployment of a model: usually it has the model's name.
    pub(crate) fn deployment<'a>(&'a self, model: &'a str) -> &'a str {
        let known = self.deployments.iter().find(|(known, _)| known == model);
        known.map_or(model, |(_, name)| name)
    }

    /// The address of the Chat Completions API.
    pub(crate) fn completions_url(&self, model_url: &str) -> Result<String, Fault> {
        let mut url = self.base(model_url)?;
        let path = match url.path().trim_end_matches('/') {
            "" | "/openai" | "/openai/v1/responses" if is_azure(&url) => {
                url.set_query(None);
                "/openai/v1".to_owned()
            }
            path => path.to_owned(),
        };
        url.set_path(&format!("{path}/chat/completions"));
        Ok(url.into())
    }

    /// The address of the Responses API.
    pub(super) fn responses_url(&self, model_url: &str) -> Result<String, Fault> {
        let mut url = self.base(model_url)?;
        let path = url.path().trim_end_matches('/').to_owned();
        let is_root = matches!(path.as_str(), "" | "/openai" | "/openai/v1" | "/openai/v1/responses");
        if is_root && is_azure(&url) {
            url.set_query(None);
            url.set_path("/openai/v1/responses");
        } else {
            url.set_path(&format!("{path}/responses"));
        }
        let kept: Vec<(String, String)> = url
            .query_pairs()
            .filter(|(name, _)| self.version.is_none() || name != VERSION_FIELD)
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        let has_version = kept.iter().any(|(name, _)| name == VERSION_FIELD);
        let mut query = url.query_pairs_mut();
        query.clear().extend_pairs(&kept);
        if !has_version {
            query.append_pair(VERSION_FIELD, self.version.as_deref().unwrap_or(DEFAULT_VERSION));
        }
        drop(query);
        Ok(url.into())
    }

    /// The user's address. What the environment says goes before what the model says.
    fn base(&self, model_url: &str) -> Result<Url, Fault> {
        let resource = self.resource.as_ref().map(|name| format!("https://{name}.openai.azure.com"));
        let base = self.base_url.clone().or(resource).unwrap_or_else(|| model_url.trim().to_owned());
        if base.is_empty() {
            return Err(Fault::of_kind(
                FailureKind::InvalidRequest,
                "Azure OpenAI base URL is required: set AZURE_OPENAI_BASE_URL or AZURE_OPENAI_RESOURCE_NAME, or give the model a baseUrl",
            ));
        }
        Url::parse(&base).map_err(|_| {
            Fault::of_kind(FailureKind::InvalidRequest, format!("Invalid Azure OpenAI base URL: {base}"))
        })
    }
}

fn is_azure(url: &Url) -> bool {
    url.host_str().is_some_and(|host| AZURE_HOSTS.iter().any(|end| host.ends_with(end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_azure_are_completed_and_others_are_taken_as_they_are() {
        let url = |base: &str| Endpoint::default().responses_url(base).unwrap();
        for base in [
            "https://r.openai.azure.com",
            "https://r.openai.azure.com/openai/",
            "https://r.openai.azure.com/openai/v1",
            "https://r.openai.azure.com/openai/v1/responses",
            "https://r.openai.azure.com?api-version=1",
        ] {
            assert_eq!(url(base), "https://r.openai.azure.com/openai/v1/responses?api-version=v1", "{base}");
        }
        assert_eq!(
            url("https://r.services.ai.azure.com"),
            "https://r.services.ai.azure.com/openai/v1/responses?api-version=v1"
        );
        for (base, expected) in [
            (
                "https://r.services.ai.azure.com/models",
                "https://r.services.ai.azure.com/models/responses?api-version=v1",
            ),
            ("http://gw.example/openai/", "http://gw.example/openai/responses?api-version=v1"),
            ("http://localhost:1/v1?x=1", "http://localhost:1/v1/responses?x=1&api-version=v1"),
            ("http://gw.example/a?api-version=7", "http://gw.example/a/responses?api-version=7"),
        ] {
            assert_eq!(url(base), expected);
        }
        let fault = Endpoint::default().responses_url("nonsense").unwrap_err();
        assert_eq!(fault.text, "Invalid Azure OpenAI base URL: nonsense");
        assert!(Endpoint::default().responses_url("").unwrap_err().text.contains("AZURE_OPENAI_BASE_URL"));
    }

    #[test]
    fn addresses_of_chat_completions_have_no_version_unless_they_bring_one() {
        let url = |base: &str| Endpoint::default().completions_url(base).unwrap();
        for base in [
            "https://r.openai.azure.com",
            "https://r.openai.azure.com/openai/?api-version=2",
            "https://r.openai.azure.com/openai/v1/",
            "https://r.openai.azure.com/openai/v1/responses?api-version=2",
        ] {
            assert_eq!(url(base), "https://r.openai.azure.com/openai/v1/chat/completions", "{base}");
        }
        for (base, expected) in [
            ("https://r.services.ai.azure.com", "https://r.services.ai.azure.com/openai/v1/chat/completions"),
            ("https://r.ai.azure.com/models", "https://r.ai.azure.com/models/chat/completions"),
            (
                "https://r.openai.azure.com/openai/v1?api-version=2",
                "https://r.openai.azure.com/openai/v1/chat/completions?api-version=2",
            ),
            ("http://gw.example/a/?x=1", "http://gw.example/a/chat/completions?x=1"),
        ] {
            assert_eq!(url(base), expected);
        }
        let fault = Endpoint::default().completions_url("nonsense").unwrap_err();
        assert_eq!(fault.text, "Invalid Azure OpenAI base URL: nonsense");
        assert!(Endpoint::default().completions_url("").unwrap_err().text.contains("AZURE_OPENAI_BASE_URL"));
        let resource = |name: &str| (name == "AZURE_OPENAI_RESOURCE_NAME").then(|| "rr".to_owned());
        let url = Endpoint::from_env(resource).completions_url("https://h").unwrap();
        assert_eq!(url, "https://rr.openai.azure.com/openai/v1/chat/completions");
    }

    #[test]
    fn the_environment_goes_before_the_model() {
        let endpoint = |pairs: &[(&str, &str)]| {
            Endpoint::from_env(|name| {
                pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        let resource = ("AZURE_OPENAI_RESOURCE_NAME", "rr");
        let version = ("AZURE_OPENAI_API_VERSION", "2025-03-01-preview");
        assert_eq!(
            endpoint(&[resource, version]).responses_url("https://h").unwrap(),
            "https://rr.openai.azure.com/openai/v1/responses?api-version=2025-03-01-preview"
        );
        assert_eq!(
            endpoint(&[resource, ("AZURE_OPENAI_BASE_URL", "https://q.example/v1")])
                .responses_url("")
                .unwrap(),
            "https://q.example/v1/responses?api-version=v1"
        );
        let named = endpoint(&[("AZURE_OPENAI_DEPLOYMENT_NAME_MAP", " a = b , c=d, =x, e=")]);
        assert_eq!([named.deployment("a"), named.deployment("c"), named.deployment("e")], ["b", "d", "e"]);
    }
}
