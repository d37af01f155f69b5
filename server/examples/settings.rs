//! Settings: from files, with overrides, in memory.
//!
//! `cargo run -p sampi-server --example settings`

use std::fs;
use std::io::Write;

use sampi_server::embed::AgentSession;
use sampi_server::resources::settings::SettingsSource;
use serde_json::{Map, Value, json};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    show(&mut std::io::stdout()).await
}

pub(crate) async fn show(out: &mut impl Write) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("settings.json");
    fs::write(&file, r#"{"steeringMode": "all", "compaction": {"enabled": true}}"#)?;
    let builder = AgentSession::builder().agent_dir(dir.path()).model("demo/demo").in_memory();

    let overrides = object(json!({ "compaction": { "enabled": false } }));
    let in_memory = SettingsSource::Memory(object(json!({ "followUpMode": "all" })));
    for (what, builder) in [
        ("files", builder.clone()),
        ("overridden", builder.clone().override_settings(overrides)),
        ("in memory", builder.clone().settings(in_memory.clone())),
    ] {
        let session = builder.build().await?;
        let state = session.state().await?;
        let compaction = if state.auto_compaction_enabled { "on" } else { "off" };
        writeln!(out, "{what}: steering {:?}, compaction {compaction}", state.steering_mode)?;
        session.dispose().await;
    }

    // What is changed goes to the user's file, unless settings are in memory.
    for (what, builder) in [("in memory", builder.clone().settings(in_memory)), ("files", builder)] {
        let session = builder.build().await?;
        session.set_auto_retry(false).await?;
        session.dispose().await; // what was to be written is written by then
        writeln!(out, "{what}: written {}", fs::read_to_string(&file)?.contains("retry"))?;
    }
    Ok(())
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}
