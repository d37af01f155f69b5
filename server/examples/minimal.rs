//! The defaults: a session, a prompt, its text as it comes, the end.
//!
//! `cargo run -p sampi-server --example minimal`

use std::io::Write;

use sampi_protocol::events::SessionEvent;
use sampi_server::embed::{AgentSession, Event};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    show(&mut std::io::stdout()).await
}

pub(crate) async fn show(out: &mut impl Write) -> anyhow::Result<()> {
    let session = AgentSession::builder()
        .model("demo/demo") // offline; leave it out to use the model of your settings
        .in_memory() // leave it out to keep the conversation in a file
        .build()
        .await?;

    let mut events = session.subscribe();
    let listen = async {
        while let Some(event) = events.next().await {
            match event {
                Event::Message(progress) => write!(out, "{}", progress.text_delta())?,
                Event::Session(event) => match &*event {
                    SessionEvent::ToolExecutionStart(start) => writeln!(out, "\n> {}", start.tool_name)?,
                    SessionEvent::AgentSettled(_) => break,
                    _ => {}
                },
                _ => {}
            }
        }
        anyhow::Ok(())
    };
    let prompt = async { anyhow::Ok(session.prompt("What is in this folder?").await?) };
    let (outcome, ()) = tokio::try_join!(prompt, listen)?;

    writeln!(out, "\n[{} messages]", outcome.messages.len())?;
    session.dispose().await;
    Ok(())
}
