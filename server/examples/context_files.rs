//! Instruction files such as `AGENTS.md`: found, added, replaced.
//!
//! `cargo run -p sampi-server --example context_files`

use std::fs;
use std::io::Write;

use sampi_server::embed::AgentSession;
use sampi_server::resources::system_prompt::ContextFile;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    show(&mut std::io::stdout()).await
}

pub(crate) async fn show(out: &mut impl Write) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    fs::write(dir.path().join("AGENTS.md"), "Use tabs.")?;
    let builder = AgentSession::builder()
        .cwd(dir.path())
        .agent_dir(dir.path().join("agent"))
        .model("demo/demo")
        .in_memory();
    let own = || ContextFile { path: "/virtual/AGENTS.md".to_owned(), text: "Write tests first.".to_owned() };

    let found = builder.clone();
    let added = builder.clone().adjust_resources(move |resources| resources.context_files.push(own()));
    let replaced = builder.adjust_resources(move |resources| resources.context_files = vec![own()]);
    for (what, builder) in [("found", found), ("added", added), ("replaced", replaced)] {
        let session = builder.build().await?;
        let prompt = session.system_prompt().await?;
        let rules: Vec<&str> =
            ["Use tabs.", "Write tests first."].into_iter().filter(|rule| prompt.contains(rule)).collect();
        writeln!(out, "{what}: {}", rules.join(" "))?;
        session.dispose().await;
    }
    Ok(())
}
