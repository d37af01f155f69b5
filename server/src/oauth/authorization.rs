//! The authorization code flow with PKCE: a browser, and a code that it brings back or that is pasted.

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use super::callback::{Callback, Parameters};
use super::pkce::{METHOD, Pkce, random_text};
use super::services::{BrowserSignIn, Dialect};
use super::{OAuthClient, OAuthError, Tokens};
use crate::llm::token_endpoint::{form_text, text_field};

/// A code that stands for a confirmed sign-in.
#[derive(Debug)]
pub struct Code(SecretString);

/// A sign-in that is under way in a browser.
#[derive(Debug)]
pub struct Authorization<'a> {
    service: &'a BrowserSignIn,
    callback: Option<Callback>,
    redirect: String,
    pkce: Pkce,
    /// Absent where the server does not give it back; the callback's path has it then.
    state: Option<String>,
}

impl<'a> Authorization<'a> {
    /// Begins a sign-in. When this machine cannot listen for the browser, the code must be pasted.
    pub async fn begin(service: &'a BrowserSignIn) -> Result<Self, OAuthError> {
        let secret = random_text()?;
        let (host, port, path, state) = match &service.dialect {
            Dialect::Code(code) => ("localhost", code.port, code.path.clone(), Some(secret)),
            Dialect::KeyExchange => ("127.0.0.1", 0, format!("/oauth/callback/{secret}"), None),
        };
        let callback = Callback::bind(host, port, &path).await;
        let redirect = match &callback {
            Ok(callback) => callback.url(),
            Err(error) => {
                tracing::warn!(%error, "no page of this machine can wait for the browser");
                format!("http://{host}:{port}{path}")
            }
        };
        Ok(Self { service, callback: callback.ok(), redirect, pkce: Pkce::new()?, state })
    }

    /// The address to open in a browser. It holds no secret.
    pub fn url(&self) -> String {
        let challenge = [("code_challenge", self.pkce.challenge.as_str()), ("code_challenge_method", METHOD)];
        let mut query = match &self.service.dialect {
            Dialect::KeyExchange => vec![("callback_url", self.redirect.as_str())],
            Dialect::Code(code) => {
                let mut query = vec![
                    ("response_type", "code"),
                    ("client_id", code.client_id.as_str()),
                    ("redirect_uri", &self.redirect),
                    ("scope", &code.scope),
                ];
                query.extend(self.state.as_deref().map(|state| ("state", state)));
                query.extend(code.extra.iter().copied());
                query
            }
        };
        query.extend(challenge);
        format!("{}?{}", self.service.authorize_url, form_text(&query))
    }

    /// Waits for the browser to bring the code; for ever when this machine cannot listen. Cancel-safe.
    pub async fn code_from_browser(&self) -> Result<Code, OAuthError> {
        let Some(callback) = &self.callback else { return std::future::pending().await };
        let is_answer = |parameters: &Parameters| {
            let has = |name| value(parameters, name).is_some();
            self.is_ours(parameters) && (has("code") || has("error"))
        };
        self.code(&callback.wait(is_answer).await)
    }

    /// The code in what was pasted: the address that the browser ended at, or the code alone.
    pub fn read_pasted(&self, text: &str) -> Result<Code, OAuthError> {
        let text = text.trim();
        let no_code = |why: &str| Err(OAuthError::NoCode(why.to_owned()));
        if let Ok(url) = reqwest::Url::parse(text) {
            let parameters: Parameters = url.query_pairs().into_owned().collect();
            if !self.is_ours(&parameters) {
                return no_code("the address belongs to another sign-in; paste the one of this sign-in");
            }
            return self.code(&parameters);
        }
        let (code, state) = text.split_once('#').map_or((text, None), |(code, state)| (code, Some(state)));
        if code.is_empty() || code.contains(char::is_whitespace) {
            return no_code("expected the code, or the address that the browser ended at");
        }
        match (state, &self.state) {
            (Some(given), Some(state)) if given != state => no_code("the code belongs to another sign-in"),
            _ => Ok(Code(code.into())),
        }
    }

    /// Gives the code for tokens.
    pub async fn exchange(&self, client: &OAuthClient, Code(code): Code) -> Result<Tokens, OAuthError> {
        let verifier = &self.pkce.verifier;
        let secrets = [&code, verifier];
        let url = &self.service.exchange_url;
        match &self.service.dialect {
            Dialect::KeyExchange => {
                let body = json!({ "code": code.expose_secret(), "code_verifier": verifier.expose_secret(),
                    "code_challenge_method": METHOD });
                let answer = client.asker().post_json(url, &body, Vec::new(), &secrets).await?;
                let access = text_field(&answer, "key", url)?.into();
                Ok(Tokens { access, refresh: SecretString::default(), expires: never() })
            }
            Dialect::Code(service) => {
                let form = [
                    ("grant_type", "authorization_code"),
                    ("client_id", service.client_id.as_str()),
                    ("code", code.expose_secret()),
                    ("code_verifier", verifier.expose_secret()),
                    ("redirect_uri", &self.redirect),
                ];
                let answer = client.asker().post_form(url, &form, &secrets).await?;
                Ok(Tokens::read(&answer, url, None)?)
            }
        }
    }

    /// False for the answer to another sign-in, which somebody else may have begun.
    fn is_ours(&self, parameters: &Parameters) -> bool {
        self.state.is_none() || value(parameters, "state") == self.state.as_deref()
    }

    fn code(&self, parameters: &Parameters) -> Result<Code, OAuthError> {
        if let Some(error) = value(parameters, "error") {
            let detail = value(parameters, "error_description");
            let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
            return Err(OAuthError::Denied(format!("the sign-in was refused ({error}{detail})")));
        }
        match value(parameters, "code") {
            Some(code) if !code.is_empty() => Ok(Code(code.into())),
            _ => Err(OAuthError::NoCode("the address has no code".to_owned())),
        }
    }
}

/// Stands for the end of what does not end, far away and yet exact in the numbers of every program.
fn never() -> Timestamp {
    /// 2286-11-20, in milliseconds: the last time of 13 digits.
    const FAR: i64 = 9_999_999_999_999;
    Timestamp::from_millisecond(FAR).unwrap_or(Timestamp::MAX)
}

fn value<'p>(parameters: &'p Parameters, name: &str) -> Option<&'p str> {
    parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}
