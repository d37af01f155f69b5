//! Tasks of the Sampi workspace: `cargo xtask schema`.

use anyhow::{Context, bail};

fn main() -> anyhow::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("schema") => schema(),
        _ => bail!("expected a task: schema"),
    }
}

fn schema() -> anyhow::Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../protocol/schema/protocol.schema.json");
    std::fs::write(path, sampi_protocol::schema::protocol_schema_text()).context(path)
}
