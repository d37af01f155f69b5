//! Dialogs of extensions.

use std::sync::Arc;
use std::time::Duration;

use sampi_client::{Answer, ApproveWhen, Ask, EventItem, Question, RpcClient};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::peer::{pair, pair_with};

fn dialog(id: &str, method: &str, rest: Value) -> Value {
    let mut request = json!({ "type": "extension_ui_request", "id": id, "method": method, "title": "t" });
    if let (Value::Object(request), Value::Object(rest)) = (&mut request, rest) {
        request.extend(rest);
    }
    request
}

fn cancelled(id: &str) -> Value {
    json!({ "type": "extension_ui_response", "id": id, "cancelled": true })
}

#[tokio::test]
async fn by_default_every_dialog_is_dismissed_at_once() {
    let (_client, mut peer) = pair();
    for (id, method, rest) in [
        ("a", "select", json!({ "options": ["x"] })),
        ("b", "confirm", json!({ "message": "m" })),
        ("c", "input", json!({})),
        ("d", "editor", json!({ "prefill": "p" })),
        // A kind that this version does not know may wait for an answer too.
        ("e", "hologram", json!({})),
    ] {
        peer.send(&[dialog(id, method, rest)]).await;
        assert_eq!(peer.read().await, cancelled(id));
    }
}

#[tokio::test]
async fn a_rule_approves_what_it_allows() {
    let handler = ApproveWhen::new(|dialog| match &dialog.question {
        Question::Confirm { message, .. } => !message.contains("rm -rf"),
        _ => true,
    });
    let (_client, mut peer) = pair_with(RpcClient::builder().ui_handler(handler));
    let expect = [
        ("a", "confirm", json!({ "message": "ls" }), json!({ "confirmed": true })),
        ("b", "confirm", json!({ "message": "rm -rf /" }), json!({ "cancelled": true })),
        ("c", "select", json!({ "options": ["Allow", "Block"] }), json!({ "value": "Allow" })),
        ("d", "editor", json!({ "prefill": "p" }), json!({ "value": "p" })),
        ("e", "input", json!({}), json!({ "cancelled": true })),
    ];
    for (id, method, rest, answer) in expect {
        peer.send(&[dialog(id, method, rest)]).await;
        let mut expected = json!({ "type": "extension_ui_response", "id": id });
        expected.as_object_mut().unwrap().extend(answer.as_object().unwrap().clone());
        assert_eq!(peer.read().await, expected);
    }
}

#[tokio::test]
async fn a_slow_answer_delays_neither_calls_nor_other_dialogs_and_a_panic_dismisses_its_own() {
    let gate = Arc::new(Notify::new());
    let opened = Arc::clone(&gate);
    let handler = Ask::new(move |dialog| {
        let gate = Arc::clone(&gate);
        async move {
            match dialog.question {
                Question::Input { .. } => {
                    assert_eq!(dialog.timeout, Some(Duration::from_millis(90_000)));
                    gate.notified().await;
                    Answer::Value("typed".to_owned())
                }
                Question::Confirm { .. } => panic!("a handler's own affair"),
                _ => Answer::Value("quick".to_owned()),
            }
        }
    });
    let (client, mut peer) = pair_with(RpcClient::builder().ui_handler(handler));
    peer.send(&[dialog("slow", "input", json!({ "timeout": 90_000 }))]).await;
    peer.send(&[dialog("quick", "select", json!({ "options": [] }))]).await;
    assert_eq!(peer.read().await["value"], "quick");
    peer.send(&[dialog("broken", "confirm", json!({ "message": "" }))]).await;
    assert_eq!(peer.read().await, cancelled("broken"));
    let (done, _) = tokio::join!(client.abort(), peer.serve("abort", json!(null)));
    done.unwrap();
    opened.notify_one();
    let answer = json!({ "type": "extension_ui_response", "id": "slow", "value": "typed" });
    assert_eq!(peer.read().await, answer);
}

#[tokio::test]
async fn a_dialog_over_the_frame_limit_is_dismissed_and_reported() {
    let (client, mut peer) = pair_with(RpcClient::builder().frame_limit(1000));
    let mut events = client.subscribe();
    let options = json!({ "options": ["x".repeat(10_000)] });
    peer.send(&[dialog("big", "select", options)]).await;
    assert_eq!(peer.read().await, cancelled("big"));
    // Its kind comes after the part that is kept.
    peer.raw(
        format!(r#"{{"id":"late kind","title":"{}","type":"extension_ui_request"}}"#, "x".repeat(10_000))
            + "\n",
    )
    .await;
    assert_eq!(peer.read().await, cancelled("late kind"));
    for _ in 0..2 {
        let Some(EventItem::Malformed(record)) = events.next().await else { panic!() };
        assert!(record.error.to_string().ends_with("frame limit of 1000"), "{}", record.error);
    }
}

#[tokio::test]
async fn a_dialog_over_the_frame_limit_whose_id_cannot_be_known_is_reported_as_one_that_waits() {
    let (client, mut peer) = pair_with(RpcClient::builder().frame_limit(1000));
    let mut events = client.subscribe();
    let title = "x".repeat(10_000);
    let record =
        format!(r#"{{"type":"extension_ui_request","method":"confirm","title":"{title}","id":"late"}}"#);
    peer.raw(record + "\n").await;
    let Some(EventItem::Malformed(record)) = events.next().await else { panic!() };
    assert!(record.error.to_string().contains("waits for an answer"), "{}", record.error);
}
