//! The client against a real agent: Sampi, or Pi.
//!
//! Opt-in: `SAMPI_TEST_AGENT="node …/cli.js" cargo nextest run -p sampi-client --run-ignored only real`.

use std::io::{Read, Write};
use std::net::TcpListener;

use sampi_client::protocol::commands::{Disposition, Prompt, StreamingBehavior};
use sampi_client::protocol::data::{AgentMessage, StopReason};
use sampi_client::protocol::events::SessionEvent;
use sampi_client::{
    Assembled, EventItem, ExitReason, MessageAssembler, RpcClient, RpcClientBuilder, SessionChoice,
};
use serde_json::json;
use tempfile::TempDir;

/// An agent with an empty configuration that knows one model, which a server of this test plays.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = json!({ "id": "m", "name": "Played", "contextWindow": 100_000, "maxTokens": 4096 });
        let provider = json!({
            "api": "openai-completions", "apiKey": "k", "baseUrl": model_server(), "models": [model],
        });
        let models = json!({ "providers": { "played": provider } });
        std::fs::write(folder.path().join("models.json"), models.to_string()).unwrap();
        Self { folder }
    }

    /// The agent without a model chosen.
    fn bare(&self) -> RpcClientBuilder {
        let command = std::env::var("SAMPI_TEST_AGENT").expect("SAMPI_TEST_AGENT names the agent to test");
        let mut words = command.split_whitespace();
        RpcClient::builder()
            .program(words.next().unwrap())
            .program_args(words)
            .cwd(self.folder.path())
            .env("HOME", self.folder.path())
            .env("PI_CODING_AGENT_DIR", self.folder.path())
            .env("PI_OFFLINE", "1")
    }

    async fn start(&self) -> RpcClient {
        self.bare().provider("played").model("m").spawn().await.unwrap()
    }
}

/// Answers every request with `answer N`, where N counts the assistant's messages so far; slowly when the
/// prompt asks for it.
fn model_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let Ok(mut connection) = connection else { continue };
            std::thread::spawn(move || {
                let mut request = Vec::new();
                let mut buffer = [0; 8192];
                let body = loop {
                    let length = connection.read(&mut buffer)?;
                    request.extend_from_slice(&buffer[..length]);
                    let text = String::from_utf8_lossy(&request).into_owned();
                    let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                    let expected = head
                        .to_ascii_lowercase()
                        .split_once("content-length:")
                        .and_then(|(_, rest)| rest.lines().next()?.trim().parse::<usize>().ok());
                    if length == 0 || expected.is_none_or(|expected| body.len() >= expected) {
                        break body.to_owned();
                    }
                };
                let count = body.matches(r#""role":"assistant""#).count();
                let chunk = |delta: serde_json::Value, finish: serde_json::Value| {
                    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
                    format!("data: {}\n\n", json!({ "id": "c", "model": "m", "choices": [choice] }))
                };
                connection.write_all(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
                )?;
                connection.write_all(chunk(json!({ "content": "answer " }), json!(null)).as_bytes())?;
                if count == 0 && body.contains("be slow") {
                    std::thread::sleep(std::time::Duration::from_secs(2));
                }
                connection
                    .write_all(chunk(json!({ "content": count.to_string() }), json!(null)).as_bytes())?;
                connection.write_all(chunk(json!({}), json!("stop")).as_bytes())?;
                connection.write_all(b"data: [DONE]\n\n")
            });
        }
    });
    url
}

#[tokio::test]
#[ignore = "needs SAMPI_TEST_AGENT"]
async fn real_runs_stream_assemble_and_settle() {
    let bench = Bench::new();
    let agent = bench.start().await;
    let mut run = agent.run("hello").await.unwrap();
    let mut assembler = MessageAssembler::new();
    let mut live = Vec::new();
    while let Some(item) = run.next().await {
        let EventItem::Event(event) = item else { panic!("{item:?}") };
        assert!(!matches!(*event, SessionEvent::Unknown(_)), "{event:?}");
        if matches!(assembler.apply(&event), Assembled::Block(_)) {
            live.push(assembler.message().unwrap().text());
        }
    }
    let outcome = run.outcome().await.unwrap();
    assert_eq!((outcome.text.as_str(), outcome.stop_reason), ("answer 0", Some(StopReason::Stop)));
    assert_eq!(assembler.message().unwrap().text(), outcome.text);
    assert!(live.iter().all(|text| outcome.text.starts_with(text.as_str())), "{live:?}");
    let outcome = agent.prompt_and_wait("again").await.unwrap();
    assert_eq!(outcome.text, "answer 1");
    assert_eq!(agent.get_last_assistant_text().await.unwrap().as_deref(), Some("answer 1"));
    agent.wait_for_idle().await.unwrap();
    let tree = agent.get_tree().await.unwrap();
    let entries = agent.get_entries().await.unwrap();
    assert_eq!(tree.len(), entries.entries.len());
    assert_eq!(tree.leaf_id(), entries.leaf_id.as_ref());
    assert_eq!(agent.get_session_stats().await.unwrap().assistant_messages, 2);
}

