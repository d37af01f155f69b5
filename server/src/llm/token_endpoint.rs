//! Asking a server for a token: a form or a JSON object out, a JSON object back.
//!
//! Knows no vendor. What is told of a failure holds none of the secrets that were sent.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use serde_json::Value;

use super::exchange::Fault;
use super::headers::{Headers, header, json_headers};
use super::http::{Http, HttpError, Patience, Post, Response};
use super::percent::percent_encoded;
use super::token_cache::cancelled;
use super::{FailureKind, redact};

/// How much of what a server says of a failure is told.
const MAX_SAID: usize = 300;

/// How long a server may be silent that is asked on behalf of a request.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a token lasts whose server does not say, in seconds.
const LIFETIME: i64 = 3600;

/// A token that was just got.
pub(crate) struct Fresh {
    pub(crate) token: SecretString,
    pub(crate) until: Timestamp,
}

/// Asks servers for tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker<'a> {
    /// The client.
    pub(crate) http: &'a Http,
    /// When to give up.
    pub(crate) patience: Patience<'a>,
}

/// Why there is no answer. The texts begin with the host.
#[derive(Debug)]
pub(crate) enum AskError {
    /// It was cancelled.
    Cancelled,
    /// The request could not be made.
    Request(String),
    /// The server was not reached, or the connection broke.
    Network(String),
    /// The server says no.
    Refused {
        /// The status.
        status: u16,
        /// The code of the error, where the server gives one as OAuth has it.
        code: Option<String>,
        /// What to tell.
        text: String,
        /// How long the server asks to wait.
        retry_after: Option<Duration>,
    },
    /// The answer is not what was expected.
    Unexpected(String),
}

impl AskError {
    /// Why a request to a model has no token. `context` goes before it.
    pub(crate) fn into_fault(self, context: &str) -> Fault {
        let (kind, text, wait) = match self {
            Self::Cancelled => return cancelled(),
            Self::Request(text) => (FailureKind::Other, text, None),
            Self::Network(text) => (FailureKind::Network, text, None),
            Self::Unexpected(text) => (FailureKind::Auth, text, None),
            Self::Refused { status, text, retry_after, .. } => {
                let kind = match status {
                    429 => FailureKind::RateLimit,
                    500.. => FailureKind::Server,
                    _ => FailureKind::Auth,
                };
                (kind, text, retry_after)
            }
        };
        let mut fault = Fault::of_kind(kind, format!("{context}: {text}"));
        fault.failure.retry_after = wait;
        fault
    }
}

impl<'a> Asker<'a> {
    /// Asks on behalf of a request with this patience.
    pub(crate) fn for_request(http: &'a Http, patience: Patience<'a>) -> Self {
        let idle = patience.idle.map_or(EXCHANGE_TIMEOUT, |idle| idle.min(EXCHANGE_TIMEOUT));
        Self { http, patience: Patience { idle: Some(idle), ..patience } }
    }
}

impl Asker<'_> {
    /// Sends a form.
    pub(crate) async fn post_form(
        &self,
        url: &str,
        form: &[(&str, &str)],
        secrets: &[&SecretString],
    ) -> Result<Value, AskError> {
        let headers = vec![
            header("accept", "application/json"),
            header("content-type", "application/x-www-form-urlencoded"),
        ];
        let post = Post { url: url.to_owned(), headers, body: form_text(form).into() };
        self.json(url, self.http.post(post, self.patience).await, secrets).await
    }

    /// Sends a JSON object, with these headers beside the usual ones.
    pub(crate) async fn post_json(
        &self,
        url: &str,
        body: &Value,
        further: Headers,
        secrets: &[&SecretString],
    ) -> Result<Value, AskError> {
        let mut headers = json_headers("application/json");
        headers.extend(further);
        let post = Post { url: url.to_owned(), headers, body: body.to_string().into() };
        self.json(url, self.http.post(post, self.patience).await, secrets).await
    }

    /// The object that a response to a request to `url` has.
    pub(crate) async fn json(
        &self,
        url: &str,
        response: Result<Response, HttpError>,
        secrets: &[&SecretString],
    ) -> Result<Value, AskError> {
        let body = self.text(&host(url), response, secrets).await?;
        let json: Option<Value> = serde_json::from_str(&body).ok();
        json.filter(Value::is_object)
            .ok_or_else(|| AskError::Unexpected(format!("what {} answered is not a JSON object", host(url))))
    }

    /// The text of a response that `from` gave.
    pub(crate) async fn text(
        &self,
        from: &str,
        response: Result<Response, HttpError>,
        secrets: &[&SecretString],
    ) -> Result<String, AskError> {
        let failed = |error: HttpError| match error {
            HttpError::Cancelled => AskError::Cancelled,
            HttpError::Request(why) => AskError::Request(format!("{from}: {why}")),
            error => AskError::Network(format!("{from}: {error}")),
        };
        let mut response = response.map_err(failed)?;
        let status = response.status();
        if (200..300).contains(&status) {
            return response.text(self.patience).await.map_err(failed);
        }
        let retry_after = response.retry_after();
        let body = response.error_text(self.patience).await.map_err(failed)?;
        let json: Value = serde_json::from_str(&body).unwrap_or_default();
        let code = json.get("error").and_then(Value::as_str).map(str::to_owned);
        let said = redact(&said(&json), secrets.iter().copied());
        let text = format!("{from} answered with status {status}{said}");
        Err(AskError::Refused { status, code, text, retry_after })
    }
}

