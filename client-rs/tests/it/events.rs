//! Subscriptions and listeners.

use std::sync::mpsc;

use futures::StreamExt;
use sampi_client::protocol::events::SessionEvent;
use sampi_client::protocol::ui::UiMethod;
use sampi_client::{EventItem, ExitReason, RpcClient};
use serde_json::json;

use crate::peer::{Peer, event, pair, pair_with, response};

/// A round trip: what the peer wrote before has then been read.
async fn sync(client: &RpcClient, peer: &mut Peer) {
    let (done, _) = tokio::join!(client.abort(), peer.serve("abort", json!(null)));
    done.unwrap();
}

#[tokio::test]
async fn every_subscriber_gets_every_event_in_order_until_the_end() {
    let (client, mut peer) = pair();
    let (first, second) = (client.subscribe(), client.subscribe());
    peer.send(&[event("agent_start"), json!({ "type": "moon_phase", "full": true }), event("turn_start")])
        .await;
    peer.close_output().await;
    for subscription in [first, second] {
        let items: Vec<EventItem> = subscription.collect().await;
        let names: Vec<&str> = items.iter().filter_map(|item| Some(item.as_event()?.name())).collect();
        assert_eq!(names, ["agent_start", "moon_phase", "turn_start"]);
        assert!(
            matches!(items.last(), Some(EventItem::Closed(exit)) if exit.reason == ExitReason::OutputClosed)
        );
    }
    assert!(matches!(client.subscribe().next().await, Some(EventItem::Closed(_))));
}

#[tokio::test]
async fn a_slow_subscriber_is_told_how_much_it_lost_and_delays_nobody() {
    let (client, mut peer) = pair();
    let mut slow = client.subscribe_with_capacity(10);
    let mut fast = client.subscribe_with_capacity(2000);
    for index in 0..1000 {
        peer.send(&[json!({ "type": "bash_execution_update", "delta": index.to_string() })]).await;
    }
    sync(&client, &mut peer).await;
    assert!(matches!(slow.next().await, Some(EventItem::Lagged(990))));
    for index in 990..1000 {
        let item = slow.next().await.unwrap();
        let Some(SessionEvent::BashExecutionUpdate(update)) = item.as_event() else { panic!("{item:?}") };
        assert_eq!(update.delta, index.to_string());
    }
    for _ in 0..1000 {
        assert!(matches!(fast.next().await, Some(EventItem::Event(_))));
    }
}

#[tokio::test]
async fn a_malformed_known_event_is_reported_and_the_next_one_is_read() {
    let (client, mut peer) = pair();
    let mut events = client.subscribe();
    peer.send(&[json!({ "type": "agent_settled", "aborted": "no" }), event("agent_start")]).await;
    let Some(EventItem::Malformed(record)) = events.next().await else { panic!() };
    assert!(record.error.to_string().starts_with("agent_settled: aborted"), "{}", record.error);
    assert!(record.text.contains("\"no\""));
    assert_eq!(events.next_event().await.unwrap().name(), "agent_start");
}

#[tokio::test]
async fn an_event_may_be_written_in_any_way_that_json_allows_and_torn_lines_are_skipped() {
    let (client, mut peer) = pair();
    let mut events = client.subscribe();
    let lines = [
        r#"{"type":"bash_execution_update","delta":"first"}"#,
        r#" { "type" : "bash_execution_update" , "delta" : "blanks" } "#,
        r#"{"delta":"last","type":"bash_execution_update"}"#,
        r#"{"type":"bash_\u0065xecution_update","delta":"escaped"}"#,
        r#"{"type":"bash_execution_update","delta":"half \ud83d"}"#,
        r#"{"type":"bash_execution_update","delta":"torn"#,
        r#"{"type":"bash_execution_update","delta":"followed"} {}"#,
        r#"{"type":"moon_phase","full":"#,
        r#"{"type":7,"delta":"no tag"}"#,
        r#"{"delta":"no tag"}"#,
        r#"{"type":"bash_execution_update","delta":"end"}"#,
    ];
    peer.raw(lines.join("\n") + "\n").await;
    for expected in ["first", "blanks", "last", "escaped", "half \u{fffd}", "end"] {
        let item = events.next().await.unwrap();
        let Some(SessionEvent::BashExecutionUpdate(update)) = item.as_event() else { panic!("{item:?}") };
        assert_eq!(update.delta, expected);
    }
}

