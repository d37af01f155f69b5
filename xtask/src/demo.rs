//! The main job, end to end and offline: a host spawns the daemon, sends a prompt, and the agent reads a
//! file, edits it, runs it, and settles.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use sampi_client::protocol::commands::SessionState;
use sampi_client::protocol::data::{AgentMessage, ContentBlock};
use sampi_client::protocol::events::SessionEvent;
use sampi_client::protocol::stream::AssistantMessageEvent;
use sampi_client::{EventItem, RpcClient, RunOutcome};
use serde_json::{Value, json};

use crate::checks::{Profile, build_daemon};
use crate::scratch::Scratch;

const FILE: &str = "greet.sh";
const BEFORE: &str = "#!/bin/sh\n# Greets.\necho \"Hello, wrold\"\n";
const AFTER: &str = "#!/bin/sh\n# Greets.\necho \"Hello, world\"\n";
const PRINTED: &str = "Hello, world";

/// How long the whole job may take before the demo gives up.
const LIMIT: Duration = Duration::from_secs(60);

struct Options {
    profile: Profile,
    program: Option<PathBuf>,
    keep: bool,
}

pub(crate) fn run(args: lexopt::Parser) -> anyhow::Result<()> {
    let options = options(args)?;
    let program = match options.program {
        Some(program) => program,
        None => build_daemon(options.profile)?,
    };
    let scratch = Scratch::new()?;
    let file = scratch.work().join(FILE);
    scratch.write(&file, BEFORE)?;

    let runtime = tokio::runtime::Runtime::new()?;
    let job = async { tokio::time::timeout(LIMIT, job(program, &scratch)).await };
    let (outcome, state) = runtime.block_on(job).context("the agent did not settle in time")??;

    let now = std::fs::read_to_string(&file).with_context(|| format!("could not read {}", file.display()))?;
    ensure!(now == AFTER, "{FILE} is not what it should be:\n{now}");
    check(&outcome)?;
    println!("\n{FILE} was really edited, its output is right, {} messages", outcome.messages.len());
    if let Some(session) = &state.session_file {
        let text = std::fs::read_to_string(session).with_context(|| format!("could not read {session}"))?;
        ensure!(text.contains(PRINTED), "the session file {session} lacks the tool's result");
        println!("session file: {session} ({} lines)", text.lines().count());
    }
    if options.keep {
        println!("kept: {}", scratch.keep().display());
    }
    Ok(())
}

fn options(mut args: lexopt::Parser) -> anyhow::Result<Options> {
    let mut options = Options { profile: Profile::Debug, program: None, keep: false };
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Long("release") => options.profile = Profile::Release,
            lexopt::Arg::Long("program") => options.program = Some(args.value()?.into()),
            lexopt::Arg::Long("keep") => options.keep = true,
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(options)
}

/// What the demo model answers, one step an answer.
fn prompt() -> String {
    let tool = |name: &str, args: Value| json!([{ "name": name, "args": args }]);
    let edit = json!([{ "oldText": "wrold", "newText": "world" }]);
    let steps = json!({ "steps": [
        {
            "thinking": "The greeting is said to be misspelt. I should look at the file first.",
            "text": "Let me look at the script.",
            "tools": tool("read", json!({ "path": FILE })),
        },
        {
            "text": "There it is: \"wrold\". I'll fix it.",
            "tools": tool("edit", json!({ "path": FILE, "edits": edit })),
        },
        {
            "text": "Now let me run it to be sure.",
            "tools": tool("bash", json!({ "command": format!("sh {FILE}") })),
        },
        { "text": format!("Done: {FILE} now prints \"{PRINTED}\".") },
    ] });
    format!("@script {steps}")
}

async fn job(program: PathBuf, scratch: &Scratch) -> anyhow::Result<(RunOutcome, SessionState)> {
    println!("starting {} --mode rpc --provider demo", program.display());
    let agent = scratch.place(RpcClient::builder().program(program).provider("demo")).spawn().await?;
    let state = agent.get_state().await?;
    println!("model: {}\n", state.model.as_ref().map_or("none", |model| model.name.as_str()));

    let mut run = agent.run(prompt()).await?;
    let mut view = View::default();
    while let Some(item) = run.next().await {
        view.show(&item);
    }
    let outcome = run.outcome().await?;
    let exit = agent.stop().await;
    ensure!(exit.code() == Some(0), "the daemon did not end well: {exit}");
    Ok((outcome, state))
}

fn check(outcome: &RunOutcome) -> anyhow::Result<()> {
    if let Some(error) = &outcome.error {
        bail!("the run failed: {error}");
    }
    ensure!(!outcome.aborted, "the run was aborted");
    ensure!(outcome.text.contains(PRINTED), "the last answer is not the scripted one: {:?}", outcome.text);
    let results = outcome.messages.iter().filter_map(|message| match &**message {
        AgentMessage::ToolResult(result) => Some(result),
        _ => None,
    });
    let results: Vec<_> = results.collect();
    let names: Vec<&str> = results.iter().map(|result| result.tool_name.as_str()).collect();
    ensure!(names == ["read", "edit", "bash"], "the tools that ran were {names:?}");
    ensure!(results.iter().all(|result| !result.is_error), "a tool failed");
    let printed = results.iter().filter(|result| result.tool_name == "bash").any(|result| {
        result.content.iter().filter_map(ContentBlock::as_text).any(|text| text.contains(PRINTED))
    });
    ensure!(printed, "the script did not print {PRINTED:?}");
    Ok(())
}

/// Shows events, deltas of one block in one line.
#[derive(Default)]
struct View {
    /// The head of the block that is being written.
    block: Option<&'static str>,
}

impl View {
    fn show(&mut self, item: &EventItem) {
        let EventItem::Event(event) = item else {
            self.line(&format!("{item:?}"));
            return;
        };
        match &**event {
            SessionEvent::MessageUpdate(update) => match &update.assistant_message_event {
                AssistantMessageEvent::TextDelta(delta) => self.delta("agent     ", &delta.delta),
                AssistantMessageEvent::ThinkingDelta(delta) => self.delta("thinking  ", &delta.delta),
                AssistantMessageEvent::TextEnd(_) | AssistantMessageEvent::ThinkingEnd(_) => self.end_block(),
                _ => {}
            },
            SessionEvent::MessageEnd(end) => {
                if let AgentMessage::User(message) = &*end.message {
                    let text = message.content.text();
                    self.line(&format!("user      {}", text.chars().take(60).collect::<String>()));
                }
            }
            SessionEvent::ToolExecutionStart(start) => {
                self.line(&format!("tool      {} {}", start.tool_name, Value::Object(start.args.clone())));
            }
            SessionEvent::ToolExecutionEnd(end) => {
                let text: String = end.result.content.iter().filter_map(ContentBlock::as_text).collect();
                let mark = if end.is_error { "failed" } else { "result" };
                for line in text.trim_end().lines().take(6) {
                    self.line(&format!("{mark}    {line}"));
                }
            }
            SessionEvent::AgentSettled(_) => self.line("settled"),
            _ => {}
        }
    }

    fn delta(&mut self, head: &'static str, text: &str) {
        if self.block != Some(head) {
            self.end_block();
            print!("{head}");
            self.block = Some(head);
        }
        print!("{}", text.replace('\n', "\n          "));
    }

    fn end_block(&mut self) {
        if self.block.take().is_some() {
            println!();
        }
    }

    fn line(&mut self, line: &str) {
        self.end_block();
        println!("{line}");
    }
}
