//! Compaction: when it runs, what the summary is made of, what can be done meanwhile.

use sampi_tests::fake_llm::{Answer, FakeLlm, Gate, RecordedRequest, Reply, Tokens, text, tool_call};
use sampi_tests::harness::{Daemon, DaemonBuilder, Model};
use serde_json::{Value, json};

use crate::session_files::{entries, entry_of, reopen, session_file};

/// A text of a hundred tokens, as they are estimated.
pub(crate) fn hundred(word: &str) -> String {
    format!("{word:-<400}")
}

/// A daemon that keeps about this many tokens when it compacts.
pub(crate) fn keeping(llm: &FakeLlm, tokens: u64) -> DaemonBuilder {
    let settings = json!({ "compaction": { "keepRecentTokens": tokens }, "retry": { "baseDelayMs": 1, "maxRetries": 1 } });
    Daemon::builder(llm).settings(settings)
}

/// A daemon with two exchanges; a compaction that keeps 150 tokens keeps the second one.
pub(crate) async fn with_two_exchanges(llm: &FakeLlm) -> Daemon {
    llm.push_all([text(&hundred("alpha")), text(&hundred("beta"))]);
    let daemon = keeping(llm, 150).spawn().await;
    daemon.run(&hundred("first")).await;
    daemon.run(&hundred("second")).await;
    daemon
}

/// An answer after which the context is nearly full.
pub(crate) fn filling(answer: Answer) -> Answer {
    answer.usage(Tokens { input: 90_000, output: 10, cache_read: 0, cache_write: 0 })
}

/// The text that a request for a summary gives the model.
fn asked(request: &RecordedRequest) -> String {
    assert!(request.tool_names().is_empty(), "a request for a summary offers no tools");
    request.user_texts().concat()
}

pub(crate) fn is_for_a_summary(request: &RecordedRequest) -> bool {
    request.tool_names().is_empty()
}

async fn compact(daemon: &Daemon) -> Value {
    daemon.ok(json!({ "type": "compact" })).await
}

pub(crate) fn kinds_of(daemon: &Daemon, prefixes: &[&str]) -> Vec<String> {
    let kinds = daemon.records().into_iter().map(|record| record.value["type"].as_str().unwrap().to_owned());
    kinds.filter(|kind| prefixes.iter().any(|prefix| kind.starts_with(prefix))).collect()
}

fn last_compaction(entries: &Value) -> &Value {
    let entries = entries["entries"].as_array().unwrap();
    entries.iter().rfind(|entry| entry["type"] == "compaction").expect("a compaction")
}

#[tokio::test]
async fn a_manual_compaction_replaces_the_older_part_by_a_summary_that_follows_the_users_instructions() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    llm.push(text("the notes"));
    let mark = daemon.mark();
    let result = daemon
        .ok(json!({ "type": "compact", "customInstructions": "mind the colour of the bikeshed" }))
        .await;
    let after: Vec<Value> = daemon.records_since(mark).into_iter().map(|record| record.value).collect();
    assert_eq!(after[0], json!({ "type": "compaction_start", "reason": "manual" }));
    assert_eq!((&after[1]["type"], &after[1]["result"]), (&json!("compaction_end"), &result));
    assert_eq!((&after[1]["aborted"], &after[1]["willRetry"]), (&json!(false), &json!(false)));

    let request = llm.request(2).await;
    let asked = asked(&request);
    assert!(asked.contains("mind the colour of the bikeshed"));
    assert!(asked.contains(&hundred("first")) && asked.contains(&hundred("alpha")));
    assert!(!asked.contains("second") && !asked.contains("beta"), "what is kept is not summarised");

    assert_eq!(result["summary"], "the notes");
    assert_eq!(result["firstKeptEntryId"], entry_of(&daemon, &hundred("second")).await);
    let messages = daemon.messages().await;
    let roles: Vec<&Value> = messages.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "compactionSummary", "user", "assistant"]);
    assert_eq!(daemon.state().await["isCompacting"], false);

    llm.push(text("gamma"));
    daemon.run("third").await;
    let request = llm.request(3).await;
    let texts = request.user_texts();
    assert!(texts[0].contains("the notes") && !texts[0].contains("first-"), "{texts:?}");
    assert_eq!(texts[1..], [hundred("second"), "third".to_owned()]);

    let expected = daemon.messages().await;
    let file = session_file(&daemon).await;
    let daemon = reopen(&llm, daemon.finish().await, &file).await;
    assert_eq!(daemon.messages().await, expected, "a restart changes nothing");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn usage_is_unknown_after_a_compaction_until_it_is_measured_and_the_summary_is_paid_for() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    let stats = daemon.ok(json!({ "type": "get_session_stats" })).await;
    assert_eq!(stats["contextUsage"]["tokens"], 110);
    llm.push(text("the notes"));
    compact(&daemon).await;
    let stats = daemon.ok(json!({ "type": "get_session_stats" })).await;
    assert_eq!(stats["contextUsage"], json!({ "tokens": null, "contextWindow": 100_000, "percent": null }));
    assert_eq!((&stats["tokens"]["input"], &stats["tokens"]["output"]), (&json!(300), &json!(30)));
    let cost = stats["cost"].as_f64().unwrap();
    assert!((cost - 0.00036).abs() < 1e-9, "{cost}");
    llm.push(text("gamma"));
    daemon.run("third").await;
    let stats = daemon.ok(json!({ "type": "get_session_stats" })).await;
    assert_eq!(stats["contextUsage"]["tokens"], 110);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn usage_from_before_an_edit_of_the_context_no_longer_counts() {
    let llm = FakeLlm::start().await;
    llm.push(filling(text("alpha")));
    let daemon = keeping(&llm, 150).spawn().await;
    daemon.run("first").await;
    let usage = daemon.ok(json!({ "type": "get_session_stats" })).await["contextUsage"]["tokens"].clone();
    assert_eq!(usage, 90_010);
    daemon.ok(json!({ "type": "set_auto_compaction", "enabled": false })).await;
    llm.push_all([Reply::error(503, "api_error", "down"), Reply::error(503, "api_error", "down")]);
    daemon.run("second").await;
    let usage = daemon.ok(json!({ "type": "get_session_stats" })).await["contextUsage"]["tokens"].clone();
    assert!((100..10_000).contains(&usage.as_u64().unwrap()), "all is estimated, with the prompt: {usage}");
    daemon.finish().await;
    llm.finish();
}

