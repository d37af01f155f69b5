//! Everything from the host: nothing is discovered, nothing is read, nothing is written.
//!
//! `cargo run -p sampi-server --example full_control`

use std::io::Write;

use sampi_protocol::data::ThinkingLevel;
use sampi_server::embed::AgentSession;
use sampi_server::llm::demo_models;
use sampi_server::resources::models::ModelRegistry;
use sampi_server::resources::settings::SettingsSource;
use sampi_server::resources::{Environment, Resources};
use serde_json::{Map, json};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    show(&mut std::io::stdout()).await
}

pub(crate) async fn show(out: &mut impl Write) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let settings = json!({ "compaction": { "enabled": false }, "retry": { "maxRetries": 2 } });
    let session = AgentSession::builder()
        .cwd(dir.path())
        // No variable of the process and no home directory but this one.
        .environment(Environment::new(dir.path(), Vec::<(String, String)>::new()))
        .models(|environment, _| ModelRegistry::in_memory(environment, &Map::new(), demo_models()))
        .model("demo/demo")
        .thinking_level(ThinkingLevel::Off)
        .settings(SettingsSource::Memory(settings.as_object().cloned().unwrap_or_default()))
        .resources(Resources::default())
        .system_prompt("You are a minimal assistant. Be concise.")
        .tools(["read", "bash"])
        .in_memory()
        .build()
        .await?;
    let prompt = session.system_prompt().await?;
    writeln!(out, "{}", prompt.lines().next().unwrap_or_default())?;
    writeln!(out, "tools: {}", session.active_tools().await?.join(" "))?;

    let outcome = session.prompt("What is in this folder?").await?;
    writeln!(out, "ok: {}", outcome.is_ok())?;
    writeln!(out, "warnings: {}", session.warnings().await?.len())?;
    session.dispose().await;
    writeln!(out, "files: {}", std::fs::read_dir(dir.path())?.count())?;
    Ok(())
}
