//! Runs and their outcomes.

use sampi_client::protocol::commands::{Disposition, Prompt, StreamingBehavior};
use sampi_client::protocol::data::StopReason;
use sampi_client::{EventItem, RpcClient, RunOutcome};
use serde_json::{Value, json};

use crate::peer::{Peer, assistant, event, failure, message, pair, queue, response, settled, started, user};

fn steering(text: &str) -> Prompt {
    Prompt {
        message: text.to_owned(),
        streaming_behavior: Some(StreamingBehavior::Steer),
        ..Prompt::default()
    }
}

async fn outcome_of(records: impl FnOnce(&Value) -> Vec<Value>) -> RunOutcome {
    let (client, mut peer) = pair();
    let serve = async {
        let request = peer.read().await;
        let records = records(&request);
        peer.send(&records).await;
    };
    let (outcome, ()) = tokio::join!(client.prompt_and_wait("hi"), serve);
    outcome.unwrap()
}

#[tokio::test]
async fn a_response_and_a_whole_run_in_one_chunk_are_an_outcome() {
    let outcome = outcome_of(|request| {
        vec![
            started(request),
            event("agent_start"),
            message("start", user("hi")),
            message("end", user("hi")),
            message("start", assistant("", "pending")),
            message("end", assistant("Reading.", "toolUse")),
            message(
                "end",
                json!({
                    "role": "toolResult", "toolCallId": "c", "toolName": "t", "content": [], "isError": false,
                    "timestamp": 1, "usage": { "input": 100, "cost": { "total": 0.25 } },
                }),
            ),
            message("end", assistant("Done.", "stop")),
            json!({ "type": "agent_end", "messages": [], "willRetry": false }),
            settled(),
        ]
    })
    .await;
    assert_eq!(outcome.disposition, Disposition::Started);
    assert_eq!(outcome.text, "Done.");
    let roles: Vec<&str> = outcome.messages.iter().map(|message| message.role()).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "assistant"]);
    assert_eq!((outcome.usage.input, outcome.usage.output, outcome.usage.total_tokens), (120, 10, 30));
    assert_eq!(outcome.usage.cost.total, 2.25);
    assert_eq!(outcome.stop_reason, Some(StopReason::Stop));
    assert!(outcome.is_ok() && !outcome.aborted && outcome.error.is_none());
}

#[tokio::test]
async fn a_failed_answer_is_the_outcomes_error_unless_a_retry_succeeded() {
    let failed = |reason: &str| {
        let mut answer = assistant("", reason);
        answer["errorMessage"] = json!("Overloaded");
        message("end", answer)
    };
    let outcome =
        outcome_of(|request| vec![started(request), event("agent_start"), failed("error"), settled()]).await;
    assert_eq!(outcome.error.as_deref(), Some("Overloaded"));
    assert_eq!(outcome.stop_reason, Some(StopReason::Error));
    let outcome = outcome_of(|request| {
        vec![
            started(request),
            event("agent_start"),
            failed("error"),
            json!({ "type": "agent_end", "messages": [], "willRetry": true }),
            event("agent_start"),
            message("end", assistant("made it", "stop")),
            settled(),
        ]
    })
    .await;
    assert!(outcome.is_ok());
    assert_eq!((outcome.text.as_str(), outcome.messages.len()), ("made it", 2));
}

#[tokio::test]
async fn an_aborted_run_is_an_outcome_that_says_so() {
    let outcome = outcome_of(|request| {
        vec![
            started(request),
            message("end", assistant("half", "aborted")),
            json!({ "type": "agent_settled", "aborted": true }),
        ]
    })
    .await;
    assert!(outcome.aborted && !outcome.is_ok());
    assert_eq!(outcome.text, "half");
}

#[tokio::test]
async fn a_handled_prompt_returns_at_once() {
    let outcome = outcome_of(|request| vec![response(request, json!({ "disposition": "handled" }))]).await;
    assert_eq!(outcome.disposition, Disposition::Handled);
    assert!(outcome.messages.is_empty() && outcome.is_ok());
}