/// The text in the field of an answer that must have it.
pub(crate) fn text_field<'a>(answer: &'a Value, name: &str, url: &str) -> Result<&'a str, AskError> {
    let text = answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.ok_or_else(|| AskError::Unexpected(format!("{} sent no {name}", host(url))))
}

/// The access token of an answer that came `now`.
pub(crate) fn access_token(answer: &Value, url: &str, now: Timestamp) -> Result<Fresh, AskError> {
    let token = text_field(answer, "access_token", url)?.into();
    let seconds = seconds_field(answer, "expires_in").unwrap_or(LIFETIME);
    Ok(Fresh { token, until: after(now, seconds) })
}

/// How long a token lasts that was got `now`, when its server does not say.
pub(crate) fn usual_end(now: Timestamp) -> Timestamp {
    after(now, LIFETIME)
}

fn after(now: Timestamp, seconds: i64) -> Timestamp {
    let lifetime = SignedDuration::from_secs(seconds.max(0));
    now.checked_add(lifetime).unwrap_or(Timestamp::MAX)
}

/// The seconds in a field. Some servers write the number as a string.
pub(crate) fn seconds_field(answer: &Value, name: &str) -> Option<i64> {
    let value = answer.get(name)?;
    let whole = value.as_i64().or_else(|| value.as_str()?.parse().ok());
    #[expect(clippy::cast_possible_truncation, reason = "a fraction of a second does not matter")]
    let rounded = || value.as_f64().map(|seconds| seconds as i64);
    whole.or_else(rounded)
}

/// The fields as the body of a form, or as the query of an address.
pub(crate) fn form_text(form: &[(&str, &str)]) -> String {
    let field = |(name, value): &(&str, &str)| format!("{name}={}", percent_encoded(value, b""));
    form.iter().map(field).collect::<Vec<_>>().join("&")
}

/// The host of an address, for texts.
pub(crate) fn host(url: &str) -> String {
    let parsed = reqwest::Url::parse(url).ok();
    let host = parsed.and_then(|url| url.host_str().map(str::to_owned));
    host.unwrap_or_else(|| "the token endpoint".to_owned())
}

/// What the body of a failure says, in the form of OAuth and in those of the vendors' APIs. Other bodies, such as
/// pages of a proxy, are not told.
fn said(json: &Value) -> String {
    let text = |pointer: &str| json.pointer(pointer).and_then(Value::as_str);
    let places = ["/error", "/error_description", "/error/status", "/error/type", "/error/message"];
    let words = places.map(text).into_iter().flatten().map(|word| format!(": {word}"));
    words.collect::<String>().chars().take(MAX_SAID).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_failure_says_is_told_in_the_forms_of_oauth_and_of_apis() {
        let body = json!({ "error": "invalid_grant", "error_description": "gone" });
        assert_eq!(said(&body), ": invalid_grant: gone");
        assert_eq!(said(&json!({ "error": { "status": "DENIED", "message": "no" } })), ": DENIED: no");
        assert_eq!(said(&json!({ "error": { "type": "denied", "message": "no" } })), ": denied: no");
        assert_eq!(said(&Value::Null), "");
    }

    #[test]
    fn seconds_are_numbers_or_texts() {
        let answer = json!({ "a": 5, "b": "7", "c": 1.5, "d": null });
        let seconds = ["a", "b", "c", "d", "e"].map(|name| seconds_field(&answer, name));
        assert_eq!(seconds, [Some(5), Some(7), Some(1), None, None]);
    }

    #[test]
    fn a_form_is_encoded() {
        assert_eq!(form_text(&[("a", "b c"), ("d", "é&=")]), "a=b%20c&d=%C3%A9%26%3D");
    }
}