#[tokio::test]
#[ignore = "needs SAMPI_TEST_AGENT"]
async fn real_queued_prompts_settle_with_their_run_and_an_abort_is_an_outcome() {
    let bench = Bench::new();
    let agent = bench.start().await;
    let mut run = agent.run("be slow").await.unwrap();
    while let Some(item) = run.next().await {
        if item.as_event().is_some_and(|event| event.name() == "message_update") {
            break;
        }
    }
    let prompt = |behavior| Prompt {
        message: "queued".to_owned(),
        streaming_behavior: Some(behavior),
        ..Prompt::default()
    };
    let busy = agent.prompt("refused").await.unwrap_err();
    assert!(busy.as_command().unwrap().message.contains("streamingBehavior"), "{busy}");
    let (steered, followed) = tokio::join!(
        agent.prompt_and_wait_with(prompt(StreamingBehavior::Steer)),
        agent.prompt_and_wait_with(prompt(StreamingBehavior::FollowUp)),
    );
    for (outcome, messages) in [(steered.unwrap(), 4), (followed.unwrap(), 2)] {
        assert_eq!((outcome.disposition, outcome.text.as_str()), (Disposition::Queued, "answer 2"));
        assert_eq!(outcome.messages.len(), messages);
        assert!(matches!(*outcome.messages[0], AgentMessage::User(_)));
    }
    agent.new_session().await.unwrap();
    let mut run = agent.run("be slow").await.unwrap();
    while run
        .next()
        .await
        .is_some_and(|item| item.as_event().is_none_or(|event| event.name() != "message_update"))
    {}
    run.abort().await.unwrap();
    assert!(run.outcome().await.unwrap().aborted);
}

#[tokio::test]
#[ignore = "needs SAMPI_TEST_AGENT"]
async fn real_commands_give_typed_results() {
    let bench = Bench::new();
    let agent = bench.start().await;
    let mut events = agent.subscribe();
    let call = agent.bash("printf 'a\\nb\\n'; exit 4");
    let id = call.id().to_owned();
    let result = call.await.unwrap();
    assert_eq!((result.output.as_str(), result.exit_code), ("a\nb\n", Some(4)));
    let Some(EventItem::Event(event)) = events.next().await else { panic!() };
    let SessionEvent::BashExecutionUpdate(update) = &*event else { panic!("{event:?}") };
    assert_eq!(update.id.as_ref().map(|id| id.json()), Some(json!(id).to_string().as_str()));
    agent.set_session_name("named").await.unwrap();
    assert_eq!(agent.get_state().await.unwrap().session_name.as_deref(), Some("named"));
    assert_eq!(agent.get_available_models().await.unwrap()[0].id, "m");
    assert!(agent.cycle_model().await.unwrap().is_none());
    agent.get_commands().await.unwrap();
    agent.get_fork_messages().await.unwrap();
    agent.get_messages().await.unwrap();
    agent.get_available_thinking_levels().await.unwrap();
    let cleared = agent.clear_queue().await.unwrap();
    assert!(cleared.steering.is_empty() && cleared.follow_up.is_empty());
    agent.abort().await.unwrap();
    let unknown = agent.call_raw("foobar", json!({})).await.unwrap_err();
    assert_eq!(unknown.to_string(), "foobar failed: Unknown command: foobar");
}

#[tokio::test]
#[ignore = "needs SAMPI_TEST_AGENT"]
async fn real_agents_stop_and_start_again() {
    let bench = Bench::new();
    let agent = bench.start().await;
    assert_eq!(agent.prompt_and_wait("hello").await.unwrap().text, "answer 0");
    let exit = agent.stop().await;
    assert_eq!((exit.code(), &exit.reason), (Some(0), &ExitReason::Stopped), "{exit}");
    assert!(agent.get_state().await.unwrap_err().as_exit().is_some());
    agent.restart().await.unwrap();
    assert_eq!(agent.prompt_and_wait("hello").await.unwrap().text, "answer 0");
    drop(agent);
    let agent =
        bench.bare().provider("played").model("m").session(SessionChoice::Continue).spawn().await.unwrap();
    assert_eq!(agent.prompt_and_wait("hello").await.unwrap().text, "answer 1");
}

#[tokio::test]
#[ignore = "needs SAMPI_TEST_AGENT"]
async fn real_prompts_without_a_model_fail_once() {
    let bench = Bench::new();
    std::fs::write(bench.folder.path().join("models.json"), r#"{"providers":{}}"#).unwrap();
    let agent = bench.bare().session(SessionChoice::InMemory).spawn().await.unwrap();
    assert!(agent.get_available_models().await.unwrap().is_empty());
    let error = agent.prompt_and_wait("hi").await.unwrap_err();
    assert!(error.as_command().unwrap().message.starts_with("No "), "{error}");
    assert_eq!(agent.pending_calls(), 0);
}
