//! The headers of requests, as far as APIs have them in common.

use secrecy::{ExposeSecret, SecretString};

use super::Credentials;

/// Names and values. A later header replaces an earlier one of the same name.
pub(crate) type Headers = Vec<(String, SecretString)>;

/// The headers of a request with a JSON body, to which an answer of the type `accept` is wanted.
pub(crate) fn json_headers(accept: &str) -> Headers {
    vec![header("accept", accept), header("content-type", "application/json")]
}

/// A header that is no secret.
pub(crate) fn header(name: &str, value: &str) -> (String, SecretString) {
    (name.to_owned(), value.into())
}

/// The header that authorises a request by a token.
pub(crate) fn bearer(token: &SecretString) -> (String, SecretString) {
    ("authorization".to_owned(), format!("Bearer {}", token.expose_secret()).into())
}

/// The header with the key of a request: the API's own, unless the credentials ask for a bearer token.
pub(crate) fn key_header(credentials: &Credentials, own: &str) -> Option<(String, SecretString)> {
    let key = credentials.api_key.as_ref()?;
    Some(if credentials.bearer { bearer(key) } else { (own.to_owned(), key.clone()) })
}
