//! Calls: correlation, failures, limits, what the peer may write that is no answer.

use std::future::Future;
use std::task::Poll;
use std::time::Duration;

use sampi_client::protocol::commands::{Command, GetState, SetAutoRetry};
use sampi_client::protocol::data::ThinkingLevel;
use sampi_client::protocol::response::ErrorCode;
use sampi_client::{ClientError, ExitReason, RpcClient};
use serde_json::json;

use crate::peer::{failure, pair, pair_with, response};

fn text_of(text: &str) -> serde_json::Value {
    json!({ "text": text })
}

#[tokio::test]
async fn concurrent_calls_get_their_own_answers_in_any_order() {
    let (client, mut peer) = pair();
    let (first, second) = (client.get_last_assistant_text(), client.clone().get_last_assistant_text());
    let serve = async {
        let (first, second) = (peer.read().await, peer.read().await);
        assert_ne!(first["id"], second["id"]);
        peer.send(&[response(&second, text_of("second")), response(&first, text_of("first"))]).await;
    };
    let (first, second, ()) = tokio::join!(first, second, serve);
    assert_eq!((first.unwrap().unwrap(), second.unwrap().unwrap()), ("first".into(), "second".into()));
}

#[tokio::test]
async fn a_call_is_sent_at_the_first_poll_and_a_dropped_one_is_forgotten() {
    let (client, mut peer) = pair();
    let mut call = Box::pin(client.abort());
    assert_eq!(client.pending_calls(), 0);
    let polled = std::future::poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
    assert!(polled.is_pending());
    assert_eq!(client.pending_calls(), 1);
    let request = peer.read().await;
    assert_eq!(request["id"], call.id());
    drop(call);
    assert_eq!(client.pending_calls(), 0);
    // The late answer goes to nobody and harms nothing.
    peer.send(&[response(&request, json!(null))]).await;
    let (state, _) =
        tokio::join!(client.get_last_assistant_text(), peer.serve("get_last_assistant_text", text_of("x")));
    assert_eq!(state.unwrap().as_deref(), Some("x"));
}

#[tokio::test]
async fn a_failure_has_the_command_the_text_and_the_code() {
    let (client, mut peer) = pair();
    let serve = async {
        let request = peer.read().await;
        peer.send(&[failure(&request, "Model not found: a/b", "not_found")]).await;
    };
    let (error, ()) = tokio::join!(client.set_model("a", "b"), serve);
    let error = error.unwrap_err();
    let command = error.as_command().unwrap();
    assert_eq!((command.command.as_str(), command.message.as_str()), ("set_model", "Model not found: a/b"));
    assert_eq!(command.code, Some(ErrorCode::NotFound));
    assert_eq!(error.to_string(), "set_model failed: Model not found: a/b");
}

#[tokio::test]
async fn results_come_typed_and_null_and_absent_data_are_fine_where_they_are_allowed() {
    let (client, mut peer) = pair();
    let (cycled, _) = tokio::join!(client.cycle_model(), peer.serve("cycle_model", json!(null)));
    assert_eq!(cycled.unwrap(), None);
    let (done, request) = tokio::join!(
        client.set_thinking_level(ThinkingLevel::High),
        peer.serve("set_thinking_level", json!(null))
    );
    done.unwrap();
    assert_eq!(request["level"], "high");
    let (error, _) = tokio::join!(client.get_state(), peer.serve("get_state", json!({ "thinkingLevel": 3 })));
    let error = error.unwrap_err();
    assert!(matches!(&error, ClientError::Protocol { command, .. } if command == "get_state"));
    assert!(error.to_string().contains("thinkingLevel"), "{error}");
}

