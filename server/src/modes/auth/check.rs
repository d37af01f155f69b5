//! Checking and printing credentials.

use std::time::Duration;

use secrecy::ExposeSecret;
use serde_json::{Map, Value};

use super::{Answer, Desk};
use crate::cli::{CheckForm, Refreshing, Shown, Subject};
use crate::resources::auth::{AuthError, Renewal};
use crate::resources::models::{ModelWish, ResolveError};

/// How a check ended. The exit codes are Pi's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Ready,
    NotReady(&'static str),
    Invalid(&'static str),
}

const PROVIDER_NOT_FOUND: &str = "provider_not_found";
const NOT_CONFIGURED: &str = "credentials_not_configured";
const NOT_AVAILABLE: &str = "credential_not_available";
const INVALID_STATE: &str = "invalid_state";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AuthType {
    ApiKey,
    OAuth,
}

struct Checked {
    status: Status,
    auth_type: AuthType,
    credentials: Option<String>,
}

impl Desk<'_> {
    pub(super) async fn check(
        &self,
        subject: &Subject,
        form: CheckForm,
        shown: Shown,
        refresh: Refreshing,
    ) -> Answer {
        let (provider, checked) = match self.provider_of(subject) {
            Ok(provider) => {
                let checked = self.check_provider(&provider, shown, refresh).await;
                (provider, checked)
            }
            Err(Stray { name, status }) => {
                (name, Checked { status, auth_type: AuthType::ApiKey, credentials: None })
            }
        };
        let (code, word, reason) = match checked.status {
            Status::Ready => (0, "ready", None),
            Status::NotReady(reason) => (1, "not_ready", Some(reason)),
            Status::Invalid(reason) => (2, "invalid", Some(reason)),
        };
        let credentials = checked.credentials.filter(|_| shown == Shown::Credentials && code == 0);
        if form == CheckForm::Word {
            return Answer::result(code, credentials.unwrap_or_else(|| word.to_owned()));
        }
        let mut object = Map::new();
        let mut put = |name: &str, value: &str| object.insert(name.to_owned(), Value::from(value));
        put("status", word);
        put("provider", &provider);
        match reason {
            Some(reason) => put("reason", reason),
            None => put(
                "authType",
                match checked.auth_type {
                    AuthType::ApiKey => "api_key",
                    AuthType::OAuth => "oauth",
                },
            ),
        };
        if let Some(credentials) = &credentials {
            put("credentials", credentials);
        }
        Answer::result(code, Value::Object(object).to_string())
    }

    pub(super) async fn print_api_key(&self, subject: &Subject) -> Answer {
        let provider = match self.provider_of(subject) {
            Ok(provider) => provider,
            Err(stray) => return Answer::error(stray.text(subject)),
        };
        if self.registry.sign_in(&provider).is_some() {
            return Answer::error(format!("{provider} is configured with a sign-in (OAuth), not an API key"));
        }
        let none = format!("no usable API key is configured for {provider}");
        match self.registry.key(&provider, Renewal::Never).await {
            Ok(Some(key)) => Answer::result(0, key.expose_secret()),
            Ok(None) | Err(AuthError::NoKey { why: None, .. }) => Answer::error(none),
            Err(AuthError::NoKey { why: Some(why), .. } | AuthError::Unresolved { why, .. }) => {
                Answer::error(format!("{none}: {why}"))
            }
            Err(error) => Answer::error(error.to_string()),
        }
    }

    pub(super) async fn print_bearer_token(&self, subject: &Subject, min_expiry: Option<Duration>) -> Answer {
        let provider = match self.provider_of(subject) {
            Ok(provider) => provider,
            Err(stray) => return Answer::error(stray.text(subject)),
        };
        let Some(tokens) = self.registry.sign_in(&provider) else {
            return Answer::error(format!("{provider} is not configured with a sign-in (OAuth)"));
        };
        let renewal = min_expiry.map_or_else(Renewal::default, Renewal::WhenLess);
        match self.registry.renewed_sign_in(&provider, &tokens, renewal).await {
            Ok(tokens) if tokens.outlast(min_expiry.unwrap_or_default()) => {
                Answer::result(0, tokens.access.expose_secret())
            }
            Ok(tokens) => Answer::error(format!(
                "the access token of {provider} expires at {}, which is sooner than --min-expiry asks",
                tokens.expires
            )),
            Err(error) => Answer::error(error.to_string()),
        }
    }

    async fn check_provider(&self, provider: &str, shown: Shown, refresh: Refreshing) -> Checked {
        if let Some(tokens) = self.registry.sign_in(provider) {
            let renewal = match refresh {
                Refreshing::Allowed => Renewal::default(),
                Refreshing::Forbidden => Renewal::Never,
            };
            let renewed = self.registry.renewed_sign_in(provider, &tokens, renewal).await;
            let (status, credentials) = match renewed {
                Ok(tokens) => (Status::Ready, Some(tokens.access.expose_secret().to_owned())),
                Err(error) => {
                    tracing::warn!(provider, "{error}");
                    (Status::Invalid(INVALID_STATE), None)
                }
            };
            return Checked { status, auth_type: AuthType::OAuth, credentials };
        }
        let (status, credentials) = match self.registry.key(provider, Renewal::Never).await {
            Ok(Some(key)) => (Status::Ready, Some(key.expose_secret().to_owned())),
            Ok(None) if shown == Shown::Credentials => (Status::NotReady(NOT_AVAILABLE), None),
            Ok(None) => (Status::Ready, None),
            Err(AuthError::NoKey { why, .. }) => {
                if let Some(why) = why {
                    tracing::warn!(provider, "{why}");
                }
                (Status::NotReady(NOT_CONFIGURED), None)
            }
            Err(error) => {
                tracing::warn!(provider, "{error}");
                (Status::Invalid(INVALID_STATE), None)
            }
        };
        Checked { status, auth_type: AuthType::ApiKey, credentials }
    }

    /// The provider that is meant.
    fn provider_of(&self, subject: &Subject) -> Result<String, Stray> {
        if let Some(provider) = &subject.provider {
            if self.is_known(provider) {
                return Ok(provider.clone());
            }
            return Err(Stray { name: provider.clone(), status: Status::NotReady(PROVIDER_NOT_FOUND) });
        }
        let pattern = subject.model.as_deref().unwrap_or_default();
        let wish = ModelWish { pattern, ..ModelWish::default() };
        match self.registry.resolve_pattern(wish) {
            Ok(resolved) => Ok(resolved.model.provider),
            // The first one, as in Pi.
            Err(ResolveError::Ambiguous { candidates, .. }) => {
                let first = candidates.first().and_then(|candidate| candidate.split_once('/'));
                Ok(first.map_or_else(|| pattern.to_owned(), |(provider, _)| provider.to_owned()))
            }
            Err(ResolveError::NotFound(_) | ResolveError::UnknownProvider(_)) => {
                Err(Stray { name: pattern.to_owned(), status: Status::Invalid(INVALID_STATE) })
            }
        }
    }
}

/// A subject that leads to no provider.
struct Stray {
    name: String,
    status: Status,
}

impl Stray {
    fn text(&self, subject: &Subject) -> String {
        let what = if subject.provider.is_some() { "provider" } else { "model" };
        format!("unknown {what} \"{}\"; --list-models shows those that can be used", self.name)
    }
}
