//! The one HTTP client of all providers.

use std::error::Error as _;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::FutureExt;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::branding::BRANDING;

/// How long connecting may take, name look-up and TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How much of an error's body is read.
const MAX_ERROR_BODY: usize = 64 * 1024;

/// How long a body may be that is read as a whole.
const MAX_SHORT_BODY: usize = 1024 * 1024;

/// Names a file with certificates of authorities that are trusted beside the system's.
const EXTRA_ROOTS_VARIABLE: &str = "NODE_EXTRA_CA_CERTS";

/// How many redirects are followed, all to the same host.
const MAX_REDIRECTS: usize = 5;

/// A lazily built HTTP client; clones share it. Proxies and root certificates are the system's, those of the
/// settings and of `NODE_EXTRA_CA_CERTS` beside them.
#[derive(Debug, Clone, Default)]
pub struct Http {
    client: Arc<OnceCell<reqwest::Client>>,
    /// The proxy of the settings. It may hold a password.
    proxy: Arc<OnceLock<SecretString>>,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Post {
    /// Where to.
    pub url: String,
    /// Header names and values. A later header replaces an earlier one of the same name.
    pub headers: Vec<(String, SecretString)>,
    /// The body, of the type that a header says.
    pub body: Bytes,
}

/// When to give up waiting.
#[derive(Debug, Clone, Copy)]
pub struct Patience<'a> {
    /// How long the other side may be silent; no limit when absent.
    pub idle: Option<Duration>,
    /// Ends every wait.
    pub cancel: &'a CancellationToken,
}

/// Why an exchange failed before the provider could say anything about it.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// It was cancelled.
    #[error("the request was cancelled")]
    Cancelled,
    /// The other side was silent for too long.
    #[error("no data from the provider for {} seconds", .0.as_secs_f64())]
    Silent(Duration),
    /// The connection failed or broke. The text is the deepest cause.
    #[error("{0}")]
    Connection(String),
    /// The request could not be made at all.
    #[error("{0}")]
    Request(String),
}

impl Http {
    /// A client that is built on first use.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends requests through this proxy, unless the environment names one. The first one that is given
    /// counts, and only before the first request.
    pub fn use_proxy(&self, proxy: &str) {
        self.proxy.get_or_init(|| proxy.trim().into());
    }

    /// Sends a request and waits for the head of the response.
    pub async fn post(&self, post: Post, patience: Patience<'_>) -> Result<Response, HttpError> {
        let Post { url, headers, body } = post;
        let headers = header_map(headers)?;
        self.send(patience, |client| client.post(url).headers(headers).body(body)).await
    }

    /// Asks for what is at an address and waits for the head of the response.
    pub async fn get(
        &self,
        url: String,
        headers: Vec<(String, SecretString)>,
        patience: Patience<'_>,
    ) -> Result<Response, HttpError> {
        let headers = header_map(headers)?;
        self.send(patience, |client| client.get(url).headers(headers)).await
    }

    async fn send(
        &self,
        patience: Patience<'_>,
        request: impl FnOnce(&reqwest::Client) -> reqwest::RequestBuilder,
    ) -> Result<Response, HttpError> {
        let send = async {
            let client = self.client.get_or_try_init(|| build_client(self.proxy.get().cloned())).await?;
            request(client).send().await.map_err(connection_error)
        };
        let inner = patience.wait(send).await??;
        Ok(Response { inner })
    }
}

impl Patience<'_> {
    async fn wait<T>(&self, future: impl Future<Output = T>) -> Result<T, HttpError> {
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(HttpError::Cancelled),
            value = future => Ok(value),
            silence = silence(self.idle) => Err(HttpError::Silent(silence)),
        }
    }
}

async fn silence(limit: Option<Duration>) -> Duration {
    match limit {
        Some(limit) => {
            tokio::time::sleep(limit).await;
            limit
        }
        None => std::future::pending().await,
    }
}

/// A response whose body is read as it comes.
#[derive(Debug)]
pub struct Response {
    inner: reqwest::Response,
}

impl Response {
    /// The status.
    pub fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    /// How long the provider asks to wait before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        retry_after(self.inner.headers(), SystemTime::now())
    }

    /// The next piece of the body; nothing at its end. Must not be called again after an error.
    pub async fn chunk(&mut self, patience: Patience<'_>) -> Result<Option<Bytes>, HttpError> {
        patience.wait(self.inner.chunk()).await?.map_err(connection_error)
    }

    /// The whole body as text. One that is longer than an answer of a few fields is an error.
    pub async fn text(&mut self, patience: Patience<'_>) -> Result<String, HttpError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.chunk(patience).await? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_SHORT_BODY {
                return Err(HttpError::Connection(format!("the body is longer than {MAX_SHORT_BODY} bytes")));
            }
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// The beginning of the body as text, for an error. What cannot be read is left out.
    pub async fn error_text(&mut self, patience: Patience<'_>) -> Result<String, HttpError> {
        let mut body = Vec::new();
        while body.len() < MAX_ERROR_BODY {
            match self.chunk(patience).await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break,
                Err(HttpError::Cancelled) => return Err(HttpError::Cancelled),
                // The status says more than the rest of the body would.
                Err(_) => break,
            }
        }
        body.truncate(MAX_ERROR_BODY);
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Reads what is already there of the rest, so that the connection can be used again.
    pub fn release(mut self) {
        while let Some(Ok(Some(_))) = self.inner.chunk().now_or_never() {}
    }
}