#[tokio::test]
async fn a_refused_prompt_is_an_error_and_nothing_waits() {
    let (client, mut peer) = pair();
    let serve = async {
        let request = peer.read().await;
        peer.send(&[failure(&request, "No API key found for the selected model.", "no_model")]).await;
    };
    let (outcome, ()) = tokio::join!(client.prompt_and_wait("hi"), serve);
    assert!(outcome.unwrap_err().as_command().is_some());
    assert_eq!(client.pending_calls(), 0);
}

#[tokio::test]
async fn the_settling_of_the_run_before_does_not_end_this_one() {
    let outcome = outcome_of(|request| {
        vec![
            message("end", assistant("of the run before", "stop")),
            settled(),
            started(request),
            event("agent_start"),
            message("end", assistant("mine", "stop")),
            settled(),
        ]
    })
    .await;
    assert_eq!((outcome.text.as_str(), outcome.messages.len()), ("mine", 1));
}

#[tokio::test]
async fn a_run_is_a_stream_that_ends_when_it_settles_and_can_be_steered() {
    let (client, mut peer) = pair();
    let serve = async {
        let request = peer.read().await;
        assert_eq!(request["message"], "go");
        peer.send(&[started(&request), event("agent_start")]).await;
        let steer = peer.serve("steer", json!({ "disposition": "queued" })).await;
        assert_eq!(steer["message"], "left");
        peer.serve("follow_up", json!({ "disposition": "queued" })).await;
        let abort = peer.read().await;
        peer.send(&[
            json!({ "type": "agent_settled", "aborted": true }),
            response(&abort, json!(null)),
            event("agent_start"),
        ])
        .await;
    };
    let drive = async {
        let mut run = client.run("go").await.unwrap();
        assert_eq!(run.disposition(), Disposition::Started);
        assert_eq!(run.next().await.unwrap().as_event().unwrap().name(), "agent_start");
        run.steer("left").await.unwrap();
        run.follow_up("then").await.unwrap();
        run.abort().await.unwrap();
        assert_eq!(run.next().await.unwrap().as_event().unwrap().name(), "agent_settled");
        assert!(run.next().await.is_none());
        run.outcome().await.unwrap()
    };
    let (outcome, ()) = tokio::join!(drive, serve);
    assert!(outcome.aborted);
}

#[tokio::test]
async fn an_unread_stream_does_not_spoil_the_outcome() {
    let (client, mut peer) = pair();
    let serve = async {
        let request = peer.read().await;
        peer.send(&[started(&request)]).await;
        for index in 0..10_000 {
            peer.send(&[message("end", assistant(&index.to_string(), "stop"))]).await;
        }
        peer.send(&[settled()]).await;
    };
    let drive = async {
        let mut run = client.run("x").await.unwrap();
        let outcome = run.outcome().await.unwrap();
        assert!(matches!(run.next().await, Some(EventItem::Lagged(_))));
        outcome
    };
    let (outcome, ()) = tokio::join!(drive, serve);
    assert_eq!((outcome.messages.len(), outcome.text.as_str()), (10_000, "9999"));
}

#[tokio::test]
async fn the_death_of_the_peer_fails_the_outcome() {
    let (client, mut peer) = pair();
    let serve = async {
        let request = peer.read().await;
        peer.send(&[started(&request), event("agent_start")]).await;
        peer.close_output().await;
    };
    let (outcome, ()) = tokio::join!(client.prompt_and_wait("hi"), serve);
    assert!(outcome.unwrap_err().as_exit().is_some());
}

