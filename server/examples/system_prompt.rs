//! A system prompt in place of the built-in one, and a text after it.
//!
//! `cargo run -p sampi-server --example system_prompt`

use std::io::Write;

use sampi_server::embed::AgentSession;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    show(&mut std::io::stdout()).await
}

pub(crate) async fn show(out: &mut impl Write) -> anyhow::Result<()> {
    let builder = AgentSession::builder().model("demo/demo").in_memory();

    let replaced = builder.clone().system_prompt("You are a pirate. Answer as one.").build().await?;
    let prompt = replaced.system_prompt().await?;
    writeln!(out, "replaced: {}", prompt.lines().next().unwrap_or_default())?;
    replaced.dispose().await;

    let appended = builder.append_system_prompt("Answer in one sentence.").build().await?;
    let prompt = appended.system_prompt().await?;
    writeln!(
        out,
        "appended: {}",
        prompt.contains("Answer in one sentence.") && prompt.contains("coding agent")
    )?;
    appended.dispose().await;
    Ok(())
}
