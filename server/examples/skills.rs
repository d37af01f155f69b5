//! Skills: found on disk, filtered, added.
//!
//! `cargo run -p sampi-server --example skills`

use std::fs;
use std::io::Write;

use sampi_server::embed::AgentSession;
use sampi_server::resources::skills::Skill;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    show(&mut std::io::stdout()).await
}

pub(crate) async fn show(out: &mut impl Write) -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    for (name, text) in [("release", "Tag, build, publish."), ("secret", "Not for this host.")] {
        let folder = dir.path().join("skills").join(name);
        fs::create_dir_all(&folder)?;
        fs::write(
            folder.join("SKILL.md"),
            format!("---\nname: {name}\ndescription: How to {name}.\n---\n{text}"),
        )?;
    }
    let own = dir.path().join("review.md");
    fs::write(&own, "---\nname: review\ndescription: How to review.\n---\nRead the diff twice.")?;

    let session = AgentSession::builder()
        .agent_dir(dir.path()) // its folder `skills` is searched
        .adjust_resources(move |resources| {
            resources.skills.retain(|skill| skill.name != "secret");
            resources.skills.push(Skill::new("review", "How to review.", &own));
        })
        .model("demo/demo")
        .in_memory()
        .no_tools()
        .build()
        .await?;
    for command in session.commands().await? {
        writeln!(out, "/{}: {}", command.name, command.description.unwrap_or_default())?;
    }
    let outcome = session.prompt("/skill:review the last commit").await?;
    let asked = outcome.messages.iter().find_map(|message| message.as_user()).map(|user| user.content.text());
    writeln!(out, "the model reads: {}", asked.is_some_and(|text| text.contains("Read the diff twice.")))?;
    session.dispose().await;
    Ok(())
}