/// A client with a queued prompt, and the peer after it answered.
async fn queued(before: &[&str]) -> (RpcClient, Peer, tokio::task::JoinHandle<RunOutcome>) {
    let (client, mut peer) = pair();
    let waiting = client.clone();
    let run = tokio::spawn(async move { waiting.prompt_and_wait_with(steering("mine")).await.unwrap() });
    let request = peer.read().await;
    assert_eq!(request["streamingBehavior"], "steer");
    let mut steering = before.to_vec();
    steering.push("mine");
    peer.send(&[queue(&steering, &[]), response(&request, json!({ "disposition": "queued" }))]).await;
    (client, peer, run)
}

#[tokio::test]
async fn a_queued_prompt_settles_with_the_run_that_delivers_it() {
    let (_client, mut peer, run) = queued(&["other"]).await;
    peer.send(&[
        message("end", assistant("before", "stop")),
        queue(&["mine"], &[]),
        message("start", user("other")),
        message("end", user("other")),
        message("end", assistant("to the other", "stop")),
        queue(&[], &[]),
        message("start", user("mine")),
        message("end", user("mine")),
        message("end", assistant("to mine", "stop")),
        settled(),
    ])
    .await;
    let outcome = run.await.unwrap();
    assert_eq!(outcome.disposition, Disposition::Queued);
    assert_eq!((outcome.text.as_str(), outcome.messages.len()), ("to mine", 2));
}

#[tokio::test]
async fn a_queued_prompt_that_outlives_an_abort_settles_with_the_next_run() {
    let (_client, mut peer, run) = queued(&[]).await;
    peer.send(&[
        message("end", assistant("cut", "aborted")),
        json!({ "type": "agent_settled", "aborted": true }),
        event("agent_start"),
        queue(&[], &[]),
        message("start", user("mine")),
        message("end", user("mine")),
        message("end", assistant("late", "stop")),
        settled(),
    ])
    .await;
    let outcome = run.await.unwrap();
    assert_eq!((outcome.text.as_str(), outcome.aborted), ("late", false));
}

#[tokio::test]
async fn a_queued_prompt_that_is_cleared_ends_with_the_run_or_at_once_when_idle() {
    let removed = "the queued message was removed before it was delivered";
    let (_client, mut peer, run) = queued(&[]).await;
    peer.send(&[queue(&[], &[]), message("end", assistant("x", "stop")), settled()]).await;
    assert_eq!(run.await.unwrap().error.as_deref(), Some(removed));
    let (_client, mut peer, run) = queued(&[]).await;
    peer.send(&[json!({ "type": "agent_settled", "aborted": true }), queue(&[], &[])]).await;
    assert_eq!(run.await.unwrap().error.as_deref(), Some(removed));
}

#[tokio::test]
async fn waiting_for_idle_returns_at_once_on_an_idle_session_and_else_with_the_settling() {
    let state = |streaming: bool| {
        json!({
            "thinkingLevel": "off", "isStreaming": streaming, "isCompacting": false, "steeringMode": "all",
            "followUpMode": "all", "sessionId": "s", "autoCompactionEnabled": true, "messageCount": 0,
            "pendingMessageCount": 0,
        })
    };
    let (client, mut peer) = pair();
    let (idle, _) = tokio::join!(client.wait_for_idle(), peer.serve("get_state", state(false)));
    idle.unwrap();
    let serve = async {
        peer.serve("get_state", state(true)).await;
        peer.send(&[settled()]).await;
    };
    let (idle, ()) = tokio::join!(client.wait_for_idle(), serve);
    idle.unwrap();
}

#[tokio::test]
async fn a_run_tells_that_it_has_settled_also_when_nobody_reads_its_events() {
    let (client, mut peer) = pair();
    let serve = async {
        let request = peer.read().await;
        peer.send(&[started(&request), event("agent_start")]).await;
    };
    let (run, ()) = tokio::join!(client.run("hi"), serve);
    let run = run.unwrap();
    assert!(!run.is_settled());
    peer.send(&[settled()]).await;
    run.outcome().await.unwrap();
    assert!(run.is_settled());
    assert!(run.split().1.is_settled());
}
