//! Steering and follow-up messages.

use sampi_tests::fake_llm::{FakeLlm, Gate, text, tool_call};
use sampi_tests::harness::{Daemon, text_of_content};
use serde_json::{Value, json};

/// A daemon whose model has called a tool and is held before the end of that answer.
async fn held_daemon(llm: &FakeLlm) -> (Daemon, Gate) {
    let gate = Gate::new();
    llm.push(tool_call("c1", "bash", json!({ "command": "echo x" })).wait(&gate));
    let daemon = Daemon::builder(llm).spawn().await;
    daemon.prompt("go").await;
    gate.reached().await;
    (daemon, gate)
}

async fn queue(daemon: &Daemon, kind: &str, message: &str) {
    let data = daemon.ok(json!({ "type": kind, "message": message })).await;
    assert_eq!(data, json!({ "disposition": "queued" }));
}

fn queue_updates(daemon: &Daemon) -> Vec<Value> {
    let updates = daemon.all(json!({ "type": "queue_update" }));
    updates.into_iter().map(|event| json!([event["steering"], event["followUp"]])).collect()
}

fn user_messages(messages: &[Value]) -> Vec<String> {
    let users = messages.iter().filter(|message| message["role"] == "user");
    users.map(|message| text_of_content(&message["content"])).collect()
}

#[tokio::test]
async fn steering_comes_before_the_next_request_and_follow_ups_when_the_agent_would_stop() {
    let llm = FakeLlm::start().await;
    let (daemon, gate) = held_daemon(&llm).await;
    llm.push_all([text("after the tool"), text("after steer two"), text("after the follow-up")]);
    queue(&daemon, "steer", "steer one").await;
    queue(&daemon, "steer", "steer two").await;
    queue(&daemon, "follow_up", "follow one").await;
    assert_eq!(daemon.state().await["pendingMessageCount"], 3);
    gate.open();
    daemon.settled().await;
    let requests = llm.requests();
    assert_eq!(requests[1].user_texts(), ["go", "steer one"]);
    assert_eq!(requests[2].user_texts(), ["go", "steer one", "steer two"]);
    assert_eq!(requests[3].user_texts(), ["go", "steer one", "steer two", "follow one"]);
    assert_eq!(requests.len(), 4);
    assert_eq!(daemon.state().await["pendingMessageCount"], 0);
    daemon.finish().await;
    llm.finish();
}

// case 30
#[tokio::test]
async fn every_change_of_a_queue_is_reported_with_both_whole_queues() {
    let llm = FakeLlm::start().await;
    let (daemon, gate) = held_daemon(&llm).await;
    llm.push_all([text("a"), text("b")]);
    queue(&daemon, "steer", "s1").await;
    queue(&daemon, "follow_up", "f1").await;
    gate.open();
    daemon.settled().await;
    let expected = [json!([["s1"], []]), json!([["s1"], ["f1"]]), json!([[], ["f1"]]), json!([[], []])];
    assert_eq!(queue_updates(&daemon), expected);
    daemon.finish().await;
    llm.finish();
}

// case 30
#[tokio::test]
async fn clear_queue_gives_back_what_was_queued_and_none_of_it_is_delivered() {
    let llm = FakeLlm::start().await;
    let (daemon, gate) = held_daemon(&llm).await;
    llm.push(text("after"));
    queue(&daemon, "steer", "s1").await;
    queue(&daemon, "follow_up", "f1").await;
    let cleared = daemon.ok(json!({ "type": "clear_queue" })).await;
    assert_eq!(cleared, json!({ "steering": ["s1"], "followUp": ["f1"] }));
    assert_eq!(queue_updates(&daemon).last().unwrap(), &json!([[], []]));
    gate.open();
    daemon.settled().await;
    assert_eq!(user_messages(&daemon.messages().await), ["go"]);
    daemon.finish().await;
    llm.finish();
}

// case 30
#[tokio::test]
async fn abort_keeps_what_is_queued_and_the_next_prompt_delivers_it() {
    let llm = FakeLlm::start().await;
    let (daemon, _gate) = held_daemon(&llm).await;
    queue(&daemon, "steer", "s1").await;
    queue(&daemon, "follow_up", "f1").await;
    daemon.ok(json!({ "type": "abort" })).await;
    daemon.wait_for(json!({ "type": "agent_settled", "aborted": true })).await;
    assert_eq!(daemon.state().await["pendingMessageCount"], 2);
    assert_eq!(user_messages(&daemon.messages().await), ["go"]);
    llm.push_all([text("a"), text("b")]);
    daemon.run("next").await;
    assert_eq!(user_messages(&daemon.messages().await), ["go", "next", "s1", "f1"]);
    daemon.finish().await;
    llm.finish();
}

