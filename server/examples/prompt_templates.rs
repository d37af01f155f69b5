//! Prompt templates: `/name arguments` stands for a longer text.
//!
//! `cargo run -p sampi-server --example prompt_templates`

use std::io::Write;

use sampi_server::embed::AgentSession;
use sampi_server::resources::templates::PromptTemplate;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    show(&mut std::io::stdout()).await
}

pub(crate) async fn show(out: &mut impl Write) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let session = AgentSession::builder()
        .agent_dir(dir.path()) // templates in its folder `prompts` are found as well
        .adjust_resources(|resources| {
            let content = "Explain $1 to somebody who knows ${2:-nothing}.";
            resources.templates.push(PromptTemplate::new("explain", "Explains something", content));
        })
        .model("demo/demo")
        .in_memory()
        .no_tools()
        .build()
        .await?;
    for command in session.commands().await? {
        writeln!(out, "/{}: {}", command.name, command.description.unwrap_or_default())?;
    }
    let outcome = session.prompt("/explain lifetimes \"C and Go\"").await?;
    let asked = outcome.messages.iter().find_map(|message| message.as_user()).map(|user| user.content.text());
    writeln!(out, "the model reads: {}", asked.unwrap_or_default())?;
    session.dispose().await;
    Ok(())
}
