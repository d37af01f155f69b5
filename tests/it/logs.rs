//! What is told on stderr.

use sampi_tests::fake_llm::{FakeLlm, Reply, text, tool_call};
use sampi_tests::harness::{Daemon, Model};
use serde_json::json;

#[tokio::test]
async fn what_is_wrong_with_the_configuration_is_told_also_when_the_start_fails_and_with_the_list_of_models()
{
    let llm = FakeLlm::start().await;
    for (args, code) in [(&["--mode", "rpc", "--model", "nosuch"][..], 1), (&["--list-models"], 0)] {
        let run = Daemon::builder(&llm)
            .model(Model::Unnamed)
            .models(json!({ "providers": { "a": { "baseUrl": "http://h", "api": "zork", "models": [{ "id": 5 }] } } }))
            .agent_file("settings.json", "{ \"retry\": ")
            .agent_file("auth.json", "{ \"b\": 5 }")
            .args(args.iter().copied())
            .run_once("")
            .await;
        assert_eq!(run.code, Some(code), "{}", run.stderr);
        let dir = run.workspace.agent_dir();
        for part in [
            "/settings.json:1:",
            "/auth.json: b: must be an object",
            "/models.json: providers.a.models[0].id: must be a string",
            "/models.json: providers.a.api: \"zork\" is not supported; the known ones are anthropic-messages, ",
        ] {
            let expected = format!("{}{part}", dir.display());
            assert!(run.stderr.contains(&expected), "{args:?}: {expected}\n{}", run.stderr);
        }
    }
}

#[tokio::test]
async fn the_debug_log_has_what_finds_a_fault_and_neither_keys_nor_contents() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::error(503, "api_error", "secret-of-the-error"));
    llm.push(tool_call("call-1", "bash", json!({ "command": "echo secret-of-the-tool" })));
    llm.push(text("secret-of-the-answer"));
    let daemon = Daemon::builder(&llm)
        .settings(json!({ "retry": { "baseDelayMs": 1 } }))
        .env("SAMPI_LOG", "debug")
        .spawn()
        .await;
    daemon.run("secret-of-the-prompt").await;
    daemon.refused(json!({ "type": "set_steering_mode", "mode": "secret-of-the-mode" })).await;
    let file = daemon.state().await["sessionFile"].as_str().unwrap().to_owned();
    daemon.close_stdin().await;
    daemon.exit().await;
    let log = daemon.stderr();
    let request = format!("request provider=\"mock\" model=\"m1\" url=\"{}/v1/chat/completions\"", llm.url());
    let made = format!("session file made path={file}");
    for expected in [
        "start version=",
        "command name=\"prompt\"",
        &made,
        &request,
        "response status=503",
        "failure=Overloaded status=503",
        "sent again after a delay attempt=1",
        "a tool call begins tool=\"bash\" call=call-1",
        "a tool call ends tool=\"bash\" call=call-1 failed=false",
        "response status=200",
        "settled aborted=false",
        "refused name=\"set_steering_mode\" code=invalid_params",
    ] {
        assert!(log.contains(expected), "{expected}\n{log}");
    }
    for secret in ["key-of-mock", "secret-of-the"] {
        assert!(!log.contains(secret), "{secret}\n{log}");
    }
    llm.finish();
}

#[tokio::test]
async fn a_level_of_the_log_that_does_not_exist_is_told() {
    let llm = FakeLlm::start().await;
    let run = Daemon::builder(&llm).env("SAMPI_LOG", "loud").args(["--list-models"]).run_once("").await;
    assert_eq!(run.code, Some(0));
    assert!(
        run.stderr.contains("SAMPI_LOG: expected off, error, warn, info, debug or trace"),
        "{}",
        run.stderr
    );
}
