//! What changes in the middle of a conversation leaves the beginning of the request as it was, so that the provider's
//! cache still holds it.

use sampi_tests::fake_llm::{FakeLlm, text};
use sampi_tests::harness::{Daemon, DaemonBuilder, Model};
use serde_json::{Value, json};

/// A daemon on the newest model of Anthropic's, which the fake stands in for.
fn daemon(llm: &FakeLlm, tools: &str) -> DaemonBuilder {
    let provider = json!({ "baseUrl": llm.url(), "apiKey": "k" });
    Daemon::builder(llm)
        .models(json!({ "providers": { "anthropic": provider } }))
        .model(Model::Unnamed)
        .args(["--model", "anthropic/claude-opus-5-5:low", "--tools", tools])
}

/// Without the marks for the cache, which move.
fn unmarked(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| *name != "cache_control")
            .map(|(name, value)| (name.clone(), unmarked(value)))
            .collect(),
        Value::Array(items) => items.iter().map(unmarked).collect(),
        plain => plain.clone(),
    }
}

#[tokio::test]
async fn other_tools_other_instructions_and_another_effort_leave_the_beginning_of_the_request_alone() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("One."), text("Two."), text("Three.")]);
    let first = daemon(&llm, "read,bash").spawn().await;
    first.run("first").await;
    first.ok(json!({ "type": "set_thinking_level", "level": "high" })).await;
    first.run("second").await;
    let answers = first.messages().await;
    let efforts: Vec<&Value> = answers
        .iter()
        .filter(|message| message["role"] == "assistant")
        .map(|message| &message["providerThinkingLevel"])
        .collect();
    assert_eq!(efforts, ["low", "high"]);
    let workspace = first.finish().await;

    let second = daemon(&llm, "bash,edit")
        .in_workspace(workspace)
        .file("AGENTS.md", "Speak in rhymes.")
        .args(["--continue"])
        .spawn()
        .await;
    second.run("third").await;
    second.finish().await;

    let requests = llm.requests();
    let bodies: Vec<Value> = requests.iter().map(|request| unmarked(&request.body)).collect();
    for (earlier, later) in bodies.iter().zip(&bodies[1..]) {
        for name in ["model", "system", "tools", "thinking", "output_config", "max_tokens"] {
            assert_eq!(earlier[name], later[name], "{name}");
        }
        let (earlier, later) =
            (earlier["messages"].as_array().unwrap(), later["messages"].as_array().unwrap());
        assert_eq!(earlier[..], later[..earlier.len()]);
    }
    let last = bodies[2]["messages"].as_array().unwrap();
    let changes: Vec<&Value> = last.iter().filter(|message| message["role"] == "system").collect();
    let content = changes[2]["content"].as_array().unwrap();
    assert!(content[0]["text"].as_str().unwrap().contains("Speak in rhymes."), "{content:?}");
    assert_eq!(content[1]["tool"]["name"], "read");
    assert_eq!(content[2]["tool"]["definition"]["name"], "edit");
    let effort = |change: &Value| change["output_config"]["effort"].clone();
    assert_eq!([effort(changes[0]), effort(changes[1]), effort(changes[3])], ["low", "high", "low"]);
    llm.finish();
}
