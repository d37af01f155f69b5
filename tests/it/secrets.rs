//! What must never leave the daemon: keys and tokens.

use sampi_tests::fake_llm::{FakeLlm, Reply, text, tool_call};
use sampi_tests::harness::{Daemon, Model};
use serde_json::{Value, json};

/// A key that is found wherever it turns up.
const KEY: &str = "sk-TESTSECRET-0123456789abcdef";

fn models_with(url: &str, api_key: &str) -> Value {
    json!({ "providers": {
        "mock": {
            "api": "openai-completions", "baseUrl": format!("{url}/v1"), "apiKey": api_key,
            "headers": { "x-extra": format!("{KEY}-header") },
            "models": [{ "id": "m1", "contextWindow": 100_000, "maxTokens": 4096 }],
        },
        "mockant": {
            "api": "anthropic-messages", "baseUrl": url, "apiKey": api_key,
            "models": [{ "id": "a1", "contextWindow": 100_000, "maxTokens": 4096 }],
        },
    } })
}

/// Fails when the key is in anything that the daemon wrote: stdout, stderr, any file but the configuration.
fn assert_no_secret(daemon: &Daemon) {
    for record in daemon.records() {
        assert!(!record.line.contains(KEY), "in a record: {}", record.line);
    }
    assert!(!daemon.stderr().contains(KEY), "on stderr: {}", daemon.stderr());
    let workspace = daemon.workspace();
    for file in workspace.files_below(&workspace.root()) {
        let is_configuration = ["models.json", "auth.json"].iter().any(|name| file.ends_with(name));
        if !is_configuration {
            let content = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
            assert!(!content.contains(KEY), "in {}", file.display());
        }
    }
}

// case 54
#[tokio::test]
async fn a_key_is_in_no_record_no_log_and_no_session_file() {
    let llm = FakeLlm::start().await;
    for model in [Model::Plain, Model::Anthropic] {
        llm.push(tool_call("c1", "bash", json!({ "command": "echo hi" })));
        llm.push(text("ok"));
        let daemon = Daemon::builder(&llm)
            .models(models_with(&llm.url(), KEY))
            .model(model)
            .env("RUST_LOG", "trace")
            .env("SAMPI_LOG", "trace")
            .spawn()
            .await;
        daemon.run("hi").await;
        for command in
            ["get_state", "get_available_models", "get_entries", "get_messages", "get_session_stats"]
        {
            daemon.ok(json!({ "type": command })).await;
        }
        daemon.close_stdin().await;
        daemon.exit().await;
        assert_no_secret(&daemon);
    }
    assert!(llm.requests()[0].header("authorization").unwrap().contains(KEY), "the model server did get it");
    llm.finish();
}

// case 54
#[tokio::test]
async fn a_key_that_the_provider_repeats_in_its_error_goes_no_further() {
    let llm = FakeLlm::start().await;
    for model in [Model::Plain, Model::Anthropic] {
        llm.push(Reply::error(401, "authentication_error", &format!("Incorrect API key provided: {KEY}.")));
        let daemon = Daemon::builder(&llm).models(models_with(&llm.url(), KEY)).model(model).spawn().await;
        daemon.run("hi").await;
        daemon.close_stdin().await;
        daemon.exit().await;
        let ends = daemon.all(json!({ "type": "message_end", "message": { "stopReason": "error" } }));
        assert!(ends[0]["message"]["errorMessage"].as_str().unwrap().contains("Incorrect API key provided"));
        assert_no_secret(&daemon);
    }
    llm.finish();
}

// case 54
#[tokio::test]
async fn a_key_of_auth_json_is_used_and_told_to_nobody() {
    let llm = FakeLlm::start().await;
    llm.push(text("ok"));
    let models = json!({ "providers": { "mock": {
        "api": "openai-completions", "baseUrl": format!("{}/v1", llm.url()),
        "models": [{ "id": "m1", "contextWindow": 100_000, "maxTokens": 4096 }],
    } } });
    let auth = json!({ "mock": { "type": "api_key", "key": KEY } }).to_string();
    let daemon = Daemon::builder(&llm).models(models).agent_file("auth.json", &auth).spawn().await;
    daemon.run("hi").await;
    assert_eq!(llm.requests()[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    daemon.close_stdin().await;
    daemon.exit().await;
    assert_no_secret(&daemon);
    llm.finish();
}

// case 54
#[tokio::test]
async fn a_key_on_the_command_line_is_used_and_told_to_nobody() {
    let llm = FakeLlm::start().await;
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).args(["--api-key", KEY]).spawn().await;
    daemon.run("hi").await;
    assert_eq!(llm.requests()[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    daemon.close_stdin().await;
    daemon.exit().await;
    assert_no_secret(&daemon);
    llm.finish();
}

// case 54
#[tokio::test]
async fn a_command_for_a_key_that_fails_is_an_error_without_its_output() {
    let llm = FakeLlm::start().await;
    let command = format!("!echo {KEY}; exit 1");
    let daemon = Daemon::builder(&llm).models(models_with(&llm.url(), &command)).spawn().await;
    daemon.call(json!({ "type": "prompt", "message": "hi" })).await;
    daemon.state().await;
    for record in daemon.records() {
        assert!(!record.line.contains(&format!("{KEY}\\n")), "{}", record.line);
    }
    daemon.close_stdin().await;
    daemon.exit().await;
}
