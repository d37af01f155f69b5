//! What subscribers of an embedded session hear: snapshots of the growing message, and what a slow one gets.

use sampi_protocol::data::ContentBlock;
use sampi_protocol::events::SessionEvent;
use sampi_server::embed::{AgentSession, EVENT_CAPACITY, Event};
use sampi_tests::fake_llm::{FakeLlm, Gate, text, thinking};
use sampi_tests::harness::{Daemon, within_timeout};
use serde_json::json;

use crate::embedded::{prompting, rest};

async fn session(llm: &FakeLlm) -> (AgentSession, sampi_tests::harness::Workspace) {
    let (builder, workspace) = Daemon::builder(llm).embed();
    (builder.in_memory().build().await.unwrap(), workspace)
}

#[tokio::test]
async fn every_update_has_the_message_so_far() {
    let llm = FakeLlm::start().await;
    let (one, two) = (Gate::new(), Gate::new());
    llm.push(
        text("")
            .text_deltas(["Hel"])
            .wait(&one)
            .text_deltas(["lo", " world"])
            .tool_call("c1", "ls", json!({ "path": "." }))
            .wait(&two),
    );
    llm.push(text("Done."));
    let (session, _workspace) = session(&llm).await;
    let mut events = session.subscribe();
    let run = prompting(&session, "begin");
    let mut so_far = String::new();
    let mut seen = Vec::new();
    let mut arguments = String::new();
    while let Some(event) = within_timeout("the next event", events.next()).await {
        match event {
            Event::Message(progress) => {
                so_far.push_str(&progress.text_delta());
                assert!(so_far.ends_with(&progress.text()) || progress.text() == so_far, "{so_far}");
                if progress.text().ends_with("Hel") {
                    one.open();
                }
                if let Some(text) = progress.arguments_text(1).filter(|text| !text.is_empty()) {
                    arguments = text;
                    two.open();
                }
                seen.push(progress);
            }
            Event::Session(event) if matches!(&*event, SessionEvent::AgentSettled(_)) => break,
            Event::Session(_) => {}
            other => panic!("{other:?}"),
        }
    }
    run.await.unwrap().unwrap();
    assert_eq!(so_far, "Hello worldDone.");
    assert!(arguments.starts_with("{\"path\""), "{arguments}");
    // What an event showed stays what it was, however far the message went.
    let first = seen.iter().find(|progress| progress.text() == "Hel").expect("the first delta's snapshot");
    assert_eq!(first.message().content.len(), 1);
    let last = seen.iter().rev().find(|progress| progress.text() == "Hello world").unwrap();
    assert!(matches!(last.message().content.last(), Some(ContentBlock::ToolCall(call)) if call.name == "ls"));
    assert!(
        first.read(|message| matches!(&message.content[0], ContentBlock::Text(text) if text.text == "Hel"))
    );
    session.dispose().await;
    llm.finish();
}

#[tokio::test]
async fn who_subscribes_in_the_middle_of_a_message_gets_the_whole_of_it() {
    let llm = FakeLlm::start().await;
    let gate = Gate::new();
    llm.push(thinking("Hm.").text("The first half").wait(&gate).text(" and the second"));
    let (session, _workspace) = session(&llm).await;
    let mut early = session.subscribe();
    let run = prompting(&session, "begin");
    loop {
        let event = within_timeout("the first half", early.next()).await.unwrap();
        if event.as_message().is_some_and(|progress| progress.text().ends_with("half")) {
            break;
        }
    }
    let mut late = session.subscribe();
    gate.open();
    let first = within_timeout("an event", late.next()).await.unwrap();
    let first = first.as_message().unwrap().message();
    assert!(first.text().starts_with("The first half"), "{first:?}");
    assert!(matches!(&first.content[0], ContentBlock::Thinking(block) if block.thinking == "Hm."));
    run.await.unwrap().unwrap();
    session.dispose().await;
    llm.finish();
}

/// A session of the demo model.
async fn demo() -> AgentSession {
    let builder = AgentSession::builder().model("demo/demo").in_memory().no_tools();
    let environment =
        sampi_server::resources::Environment::new("/nonexistent", Vec::<(String, String)>::new());
    builder.environment(environment).build().await.unwrap()
}

#[tokio::test]
async fn twenty_thousand_deltas_wait_as_one_event_for_a_slow_subscriber_and_none_of_them_is_lost() {
    let session = demo().await;
    let slow = session.subscribe();
    let script = json!({ "steps": [{ "text": "Begin. ", "deltas": 20_000, "deltaSize": 4 }] });
    let outcome = session.prompt(format!("@script {script}")).await.unwrap();
    session.dispose().await;
    let events = rest(slow).await;
    let names: Vec<&str> = events.iter().filter_map(Event::as_session).map(SessionEvent::name).collect();
    assert_eq!(names.iter().filter(|name| **name == "message_end").count(), outcome.messages.len());
    assert_eq!(names.last(), Some(&"agent_settled"));
    let progress: Vec<_> = events.iter().filter_map(Event::as_message).collect();
    assert_eq!(progress.len(), 1, "what is new of one message is one event");
    assert!(progress[0].changes().len() > 20_000);
    assert_eq!(progress[0].text_delta(), outcome.text());
    assert_eq!(progress[0].text(), outcome.text());
}

#[tokio::test]
async fn a_subscriber_that_keeps_up_looks_at_each_of_twenty_thousand_snapshots() {
    let session = demo().await;
    let mut events = session.subscribe();
    let script = json!({ "steps": [{ "text": "Begin. ", "deltas": 20_000, "deltaSize": 4 }] });
    let prompt = format!("@script {script}");
    let run = tokio::spawn({
        let session = session.clone();
        async move { session.prompt(prompt).await }
    });
    let mut length = 0;
    let mut looked = 0;
    while let Some(event) = within_timeout("the next event", events.next()).await {
        match &event {
            Event::Message(progress) => {
                let now = progress.read(|message| match message.content.first() {
                    Some(ContentBlock::Text(block)) => block.text.len(),
                    _ => 0,
                });
                assert!(now >= length);
                (length, looked) = (now, looked + progress.changes().len());
            }
            Event::Session(event) if matches!(**event, SessionEvent::AgentSettled(_)) => break,
            _ => {}
        }
    }
    let outcome = run.await.unwrap().unwrap();
    assert_eq!(length, outcome.text().len());
    assert!(looked > 20_000);
    session.dispose().await;
}

#[tokio::test]
async fn beyond_the_capacity_the_oldest_events_go_and_it_is_told_how_many() {
    let session = demo().await;
    let mut slow = session.subscribe();
    let too_many = EVENT_CAPACITY + 30;
    for _ in 0..too_many {
        session.clear_queue().await.unwrap();
    }
    session.prompt("@script {\"steps\": [{\"text\": \"x\"}]}").await.unwrap();
    session.dispose().await;
    let Some(Event::Lagged(missing)) = slow.next().await else { panic!("not told") };
    let events = rest(slow).await;
    assert_eq!(events.len(), EVENT_CAPACITY);
    assert!(missing >= 30);
    assert_eq!(events.last().unwrap().as_session().unwrap().name(), "agent_settled");
}
