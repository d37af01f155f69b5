//! The device authorization grant (RFC 8628): a code that is typed in on another device.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::services::DeviceSignIn;
use super::{OAuthClient, OAuthError, Tokens};
use crate::BoxFuture;
use crate::llm::token_endpoint::{AskError, seconds_field, text_field};

/// How long to wait between two questions when the server does not say.
const INTERVAL: Duration = Duration::from_secs(5);

/// What is added to it each time the server asks for more patience.
const SLOWER: Duration = Duration::from_secs(5);

/// How long a code lasts when the server does not say.
const LIFETIME: Duration = Duration::from_secs(900);

/// The longest time that a code is waited for, whatever the server says.
const LONGEST: Duration = Duration::from_secs(3600);

/// The grant's name.
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// Waits between two questions. Tests replace it.
pub type Sleep<'a> = &'a (dyn Fn(Duration) -> BoxFuture<'a, ()> + Sync);

/// A sign-in that waits for its code to be typed in.
#[derive(Debug)]
pub struct DeviceAuthorization<'a> {
    service: &'a DeviceSignIn,
    /// The code to type in.
    pub user_code: String,
    /// Where.
    pub verification_uri: String,
    /// The same with the code in it.
    pub complete_uri: Option<String>,
    device_code: SecretString,
    interval: Duration,
    lifetime: Duration,
}

impl<'a> DeviceAuthorization<'a> {
    /// Asks for a code.
    pub async fn begin(service: &'a DeviceSignIn, client: &OAuthClient) -> Result<Self, OAuthError> {
        let url = &service.device_url;
        let mut form = vec![("client_id", service.client_id.as_str())];
        if !service.scope.is_empty() {
            form.push(("scope", &service.scope));
        }
        let answer = client.asker().post_form(url, &form, &[]).await?;
        let text = |name| Ok::<_, AskError>(text_field(&answer, name, url)?.to_owned());
        let complete_uri = answer.get("verification_uri_complete").and_then(Value::as_str);
        let seconds = |name: &str| {
            seconds_field(&answer, name).and_then(|s| u64::try_from(s).ok()).map(Duration::from_secs)
        };
        Ok(Self {
            service,
            user_code: text("user_code")?,
            verification_uri: text("verification_uri")?,
            complete_uri: complete_uri.filter(|uri| !uri.is_empty()).map(str::to_owned),
            device_code: text("device_code")?.into(),
            interval: seconds("interval").unwrap_or(INTERVAL),
            lifetime: seconds("expires_in").unwrap_or(LIFETIME).min(LONGEST),
        })
    }

    /// Asks until the code was typed in.
    pub async fn wait(&self, client: &OAuthClient, sleep: Sleep<'_>) -> Result<Tokens, OAuthError> {
        let url = &self.service.token_url;
        let form = [
            ("grant_type", GRANT),
            ("client_id", self.service.client_id.as_str()),
            ("device_code", self.device_code.expose_secret()),
        ];
        let mut interval = self.interval.max(Duration::from_secs(1));
        let mut waited = Duration::ZERO;
        while waited < self.lifetime {
            sleep(interval).await;
            waited += interval;
            let error = match client.asker().post_form(url, &form, &[&self.device_code]).await {
                Ok(answer) => return Ok(Tokens::read(&answer, url, None)?),
                Err(error) => error,
            };
            match &error {
                AskError::Refused { code: Some(code), .. } => match code.as_str() {
                    "authorization_pending" => {}
                    "slow_down" => interval += SLOWER,
                    "access_denied" => {
                        return Err(OAuthError::Denied("the sign-in was refused".to_owned()));
                    }
                    "expired_token" => return Err(OAuthError::Expired),
                    _ => return Err(error.into()),
                },
                // RFC 8628, section 3.5: a server that is not reached is asked less often.
                AskError::Network(_) | AskError::Refused { status: 429 | 500.., .. } => interval *= 2,
                _ => return Err(error.into()),
            }
        }
        Err(OAuthError::Expired)
    }
}