// case 51
#[tokio::test]
async fn a_short_session_and_one_that_was_just_compacted_have_nothing_to_compact() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let refused = daemon.refused(json!({ "type": "compact" })).await;
    refused.assert_code("not_found").assert_says("Nothing to compact (session too small)");
    let end = daemon.wait_for(json!({ "type": "compaction_end" })).await;
    assert_eq!(end["errorMessage"], "Compaction failed: Nothing to compact (session too small)");
    daemon.finish().await;

    let daemon = with_two_exchanges(&llm).await;
    llm.push(text("the notes"));
    compact(&daemon).await;
    daemon
        .refused(json!({ "type": "compact" }))
        .await
        .assert_code("not_found")
        .assert_says("Already compacted");
    assert_eq!(daemon.state().await["isCompacting"], false);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_transcript_that_is_summarised_is_written_into_no_cache() {
    let llm = FakeLlm::start().await;
    llm.push_all([text(&hundred("alpha")), text(&hundred("beta")), text("the notes")]);
    let daemon = keeping(&llm, 150).model(Model::Anthropic).spawn().await;
    daemon.run(&hundred("first")).await;
    daemon.run(&hundred("second")).await;
    compact(&daemon).await;
    let marked = |request: &RecordedRequest| request.body.to_string().contains("cache_control");
    assert_eq!(llm.requests().iter().map(marked).collect::<Vec<_>>(), [true, true, false]);
    daemon.finish().await;
    llm.finish();
}

// case 51
#[tokio::test]
async fn a_second_compaction_while_one_runs_is_refused() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    let gate = Gate::new();
    llm.push(Answer::empty().wait(&gate).text("the notes"));
    let first = daemon.start(json!({ "type": "compact" })).await;
    gate.reached().await;
    assert_eq!(daemon.state().await["isCompacting"], true);
    daemon.refused(json!({ "type": "compact" })).await.assert_code("busy");
    daemon.refused(json!({ "type": "prompt", "message": "p" })).await.assert_code("busy");
    gate.open();
    assert_eq!(daemon.response(&first).await["data"]["summary"], "the notes");
    assert_eq!(daemon.all(json!({ "type": "compaction_start" })).len(), 1);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_compaction_during_a_run_aborts_the_run_first() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    llm.push(text("an answer that").hang());
    llm.push_all([text("the notes"), text("the notes of the span")]);
    daemon.prompt("third").await;
    daemon.wait_for(json!({ "type": "message_update" })).await;
    llm.exchange(2).await;
    let result = compact(&daemon).await;
    assert!(result["summary"].as_str().unwrap().starts_with("the notes"));
    let kinds = kinds_of(&daemon, &["agent_settled", "compaction"]);
    assert_eq!(kinds[kinds.len() - 3..], ["agent_settled", "compaction_start", "compaction_end"]);
    assert_eq!(daemon.all(json!({ "type": "agent_settled", "aborted": true })).len(), 1);
    daemon.finish().await;
}

