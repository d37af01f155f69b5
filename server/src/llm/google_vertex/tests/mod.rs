use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sampi_protocol::data::{StopReason, ThinkingLevel};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{API, GoogleVertex, post};
use crate::environment::Environment;
use crate::llm::fake_server::{Call, FakeServer, Reply};
use crate::llm::google_generative_ai::body;
use crate::llm::http::Http;
use crate::llm::testing::{model, run, system, user};
use crate::llm::{Credentials, FailureKind, ModelRequest, Provider};

/// Made for these tests and used for nothing else.
const TEST_KEY: &str = include_str!("throwaway_test_key.pem");

const ANSWER: &str = "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"hé\"}]},\"finishReason\":\"STOP\"}],\
     \"usageMetadata\":{\"promptTokenCount\":7,\"candidatesTokenCount\":2}}\n\n";

const MODEL_LINE: &str = "POST /v1/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse";

/// A request to the model at this address, which these variables authorise.
fn ask(url: &str, variables: &[(&str, &str)]) -> ModelRequest {
    let fields = json!({ "id": "gemini-2.5-pro", "baseUrl": url, "reasoning": true });
    let mut request =
        crate::llm::testing::request(model(API, fields), ThinkingLevel::Low, json!([system(), user("q")]));
    let environment = Environment::new("/home/u", variables.iter().copied());
    request.credentials = Credentials { environment, ..Credentials::default() };
    request
}