// case 31
#[tokio::test]
async fn a_message_between_abort_and_settled_is_delivered_kept_or_refused_and_never_lost() {
    let messages = [
        json!({ "id": "m", "type": "steer", "message": "between" }),
        json!({ "id": "m", "type": "follow_up", "message": "between" }),
        json!({ "id": "m", "type": "prompt", "message": "between" }),
        json!({ "id": "m", "type": "prompt", "message": "between", "streamingBehavior": "steer" }),
        json!({ "id": "m", "type": "prompt", "message": "between", "streamingBehavior": "followUp" }),
    ];
    for message in messages {
        let llm = FakeLlm::start().await;
        // The command ignores signals that ask, so that the abort takes its time.
        let stubborn = "trap '' TERM INT HUP; echo ready; while :; do sleep 0.05; done";
        llm.push(tool_call("c1", "bash", json!({ "command": stubborn })));
        let daemon = Daemon::builder(&llm).spawn().await;
        daemon.prompt("go").await;
        daemon.tool_output("c1", |output| output.contains("ready")).await;
        llm.on_request(|_| text("later"));
        // One write, so that the message stands behind the abort in the daemon's input.
        let both = format!("{}\n{message}\n", json!({ "id": "a", "type": "abort" }));
        daemon.send_raw(both.as_bytes()).await;
        let response = daemon.response(&json!("m")).await;
        assert_eq!(daemon.response(&json!("a")).await["success"], true);
        let refused = response["success"] == false;
        if response["data"]["disposition"] == "started" {
            daemon.wait_for(json!({ "type": "agent_settled", "aborted": true })).await;
            daemon.settled().await;
        } else {
            daemon.settled().await;
        }
        let delivered = user_messages(&daemon.messages().await).contains(&"between".to_owned());
        let cleared = daemon.ok(json!({ "type": "clear_queue" })).await;
        let kept = cleared["steering"] == json!(["between"]) || cleared["followUp"] == json!(["between"]);
        assert_eq!(
            [refused, delivered, kept].into_iter().filter(|is| *is).count(),
            1,
            "{message}: refused {refused}, delivered {delivered}, kept {kept}"
        );
        daemon.finish().await;
    }
}

#[tokio::test]
async fn in_the_mode_all_a_queue_is_delivered_at_once() {
    let llm = FakeLlm::start().await;
    let gate = Gate::new();
    llm.push(tool_call("c1", "bash", json!({ "command": "echo x" })).wait(&gate));
    llm.push_all([text("a"), text("b")]);
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.ok(json!({ "type": "set_steering_mode", "mode": "all" })).await;
    daemon.ok(json!({ "type": "set_follow_up_mode", "mode": "all" })).await;
    daemon.prompt("go").await;
    gate.reached().await;
    for (kind, message) in [("steer", "s1"), ("steer", "s2"), ("follow_up", "f1"), ("follow_up", "f2")] {
        queue(&daemon, kind, message).await;
    }
    gate.open();
    daemon.settled().await;
    let requests = llm.requests();
    assert_eq!(requests[1].user_texts(), ["go", "s1", "s2"]);
    assert_eq!(requests[2].user_texts(), ["go", "s1", "s2", "f1", "f2"]);
    let state = daemon.state().await;
    assert_eq!((&state["steeringMode"], &state["followUpMode"]), (&json!("all"), &json!("all")));
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn messages_queued_when_idle_wait_for_the_next_prompt() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("hey"), text("there")]);
    let daemon = Daemon::builder(&llm).spawn().await;
    queue(&daemon, "steer", "s1").await;
    queue(&daemon, "follow_up", "f1").await;
    assert_eq!(daemon.state().await["pendingMessageCount"], 2);
    assert!(daemon.all(json!({ "type": "agent_start" })).is_empty());
    daemon.run("go").await;
    let requests = llm.requests();
    assert_eq!(requests[0].user_texts(), ["go", "s1"]);
    assert_eq!(requests[1].user_texts(), ["go", "s1", "f1"]);
    daemon.finish().await;
    llm.finish();
}
