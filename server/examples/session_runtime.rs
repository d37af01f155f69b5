//! Replacing the session at run time: a new one, another file, a fork, an import.
//!
//! `cargo run -p sampi-server --example session_runtime`

use std::io::Write;

use sampi_server::embed::{AgentSession, Subscription};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    show(&mut std::io::stdout()).await
}

pub(crate) async fn show(out: &mut impl Write) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let runtime =
        AgentSession::builder().agent_dir(dir.path()).model("demo/demo").no_tools().build_runtime().await?;

    let first = runtime.session();
    let events = first.subscribe();
    first.prompt("Hello").await?;
    let file = first.session_file().await?.unwrap_or_default();

    runtime.new_session().await?;
    // Handles and subscriptions belong to one session: take them anew after every replacement.
    writeln!(
        out,
        "the old session: {}",
        first.messages().await.err().map(|error| error.to_string()).unwrap_or_default()
    )?;
    writeln!(out, "its subscription ended: {}", has_ended(events).await)?;
    writeln!(out, "new: {} messages", runtime.session().messages().await?.len())?;

    runtime.switch_session(&file).await?;
    let session = runtime.session();
    writeln!(out, "switched: the same file {}", session.session_file().await?.as_ref() == Some(&file))?;

    session.prompt("And again").await?;
    if let Some((entry, _)) = session.fork_points().await?.pop() {
        let forked = runtime.fork(entry).await?;
        writeln!(out, "forked before: {}", forked.text.unwrap_or_default())?;
    }

    let elsewhere = dir.path().join("from-elsewhere.jsonl");
    std::fs::copy(&file, &elsewhere)?;
    runtime.import_jsonl(&elsewhere).await?;
    let imported = runtime.session().session_file().await?.unwrap_or_default();
    writeln!(
        out,
        "imported: a copy {}",
        imported != elsewhere && imported.ends_with("from-elsewhere.jsonl")
    )?;

    // A replacement that fails leaves the session as it was.
    if let Err(error) = runtime.switch_session(dir.path().join("nosuch.jsonl")).await {
        writeln!(out, "refused: {}", error.to_string().contains("not found"))?;
    }
    writeln!(out, "still: {}", runtime.session().session_file().await? == Some(imported))?;
    runtime.dispose().await;
    Ok(())
}

/// Reads a subscription to its end.
async fn has_ended(mut events: Subscription) -> bool {
    while events.next().await.is_some() {}
    true
}
