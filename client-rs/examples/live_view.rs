//! Shows a run while it happens: text as it is written, thinking, tool calls and their results.
//!
//! `cargo run -p sampi-client --example live_view -- "your prompt"`

#![allow(clippy::print_stdout, reason = "an example shows what it got")]

use std::io::Write;

use sampi_client::protocol::events::SessionEvent;
use sampi_client::protocol::stream::AssistantMessageEvent;
use sampi_client::{Assembled, EventItem, MessageAssembler, RpcClient, SessionChoice};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let prompt = std::env::args().nth(1).unwrap_or_else(|| "What is in this folder?".to_owned());
    let agent = RpcClient::builder().provider("demo").session(SessionChoice::InMemory).spawn().await?;

    let mut run = agent.run(prompt).await?;
    let mut assembler = MessageAssembler::new();
    while let Some(item) = run.next().await {
        match item {
            EventItem::Event(event) => {
                // A view that redraws would show `assembler.message()`; a log shows only what is new.
                if assembler.apply(&event) == Assembled::Ended {
                    println!();
                }
                show(&event)?;
            }
            EventItem::Lagged(count) => println!("[{count} events were missed]"),
            EventItem::Closed(exit) => println!("[{exit}]"),
            _ => {}
        }
    }
    let outcome = run.outcome().await?;
    println!("[{} messages, {} tokens]", outcome.messages.len(), outcome.usage.total_tokens);
    agent.stop().await;
    Ok(())
}

fn show(event: &SessionEvent) -> std::io::Result<()> {
    match event {
        SessionEvent::MessageUpdate(update) => match &update.assistant_message_event {
            AssistantMessageEvent::TextDelta(delta) | AssistantMessageEvent::ThinkingDelta(delta) => {
                print!("{}", delta.delta);
                std::io::stdout().flush()?;
            }
            _ => {}
        },
        SessionEvent::ToolExecutionStart(start) => {
            println!("> {} {}", start.tool_name, serde_json::Value::Object(start.args.clone()));
        }
        SessionEvent::ToolExecutionEnd(end) => {
            println!("< {} {}", end.tool_name, if end.is_error { "failed" } else { "done" });
        }
        SessionEvent::AutoRetryStart(retry) => {
            println!("[{}; attempt {} of {}]", retry.error_message, retry.attempt, retry.max_attempts);
        }
        _ => {}
    }
    Ok(())
}
