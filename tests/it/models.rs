//! Choosing models and thinking levels.

use sampi_tests::fake_llm::{FakeLlm, text};
use sampi_tests::harness::{Daemon, Model};
use serde_json::{Value, json};

fn model_of(state: &Value) -> String {
    format!("{}/{}", state["model"]["provider"].as_str().unwrap(), state["model"]["id"].as_str().unwrap())
}

#[tokio::test]
async fn the_models_with_credentials_are_available_and_tell_nothing_secret() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let data = daemon.ok(json!({ "type": "get_available_models" })).await;
    let ids: Vec<&Value> = data["models"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(json!(ids), json!(["m1", "m2", "a1"]));
    assert_eq!(data["models"][0]["baseUrl"], format!("{}/v1", llm.url()));
    assert!(!data.to_string().contains("key-of-mock"));
    daemon.finish().await;
}

#[tokio::test]
async fn set_model_and_cycle_model_change_the_model_of_the_next_request() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("a"), text("b"), text("c")]);
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("one").await;
    let data = daemon.ok(json!({ "type": "cycle_model" })).await;
    assert_eq!(data["model"]["id"], "m2");
    daemon.run("two").await;
    let data = daemon.ok(json!({ "type": "set_model", "provider": "mockant", "modelId": "a1" })).await;
    assert_eq!(data["id"], "a1");
    daemon.run("three").await;
    let models: Vec<Value> =
        llm.requests().into_iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(json!(models), json!(["m1", "m2", "a1"]));
    assert_eq!(model_of(&daemon.state().await), "mockant/a1");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_model_is_found_by_provider_and_id_by_a_part_of_its_name_and_with_a_level() {
    let llm = FakeLlm::start().await;
    for (arguments, model, level) in [
        (&["--model", "mock/m2"][..], "mock/m2", "medium"),
        (&["--model", "mock/m2:high"], "mock/m2", "high"),
        (&["--model", "Mock Ant"], "mockant/a1", "medium"),
        (&["--provider", "mockant", "--model", "a1:low"], "mockant/a1", "low"),
        (&["--model", "m2", "--thinking", "minimal"], "mock/m2", "minimal"),
    ] {
        let daemon =
            Daemon::builder(&llm).model(Model::Unnamed).args(arguments.iter().copied()).spawn().await;
        let state = daemon.state().await;
        assert_eq!(model_of(&state), model, "{arguments:?}");
        assert_eq!(state["thinkingLevel"], level, "{arguments:?}");
        daemon.finish().await;
    }
}

// case 52
#[tokio::test]
async fn a_level_that_the_model_does_not_have_is_clamped_and_everyone_is_told_the_effective_one() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).model(Model::Reasoning).args(["--thinking", "low"]).spawn().await;
    let levels = daemon.ok(json!({ "type": "get_available_thinking_levels" })).await;
    assert_eq!(levels, json!({ "levels": ["off", "minimal", "low", "medium", "high"] }));
    daemon.ok(json!({ "type": "set_thinking_level", "level": "xhigh" })).await;
    daemon.wait_for(json!({ "type": "thinking_level_changed", "level": "high" })).await;
    assert_eq!(daemon.state().await["thinkingLevel"], "high");
    daemon.finish().await;
}

// case 52
#[tokio::test]
async fn on_a_model_that_cannot_think_every_level_is_off() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.ok(json!({ "type": "set_thinking_level", "level": "xhigh" })).await;
    assert_eq!(daemon.state().await["thinkingLevel"], "off");
    let levels = daemon.ok(json!({ "type": "get_available_thinking_levels" })).await;
    assert_eq!(levels, json!({ "levels": ["off"] }));
    assert_eq!(daemon.ok(json!({ "type": "cycle_thinking_level" })).await, Value::Null);
    daemon.finish().await;
}

#[tokio::test]
async fn the_level_goes_to_the_model_and_off_asks_for_no_thinking() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("a"), text("b"), text("c")]);
    let daemon = Daemon::builder(&llm).model(Model::Anthropic).args(["--thinking", "high"]).spawn().await;
    daemon.run("one").await;
    daemon.ok(json!({ "type": "set_thinking_level", "level": "off" })).await;
    daemon.run("two").await;
    daemon.ok(json!({ "type": "set_model", "provider": "mock", "modelId": "m2" })).await;
    daemon.ok(json!({ "type": "set_thinking_level", "level": "low" })).await;
    daemon.run("three").await;
    let bodies: Vec<Value> = llm.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies[0]["thinking"]["type"], "enabled");
    assert_ne!(bodies[1]["thinking"]["type"], "enabled");
    assert_eq!(bodies[2]["reasoning_effort"], "low");
    daemon.finish().await;
    llm.finish();
}

// case 53
#[tokio::test]
async fn switching_the_model_in_one_session_leaves_the_defaults_of_others_alone() {
    let llm = FakeLlm::start().await;
    let settings = json!({ "defaultProvider": "mock", "defaultModel": "m1", "other": { "kept": true } });
    let one = Daemon::builder(&llm).model(Model::Unnamed).settings(settings.clone()).spawn().await;
    assert_eq!(model_of(&one.state().await), "mock/m1");
    one.ok(json!({ "type": "set_model", "provider": "mockant", "modelId": "a1" })).await;
    one.ok(json!({ "type": "set_thinking_level", "level": "high" })).await;
    one.ok(json!({ "type": "cycle_model" })).await;
    let workspace = one.finish().await;
    let file = std::fs::read_to_string(workspace.agent_dir().join("settings.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&file).unwrap(), settings);
    let two = Daemon::builder(&llm).model(Model::Unnamed).in_workspace(workspace).spawn().await;
    assert_eq!(model_of(&two.state().await), "mock/m1");
    two.finish().await;
}

#[tokio::test]
async fn a_key_comes_from_a_literal_a_variable_or_a_command() {
    let llm = FakeLlm::start().await;
    for (api_key, expected) in [
        ("literal-key", "literal-key"),
        ("$KEY_FOR_TEST", "from-variable"),
        ("!echo from-command", "from-command"),
    ] {
        llm.push(text("ok"));
        let models = json!({ "providers": { "mock": {
            "api": "openai-completions", "baseUrl": format!("{}/v1", llm.url()), "apiKey": api_key,
            "models": [{ "id": "m1", "contextWindow": 1000, "maxTokens": 100 }],
        } } });
        let daemon = Daemon::builder(&llm).models(models).env("KEY_FOR_TEST", "from-variable").spawn().await;
        daemon.run("hi").await;
        let request = llm.requests().pop().unwrap();
        assert_eq!(request.header("authorization"), Some(format!("Bearer {expected}").as_str()), "{api_key}");
        daemon.finish().await;
    }
    llm.finish();
}

#[tokio::test]
async fn a_model_whose_map_leaves_no_level_has_none_to_cycle_through() {
    let llm = FakeLlm::start().await;
    let none = json!({ "off": null, "minimal": null, "low": null, "medium": null, "high": null, "xhigh": null, "max": null });
    let models = json!({ "providers": { "mock": { "baseUrl": format!("{}/v1", llm.url()), "api": "openai-completions", "apiKey": "key",
        "models": [{ "id": "m1", "reasoning": true, "thinkingLevelMap": none }] } } });
    let daemon = Daemon::builder(&llm).models(models).spawn().await;
    let levels = daemon.ok(json!({ "type": "get_available_thinking_levels" })).await;
    assert_eq!(levels, json!({ "levels": [] }));
    assert_eq!(daemon.ok(json!({ "type": "cycle_thinking_level" })).await, Value::Null);
    daemon.finish().await;
}
