//! Getting an access token: what each kind of credentials asks whom for.

use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::assertion::assertion;
use super::cancelled;
use super::file::{
    AuthorizedUser, Credential, External, Grant, Impersonation, ServiceAccount, Subject, SubjectForm,
};
use crate::llm::exchange::Fault;
use crate::llm::headers::{Headers, bearer, header};
use crate::llm::http::{Http, HttpError, Patience, Post, Response};
use crate::llm::percent::percent_encoded;
use crate::llm::{FailureKind, redact};

/// What tokens are wanted for.
pub(super) const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// <https://cloud.google.com/compute/docs/access/authenticate-workloads#applications>
const METADATA_PATH: &str = "/computeMetadata/v1/instance/service-accounts/default/token";

/// How long a token lasts whose server does not say.
const LIFETIME: i64 = 3600;

/// How much of what a server says of a failure is told.
const MAX_SAID: usize = 300;

/// Gets tokens with these credentials.
pub(super) struct Exchange<'a> {
    pub(super) http: &'a Http,
    pub(super) patience: Patience<'a>,
    /// The name of the credentials in errors.
    pub(super) from: &'a str,
}

/// A token that was just got.
pub(super) struct Fresh {
    pub(super) token: SecretString,
    pub(super) until: Timestamp,
}