#[tokio::test]
async fn an_abort_behind_a_compaction_that_waits_for_the_run_cancels_both() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    let stubborn = "trap '' TERM INT HUP; echo ready; while :; do sleep 0.05; done";
    llm.push(tool_call("c1", "bash", json!({ "command": stubborn })));
    daemon.prompt("third").await;
    daemon.tool_output("c1", |output| output.contains("ready")).await;
    let both = [json!({ "id": "c", "type": "compact" }), json!({ "id": "a", "type": "abort" })];
    daemon.send_raw(format!("{}\n{}\n", both[0], both[1]).as_bytes()).await;
    assert_eq!(daemon.response(&json!("c")).await["success"], false);
    assert_eq!(daemon.response(&json!("a")).await["success"], true);
    assert!(daemon.all(json!({ "type": "compaction_start" })).is_empty());
    assert_eq!(daemon.state().await["isStreaming"], false);
    daemon.finish().await;
    llm.finish();
}

// case 33
#[tokio::test]
async fn an_abort_stops_a_compaction_and_nothing_of_it_stays() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    llm.push(text("half of the").hang());
    let before = daemon.messages().await;
    let id = daemon.start(json!({ "type": "compact" })).await;
    let exchange = llm.exchange(2).await;
    daemon.ok(json!({ "type": "abort" })).await;
    let response = daemon.response(&id).await;
    assert_eq!((&response["success"], &response["error"]), (&json!(false), &json!("Compaction cancelled")));
    exchange.over().await;
    let end = daemon.wait_for(json!({ "type": "compaction_end" })).await;
    assert_eq!((&end["aborted"], end.get("result")), (&json!(true), None));
    assert_eq!(daemon.state().await["isCompacting"], false);
    assert_eq!(daemon.messages().await, before);
    llm.push(text("gamma"));
    daemon.run("third").await;
    daemon.finish().await;
    llm.finish();
}

