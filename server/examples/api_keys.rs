//! Keys: those of the user, those of the host, and models that no file describes.
//!
//! `cargo run -p sampi-server --example api_keys`

use std::io::Write;

use sampi_server::embed::AgentSession;
use sampi_server::llm::demo_models;
use sampi_server::resources::models::ModelRegistry;
use serde_json::{Map, Value, json};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    show(&mut std::io::stdout()).await
}

pub(crate) async fn show(out: &mut impl Write) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    // `auth.json` and `models.json` of this folder in place of the user's; keys in the environment count too.
    let builder = AgentSession::builder().agent_dir(dir.path()).model("demo/demo").in_memory();

    // A key for this session alone. It is never written and goes before every other.
    let session = builder.clone().api_key("anthropic", "sk-temporary".to_owned()).build().await?;
    let offered = session.available_models().await?.iter().any(|model| model.provider == "anthropic");
    writeln!(
        out,
        "with a key of the host: anthropic {}",
        if offered { "is offered" } else { "is not offered" }
    )?;
    session.dispose().await;

    // No file at all: the models and their keys come from the host.
    let session = builder
        .models(|environment, _| ModelRegistry::in_memory(environment, &own_models(), demo_models()))
        .api_key("mine", "sk-mine".to_owned())
        .build()
        .await?;
    for model in session.available_models().await?.iter().filter(|model| model.provider == "mine") {
        writeln!(out, "in memory: {}/{} at {}", model.provider, model.id, model.base_url)?;
    }
    session.dispose().await;
    writeln!(out, "files: {}", std::fs::read_dir(dir.path())?.count())?;
    Ok(())
}

/// In the form of `models.json`.
fn own_models() -> Map<String, Value> {
    let provider = json!({
        "api": "openai-completions",
        "baseUrl": "http://127.0.0.1:11434/v1",
        "models": [{ "id": "qwen3:4b", "contextWindow": 32_768, "maxTokens": 4096 }],
    });
    Map::from_iter([("providers".to_owned(), json!({ "mine": provider }))])
}