impl Exchange<'_> {
    /// A token of these credentials.
    pub(super) async fn token(&self, credential: &Credential, now: Timestamp) -> Result<Fresh, Fault> {
        let fresh = match &credential.grant {
            Grant::ServiceAccount(account) => self.of_service_account(account, now).await,
            Grant::AuthorizedUser(user) => self.of_user(user, now).await,
            Grant::External(external) => self.of_external(external, now).await,
            Grant::Metadata(host) => self.of_metadata(host, now).await,
        }?;
        match &credential.impersonation {
            Some(impersonation) => self.impersonated(impersonation, &fresh.token, now).await,
            None => Ok(fresh),
        }
    }

    async fn of_service_account(&self, account: &ServiceAccount, now: Timestamp) -> Result<Fresh, Fault> {
        let assertion = assertion(account, now).map_err(|why| self.fault(FailureKind::Auth, &why))?;
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            ("assertion", assertion.expose_secret()),
        ];
        self.post_form(&account.token_uri, &form, &[&assertion], now).await
    }

    async fn of_user(&self, user: &AuthorizedUser, now: Timestamp) -> Result<Fresh, Fault> {
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", &user.client_id),
            ("client_secret", user.client_secret.expose_secret()),
            ("refresh_token", user.refresh_token.expose_secret()),
        ];
        self.post_form(&user.token_uri, &form, &[&user.client_secret, &user.refresh_token], now).await
    }

    async fn of_external(&self, external: &External, now: Timestamp) -> Result<Fresh, Fault> {
        let subject = self.subject(external).await?;
        let options =
            external.user_project.as_ref().map(|project| json!({ "userProject": project }).to_string());
        let mut form = vec![
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("audience", external.audience.as_str()),
            ("scope", SCOPE),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
            ("subject_token", subject.expose_secret()),
            ("subject_token_type", &external.subject_token_type),
        ];
        form.extend(options.as_deref().map(|options| ("options", options)));
        self.post_form(&external.token_url, &form, &[&subject], now).await
    }

    async fn of_metadata(&self, host: &str, now: Timestamp) -> Result<Fresh, Fault> {
        let url = format!("http://{host}{METADATA_PATH}");
        let headers = vec![header("metadata-flavor", "Google")];
        let response = self.http.get(url, headers, self.patience).await;
        let answer = self.json(host, response, &[]).await?;
        self.fresh(host, &answer, now)
    }

    /// The token by which the other provider vouches.
    async fn subject(&self, external: &External) -> Result<SecretString, Fault> {
        let (text, place) = match &external.subject {
            Subject::File(path) => {
                let text = tokio::fs::read_to_string(path).await;
                let text = text.map_err(|error| {
                    self.fault(FailureKind::Auth, &format!("credential_source.file {path}: {error}"))
                })?;
                (text, path)
            }
            Subject::Url { url, headers } => {
                let response = self.http.get(url.clone(), headers.clone(), self.patience).await;
                (self.body("credential_source.url", response, &[]).await?, url)
            }
        };
        let subject = match &external.form {
            SubjectForm::Text => Some(text),
            SubjectForm::Json(field) => {
                let json: Option<Value> = serde_json::from_str(&text).ok();
                json.and_then(|json| Some(json.get(field)?.as_str()?.to_owned()))
            }
        };
        subject
            .filter(|subject| !subject.is_empty())
            .map(SecretString::from)
            .ok_or_else(|| self.fault(FailureKind::Auth, &format!("there is no subject token in {place}")))
    }

    /// A token of the account that is acted for.
    async fn impersonated(
        &self,
        impersonation: &Impersonation,
        token: &SecretString,
        now: Timestamp,
    ) -> Result<Fresh, Fault> {
        let body = json!({ "scope": [SCOPE], "delegates": impersonation.delegates,
            "lifetime": format!("{}s", impersonation.lifetime) });
        let headers = vec![header("content-type", "application/json"), bearer(token)];
        let post = Post { url: impersonation.url.clone(), headers, body: body.to_string().into_bytes() };
        let host = host(&impersonation.url);
        let response = self.http.post(post, self.patience).await;
        let answer = self.json(&host, response, &[token]).await?;
        let text = |name: &str| answer.get(name).and_then(Value::as_str);
        let Some(token) = text("accessToken").filter(|token| !token.is_empty()) else {
            return Err(self.fault(FailureKind::Auth, &format!("{host} sent no accessToken")));
        };
        let until = text("expireTime").and_then(|time| time.parse().ok());
        let until = until.unwrap_or_else(|| after(now, LIFETIME));
        Ok(Fresh { token: token.into(), until })
    }

    async fn post_form(
        &self,
        url: &str,
        form: &[(&str, &str)],
        secrets: &[&SecretString],
        now: Timestamp,
    ) -> Result<Fresh, Fault> {
        let field = |(name, value): &(&str, &str)| format!("{name}={}", percent_encoded(value, b""));
        let body = form.iter().map(field).collect::<Vec<_>>().join("&");
        let headers: Headers = vec![
            header("accept", "application/json"),
            header("content-type", "application/x-www-form-urlencoded"),
        ];
        let post = Post { url: url.to_owned(), headers, body: body.into_bytes() };
        let host = host(url);
        let response = self.http.post(post, self.patience).await;
        let answer = self.json(&host, response, secrets).await?;
        self.fresh(&host, &answer, now)
    }

    fn fresh(&self, host: &str, answer: &Value, now: Timestamp) -> Result<Fresh, Fault> {
        let token = answer.get("access_token").and_then(Value::as_str).filter(|token| !token.is_empty());
        let Some(token) = token else {
            return Err(self.fault(FailureKind::Auth, &format!("{host} sent no access_token")));
        };
        // Some servers write the number as a string.
        let seconds = answer.get("expires_in");
        let seconds = seconds.and_then(|value| value.as_i64().or_else(|| value.as_str()?.parse().ok()));
        Ok(Fresh { token: token.into(), until: after(now, seconds.unwrap_or(LIFETIME)) })
    }

    async fn json(
        &self,
        host: &str,
        response: Result<Response, HttpError>,
        secrets: &[&SecretString],
    ) -> Result<Value, Fault> {
        let body = self.body(host, response, secrets).await?;
        serde_json::from_str(&body)
            .map_err(|_| self.fault(FailureKind::Auth, &format!("what {host} answered is not JSON")))
    }

    /// The body of a good answer.
    async fn body(
        &self,
        host: &str,
        response: Result<Response, HttpError>,
        secrets: &[&SecretString],
    ) -> Result<String, Fault> {
        let failed = |error: HttpError| match error {
            HttpError::Cancelled => cancelled(),
            HttpError::Request(why) => self.fault(FailureKind::Other, &format!("{host}: {why}")),
            error => self.fault(FailureKind::Network, &format!("{host}: {error}")),
        };
        let mut response = response.map_err(failed)?;
        let status = response.status();
        if (200..300).contains(&status) {
            return response.text(self.patience).await.map_err(failed);
        }
        let retry_after = response.retry_after();
        let body = response.error_text(self.patience).await.map_err(failed)?;
        let kind = match status {
            429 => FailureKind::RateLimit,
            500.. => FailureKind::Server,
            _ => FailureKind::Auth,
        };
        let said = redact(&said(&body), secrets.iter().copied());
        let mut fault = self.fault(kind, &format!("{host} answered with status {status}{said}"));
        fault.failure.retry_after = retry_after;
        Err(fault)
    }

    fn fault(&self, kind: FailureKind, why: &str) -> Fault {
        let text = format!("cannot get an access token for Google Cloud with {}: {why}", self.from);
        Fault::of_kind(kind, text)
    }
}

/// What the body of a failure says, in the forms of OAuth and of Google's own APIs. Other bodies, such as
/// pages of a proxy, are not told.
fn said(body: &str) -> String {
    let Ok(json) = serde_json::from_str::<Value>(body) else { return String::new() };
    let text = |pointer: &str| json.pointer(pointer).and_then(Value::as_str);
    let words = [text("/error"), text("/error_description"), text("/error/status"), text("/error/message")];
    let words = words.into_iter().flatten().map(|word| format!(": {word}"));
    words.collect::<String>().chars().take(MAX_SAID).collect()
}

fn host(url: &str) -> String {
    let parsed = reqwest::Url::parse(url).ok();
    let host = parsed.and_then(|url| url.host_str().map(str::to_owned));
    host.unwrap_or_else(|| "the token endpoint".to_owned())
}

fn after(now: Timestamp, seconds: i64) -> Timestamp {
    let lifetime = SignedDuration::from_secs(seconds.max(0));
    now.checked_add(lifetime).unwrap_or(Timestamp::MAX)
}
