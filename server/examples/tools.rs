//! The tool set: allow, deny, and a tool of your own.
//!
//! `cargo run -p sampi-server --example tools`

use std::io::Write;

use sampi_protocol::data::{ToolDefinition, ToolOutput};
use sampi_server::BoxFuture;
use sampi_server::embed::AgentSession;
use sampi_server::tools::{Tool, ToolContext, ToolError, text_output};
use serde_json::{Map, Value, json};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    show(&mut std::io::stdout()).await
}

pub(crate) async fn show(out: &mut impl Write) -> anyhow::Result<()> {
    let builder = AgentSession::builder().model("demo/demo").in_memory();

    let reader = builder.clone().tools(["read", "grep", "find", "ls"]).build().await?;
    writeln!(out, "allowed: {}", reader.active_tools().await?.join(" "))?;
    reader.dispose().await;

    let careful = builder.clone().exclude_tools(["bash"]).build().await?;
    writeln!(out, "without bash: {}", careful.active_tools().await?.join(" "))?;
    careful.dispose().await;

    let session = builder.no_builtin_tools().tool(Dice::new()?).build().await?;
    writeln!(out, "own: {}", session.active_tools().await?.join(" "))?;
    // The demo model calls what its script says; a real one decides by the description.
    let script =
        json!({ "steps": [{ "tools": [{ "name": "dice", "args": { "sides": 6 } }] }, { "text": "There." }] });
    let outcome = session.prompt(format!("@script {script}")).await?;
    for result in outcome.messages.iter().filter_map(|message| message.as_tool_result()) {
        writeln!(out, "{} gave back: {}", result.tool_name, result.content[0].as_text().unwrap_or_default())?;
    }
    writeln!(out, "{}", outcome.text())?;
    session.dispose().await;
    Ok(())
}

/// A die that always shows its highest side.
struct Dice(ToolDefinition);

impl Dice {
    fn new() -> anyhow::Result<Self> {
        Ok(Self(serde_json::from_value(json!({
            "name": "dice",
            "description": "Throws a die and tells what it shows.",
            "parameters": {
                "type": "object",
                "properties": { "sides": { "type": "integer", "minimum": 2 } },
                "required": ["sides"],
            },
        }))?))
    }
}

impl Tool for Dice {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn snippet(&self) -> &str {
        "Throws a die"
    }

    fn run<'a>(
        &'a self,
        arguments: Map<String, Value>,
        _context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            match arguments.get("sides").and_then(Value::as_u64) {
                Some(sides) => Ok(text_output(format!("{sides}"))),
                None => Err(ToolError::new("sides must be a whole number")),
            }
        })
    }
}
