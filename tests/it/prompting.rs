//! A run from the prompt to its settled event, and what the model is sent.

use sampi_tests::fake_llm::{
    Answer, FakeLlm, Gate, RecordedRequest, Reply, Tokens, text, thinking, tool_call,
};
use sampi_tests::harness::{Daemon, Model, text_of_content};
use serde_json::{Value, json};

/// The last assistant message that ended.
fn last_answer(daemon: &Daemon) -> Value {
    let ends = daemon.all(json!({ "type": "message_end", "message": { "role": "assistant" } }));
    ends.last().expect("an assistant message ended")["message"].clone()
}

#[tokio::test]
async fn a_prompt_is_acknowledged_first_and_its_run_settles_last() {
    let llm = FakeLlm::start().await;
    llm.push(text("Hello there, friend."));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("hi").await;
    let records = daemon.records();
    let kinds: Vec<&str> = records
        .iter()
        .map(|record| record.value["type"].as_str().unwrap())
        .filter(|kind| *kind != "message_update")
        .collect();
    let expected = [
        "response",
        "agent_start",
        "turn_start",
        "message_start",
        "message_end",
        "message_start",
        "message_end",
        "message_start",
        "message_end",
        "turn_end",
        "agent_end",
        "agent_settled",
    ];
    assert_eq!(kinds, expected);
    let answer = last_answer(&daemon);
    assert_eq!(answer["content"], json!([{ "type": "text", "text": "Hello there, friend." }]));
    assert_eq!(answer["stopReason"], "stop");
    let last = daemon.ok(json!({ "type": "get_last_assistant_text" })).await;
    assert_eq!(last["text"], "Hello there, friend.");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn deltas_reach_the_host_while_the_model_still_writes() {
    let llm = FakeLlm::start().await;
    let gate = Gate::new();
    llm.push(text("first").wait(&gate).text(" second"));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("hi").await;
    let delta = |text: &str| {
        let event = json!({ "type": "text_delta", "contentIndex": 0, "delta": text });
        json!({ "type": "message_update", "assistantMessageEvent": event })
    };
    daemon.wait_for(delta("first")).await;
    assert_eq!(daemon.state().await["isStreaming"], true);
    gate.open();
    daemon.wait_for(delta(" second")).await;
    daemon.settled().await;
    assert_eq!(daemon.state().await["isStreaming"], false);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn the_next_prompt_carries_the_whole_conversation() {
    let llm = FakeLlm::start().await;
    for model in [Model::Plain, Model::Anthropic] {
        let before = llm.requests().len();
        llm.push(text("One."));
        llm.push(text("Two."));
        let daemon = Daemon::builder(&llm).model(model).spawn().await;
        daemon.run("first").await;
        daemon.run("second").await;
        let second = &llm.requests()[before + 1];
        assert_eq!(second.user_texts(), ["first", "second"]);
        let answers: Vec<String> =
            second.messages_of("assistant").into_iter().map(RecordedRequest::text_of).collect();
        assert_eq!(answers, ["One."]);
        daemon.finish().await;
    }
    llm.finish();
}

#[tokio::test]
async fn the_first_request_has_a_system_prompt_with_the_working_directory_and_the_tools() {
    let llm = FakeLlm::start().await;
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("hi").await;
    let request = llm.request(0).await;
    let system = RecordedRequest::text_of(request.messages_of("system")[0]);
    assert!(system.contains(daemon.workspace().cwd().to_str().unwrap()), "{system}");
    assert_eq!(request.tool_names(), ["read", "bash", "edit", "write"]);
    daemon.finish().await;
    llm.finish();
}

// case 26
#[tokio::test]
async fn a_second_prompt_during_a_run_is_refused_as_busy_unless_it_says_how_to_queue() {
    let llm = FakeLlm::start().await;
    let gate = Gate::new();
    llm.push(text("a").wait(&gate));
    llm.push_all([text("b"), text("c")]);
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("go").await;
    gate.reached().await;
    let failure = daemon.refused(json!({ "type": "prompt", "message": "again" })).await;
    failure.assert_code("busy");
    assert_eq!(
        failure.error,
        "Agent is already processing. Specify streamingBehavior ('steer' or 'followUp') to queue the message."
    );
    for (behavior, message) in [("steer", "steered"), ("followUp", "followed")] {
        let command = json!({ "type": "prompt", "message": message, "streamingBehavior": behavior });
        assert_eq!(daemon.ok(command).await, json!({ "disposition": "queued" }));
    }
    gate.open();
    daemon.settled().await;
    assert_eq!(llm.requests()[2].user_texts(), ["go", "steered", "followed"]);
    assert_eq!(daemon.all(json!({ "type": "agent_settled" })).len(), 1);
    daemon.finish().await;
    llm.finish();
}

// case 28
#[tokio::test]
async fn a_refused_key_ends_in_an_error_message_and_settles_without_a_retry() {
    let llm = FakeLlm::start().await;
    for model in [Model::Plain, Model::Anthropic] {
        llm.push(Reply::error(401, "authentication_error", "bad key"));
        let daemon = Daemon::builder(&llm).model(model).spawn().await;
        daemon.run("hi").await;
        let answer = last_answer(&daemon);
        assert_eq!(answer["stopReason"], "error");
        let message = answer["errorMessage"].as_str().unwrap();
        assert!(message.contains("401") && message.contains("bad key"), "{message}");
        assert_eq!(daemon.all(json!({ "type": "agent_end" }))[0]["willRetry"], false);
        assert!(daemon.all(json!({ "type": "auto_retry_start" })).is_empty());
        assert_eq!(daemon.all(json!({ "type": "agent_settled" })).len(), 1);
        daemon.finish().await;
    }
    llm.finish();
}

#[tokio::test]
async fn the_conversation_goes_on_after_an_error() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::error(400, "invalid_request_error", "no"));
    llm.push(text("Back."));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("one").await;
    daemon.run("two").await;
    assert_eq!(llm.requests()[1].user_texts(), ["one", "two"]);
    assert_eq!(last_answer(&daemon)["stopReason"], "stop");
    daemon.finish().await;
    llm.finish();
}

