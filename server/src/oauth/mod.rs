//! Signing in to the account of a provider: authorization code with PKCE, device code, refresh.
//!
//! The engine knows no provider; `services` has what is publicly documented of each. Tokens are kept by
//! `resources::auth`.

mod authorization;
mod callback;
mod device;
mod pkce;
mod refresh;
mod services;
#[cfg(test)]
mod tests;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::llm::http::{Http, Patience};
use crate::llm::token_endpoint::{AskError, Asker, Fresh, access_token, text_field};
pub use authorization::{Authorization, Code};
pub use device::{DeviceAuthorization, Sleep};
pub use refresh::refresh;
pub use services::{Service, SignIn, find, known};
use tokio_util::sync::CancellationToken;

/// How long an authorization server may be silent.
const SERVER_TIMEOUT: Duration = Duration::from_secs(30);

/// What a sign-in gives.
#[derive(Debug, Clone)]
pub struct Tokens {
    /// Authorises requests.
    pub access: SecretString,
    /// Gets the next tokens. Empty for an access token that does not expire.
    pub refresh: SecretString,
    /// When the access token expires.
    pub expires: Timestamp,
}

impl Tokens {
    /// True when the access token is still good after this time.
    pub fn outlast(&self, time: Duration) -> bool {
        let left = self.expires.duration_since(Timestamp::now());
        left > SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX)
    }

    /// The tokens of an answer as RFC 6749 has it. A refresh token that is not renewed stays.
    fn read(answer: &Value, url: &str, last: Option<&Self>) -> Result<Self, AskError> {
        let Fresh { token, until } = access_token(answer, url, Timestamp::now())?;
        let refresh = match (text_field(answer, "refresh_token", url), last) {
            (Ok(refresh), _) => refresh,
            (Err(_), Some(last)) => last.refresh.expose_secret(),
            (Err(error), None) => return Err(error),
        };
        Ok(Self { access: token, refresh: refresh.into(), expires: until })
    }
}

/// Why a sign-in or a refresh failed. No secret is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OAuthError {
    /// It was cancelled.
    #[error("the sign-in was cancelled")]
    Cancelled,
    /// Whoever signed in, or the server, said no.
    #[error("{0}")]
    Denied(String),
    /// It took too long.
    #[error("the code expired before the sign-in was confirmed")]
    Expired,
    /// What was pasted is no code.
    #[error("{0}")]
    NoCode(String),
    /// The server could not be reached, or is not well. Worth another try.
    #[error("{0}")]
    Unreachable(String),
    /// Something else failed.
    #[error("{0}")]
    Failed(String),
}

impl From<AskError> for OAuthError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Cancelled => Self::Cancelled,
            AskError::Network(text) => Self::Unreachable(text),
            AskError::Refused { status: 429 | 500.., text, .. } => Self::Unreachable(text),
            AskError::Refused { text, .. } => Self::Denied(text),
            AskError::Request(text) | AskError::Unexpected(text) => Self::Failed(text),
        }
    }
}

/// Asks authorization servers.
#[derive(Debug, Clone, Default)]
pub struct OAuthClient {
    http: Http,
    cancel: CancellationToken,
}

impl OAuthClient {
    /// A client that is built with the first request.
    pub fn new() -> Self {
        Self::default()
    }

    /// A client over this HTTP client.
    pub fn over(http: Http) -> Self {
        Self { http, cancel: CancellationToken::new() }
    }

    fn asker(&self) -> Asker<'_> {
        Asker { http: &self.http, patience: Patience { idle: Some(SERVER_TIMEOUT), cancel: &self.cancel } }
    }
}