/// A request that this file authorises.
fn ask_with(url: &str, file: &Path) -> ModelRequest {
    ask(url, &[("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().unwrap())])
}

fn provider() -> GoogleVertex {
    GoogleVertex::new(Http::new())
}

/// A cloud that gives the tokens `token-1`, `token-2` and so on, each for so many seconds.
async fn cloud(expires_in: u64) -> FakeServer {
    let given = AtomicUsize::new(0);
    FakeServer::start(move |call| {
        if call.line.contains("GenerateContent") {
            return Reply::Stream(ANSWER.to_owned());
        }
        let n = given.fetch_add(1, Ordering::Relaxed) + 1;
        let token = json!({ "access_token": format!("token-{n}"), "expires_in": expires_in });
        match call.line.as_str() {
            "POST /token" => Reply::Json(200, token.to_string()),
            line if line.starts_with("GET /computeMetadata/") => Reply::Json(200, token.to_string()),
            "GET /subject" => Reply::Json(200, json!({ "id": { "x": 1 }, "value": "subject-2" }).to_string()),
            "POST /impersonate" => {
                let token = json!({ "accessToken": "token-acting", "expireTime": "2999-01-01T00:00:00Z" });
                Reply::Json(200, token.to_string())
            }
            _ => Reply::Json(404, "{}".to_owned()),
        }
    })
    .await
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, content: &str) -> std::path::PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

fn service_account(url: &str) -> Value {
    json!({ "type": "service_account", "project_id": "x", "private_key_id": "kid1", "private_key": TEST_KEY,
        "client_email": "svc@p.iam.gserviceaccount.com", "token_uri": format!("{url}/token") })
}

fn authorized_user(url: &str) -> Value {
    json!({ "type": "authorized_user", "client_id": "cid", "client_secret": "client-s3cret",
        "refresh_token": "refresh-s3cret", "quota_project_id": "payer", "token_uri": format!("{url}/token") })
}

fn external(source: Value, url: &str) -> Value {
    json!({ "type": "external_account", "audience": "//iam/x", "token_url": format!("{url}/token"),
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt", "credential_source": source })
}

#[tokio::test]
async fn a_request_with_a_key_is_that_of_the_gemini_api_at_another_address() {
    let cloud = cloud(3600).await;
    let mut request = ask(&cloud.url, &[]);
    request.credentials.api_key = Some("key-1".to_owned().into());
    request.credentials.headers.push(("x-own".into(), "1".to_owned().into()));
    let end = run(&provider(), &request).await;
    assert_eq!((end.message.text().as_str(), end.message.stop_reason), ("hé", StopReason::Stop));
    assert_eq!((end.message.usage.input, end.message.usage.output), (7, 2));
    assert_eq!(cloud.lines(), [MODEL_LINE]);
    let call = &cloud.calls()[0];
    assert_eq!((call.header("x-goog-api-key"), call.header("x-own")), ("key-1", "1"));
    assert_eq!(call.header("authorization"), "");
    assert_eq!(call.body, body(&request, super::IMAGES).unwrap().to_string());
}

#[tokio::test]
async fn a_service_account_gets_a_token_by_an_assertion_and_uses_it_until_it_expires() {
    let files = Files::new();
    for (expires_in, tokens) in [(3600, 1), (30, 2)] {
        let cloud = cloud(expires_in).await;
        let file = files.write("sa.json", &service_account(&cloud.url).to_string());
        let provider = provider();
        for n in 1..=2 {
            assert_eq!(run(&provider, &ask_with(&cloud.url, &file)).await.message.text(), "hé");
            let call = cloud.calls().pop().unwrap();
            assert_eq!(call.line, MODEL_LINE);
            assert_eq!(call.header("authorization"), format!("Bearer token-{}", n.min(tokens)));
            assert_eq!(call.header("x-goog-user-project"), "");
        }
        let exchanges: Vec<Call> =
            cloud.calls().into_iter().filter(|call| call.line == "POST /token").collect();
        assert_eq!(exchanges.len(), tokens);
        assert_eq!(exchanges[0].header("content-type"), "application/x-www-form-urlencoded");
        assert_eq!(exchanges[0].field("grant_type"), "urn:ietf:params:oauth:grant-type:jwt-bearer");
        assert_eq!(exchanges[0].field("assertion").split('.').count(), 3);
    }
}

#[tokio::test]
async fn a_login_of_gcloud_is_refreshed_and_its_quota_project_is_told() {
    let (cloud, files) = (cloud(3600).await, Files::new());
    let file = files.write("adc.json", &authorized_user(&cloud.url).to_string());
    let provider = provider();
    run(&provider, &ask_with(&cloud.url, &file)).await;
    let [exchange, call] = cloud.calls().try_into().unwrap();
    for (name, value) in [
        ("grant_type", "refresh_token"),
        ("client_id", "cid"),
        ("client_secret", "client-s3cret"),
        ("refresh_token", "refresh-s3cret"),
    ] {
        assert_eq!(exchange.field(name), value);
    }
    assert_eq!(call.header("authorization"), "Bearer token-1");
    assert_eq!(call.header("x-goog-user-project"), "payer");

    // Another login gets a token of its own, and a variable goes before the file.
    let mut other = authorized_user(&cloud.url);
    other["refresh_token"] = json!("another");
    files.write("adc.json", &other.to_string());
    let set =
        [("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().unwrap()), ("GOOGLE_CLOUD_QUOTA_PROJECT", "me")];
    run(&provider, &ask(&cloud.url, &set)).await;
    let call = cloud.calls().pop().unwrap();
    assert_eq!((call.header("authorization"), call.header("x-goog-user-project")), ("Bearer token-2", "me"));
}

#[tokio::test]
async fn identities_of_other_providers_are_exchanged_wherever_their_token_stands() {
    let (cloud, files) = (cloud(3600).await, Files::new());
    let text = files.write("subject", "subject-0");
    let fields = files.write("subject.json", r#"{"value":"subject-1"}"#);
    let form = json!({ "type": "json", "subject_token_field_name": "value" });
    let url = format!("{}/subject", cloud.url);
    for (n, source) in [
        json!({ "file": text }),
        json!({ "file": fields, "format": form }),
        json!({ "url": url, "headers": { "metadata": "True" }, "format": form }),
    ]
    .into_iter()
    .enumerate()
    {
        let file = files.write("ext.json", &external(source, &cloud.url).to_string());
        assert_eq!(run(&provider(), &ask_with(&cloud.url, &file)).await.message.text(), "hé");
        let calls = cloud.calls();
        let exchange = calls.iter().rev().find(|call| call.line == "POST /token").unwrap();
        for (name, value) in [
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("audience", "//iam/x"),
            ("scope", "https://www.googleapis.com/auth/cloud-platform"),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
            ("subject_token", format!("subject-{n}").as_str()),
            ("subject_token_type", "urn:ietf:params:oauth:token-type:jwt"),
        ] {
            assert_eq!(exchange.field(name), value);
        }
    }
    let asked = cloud.calls().into_iter().find(|call| call.line == "GET /subject").unwrap();
    assert_eq!(asked.header("metadata"), "True");
}

#[tokio::test]
async fn an_account_that_is_impersonated_gives_a_token_of_its_own() {
    let (cloud, files) = (cloud(3600).await, Files::new());
    let url = format!("{}/impersonate", cloud.url);
    let subject = files.write("subject", "s");
    let mut federated = external(json!({ "file": subject }), &cloud.url);
    federated["service_account_impersonation_url"] = json!(url);
    federated["service_account_impersonation"] = json!({ "token_lifetime_seconds": 600 });
    let own = json!({ "type": "impersonated_service_account", "service_account_impersonation_url": url,
        "delegates": ["d1"], "source_credentials": authorized_user(&cloud.url) });
    for (n, (credentials, expected)) in [
        (own, json!({ "delegates": ["d1"], "lifetime": "3600s" })),
        (federated, json!({ "delegates": [], "lifetime": "600s" })),
    ]
    .into_iter()
    .enumerate()
    {
        let file = files.write("imp.json", &credentials.to_string());
        run(&provider(), &ask_with(&cloud.url, &file)).await;
        let mut calls = cloud.calls();
        assert_eq!(calls.pop().unwrap().header("authorization"), "Bearer token-acting");
        let acting = calls.pop().unwrap();
        assert_eq!(
            (acting.line.as_str(), calls.pop().unwrap().line.as_str()),
            ("POST /impersonate", "POST /token")
        );
        assert_eq!(acting.header("authorization"), format!("Bearer token-{}", 2 * n + 1));
        let mut body: Value = serde_json::from_str(&acting.body).unwrap();
        let scope = body.as_object_mut().unwrap().shift_remove("scope").unwrap();
        assert_eq!(scope, json!(["https://www.googleapis.com/auth/cloud-platform"]));
        assert_eq!(body, expected);
    }
}

#[tokio::test]
async fn a_metadata_server_that_is_named_is_asked_when_there_is_no_file() {
    let cloud = cloud(3600).await;
    let request = ask(&cloud.url, &[("GCE_METADATA_HOST", cloud.host())]);
    assert_eq!(run(&provider(), &request).await.message.text(), "hé");
    let [asked, call] = cloud.calls().try_into().unwrap();
    assert_eq!(asked.line, "GET /computeMetadata/v1/instance/service-accounts/default/token");
    assert_eq!(asked.header("metadata-flavor"), "Google");
    assert_eq!(call.header("authorization"), "Bearer token-1");
}

#[tokio::test]
async fn requests_that_come_at_once_share_one_exchange() {
    let (cloud, files) = (cloud(3600).await, Files::new());
    let file = files.write("adc.json", &authorized_user(&cloud.url).to_string());
    let (provider, request) = (provider(), ask_with(&cloud.url, &file));
    let ends = tokio::join!(run(&provider, &request), run(&provider, &request), run(&provider, &request));
    for end in [ends.0, ends.1, ends.2] {
        assert_eq!(end.message.text(), "hé");
    }
    assert_eq!(cloud.lines().iter().filter(|line| *line == "POST /token").count(), 1);
}

#[tokio::test]
async fn an_abort_ends_the_exchange_and_whoever_waits_for_it() {
    let files = Files::new();
    let mut cloud = FakeServer::start(|_| Reply::Silence).await;
    let file = files.write("adc.json", &authorized_user(&cloud.url).to_string());
    let (provider, request) = (provider(), ask_with(&cloud.url, &file));
    let cancel = CancellationToken::new();
    let (updates, _reader) = mpsc::channel(1);
    let both = async {
        tokio::join!(
            provider.stream(&request, &updates, &cancel),
            provider.stream(&request, &updates, &cancel)
        )
    };
    let abort = async {
        assert_eq!(cloud.arrivals.recv().await.as_deref(), Some("POST /token"));
        cancel.cancel();
    };
    let ((first, second), ()) = tokio::join!(both, abort);
    for end in [first, second] {
        assert_eq!(end.message.stop_reason, StopReason::Aborted);
        assert_eq!(end.message.error_message.as_deref(), Some("This operation was aborted"));
        assert_eq!(end.failure, None);
    }
}

#[tokio::test]
async fn an_exchange_that_fails_says_where_and_why_and_holds_no_secret() {
    let files = Files::new();
    for (reply, expected, kind) in [
        (
            Reply::Json(
                400,
                r#"{"error":"invalid_grant","error_description":"refresh-s3cret is revoked"}"#.into(),
            ),
            "127.0.0.1 answered with status 400: invalid_grant: [redacted] is revoked",
            FailureKind::Auth,
        ),
        (
            Reply::Json(403, r#"{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED"}}"#.into()),
            "127.0.0.1 answered with status 403: PERMISSION_DENIED: no",
            FailureKind::Auth,
        ),
        (Reply::Json(503, "<html>".into()), "127.0.0.1 answered with status 503", FailureKind::Server),
        (Reply::Json(429, "{}".into()), "127.0.0.1 answered with status 429", FailureKind::RateLimit),
        (
            Reply::Json(200, "refresh-s3cret".into()),
            "what 127.0.0.1 answered is not a JSON object",
            FailureKind::Auth,
        ),
        (Reply::Json(200, "{}".into()), "127.0.0.1 sent no access_token", FailureKind::Auth),
        (
            Reply::Json(200, " ".repeat(1_100_000)),
            "127.0.0.1: the body is longer than 1048576 bytes",
            FailureKind::Network,
        ),
        (Reply::Silence, "127.0.0.1: no data from the provider for 0.1 seconds", FailureKind::Network),
    ] {
        let cloud = FakeServer::start(move |_| reply.clone()).await;
        let file = files.write("adc.json", &authorized_user(&cloud.url).to_string());
        let mut request = ask_with(&cloud.url, &file);
        request.options.idle_timeout = Some(Duration::from_millis(100));
        let end = run(&provider(), &request).await;
        let expected =
            format!("cannot get an access token for Google Cloud with {}: {expected}", file.display());
        assert_eq!(end.message.error_message, Some(expected));
        assert_eq!(end.failure.unwrap().kind, kind);
        assert_eq!(cloud.lines(), ["POST /token"]);
    }
}

#[tokio::test]
async fn credentials_that_cannot_be_used_are_told_before_anything_is_sent() {
    let files = Files::new();
    let broken = files.write("broken.json", r#"{"type":"authorized_user","client_id":"s3cret"}"#);
    let mut bad_key = service_account("http://127.0.0.1:1");
    bad_key["private_key"] = json!("s3cret");
    let bad_key = files.write("key.json", &bad_key.to_string());
    for (path, expected) in [
        (
            Path::new("/nope.json"),
            "the credentials of Google Cloud in /nope.json cannot be used: No such file",
        ),
        (&broken, "broken.json cannot be used: client_secret is missing"),
        (&bad_key, "key.json: private_key must be an RSA key in PEM, as Google Cloud writes it"),
    ] {
        let end = run(&provider(), &ask_with("http://127.0.0.1:1", path)).await;
        let text = end.message.error_message.unwrap();
        assert!(text.contains(expected) && !text.contains("s3cret"), "{text}");
        assert_eq!(end.failure.unwrap().kind, FailureKind::Auth);
    }
    let end = run(&provider(), &ask("http://127.0.0.1:1", &[])).await;
    assert!(
        end.message
            .error_message
            .unwrap()
            .starts_with("no credentials for Google Cloud: set GOOGLE_CLOUD_API_KEY")
    );
}

#[tokio::test]
async fn a_token_that_is_refused_is_not_used_again_and_is_in_no_error() {
    let files = Files::new();
    let given = Arc::new(AtomicUsize::new(0));
    let cloud = FakeServer::start(move |call| {
        if call.line == "POST /token" {
            let n = given.fetch_add(1, Ordering::Relaxed);
            return Reply::Json(200, json!({ "access_token": format!("access-token-{n}") }).to_string());
        }
        match call.header("authorization") {
            "Bearer access-token-0" => {
                Reply::Json(401, json!({ "error": { "message": "access-token-0" } }).to_string())
            }
            _ => Reply::Stream(ANSWER.to_owned()),
        }
    })
    .await;
    let file = files.write("adc.json", &authorized_user(&cloud.url).to_string());
    let (provider, request) = (provider(), ask_with(&cloud.url, &file));
    let end = run(&provider, &request).await;
    assert_eq!(end.message.error_message.as_deref(), Some(r#"{"error":{"message":"[redacted]"}}"#));
    assert_eq!(end.failure.unwrap().kind, FailureKind::Auth);
    assert_eq!(run(&provider, &request).await.message.text(), "hé");
}

#[test]
fn googles_own_address_needs_a_project_and_a_location() {
    let own = "https://{location}-aiplatform.googleapis.com";
    let access = super::Access { token: "token-1".into(), quota_project: None };
    let fault = post(&ask(own, &[("GOOGLE_CLOUD_PROJECT", "p")]), Some(&access)).unwrap_err();
    assert!(fault.text.contains("GOOGLE_CLOUD_LOCATION is not set"), "{}", fault.text);
    let set = [("GOOGLE_CLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", "europe-west1")];
    let post = post(&ask(own, &set), Some(&access)).unwrap();
    let end = "publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
    let start = "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1";
    assert_eq!(post.url, format!("{start}/{end}"));
    let headers: Vec<_> =
        post.headers.iter().map(|(name, value)| format!("{name}={}", value.expose_secret())).collect();
    assert_eq!(headers, ["content-type=application/json", "authorization=Bearer token-1"]);
}