async fn build_client(proxy: Option<SecretString>) -> Result<reqwest::Client, HttpError> {
    // Reading the root certificates takes some ten milliseconds of file access.
    let built = tokio::task::spawn_blocking(move || {
        // An error says that there is a provider already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder();
        if let Some(proxy) = proxy {
            for proxy in proxies(&proxy)? {
                builder = builder.proxy(proxy);
            }
        }
        builder
            .tls_certs_merge(extra_roots())
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_keepalive(Duration::from_secs(30))
            .user_agent(BRANDING.user_agent())
            .redirect(reqwest::redirect::Policy::custom(same_host))
            .build()
            .map_err(|error| HttpError::Request(format!("cannot set up HTTP: {}", deepest(&error))))
    });
    match built.await {
        Ok(built) => built,
        Err(error) => Err(HttpError::Request(format!("cannot set up HTTP: {error}"))),
    }
}

/// The proxies where the settings name one: what the environment names goes before it.
fn proxies(setting: &SecretString) -> Result<[reqwest::Proxy; 2], HttpError> {
    let chosen = |scheme: &str| {
        let names =
            [scheme.to_uppercase(), scheme.to_owned(), "ALL_PROXY".to_owned(), "all_proxy".to_owned()];
        let mut set = names.iter().filter_map(|name| std::env::var(name).ok());
        let own = set.find(|proxy| !proxy.is_empty());
        own.unwrap_or_else(|| setting.expose_secret().to_owned())
    };
    let no_address =
        |_| HttpError::Request("httpProxy of the settings is not the address of a proxy".to_owned());
    let except = |proxy: reqwest::Proxy| proxy.no_proxy(reqwest::NoProxy::from_env());
    Ok([
        except(reqwest::Proxy::http(chosen("http_proxy")).map_err(no_address)?),
        except(reqwest::Proxy::https(chosen("https_proxy")).map_err(no_address)?),
    ])
}

/// The certificates of further authorities: whoever runs Pi behind a proxy that opens TLS names them so.
/// As in Node, a file that cannot be used is told and does not count.
fn extra_roots() -> Vec<reqwest::Certificate> {
    let Some(path) = std::env::var_os(EXTRA_ROOTS_VARIABLE).filter(|path| !path.is_empty()) else {
        return Vec::new();
    };
    let read = std::fs::read(&path).map_err(|error| error.to_string());
    let roots = read.and_then(|pem| {
        let roots = reqwest::Certificate::from_pem_bundle(&pem).map_err(|error| deepest(&error))?;
        if roots.is_empty() { Err("there is no certificate in it".to_owned()) } else { Ok(roots) }
    });
    roots.unwrap_or_else(|error| {
        let file = std::path::Path::new(&path).display();
        tracing::warn!("{file}, which {EXTRA_ROOTS_VARIABLE} names, cannot be used: {error}");
        Vec::new()
    })
}

// Keys travel in headers that a redirect would carry along: they stay with the host they are meant for.
fn same_host(attempt: reqwest::redirect::Attempt<'_>) -> reqwest::redirect::Action {
    let origin = |url: &reqwest::Url| {
        (url.scheme().to_owned(), url.host_str().map(str::to_owned), url.port_or_known_default())
    };
    let here = attempt.previous().last().map(origin);
    if attempt.previous().len() <= MAX_REDIRECTS && here == Some(origin(attempt.url())) {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

fn header_map(headers: Vec<(String, SecretString)>) -> Result<HeaderMap, HttpError> {
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| HttpError::Request(format!("\"{name}\" is not a valid header name")))?;
        let mut value = HeaderValue::from_str(value.expose_secret()).map_err(|_| {
            HttpError::Request(format!(
                "the value of the header \"{name}\" has characters that are not allowed"
            ))
        })?;
        value.set_sensitive(true);
        map.insert(key, value);
    }
    Ok(map)
}

fn connection_error(error: reqwest::Error) -> HttpError {
    let error = error.without_url();
    if error.is_builder() {
        HttpError::Request(deepest(&error))
    } else {
        HttpError::Connection(deepest(&error))
    }
}

/// The text of the last error in the chain of causes, which is the one that says something.
fn deepest(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = cause.to_string();
        source = cause.source();
    }
    text
}

fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let millis = text("retry-after-ms").and_then(|value| value.parse::<f64>().ok());
    if let Some(millis) = millis {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let value = text("retry-after")?;
    if let Ok(seconds) = value.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(date.as_second()).ok()?);
    Some(at.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_as_seconds_as_milliseconds_and_as_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_420);
        let wait = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            retry_after(&headers, now)
        };
        assert_eq!(wait("retry-after", "3"), Some(Duration::from_secs(3)));
        assert_eq!(wait("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(wait("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(wait("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::from_secs(60)));
        assert_eq!(wait("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(wait("retry-after", "-1"), None);
        assert_eq!(wait("retry-after", "1e300"), None);
        assert_eq!(wait("retry-after", "soon"), None);
    }

    #[test]
    fn a_bad_header_is_named_and_its_value_is_not_shown() {
        let error = header_map(vec![("x-key".into(), "sec\nret".to_owned().into())]).unwrap_err();
        assert!(error.to_string().contains("x-key") && !error.to_string().contains("sec"));
    }
}