// case 29
#[tokio::test]
async fn a_model_server_that_never_answers_ends_in_an_error_after_the_idle_timeout() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::silence());
    let settings = json!({ "httpIdleTimeoutMs": 300, "retry": { "enabled": false } });
    let daemon = Daemon::builder(&llm).settings(settings).spawn().await;
    daemon.run("hi").await;
    let answer = last_answer(&daemon);
    assert_eq!(answer["stopReason"], "error");
    assert!(!answer["errorMessage"].as_str().unwrap().is_empty());
    llm.exchange(0).await.over().await;
    daemon.finish().await;
    llm.finish();
}

// case 29
#[tokio::test]
async fn a_model_server_that_falls_silent_in_mid_answer_ends_in_an_error_after_the_idle_timeout() {
    let llm = FakeLlm::start().await;
    llm.push(text("So far").hang());
    let settings = json!({ "httpIdleTimeoutMs": 300, "retry": { "enabled": false } });
    let daemon = Daemon::builder(&llm).settings(settings).spawn().await;
    daemon.run("hi").await;
    assert_eq!(last_answer(&daemon)["stopReason"], "error");
    daemon.finish().await;
    llm.finish();
}

// case 29
#[tokio::test]
async fn abort_works_while_a_model_server_does_not_answer() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::silence());
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("hi").await;
    let exchange = llm.exchange(0).await;
    daemon.ok(json!({ "type": "abort" })).await;
    daemon.wait_for(json!({ "type": "agent_settled", "aborted": true })).await;
    exchange.over().await;
    assert_eq!(last_answer(&daemon)["stopReason"], "aborted");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_connection_cut_in_mid_answer_is_an_error_that_settles() {
    let llm = FakeLlm::start().await;
    for model in [Model::Plain, Model::Anthropic] {
        llm.push(text("partial text").cut());
        let settings = json!({ "retry": { "enabled": false } });
        let daemon = Daemon::builder(&llm).model(model).settings(settings).spawn().await;
        daemon.run("hi").await;
        assert_eq!(last_answer(&daemon)["stopReason"], "error");
        daemon.finish().await;
    }
    llm.finish();
}

