use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use sampi_protocol::data::{StopReason, ThinkingLevel};

use super::*;
use crate::environment::Environment;
use crate::llm::anthropic_messages::{API, AnthropicMessages};
use crate::llm::fake_server::{Call, FakeServer, Reply};
use crate::llm::http::Http;
use crate::llm::testing::{model, run, user};
use crate::llm::{Completion, Credentials};

const ANSWER: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":1}}}\n\n\
    event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\n\
    event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

const TOKEN_LINE: &str = "POST /v1/oauth/token";
const MODEL_LINE: &str = "POST /v1/messages?beta=true";

/// An identity token in a file, and what goes with it.
struct Workload {
    _dir: tempfile::TempDir,
    file: PathBuf,
    environment: Environment,
}

impl Workload {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("identity");
        std::fs::write(&file, "header.first-s3cret.signature\n").unwrap();
        let variables = [(RULE, "fdrl_1"), (ORGANIZATION, "org-1"), (TOKEN_FILE, file.to_str().unwrap())];
        let environment = Environment::new("/home/u", variables);
        Self { _dir: dir, file, environment }
    }

    fn with(self, name: &str, value: &str) -> Self {
        Self { environment: self.environment.with(name, value), ..self }
    }

    fn request(&self, url: &str) -> ModelRequest {
        let model = model(API, json!({ "provider": PROVIDER, "baseUrl": url }));
        let mut request = crate::llm::testing::request(model, ThinkingLevel::Off, json!([user("q")]));
        request.credentials = Credentials { environment: self.environment.clone(), ..Credentials::default() };
        request
    }
}

fn provider() -> AnthropicMessages {
    AnthropicMessages::new(Http::new())
}

/// Gives the tokens `access-1`, `access-2` and so on, each for so many seconds, and answers with `reply`.
async fn api(seconds: u64, reply: impl Fn(&Call) -> Reply + Send + Sync + 'static) -> FakeServer {
    let given = AtomicUsize::new(0);
    FakeServer::start(move |call| {
        if call.line != TOKEN_LINE {
            return reply(call);
        }
        let n = given.fetch_add(1, Ordering::Relaxed) + 1;
        let token =
            json!({ "access_token": format!("access-{n}"), "token_type": "Bearer", "expires_in": seconds });
        Reply::Json(200, token.to_string())
    })
    .await
}

fn answer(_: &Call) -> Reply {
    Reply::Stream(ANSWER.to_owned())
}

fn error_of(end: &Completion) -> (FailureKind, &str) {
    assert_eq!(end.message.stop_reason, StopReason::Error);
    (end.failure.as_ref().unwrap().kind, end.message.error_message.as_deref().unwrap())
}

#[tokio::test]
async fn the_identity_token_is_exchanged_once_for_several_requests() {
    let (workload, provider) = (Workload::new(), provider());
    let api = api(3600, answer).await;
    for _ in 0..2 {
        let end = run(&provider, &workload.request(&format!("{}/", api.url))).await;
        assert_eq!(end.message.stop_reason, StopReason::Stop);
    }
    assert_eq!(api.lines(), [TOKEN_LINE, MODEL_LINE, MODEL_LINE]);
    let [exchange, first, second] = &api.calls()[..] else { panic!() };
    let body = r#"{"grant_type":"urn:ietf:params:oauth:grant-type:jwt-bearer","assertion":"header.first-s3cret.signature","federation_rule_id":"fdrl_1","organization_id":"org-1"}"#;
    assert_eq!(exchange.body, body);
    assert_eq!(exchange.header("content-type"), "application/json");
    assert_eq!(exchange.header("anthropic-beta"), "oauth-2025-04-20,oidc-federation-2026-04-01");
    for call in [first, second] {
        assert_eq!(call.header("authorization"), "Bearer access-1");
        assert_eq!(call.header("anthropic-beta"), OAUTH);
        assert_eq!(call.header("x-api-key"), "");
    }
}