#[tokio::test]
async fn generic_and_raw_calls_reach_any_command() {
    let (client, mut peer) = pair();
    let (result, request) =
        tokio::join!(client.call(&SetAutoRetry { enabled: true }), peer.serve("set_auto_retry", json!(null)));
    result.unwrap();
    assert_eq!(request["enabled"], true);
    let parameters = json!({ "depth": [1], "id": "mine", "type": "x" });
    let (result, request) = tokio::join!(
        client.call_raw("from_the_future", parameters),
        peer.serve("from_the_future", json!([7]))
    );
    assert_eq!(result.unwrap(), json!([7]));
    assert_eq!(request["depth"], json!([1]));
    assert_ne!(request["id"], "mine");
    let command = Command::GetState(GetState {});
    let (result, _) = tokio::join!(client.call_command(&command), peer.serve("get_state", json!({ "a": 1 })));
    assert_eq!(result.unwrap(), json!({ "a": 1 }));
    let error = client.call_raw("x", json!([1])).await.unwrap_err();
    assert_eq!(error.to_string(), "x could not be encoded: the parameters are no object");
}

#[tokio::test(start_paused = true)]
async fn only_a_call_with_a_timeout_times_out() {
    let (client, mut peer) = pair();
    let patient = tokio::spawn(client.compact());
    let error = client.abort().with_timeout(Duration::from_secs(2)).await.unwrap_err();
    assert_eq!(error.to_string(), "abort was not answered within 2s");
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    assert_eq!(peer.read().await["type"], "abort");
    let request = peer.read().await;
    let data =
        json!({ "summary": "s", "firstKeptEntryId": "e", "tokensBefore": 1, "estimatedTokensAfter": 1 });
    peer.send(&[response(&request, data)]).await;
    assert_eq!(patient.await.unwrap().unwrap().summary, "s");
    assert_eq!(client.pending_calls(), 0);
}

#[tokio::test]
async fn lines_that_are_no_records_and_answers_to_nobody_are_skipped() {
    let (client, mut peer) = pair();
    let serve = async {
        let request = peer.read().await;
        peer.raw("Welcome to the agent!\n{\"half\": \n42\nnull\n[1]\n{}\n{\"type\":5}\n\r\n").await;
        peer.raw(b"\xff\xfe\n").await;
        let nobody = json!({ "id": "nobody", "type": "response", "command": "abort", "success": true });
        let parse = json!({ "type": "response", "command": "parse", "success": false, "error": "e" });
        let number = json!({ "id": 7, "type": "response", "command": "abort", "success": true });
        peer.send(&[nobody, parse, number, response(&request, text_of("x"))]).await;
    };
    let (text, ()) = tokio::join!(client.get_last_assistant_text(), serve);
    assert_eq!(text.unwrap().as_deref(), Some("x"));
}

#[tokio::test]
async fn a_record_in_pieces_with_crlf_and_odd_characters_is_one_record() {
    let (client, mut peer) = pair();
    let serve = async {
        let request = peer.read().await;
        let line = format!("{}\r\n", response(&request, text_of("a\u{2028}b\u{2029} é 😀")));
        for byte in line.as_bytes() {
            peer.raw([*byte]).await;
        }
    };
    let (text, ()) = tokio::join!(client.get_last_assistant_text(), serve);
    assert_eq!(text.unwrap().as_deref(), Some("a\u{2028}b\u{2029} é 😀"));
}

