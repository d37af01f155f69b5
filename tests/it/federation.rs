//! Workload identity federation: a daemon without a key that a platform vouches for.

use std::fs;
use std::path::PathBuf;

use sampi_tests::fake_llm::{FakeLlm, RecordedRequest, Reply, text, tool_call};
use sampi_tests::harness::{Daemon, DaemonBuilder, Model, Workspace};
use serde_json::{Value, json};
use tempfile::TempDir;

/// In every token of these tests.
const SECRET: &str = "TESTSECRET";

/// The file into which the platform writes.
struct Platform(TempDir);

impl Platform {
    fn new() -> Self {
        let platform = Self(tempfile::tempdir().unwrap());
        platform.write("first");
        platform
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("identity")
    }

    fn write(&self, name: &str) {
        fs::write(self.file(), format!("{}\n", identity(name))).unwrap();
    }

    /// A daemon whose environment has the variables of the federation and no key.
    fn daemon(&self, llm: &FakeLlm) -> DaemonBuilder {
        let models = json!({ "providers": { "anthropic": { "baseUrl": llm.url() } } });
        Daemon::builder(llm)
            .models(models)
            .model(Model::Unnamed)
            .settings(json!({ "retry": { "enabled": false } }))
            .env("SAMPI_LOG", "trace")
            .env("ANTHROPIC_FEDERATION_RULE_ID", "fdrl_1")
            .env("ANTHROPIC_ORGANIZATION_ID", "org-1")
            .env("ANTHROPIC_SERVICE_ACCOUNT_ID", "svac_1")
            .env("ANTHROPIC_IDENTITY_TOKEN_FILE", self.file().to_str().unwrap())
    }
}

fn identity(name: &str) -> String {
    format!("header.{name}-{SECRET}.signature")
}

fn access(name: &str) -> String {
    format!("sk-ant-oat01-{name}-{SECRET}")
}

fn grant(name: &str, seconds: u32) -> Reply {
    Reply::access_token(&access(name), seconds)
}

fn authorizations(llm: &FakeLlm) -> Vec<Option<String>> {
    let of = |request: &RecordedRequest| request.header("authorization").map(str::to_owned);
    llm.requests().iter().map(of).collect()
}

fn bearer(name: &str) -> Option<String> {
    Some(format!("Bearer {}", access(name)))
}

/// Ends the daemon. No token is in anything that it wrote.
async fn finish(daemon: Daemon) {
    daemon.close_stdin().await;
    daemon.exit().await;
    for record in daemon.records() {
        assert!(!record.line.contains(SECRET), "in a record: {}", record.line);
    }
    assert!(!daemon.stderr().contains(SECRET), "on stderr: {}", daemon.stderr());
    assert_no_secret(&daemon.into_workspace());
}

fn assert_no_secret(workspace: &Workspace) {
    for file in workspace.files_below(&workspace.root()) {
        let content = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        assert!(!content.contains(SECRET), "in {}", file.display());
    }
}

async fn last_error(daemon: &Daemon) -> String {
    let last = daemon.messages().await.pop().unwrap();
    last["errorMessage"].as_str().unwrap_or_else(|| panic!("no error in {last}")).to_owned()
}

#[tokio::test]
async fn one_exchange_authorises_the_turns_of_a_daemon_whose_model_nobody_named() {
    let (llm, platform) = (FakeLlm::start().await, Platform::new());
    llm.push(grant("a", 3600));
    llm.push(tool_call("c1", "bash", json!({ "command": "echo hi" })));
    llm.push_all([text("One."), text("Two.")]);
    let daemon = platform.daemon(&llm).spawn().await;
    assert_eq!(daemon.state().await["model"]["provider"], "anthropic");
    let models = daemon.ok(json!({ "type": "get_available_models" })).await;
    let is_of_anthropic = |model: &Value| model["provider"] == "anthropic";
    assert!(models["models"].as_array().unwrap().iter().all(is_of_anthropic), "{models}");
    daemon.run("hi").await;
    daemon.run("again").await;
    assert_eq!(authorizations(&llm), [None, bearer("a"), bearer("a"), bearer("a")]);
    let exchange = &llm.requests()[0].body;
    assert_eq!(exchange["assertion"], identity("first"));
    assert_eq!(exchange["service_account_id"], "svac_1");
    finish(daemon).await;
    llm.finish();
}