#[tokio::test]
async fn the_account_and_the_workspace_go_along_and_their_tokens_are_others() {
    let (plain, provider) = (Workload::new(), provider());
    let api = api(3600, answer).await;
    run(&provider, &plain.request(&api.url)).await;
    let named = plain.with(ACCOUNT, "svac_1").with(WORKSPACE, " default ");
    run(&provider, &named.request(&api.url)).await;
    let calls = api.calls();
    let body: Value = serde_json::from_str(&calls[2].body).unwrap();
    assert_eq!((&body["service_account_id"], &body["workspace_id"]), (&json!("svac_1"), &json!("default")));
    assert_eq!(calls[3].header("authorization"), "Bearer access-2");
}

#[tokio::test]
async fn the_file_is_read_anew_when_the_access_token_has_run_out() {
    let (workload, provider) = (Workload::new(), provider());
    let api = api(20, answer).await;
    run(&provider, &workload.request(&api.url)).await;
    std::fs::write(&workload.file, "header.second.signature").unwrap();
    run(&provider, &workload.request(&api.url)).await;
    let calls = api.calls();
    assert_eq!(api.lines(), [TOKEN_LINE, MODEL_LINE, TOKEN_LINE, MODEL_LINE]);
    assert!(calls[2].body.contains("header.second.signature"), "{}", calls[2].body);
    assert_eq!(calls[3].header("authorization"), "Bearer access-2");
}