#[tokio::test]
async fn a_lone_surrogate_becomes_the_replacement_character() {
    let (client, mut peer) = pair();
    let serve = async {
        let id = peer.read().await["id"].clone();
        peer.raw(format!(r#"{{"id":{id},"type":"response","success":true,"data":{{"text":"a\ud83d"}}}}"#))
            .await;
        peer.raw("\n").await;
    };
    let (text, ()) = tokio::join!(client.get_last_assistant_text(), serve);
    assert_eq!(text.unwrap().as_deref(), Some("a\u{fffd}"));
}

#[tokio::test]
async fn an_answer_over_the_limit_fails_its_call_and_the_connection_lives_on() {
    let (client, mut peer) = pair_with(RpcClient::builder().frame_limit(1000));
    let serve = async {
        let request = peer.read().await;
        peer.send(&[response(&request, text_of(&"x".repeat(5000)))]).await;
        peer.serve("get_last_assistant_text", text_of("short")).await;
    };
    let calls = async {
        let error = client.get_last_assistant_text().await.unwrap_err();
        assert!(matches!(error, ClientError::FrameTooLong { limit: 1000, length: 5000.., .. }), "{error}");
        client.get_last_assistant_text().await.unwrap()
    };
    let (text, ()) = tokio::join!(calls, serve);
    assert_eq!(text.as_deref(), Some("short"));
}

#[tokio::test]
async fn a_frame_of_many_megabytes_is_read() {
    let (client, mut peer) = pair();
    let text = "y".repeat(20 * 1024 * 1024);
    let (read, _) =
        tokio::join!(client.get_last_assistant_text(), peer.serve("get_last_assistant_text", text_of(&text)));
    assert!(read.unwrap().is_some_and(|read| read == text));
}

#[tokio::test]
async fn a_deep_tree_comes_through_the_wire() {
    const DEPTH: usize = 40_000;
    let (client, mut peer) = pair();
    let serve = async {
        let id = peer.read().await["id"].clone();
        let entry = r#"{"type":"session_info","id":"e","parentId":null,"timestamp":"t"}"#;
        let tree = format!(r#"{{"entry":{entry},"children":["#).repeat(DEPTH) + &"]}".repeat(DEPTH);
        let data = format!(r#"{{"tree":[{tree}],"leafId":"e"}}"#);
        peer.raw(format!("{{\"id\":{id},\"type\":\"response\",\"success\":true,\"data\":{data}}}\n")).await;
    };
    let (tree, ()) = tokio::join!(client.get_tree(), serve);
    let tree = tree.unwrap();
    assert_eq!(tree.len(), DEPTH);
    let last = tree.node(DEPTH - 1).unwrap();
    assert_eq!(last.ancestors().count(), DEPTH);
    assert_eq!(last.entry().unwrap().id(), "e");
}

#[tokio::test]
async fn the_end_of_the_stream_fails_pending_and_later_calls_alike() {
    let (client, mut peer) = pair();
    let serve = async {
        let request = peer.read().await;
        peer.read().await;
        // What was written before the end counts.
        peer.send(&[response(&request, text_of("last words"))]).await;
        peer.raw("{\"id\":\"torn").await;
        peer.close_output().await;
    };
    let (first, second, ()) = tokio::join!(client.get_last_assistant_text(), client.abort(), serve);
    assert_eq!(first.unwrap().as_deref(), Some("last words"));
    assert_eq!(second.unwrap_err().as_exit().unwrap().reason, ExitReason::OutputClosed);
    assert_eq!(client.abort().await.unwrap_err().as_exit().unwrap().reason, ExitReason::OutputClosed);
    assert_eq!(client.closed().await.reason, ExitReason::OutputClosed);
}

#[tokio::test]
async fn stopping_closes_the_input_and_waits_for_the_peer() {
    let (client, mut peer) = pair();
    let pending = tokio::spawn(client.abort());
    let request = peer.read().await;
    let serve = async {
        assert_eq!(peer.read_or_end().await, None);
        peer.send(&[response(&request, json!(null))]).await;
        peer.close_output().await;
    };
    let (exit, ()) = tokio::join!(client.stop(), serve);
    assert_eq!(exit.reason, ExitReason::Stopped);
    pending.await.unwrap().unwrap();
    assert!(matches!(client.restart().await, Err(ClientError::NotSpawned)));
}

#[tokio::test]
async fn every_command_has_a_method_that_sends_its_name() {
    use sampi_client::protocol::commands::{ListSessions, NavigateTree, QueueMode};
    let (client, mut peer) = pair();
    let names = tokio::spawn(async move {
        let mut names = Vec::new();
        while let Some(request) = peer.read_or_end().await {
            names.push(request["type"].as_str().unwrap().to_owned());
            peer.send(&[failure(&request, "no", "unsupported")]).await;
        }
        names
    });
    macro_rules! call_all {
        ($($call:expr),* $(,)?) => { $(assert!($call.await.unwrap_err().as_command().is_some());)* };
    }
    call_all!(
        client.prompt("x"),
        client.steer("x"),
        client.follow_up("x"),
        client.abort(),
        client.clear_queue(),
        client.new_session(),
        client.get_state(),
        client.get_messages(),
        client.set_model("p", "m"),
        client.cycle_model(),
        client.get_available_models(),
        client.set_thinking_level(ThinkingLevel::Low),
        client.cycle_thinking_level(),
        client.get_available_thinking_levels(),
        client.set_steering_mode(QueueMode::All),
        client.set_follow_up_mode(QueueMode::All),
        client.compact(),
        client.set_auto_compaction(true),
        client.set_auto_retry(true),
        client.abort_retry(),
        client.bash("x"),
        client.abort_bash(),
        client.get_session_stats(),
        client.export_html(),
        client.switch_session("x"),
        client.fork("x"),
        client.clone_session(),
        client.get_fork_messages(),
        client.get_entries(),
        client.get_tree(),
        client.get_last_assistant_text(),
        client.set_session_name("x"),
        client.get_commands(),
        client.navigate_tree(&NavigateTree::default()),
        client.set_label("e", "x"),
        client.list_sessions(&ListSessions::default()),
        client.delete_session("x"),
    );
    drop(client);
    assert_eq!(names.await.unwrap(), Command::NAMES);
}

#[tokio::test]
async fn a_big_command_goes_out_while_the_peer_floods_and_nobody_waits_for_the_other() {
    let (client, mut peer) = pair();
    let image = "A".repeat(8 * 1024 * 1024);
    let call = client.call_raw("prompt", json!({ "message": "x", "images": [{ "data": image }] }));
    let serve = async {
        // More than the pipe holds, before the peer reads anything.
        let noise = format!("{}\n", json!({ "type": "bash_execution_update", "delta": "x".repeat(1000) }));
        peer.raw(noise.repeat(1000)).await;
        peer.serve("prompt", json!({ "disposition": "handled" })).await
    };
    let (result, request) = tokio::join!(call, serve);
    assert_eq!(result.unwrap(), json!({ "disposition": "handled" }));
    assert_eq!(request["images"][0]["data"].as_str().unwrap().len(), 8 * 1024 * 1024);
}

#[tokio::test]
async fn a_call_whose_future_is_dropped_while_it_waits_to_be_sent_is_forgotten() {
    let (client, mut peer) = pair();
    // Nobody reads: the pipe and the queue of records fill up.
    let big = || client.call_raw("prompt", json!({ "message": "x".repeat(64 * 1024) }));
    let mut calls: Vec<_> = (0..200).map(|_| Box::pin(big())).collect();
    for call in &mut calls {
        let polled = std::future::poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
        assert!(polled.is_pending());
    }
    assert_eq!(client.pending_calls(), 200);
    drop(calls);
    assert_eq!(client.pending_calls(), 0);
    let serve = async {
        loop {
            let request = peer.read().await;
            if request["type"] == "abort" {
                peer.send(&[response(&request, json!(null))]).await;
                return;
            }
        }
    };
    let (done, ()) = tokio::join!(client.abort(), serve);
    done.unwrap();
}

#[tokio::test]
async fn a_command_of_the_table_can_carry_more_than_the_table_knows() {
    use sampi_client::protocol::commands::LastAssistantText;
    let (client, mut peer) = pair();
    let parameters = json!({ "of": "yesterday", "none": null });
    let call = client.call_raw_as::<LastAssistantText>("get_last_assistant_text", parameters);
    let (last, request) = tokio::join!(call, peer.serve("get_last_assistant_text", json!({ "text": "x" })));
    assert_eq!(last.unwrap().text.as_deref(), Some("x"));
    assert_eq!((&request["of"], request.get("none")), (&json!("yesterday"), Some(&json!(null))));
    let call = client.get_tree_with(json!({ "depth": 3 }));
    let (tree, request) = tokio::join!(call, peer.serve("get_tree", json!({ "tree": [], "leafId": null })));
    assert!(tree.unwrap().is_empty());
    assert_eq!(request["depth"], 3);
}