// case 50
#[tokio::test]
async fn a_summary_that_fails_is_told_and_the_conversation_goes_on() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    llm.push(Reply::error(400, "invalid_request_error", "no summaries today"));
    let before = daemon.messages().await;
    daemon.refused(json!({ "type": "compact" })).await.assert_says("no summaries today");
    let end = daemon.wait_for(json!({ "type": "compaction_end" })).await;
    let error = end["errorMessage"].as_str().unwrap();
    assert!(error.starts_with("Compaction failed: ") && error.contains("no summaries today"), "{error}");
    assert_eq!(end["aborted"], false);
    assert_eq!(daemon.messages().await, before);
    llm.push(text("gamma"));
    daemon.run("third").await;
    assert_eq!(llm.request(3).await.user_texts().len(), 3);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_request_for_a_summary_is_tried_again_and_each_try_is_told() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    llm.push(Reply::error(529, "overloaded_error", "busy"));
    llm.push(text("the notes"));
    compact(&daemon).await;
    let expected = [
        "compaction_start",
        "summarization_retry_scheduled",
        "summarization_retry_attempt_start",
        "summarization_retry_finished",
        "compaction_end",
    ];
    assert_eq!(kinds_of(&daemon, &["compaction", "summarization"]), expected);
    let scheduled = &daemon.all(json!({ "type": "summarization_retry_scheduled" }))[0];
    assert_eq!((&scheduled["attempt"], &scheduled["maxAttempts"]), (&json!(1), &json!(1)));
    assert!(scheduled["errorMessage"].as_str().unwrap().contains("busy"));
    let again = &daemon.all(json!({ "type": "summarization_retry_attempt_start" }))[0];
    assert_eq!((&again["source"], &again["reason"]), (&json!("compaction"), &json!("manual")));
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_span_that_is_cut_in_two_gets_a_summary_of_its_beginning() {
    let llm = FakeLlm::start().await;
    llm.push_all([text(&hundred("alpha")), text(&hundred("beta"))]);
    let daemon = keeping(&llm, 50).spawn().await;
    daemon.run(&hundred("first")).await;
    daemon.run(&hundred("second")).await;
    llm.push_all([text("notes of the history"), text("notes of the beginning")]);
    let result = compact(&daemon).await;
    let (history, beginning) = (asked(&llm.request(2).await), asked(&llm.request(3).await));
    assert!(history.contains("first-") && history.contains("alpha-") && !history.contains("second-"));
    assert!(beginning.contains("second-") && !beginning.contains("first-") && !beginning.contains("beta-"));
    let summary = result["summary"].as_str().unwrap();
    assert!(summary.contains("notes of the history") && summary.contains("notes of the beginning"));
    assert_eq!(result["firstKeptEntryId"], entry_of(&daemon, &hundred("beta")).await);
    assert_eq!(result["usage"]["input"], 200, "both requests count");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn the_second_compaction_carries_on_the_first_summary_and_the_files() {
    let llm = FakeLlm::start().await;
    let daemon = keeping(&llm, 150).file("a.txt", "one\n").spawn().await;
    llm.push(tool_call("c1", "read", json!({ "path": "a.txt" })).tool_call(
        "c2",
        "write",
        json!({ "path": "b.txt", "content": "two" }),
    ));
    llm.push_all([text(&hundred("alpha")), text(&hundred("beta")), text("first notes")]);
    daemon.run(&hundred("first")).await;
    daemon.run(&hundred("second")).await;
    let first = compact(&daemon).await;
    assert_eq!(first["details"], json!({ "readFiles": ["a.txt"], "modifiedFiles": ["b.txt"] }));
    assert!(first["summary"].as_str().unwrap().contains("b.txt"), "{first}");

    llm.push(tool_call(
        "c3",
        "edit",
        json!({ "path": "a.txt", "edits": [{ "oldText": "one", "newText": "1" }] }),
    ));
    llm.push_all([text(&hundred("gamma")), text(&hundred("delta")), text("second notes")]);
    daemon.run(&hundred("third")).await;
    daemon.run(&hundred("fourth")).await;
    let second = compact(&daemon).await;
    let asked = asked(llm.requests().last().unwrap());
    assert!(asked.contains("first notes"), "{asked}");
    assert!(asked.contains("third-") && !asked.contains("first-") && !asked.contains("fourth-"));
    assert_eq!(second["details"], json!({ "readFiles": [], "modifiedFiles": ["a.txt", "b.txt"] }));
    let all = entries(&daemon, None).await;
    assert_eq!(last_compaction(&all)["details"], second["details"]);
    let messages = daemon.messages().await;
    assert_eq!(messages.iter().filter(|message| message["role"] == "compactionSummary").count(), 1);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_model_may_have_its_own_limits() {
    let llm = FakeLlm::start().await;
    llm.push_all([text(&hundred("alpha")), text(&hundred("beta")), text("the notes")]);
    let settings = json!({ "compaction": {
        "keepRecentTokens": 50_000,
        "modelOverrides": { "mock/m1": { "keepRecentTokens": 150 } },
    } });
    let daemon = Daemon::builder(&llm).settings(settings).spawn().await;
    daemon.run(&hundred("first")).await;
    daemon.run(&hundred("second")).await;
    assert_eq!(compact(&daemon).await["summary"], "the notes");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_new_session_during_a_compaction_stops_it_and_nothing_of_it_lands_in_the_new_one() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    llm.push(text("half of the").hang());
    let id = daemon.start(json!({ "type": "compact" })).await;
    llm.exchange(2).await;
    assert_eq!(daemon.ok(json!({ "type": "new_session" })).await, json!({ "cancelled": false }));
    assert_eq!(daemon.response(&id).await["success"], false);
    let state = daemon.state().await;
    assert_eq!((&state["isCompacting"], &state["messageCount"]), (&json!(false), &json!(0)));
    llm.push(text("fresh"));
    daemon.run("hello").await;
    assert_eq!(llm.request(3).await.user_texts(), ["hello"]);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_request_for_a_summary_waits_as_long_as_the_provider_asks_and_gives_up_when_that_is_too_long() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    llm.push(Reply::error(429, "rate_limit_error", "slow down").retry_after(30));
    let id = daemon.start(json!({ "type": "compact" })).await;
    let scheduled = daemon.wait_for(json!({ "type": "summarization_retry_scheduled" })).await;
    assert_eq!(scheduled["delayMs"], 30_000);
    daemon.ok(json!({ "type": "abort" })).await;
    assert_eq!(daemon.response(&id).await["code"], "cancelled");
    llm.push(Reply::error(429, "rate_limit_error", "slow down").retry_after(3600));
    daemon.refused(json!({ "type": "compact" })).await.assert_says("slow down");
    assert_eq!(
        daemon.all(json!({ "type": "summarization_retry_scheduled" })).len(),
        1,
        "an hour is too long"
    );
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_compaction_during_the_summary_of_a_branch_is_refused() {
    let llm = FakeLlm::start().await;
    let daemon = with_two_exchanges(&llm).await;
    let gate = Gate::new();
    llm.push(Answer::empty().wait(&gate).text("what was tried"));
    let alpha = entry_of(&daemon, &hundred("alpha")).await;
    let id = daemon.start(json!({ "type": "navigate_tree", "targetId": alpha, "summarize": true })).await;
    gate.reached().await;
    daemon.refused(json!({ "type": "compact" })).await.assert_code("busy");
    gate.open();
    assert_eq!(daemon.response(&id).await["success"], true);
    daemon.finish().await;
    llm.finish();
}
