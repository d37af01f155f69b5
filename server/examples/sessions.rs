//! Where a conversation is kept: in memory, in a new file, in the last one, in one that is named.
//!
//! `cargo run -p sampi-server --example sessions`

use std::io::Write;

use sampi_protocol::commands::ListSessions;
use sampi_server::embed::AgentSession;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    show(&mut std::io::stdout()).await
}

pub(crate) async fn show(out: &mut impl Write) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let builder = AgentSession::builder()
        .agent_dir(dir.path())
        .session_dir(dir.path().join("sessions")) // without it, in the agent directory by working directory
        .model("demo/demo")
        .no_tools();

    let session = builder.clone().in_memory().build().await?;
    writeln!(out, "in memory: {:?}", session.session_file().await?)?;
    session.dispose().await;

    let session = builder.clone().name("first steps").build().await?;
    session.prompt("Hello").await?;
    writeln!(out, "new: a file {}", session.session_file().await?.is_some_and(|file| file.exists()))?;
    session.dispose().await;

    let session = builder.clone().continue_recent().build().await?;
    let state = session.state().await?;
    writeln!(
        out,
        "continued: {} with {} messages",
        state.session_name.unwrap_or_default(),
        state.message_count
    )?;
    let listed = session.list_sessions(ListSessions::default()).await?.sessions;
    session.dispose().await;
    for summary in &listed {
        writeln!(out, "listed: {}", summary.first_message.as_deref().unwrap_or_default())?;
    }

    if let Some(summary) = listed.first() {
        let session = builder.clone().open_session(&summary.path).build().await?;
        writeln!(out, "opened: {}", session.session_id().await? == summary.id)?;
        session.dispose().await;
        let session = builder.fork_session(&summary.path).build().await?;
        writeln!(out, "forked: {}", session.session_id().await? != summary.id)?;
        session.dispose().await;
    }
    Ok(())
}
