//! Signature version 4 of AWS.

use reqwest::Url;
use ring::{digest, hmac};
use secrecy::{ExposeSecret, SecretString};

use super::credentials::Keys;
use crate::llm::FailureKind;
use crate::llm::exchange::Fault;
use crate::llm::percent::percent_encoded;

/// The service that the signature is for.
const SERVICE: &str = "bedrock";

/// The headers that sign a request with a JSON body.
pub(super) fn headers(
    keys: &Keys,
    region: &str,
    url: &str,
    body: &[u8],
    now: jiff::Timestamp,
) -> Result<Vec<(String, SecretString)>, Fault> {
    let url = Url::parse(url).map_err(|error| {
        Fault::of_kind(FailureKind::InvalidRequest, format!("\"{url}\" is no address: {error}"))
    })?;
    let host = match (url.host_str().unwrap_or_default(), url.port()) {
        (host, Some(port)) => format!("{host}:{port}"),
        (host, None) => host.to_owned(),
    };
    let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let mut signed = vec![
        ("content-type", "application/json".to_owned()),
        ("host", host),
        ("x-amz-content-sha256", hex(digest::digest(&digest::SHA256, body).as_ref())),
        ("x-amz-date", time.clone()),
    ];
    if let Some(token) = &keys.session_token {
        signed.push(("x-amz-security-token", token.expose_secret().to_owned()));
    }
    let authorization = authorization(keys, region, url.path(), &signed, body, &time);
    let mut headers: Vec<(String, SecretString)> = signed
        .into_iter()
        .filter(|(name, _)| name.starts_with("x-amz-"))
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    headers.push(("authorization".into(), authorization.into()));
    Ok(headers)
}

/// The value of `authorization`. The headers are sorted by name.
fn authorization(
    keys: &Keys,
    region: &str,
    path: &str,
    headers: &[(&str, String)],
    body: &[u8],
    time: &str,
) -> String {
    // The path is encoded once more, as for all services but S3.
    let path: Vec<String> = path.split('/').map(|part| percent_encoded(part, b"")).collect();
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let lines: String = headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    let body_hash = hex(digest::digest(&digest::SHA256, body).as_ref());
    let canonical = format!("POST\n{}\n\n{lines}\n{names}\n{body_hash}", path.join("/"));
    let day = time.get(..8).unwrap_or(time);
    let scope = format!("{day}/{region}/{SERVICE}/aws4_request");
    let canonical_hash = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{canonical_hash}");
    let mut key = format!("AWS4{}", keys.secret.expose_secret()).into_bytes();
    for part in [day, region, SERVICE, "aws4_request", &text] {
        key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec();
    }
    format!("AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={}", keys.id, hex(&key))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request of the AWS SDK for JavaScript, signed by it.
    #[test]
    fn the_signature_is_that_of_the_sdk() {
        let keys = Keys {
            id: "AKIDEXAMPLE".into(),
            secret: "SECRETEXAMPLE".to_owned().into(),
            session_token: Some("ST".to_owned().into()),
        };
        let body = r#"{"messages":[{"role":"user","content":[{"text":"hi"},{"cachePoint":{"type":"default"}}]}],"inferenceConfig":{"maxTokens":100}}"#;
        let hash = "f7ba3f8285a4e229bba4c306fea06430d159939fd71583853e17ffb1502ee66a";
        let headers = [
            ("amz-sdk-invocation-id", "b3ad5a87-d60d-4498-aa0c-c256d6154c27"),
            ("amz-sdk-request", "attempt=1; max=3"),
            ("content-length", "126"),
            ("content-type", "application/json"),
            ("host", "127.0.0.1:59739"),
            ("x-amz-content-sha256", hash),
            ("x-amz-date", "20261129T231011Z"),
            ("x-amz-security-token", "ST"),
            ("x-amz-user-agent", "aws-sdk-js/3.1126.0 pi/1.6.0"),
        ]
        .map(|(name, value)| (name, value.to_owned()));
        let path = "/model/anthropic.claude-sonnet-4-v1%3A0/converse-stream";
        let value = authorization(&keys, "us-west-2", path, &headers, body.as_bytes(), "20261129T231011Z");
        assert_eq!(
            value,
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261129/us-west-2/bedrock/aws4_request, \
             SignedHeaders=amz-sdk-invocation-id;amz-sdk-request;content-length;content-type;host;\
             x-amz-content-sha256;x-amz-date;x-amz-security-token;x-amz-user-agent, \
             Signature=5954c46892063a7becc821eb836d7957728d7a50c8839d8c579163124dc7425e"
        );
    }
}