#[tokio::test]
async fn an_identity_token_that_the_platform_replaced_is_used_when_the_access_token_runs_out() {
    let (llm, platform) = (FakeLlm::start().await, Platform::new());
    let daemon = platform.daemon(&llm).spawn().await;
    llm.push(grant("a", 20));
    llm.push(text("One."));
    daemon.run("hi").await;
    platform.write("second");
    llm.push(grant("b", 3600));
    llm.push(Reply::error(401, "authentication_error", &format!("{} was revoked", access("b"))));
    daemon.run("again").await;
    let error = last_error(&daemon).await;
    assert!(error.contains("[redacted] was revoked"), "{error}");
    assert_eq!(llm.requests()[2].body["assertion"], identity("second"));
    // What the API does not take any more is exchanged anew.
    llm.push(grant("c", 3600));
    llm.push(text("Three."));
    daemon.run("once more").await;
    assert_eq!(authorizations(&llm), [None, bearer("a"), None, bearer("b"), None, bearer("c")]);
    finish(daemon).await;
    llm.finish();
}

#[tokio::test]
async fn an_exchange_that_fails_ends_the_run_with_the_reason_and_without_a_token() {
    let (llm, platform) = (FakeLlm::start().await, Platform::new());
    let said = format!("nothing matches {}", identity("first"));
    llm.push(Reply::error(401, "authentication_error", &said));
    let daemon = platform.daemon(&llm).spawn().await;
    daemon.run("hi").await;
    let error = last_error(&daemon).await;
    assert!(error.contains("status 401: authentication_error: nothing matches [redacted]"), "{error}");
    assert!(
        error.contains("ANTHROPIC_FEDERATION_RULE_ID") && error.contains("ANTHROPIC_WORKSPACE_ID"),
        "{error}"
    );
    fs::remove_file(platform.file()).unwrap();
    daemon.run("again").await;
    let error = last_error(&daemon).await;
    assert!(error.contains("ANTHROPIC_IDENTITY_TOKEN_FILE") && error.contains("No such file"), "{error}");
    assert_eq!(llm.requests().len(), 1);
    finish(daemon).await;
    llm.finish();
}

#[tokio::test]
async fn a_key_goes_before_the_federation() {
    let (llm, platform) = (FakeLlm::start().await, Platform::new());
    let saved = json!({ "anthropic": { "type": "api_key", "key": "saved-key" } }).to_string();
    let by_file = platform.daemon(&llm).agent_file("auth.json", &saved);
    let by_token = platform.daemon(&llm).env("ANTHROPIC_AUTH_TOKEN", "some-token");
    let by_key = platform.daemon(&llm).env("ANTHROPIC_API_KEY", "some-key");
    for (builder, header, value) in [
        (by_file, "x-api-key", "saved-key"),
        (by_token, "authorization", "Bearer some-token"),
        (by_key, "x-api-key", "some-key"),
    ] {
        llm.push(text("Hello."));
        let daemon = builder.spawn().await;
        daemon.run("hi").await;
        let request = llm.requests().pop().unwrap();
        assert_eq!((request.path.as_str(), request.header(header)), ("/v1/messages?beta=true", Some(value)));
        finish(daemon).await;
    }
    llm.finish();
}

#[tokio::test]
async fn sampi_auth_says_of_it_what_pi_says() {
    let (llm, platform) = (FakeLlm::start().await, Platform::new());
    let unavailable =
        "{\"status\":\"not_ready\",\"provider\":\"anthropic\",\"reason\":\"credential_not_available\"}\n";
    for (args, code, stdout, stderr) in [
        (
            &["check", "--json"][..],
            0,
            "{\"status\":\"ready\",\"provider\":\"anthropic\",\"authType\":\"api_key\"}\n",
            "",
        ),
        (&["check"], 0, "ready\n", ""),
        (&["check", "--json", "--credentials"], 1, unavailable, ""),
        (&["print-api-key"], 1, "", "Error: no usable API key is configured for anthropic\n"),
        (&["print-bearer-token"], 1, "", "Error: anthropic is not configured with a sign-in (OAuth)\n"),
    ] {
        let command = ["auth"].iter().chain(args).chain(&["--provider", "anthropic"]);
        let done = platform.daemon(&llm).env("SAMPI_LOG", "warn").args(command.copied()).run_once("").await;
        assert_eq!(
            (done.code, done.stdout.as_str(), done.stderr.as_str()),
            (Some(code), stdout, stderr),
            "{args:?}"
        );
    }
    let partly = platform.daemon(&llm).env("SAMPI_LOG", "warn").env("ANTHROPIC_ORGANIZATION_ID", " ");
    let done = partly.args(["auth", "check", "--provider", "anthropic", "--json"]).run_once("").await;
    assert!(done.code == Some(1) && done.stdout.contains("credentials_not_configured"), "{}", done.stdout);
    assert!(done.stderr.contains("ANTHROPIC_ORGANIZATION_ID is not set"), "{}", done.stderr);
}
