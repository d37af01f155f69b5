//! Ten agents at once, each with a process and a session of its own.
//!
//! `cargo run -p sampi-client --example many_sessions`

#![allow(clippy::print_stdout, reason = "an example shows what it got")]

use std::time::Instant;

use sampi_client::{ClientError, RpcClient, RunOutcome, SessionChoice};
use tokio::task::JoinSet;

const AGENTS: usize = 10;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let start = Instant::now();
    let mut agents = JoinSet::new();
    for number in 1..=AGENTS {
        agents.spawn(async move { (number, ask(number).await) });
    }
    while let Some(done) = agents.join_next().await {
        let (number, outcome) = done?;
        match outcome {
            Ok(outcome) => println!("agent {number}: {}", outcome.text),
            // One that fails does not disturb the others.
            Err(error) => println!("agent {number}: {error}"),
        }
    }
    println!("{AGENTS} agents in {:?}", start.elapsed());
    Ok(())
}

async fn ask(number: usize) -> Result<RunOutcome, ClientError> {
    let agent = RpcClient::builder().provider("demo").session(SessionChoice::InMemory).spawn().await?;
    let outcome = agent.prompt_and_wait(format!("You are agent {number}. Say hello.")).await;
    agent.stop().await;
    outcome
}
