//! Starts the daemon with its offline demo model, sends one prompt and prints the answer.
//!
//! `cargo run -p sampi-client --example quickstart`

#![allow(clippy::print_stdout, reason = "an example shows what it got")]

use sampi_client::{RpcClient, SessionChoice};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let agent = RpcClient::builder().provider("demo").session(SessionChoice::InMemory).spawn().await?;

    let outcome = agent.prompt_and_wait("Say hello.").await?;
    match &outcome.error {
        None => println!("{}", outcome.text),
        Some(error) => println!("the run failed: {error}"),
    }
    println!("{} tokens, ${:.4}", outcome.usage.total_tokens, outcome.usage.cost.total);

    agent.stop().await;
    Ok(())
}
