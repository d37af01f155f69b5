//! Answers the dialogs of extensions in the terminal.
//!
//! `cargo run -p sampi-client --example permission_dialog -- -e ./my-extension.ts`
//!
//! Arguments go to the daemon. Without an extension that asks, nothing asks.

#![allow(clippy::print_stdout, reason = "an example shows what it got")]

use std::io::Write;

use sampi_client::{Answer, Ask, Dialog, Question, RpcClient, SessionChoice};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Reading the terminal blocks, so it is done on a thread for such things. Meanwhile the client goes on
    // reading events, and a dialog with a timeout is decided by the daemon if nobody types.
    let handler = Ask::new(|dialog| async {
        match tokio::task::spawn_blocking(move || ask(&dialog)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Answer::Cancelled,
        }
    });
    let agent = RpcClient::builder()
        .provider("demo")
        .session(SessionChoice::InMemory)
        .args(std::env::args().skip(1))
        .ui_handler(handler)
        .spawn()
        .await?;

    let outcome = agent.prompt_and_wait("Delete the temporary files.").await?;
    println!("{}", outcome.text);
    agent.stop().await;
    Ok(())
}

fn ask(dialog: &Dialog) -> std::io::Result<Answer> {
    println!("\n{}", dialog.question.title());
    match &dialog.question {
        Question::Confirm { message, .. } => {
            println!("{message}");
            Ok(Answer::Confirmed(read("yes or no?")?.is_some_and(|line| line.starts_with('y'))))
        }
        Question::Select { options, .. } => {
            for (index, option) in options.iter().enumerate() {
                println!("  {index}: {option}");
            }
            let choice = read("number?")?.and_then(|line| line.parse::<usize>().ok());
            let chosen = choice.and_then(|index| options.get(index));
            Ok(chosen.cloned().map_or(Answer::Cancelled, Answer::Value))
        }
        _ => Ok(read("text?")?.map_or(Answer::Cancelled, Answer::Value)),
    }
}

/// A line from the terminal; `None` when it is empty.
fn read(question: &str) -> std::io::Result<Option<String>> {
    print!("{question} ");
    std::io::stdout().flush()?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(Some(line.trim().to_owned()).filter(|line| !line.is_empty()))
}