#[tokio::test]
async fn after_a_401_of_the_api_the_next_request_has_a_new_token() {
    let (workload, provider) = (Workload::new(), provider());
    let api = api(3600, |call| match call.header("authorization") {
        "Bearer access-1" => Reply::Json(401, r#"{"error":{"message":"access-1 is no more"}}"#.to_owned()),
        _ => answer(call),
    })
    .await;
    let end = run(&provider, &workload.request(&api.url)).await;
    let (kind, text) = error_of(&end);
    assert_eq!(kind, FailureKind::Auth);
    assert!(text.contains("[redacted] is no more") && !text.contains("access-1"), "{text}");
    let end = run(&provider, &workload.request(&api.url)).await;
    assert_eq!(end.message.stop_reason, StopReason::Stop);
    assert_eq!(api.lines(), [TOKEN_LINE, MODEL_LINE, TOKEN_LINE, MODEL_LINE]);
}

#[tokio::test]
async fn nothing_is_exchanged_with_a_key_or_for_another_provider() {
    let (workload, provider) = (Workload::new(), provider());
    let api = api(3600, answer).await;
    let mut with_key = workload.request(&api.url);
    with_key.credentials.api_key = Some("key-1".into());
    let mut other = workload.request(&api.url);
    other.model.provider = "other".to_owned();
    let mut with_header = workload.request(&api.url);
    with_header.credentials.headers.push(("X-Api-Key".into(), "own-1".into()));
    for request in [&with_key, &other, &with_header] {
        run(&provider, request).await;
    }
    assert_eq!(api.lines(), [MODEL_LINE; 3]);
    assert_eq!(api.calls()[0].header("x-api-key"), "key-1");
    assert_eq!(api.calls()[1].header("authorization"), "");
    assert_eq!(api.calls()[2].header("x-api-key"), "own-1");
}

#[tokio::test]
async fn a_header_of_the_user_goes_along_with_what_the_token_needs() {
    let (workload, provider) = (Workload::new(), provider());
    let api = api(3600, answer).await;
    let mut request = workload.request(&api.url);
    request.credentials.headers.push(("Anthropic-Beta".into(), "own-1".into()));
    run(&provider, &request).await;
    assert_eq!(api.calls()[1].header("anthropic-beta"), "own-1,oauth-2025-04-20");
}

#[tokio::test]
async fn an_identity_token_that_cannot_be_read_is_named_by_its_file_and_variable() {
    let api = api(3600, answer).await;
    let large = "x".repeat(MAX_TOKEN_BYTES + 1);
    for (content, why) in [
        (None, "No such file"),
        (Some(&b" \n"[..]), "the file is empty"),
        (Some(&b"s3cret\xff"[..]), "the file is not UTF-8"),
        (Some(large.as_bytes()), "it is larger than 16 KiB"),
    ] {
        let workload = Workload::new();
        match content {
            Some(content) => std::fs::write(&workload.file, content).unwrap(),
            None => std::fs::remove_file(&workload.file).unwrap(),
        }
        let end = run(&provider(), &workload.request(&api.url)).await;
        let (kind, text) = error_of(&end);
        let file = workload.file.display();
        let start = format!("the identity token in {file}, the file of {TOKEN_FILE}, cannot be used: {why}");
        assert!(kind == FailureKind::Auth && text.starts_with(&start), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
    let workload = Workload::new();
    std::fs::write(&workload.file, format!("\n{}\n", "x".repeat(MAX_TOKEN_BYTES))).unwrap();
    let end = run(&provider(), &workload.request(&api.url)).await;
    assert_eq!(end.message.stop_reason, StopReason::Stop);
}

#[tokio::test]
async fn an_exchange_that_is_refused_says_why_without_a_token() {
    let hint = "; the federation rule of ANTHROPIC_FEDERATION_RULE_ID must match the identity token";
    let workspaces = ", and a rule for several workspaces needs ANTHROPIC_WORKSPACE_ID";
    let echo =
        r#"{"error":{"type":"authentication_error","message":"no rule for header.first-s3cret.signature"}}"#;
    let rfc = r#"{"error":"invalid_grant","error_description":"bad assertion"}"#;
    let said = "authentication_error: no rule for [redacted]";
    for (status, body, workspace, kind, end) in [
        (401, echo, "", FailureKind::Auth, format!("401: {said}{hint}{workspaces}")),
        (401, echo, "w", FailureKind::Auth, format!("401: {said}{hint}")),
        (400, rfc, "", FailureKind::Auth, "400: invalid_grant: bad assertion".to_owned()),
        (429, "{}", "", FailureKind::RateLimit, "429".to_owned()),
        (503, "<html>", "", FailureKind::Server, "503".to_owned()),
        (200, "{}", "", FailureKind::Auth, "127.0.0.1 sent no access_token".to_owned()),
        (200, "[]", "", FailureKind::Auth, "what 127.0.0.1 answered is not a JSON object".to_owned()),
    ] {
        let workload = Workload::new().with(WORKSPACE, workspace);
        let api = FakeServer::start(move |_| Reply::Json(status, body.to_owned())).await;
        let completion = run(&provider(), &workload.request(&api.url)).await;
        let file = workload.file.display();
        let start = format!("cannot exchange the identity token in {file} for an access token: ");
        let text = error_of(&completion).1;
        assert_eq!(error_of(&completion).0, kind, "{text}");
        assert!(text.starts_with(&start) && text.ends_with(&end), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
        assert_eq!(api.lines(), [TOKEN_LINE]);
    }
}

#[tokio::test]
async fn an_identity_token_goes_over_no_wire_that_others_can_read() {
    let workload = Workload::new();
    for url in
        ["http://api.example", "ftp://localhost", "nonsense", "http://127.0.0.1.example", "http://10.0.0.1"]
    {
        let end = run(&provider(), &workload.request(url)).await;
        let (kind, text) = error_of(&end);
        assert_eq!(kind, FailureKind::Auth);
        assert!(text.contains("begins with https://") && text.ends_with(url), "{text}");
    }
    for url in ["https://api.example", "http://localhost:1", "http://127.0.0.1", "http://[::1]:80"] {
        assert!(is_private(url), "{url}");
    }
}

#[test]
fn it_needs_three_variables_and_the_rule_asks_for_it() {
    let found =
        |workload: &Workload| Federation::find(|name| workload.environment.get(name).map(str::to_owned));
    assert!(found(&Workload::new()).unwrap().is_ok());
    assert_eq!(found(&Workload::new().with(RULE, " ")), None);
    for name in [ORGANIZATION, TOKEN_FILE] {
        let why = found(&Workload::new().with(name, " ")).unwrap().unwrap_err();
        assert_eq!(why, format!("{name} is not set, and {RULE} is"));
    }
}
