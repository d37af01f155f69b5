//! The Rust client and the daemon together.

use std::time::Duration;

use sampi_client::{ExitReason, RpcClient};
use sampi_tests::fake_llm::{FakeLlm, Gate, Reply, text};
use sampi_tests::harness::{Daemon, within_timeout};

// case 13
#[tokio::test]
async fn waiting_for_idle_on_a_fresh_session_returns_at_once() {
    let llm = FakeLlm::start().await;
    let (builder, _workspace) = Daemon::builder(&llm).client();
    let client = builder.spawn().await.unwrap();
    within_timeout("an idle session", client.wait_for_idle()).await.unwrap();
    client.stop().await;
}

#[tokio::test]
async fn prompt_and_wait_gives_the_answer_and_what_it_cost() {
    let llm = FakeLlm::start().await;
    llm.push(text("Hello there."));
    let (builder, _workspace) = Daemon::builder(&llm).client();
    let client = builder.spawn().await.unwrap();
    let outcome = client.prompt_and_wait("hi").await.unwrap();
    assert!(outcome.is_ok());
    assert_eq!(outcome.text, "Hello there.");
    assert_eq!((outcome.usage.input, outcome.usage.output), (100, 10));
    assert_eq!(client.get_last_assistant_text().await.unwrap().as_deref(), Some("Hello there."));
    let exit = client.stop().await;
    assert_eq!((&exit.reason, exit.code()), (&ExitReason::Stopped, Some(0)));
    llm.finish();
}

#[tokio::test]
async fn a_failed_run_is_an_outcome_with_the_providers_error() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::error(401, "authentication_error", "bad key"));
    let (builder, _workspace) = Daemon::builder(&llm).client();
    let client = builder.spawn().await.unwrap();
    let outcome = client.prompt_and_wait("hi").await.unwrap();
    assert!(!outcome.is_ok() && !outcome.aborted);
    assert!(outcome.error.unwrap().contains("bad key"));
    client.stop().await;
    llm.finish();
}

// case 21
#[tokio::test]
async fn when_the_daemon_dies_at_its_start_calls_fail_with_its_exit_code_and_its_last_words() {
    let dying = ["-c", "echo no such luck >&2; exit 7"];
    let client = RpcClient::builder().program("sh").program_args(dying).spawn().await.unwrap();
    let error = within_timeout("the call to fail", client.get_state()).await.unwrap_err();
    let exit = error.as_exit().expect("the daemon exited");
    assert_eq!(exit.code(), Some(7));
    assert!(exit.stderr_tail.contains("no such luck"), "{exit}");
}

// case 21
#[tokio::test]
async fn when_the_daemon_refuses_its_arguments_calls_fail_with_its_reason() {
    let llm = FakeLlm::start().await;
    let (builder, _workspace) = Daemon::builder(&llm).file("a.txt", "x").args(["@a.txt"]).client();
    let client = builder.spawn().await.unwrap();
    let error = within_timeout("the call to fail", client.get_state()).await.unwrap_err();
    let exit = error.as_exit().expect("the daemon exited");
    assert_eq!(exit.code(), Some(1));
    assert!(exit.stderr_tail.contains("@file"), "{exit}");
}

// case 22
#[tokio::test]
async fn a_client_starts_again_and_nothing_of_the_first_daemon_reaches_the_second() {
    let llm = FakeLlm::start().await;
    llm.push(text("from the first").hang());
    llm.push(text("from the second"));
    let (builder, _workspace) = Daemon::builder(&llm).client();
    let client = builder.spawn().await.unwrap();
    let first = client.process_id();
    let run = client.run("one").await.unwrap();
    llm.exchange(0).await;
    let abandoned = tokio::spawn(client.bash("sleep 600"));
    within_timeout("the restart", client.restart()).await.unwrap();
    assert_ne!(client.process_id(), first);
    // The first daemon ended its run in order, or the connection told that it could not.
    match within_timeout("the first run to end", run.outcome()).await {
        Ok(outcome) => assert!(outcome.aborted, "{outcome:?}"),
        Err(error) => assert!(error.as_exit().is_some(), "{error}"),
    }
    // What the call came to depends on how far it got; that it ends is what counts.
    let _ = within_timeout("the first call to end", abandoned).await.unwrap();

    let mut events = client.subscribe();
    let outcome = client.prompt_and_wait("two").await.unwrap();
    assert_eq!(outcome.text, "from the second");
    assert_eq!(client.pending_calls(), 0);
    client.stop().await;
    while let Some(event) = events.next_event().await {
        assert!(!format!("{event:?}").contains("from the first"), "{event:?}");
    }
    llm.finish();
}

// case 23
#[tokio::test(flavor = "multi_thread")]
async fn the_client_has_no_time_limit_of_its_own() {
    let llm = FakeLlm::start().await;
    let gate = Gate::new();
    llm.push(text("at last").wait(&gate));
    let (builder, workspace) = Daemon::builder(&llm).client();
    let released = workspace.cwd().join("go");
    // On a clock that stands still, a sleep is over as soon as nothing else happens: a day passes while the
    // daemon works, and a limit of the client would strike.
    let client_side = move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let client = builder.spawn().await.unwrap();
            let run = client.run("go").await.unwrap();
            let command = tokio::spawn(client.bash("until [ -e go ]; do sleep 0.02; done; echo done"));
            tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
            gate.open();
            std::fs::write(released, "").unwrap();
            assert_eq!(command.await.unwrap().unwrap().output, "done\n");
            assert_eq!(run.outcome().await.unwrap().text, "at last");
        });
    };
    let ended = tokio::task::spawn_blocking(client_side);
    within_timeout("the client's day", ended).await.unwrap();
    llm.finish();
}

// case 7
#[tokio::test]
async fn the_client_reads_a_frame_of_many_megabytes() {
    let llm = FakeLlm::start().await;
    let long = "0123456789abcdef".repeat(1 << 20);
    llm.push(sampi_tests::fake_llm::Answer::empty().text_deltas([long.clone()]));
    let (builder, _workspace) = Daemon::builder(&llm).args(["--no-session"]).client();
    let client = builder.spawn().await.unwrap();
    let outcome = client.prompt_and_wait("go").await.unwrap();
    assert!(outcome.text == long, "the answer came through whole");
    client.stop().await;
    llm.finish();
}
