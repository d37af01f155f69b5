//! A model and a thinking level of your own.
//!
//! `cargo run -p sampi-server --example model`

use std::io::Write;

use sampi_protocol::data::{ContentBlock, ThinkingLevel};
use sampi_server::embed::AgentSession;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    show(&mut std::io::stdout()).await
}

pub(crate) async fn show(out: &mut impl Write) -> anyhow::Result<()> {
    let session = AgentSession::builder()
        .model("demo/demo-thinking")
        .thinking_level(ThinkingLevel::High)
        .in_memory()
        .no_tools()
        .build()
        .await?;
    let model = session.model().await?.map(|model| format!("{}/{}", model.provider, model.id));
    writeln!(out, "{} thinks: {}", model.unwrap_or_default(), session.thinking_level().await?)?;

    let outcome = session.prompt("Hello").await?;
    let thinking =
        outcome.answer().into_iter().flat_map(|answer| &answer.content).find_map(|block| match block {
            ContentBlock::Thinking(block) => Some(block.thinking.as_str()),
            _ => None,
        });
    writeln!(out, "thinking: {}", thinking.unwrap_or("none"))?;

    // The level is clamped to what the next model supports.
    session.set_model("demo", "demo").await?;
    writeln!(out, "demo/demo thinks: {}", session.thinking_level().await?)?;
    session.dispose().await;
    Ok(())
}