#[tokio::test]
async fn an_answer_cut_off_at_its_length_limit_says_so() {
    let llm = FakeLlm::start().await;
    llm.push(text("cut off").stop("length"));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("hi").await;
    assert_eq!(last_answer(&daemon)["stopReason"], "length");
    assert_eq!(last_answer(&daemon)["rawStopReason"], "length");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_stream_that_ends_without_a_stop_reason_is_an_error() {
    let llm = FakeLlm::start().await;
    for model in [Model::Plain, Model::Anthropic] {
        llm.push(text("partial text").end());
        let settings = json!({ "retry": { "enabled": false } });
        let daemon = Daemon::builder(&llm).model(model).settings(settings).spawn().await;
        daemon.run("hi").await;
        assert_eq!(last_answer(&daemon)["stopReason"], "error", "{model:?}");
        daemon.finish().await;
    }
    llm.finish();
}

// case 37
#[tokio::test]
async fn output_grows_in_line_with_the_text_and_not_with_its_square() {
    let llm = FakeLlm::start().await;
    let mut bytes_for = Vec::new();
    for pieces in [100, 200] {
        llm.push(Answer::empty().text_deltas((0..pieces).map(|number| format!("{number:050}"))));
        let daemon = Daemon::builder(&llm).spawn().await;
        daemon.run("go").await;
        let updates = daemon.records().into_iter().filter(|record| record.value["type"] == "message_update");
        bytes_for.push(updates.map(|record| record.line.len()).sum::<usize>());
        daemon.finish().await;
    }
    let [half, whole] = bytes_for[..] else { unreachable!() };
    assert!(whole < half * 5 / 2, "100 deltas take {half} bytes, 200 take {whole}");
    assert!(whole < 200_000, "10,000 characters in 200 deltas take {whole} bytes");
    llm.finish();
}

// case 38
#[tokio::test]
async fn a_large_tool_call_is_announced_at_once_and_then_comes_in_deltas() {
    let llm = FakeLlm::start().await;
    let content = "0123456789abcdef".repeat(2000);
    let arguments = json!({ "path": "big.txt", "content": content }).to_string();
    let gate = Gate::new();
    // The gate stands behind the call's first event; the arguments come after it.
    llm.push(text("Writing.").raw_tool_call("c1", "write", &arguments).wait(&gate));
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("go").await;
    let start = json!({ "type": "toolcall_start", "contentIndex": 1, "id": "c1", "toolName": "write" });
    daemon.wait_for(json!({ "type": "message_update", "assistantMessageEvent": start })).await;
    daemon
        .wait_for(json!({ "type": "message_update", "assistantMessageEvent": { "type": "toolcall_delta" } }))
        .await;
    gate.open();
    daemon.settled().await;
    let deltas = daemon
        .all(json!({ "type": "message_update", "assistantMessageEvent": { "type": "toolcall_delta" } }));
    let joined: String =
        deltas.iter().map(|event| event["assistantMessageEvent"]["delta"].as_str().unwrap()).collect();
    assert_eq!(joined, arguments);
    assert_eq!(std::fs::read_to_string(daemon.workspace().cwd().join("big.txt")).unwrap(), content);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn usage_and_cost_add_up() {
    let llm = FakeLlm::start().await;
    llm.push(text("a").usage(Tokens { input: 1000, output: 100, cache_read: 500, cache_write: 0 }));
    llm.push(text("b").usage(Tokens { input: 2000, output: 200, cache_read: 0, cache_write: 0 }));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("one").await;
    daemon.run("two").await;
    let stats = daemon.ok(json!({ "type": "get_session_stats" })).await;
    let tokens = json!({ "input": 3000, "output": 300, "cacheRead": 500, "cacheWrite": 0, "total": 3800 });
    assert_eq!(stats["tokens"], tokens);
    // Per million: 1 for input, 2 for output, 0.1 for what came from the cache.
    let cost = (3000.0 + 2.0 * 300.0 + 0.1 * 500.0) / 1e6;
    assert!((stats["cost"].as_f64().unwrap() - cost).abs() < 1e-12, "{stats}");
    assert_eq!((&stats["userMessages"], &stats["assistantMessages"]), (&json!(2), &json!(2)));
    assert_eq!(stats["contextUsage"]["tokens"], 2200);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn thinking_goes_back_to_the_model_with_its_signature() {
    let llm = FakeLlm::start().await;
    llm.push(thinking("let me think").text("Reading.").tool_call("c1", "read", json!({ "path": "a.txt" })));
    llm.push(text("done"));
    let daemon = Daemon::builder(&llm)
        .model(Model::Anthropic)
        .args(["--thinking", "high"])
        .file("a.txt", "x\n")
        .spawn()
        .await;
    daemon.run("go").await;
    let requests = llm.requests();
    assert!(requests[0].body["thinking"]["budget_tokens"].is_u64());
    let assistant = requests[1].messages_of("assistant")[0].clone();
    let block = &assistant["content"][0];
    assert_eq!(block["type"], "thinking");
    assert_eq!(block["thinking"], "let me think");
    assert_eq!(block["signature"], sampi_tests::fake_llm::anthropic::SIGNATURE);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_host_sees_one_settled_for_each_accepted_prompt_whatever_became_of_it() {
    let llm = FakeLlm::start().await;
    llm.push(text("fine"));
    llm.push(Reply::error(401, "authentication_error", "no"));
    llm.push(tool_call("c1", "nosuch", json!({})));
    llm.push(text("ok"));
    llm.push(text("hanging").hang());
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("one").await;
    daemon.run("two").await;
    daemon.run("three").await;
    daemon.prompt("four").await;
    daemon
        .wait_for(json!({ "type": "message_update", "assistantMessageEvent": { "delta": "hanging" } }))
        .await;
    daemon.ok(json!({ "type": "abort" })).await;
    daemon.settled().await;
    for kind in ["agent_start", "agent_end", "agent_settled"] {
        assert_eq!(daemon.all(json!({ "type": kind })).len(), 4, "{kind}");
    }
    let result = &daemon.all(json!({ "type": "tool_execution_end" }))[0];
    assert_eq!(text_of_content(&result["result"]["content"]), "Tool nosuch not found");
    daemon.finish().await;
    llm.finish();
}