#[tokio::test]
async fn an_event_over_the_limit_is_reported_as_malformed() {
    let (client, mut peer) = pair_with(RpcClient::builder().frame_limit(500));
    let mut events = client.subscribe();
    peer.send(&[json!({ "type": "bash_execution_update", "delta": "x".repeat(1000) }), event("agent_start")])
        .await;
    let Some(EventItem::Malformed(record)) = events.next().await else { panic!() };
    assert!(record.error.to_string().contains("frame limit of 500"));
    assert_eq!(events.next_event().await.unwrap().name(), "agent_start");
}

#[tokio::test]
async fn requests_that_expect_no_answer_go_to_the_event_stream() {
    let (client, mut peer) = pair();
    let mut events = client.subscribe();
    peer.send(&[json!({ "type": "extension_ui_request", "id": "u", "method": "notify", "message": "hi" })])
        .await;
    let Some(EventItem::Ui(request)) = events.next().await else { panic!() };
    assert!(matches!(&request.method, UiMethod::Notify { message, .. } if message == "hi"));
    // Nothing was written for it: the next record of the client is the next call.
    sync(&client, &mut peer).await;
}

#[tokio::test]
async fn a_listener_that_blocks_or_panics_delays_no_response() {
    let (client, mut peer) = pair();
    let (seen, mut seen_end) = tokio::sync::mpsc::unbounded_channel();
    let (go, go_end) = mpsc::channel::<()>();
    let listener = client
        .on_event(move |item| {
            let name = item.as_event().map(|event| event.name().to_owned());
            seen.send(name.clone()).unwrap();
            match name.as_deref() {
                Some("agent_start") => go_end.recv().unwrap(),
                Some("turn_start") => panic!("a listener's own affair"),
                _ => {}
            }
        })
        .unwrap();
    peer.send(&[
        event("agent_start"),
        event("turn_start"),
        json!({ "type": "agent_settled", "aborted": false }),
    ])
    .await;
    assert_eq!(seen_end.recv().await.unwrap().as_deref(), Some("agent_start"));
    // The listener blocks now; this test's runtime has one thread.
    sync(&client, &mut peer).await;
    go.send(()).unwrap();
    assert_eq!(seen_end.recv().await.unwrap().as_deref(), Some("turn_start"));
    assert_eq!(seen_end.recv().await.unwrap().as_deref(), Some("agent_settled"));
    listener.remove();
    assert!(seen_end.recv().await.is_none(), "its thread has ended");
}

#[tokio::test]
async fn dropping_the_client_ends_its_listeners() {
    let (client, _peer) = pair();
    let (seen, mut seen_end) = tokio::sync::mpsc::unbounded_channel();
    client.on_event(move |_| _ = seen.send(())).unwrap();
    drop(client);
    while seen_end.recv().await.is_some() {}
}

#[tokio::test]
async fn a_flood_of_events_and_a_caller_who_does_not_listen_go_together() {
    let (client, mut peer) = pair();
    let subscription = client.subscribe_with_capacity(100);
    let serve = async {
        let request = peer.read().await;
        let flood = format!("{}\n", json!({ "type": "bash_execution_update", "delta": "x" })).repeat(20_000);
        peer.raw(flood).await;
        peer.send(&[response(&request, json!(null))]).await;
    };
    let (done, ()) = tokio::join!(client.abort(), serve);
    done.unwrap();
    drop(subscription);
}
