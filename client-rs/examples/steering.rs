//! Steers a run that is under way, queues a follow-up, and sees both delivered.
//!
//! `cargo run -p sampi-client --example steering`

#![allow(clippy::print_stdout, reason = "an example shows what it got")]

use sampi_client::protocol::data::AgentMessage;
use sampi_client::protocol::events::SessionEvent;
use sampi_client::{RpcClient, SessionChoice};

/// Two answers of the demo model: the first one calls a tool that takes a moment, so that there is a run
/// to steer.
const PROMPT: &str = r#"@script {"steps":[
    {"text":"Let me wait a moment.","tools":[{"name":"bash","args":{"command":"sleep 1; echo waited"}}]},
    {"text":"I waited."}
]}"#;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let agent = RpcClient::builder().provider("demo").session(SessionChoice::InMemory).spawn().await?;

    let mut run = agent.run(PROMPT).await?;
    while let Some(item) = run.next().await {
        match item.as_event() {
            Some(SessionEvent::ToolExecutionStart(start)) => {
                println!("{} is running; steering now", start.tool_name);
                run.steer("Please be brief.").await?;
                run.follow_up("And then say goodbye.").await?;
            }
            Some(SessionEvent::QueueUpdate(queue)) => {
                println!("waiting: {:?} then {:?}", queue.steering, queue.follow_up);
            }
            Some(SessionEvent::MessageEnd(end)) => match &*end.message {
                AgentMessage::User(message) => println!("user: {}", message.content.text()),
                AgentMessage::Assistant(message) => println!("agent: {}", message.text()),
                _ => {}
            },
            _ => {}
        }
    }
    agent.stop().await;
    Ok(())
}
