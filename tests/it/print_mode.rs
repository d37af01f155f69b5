//! Print mode: prompts on the command line, the last answer on stdout, an exit code.

use rustix::process::{Signal, kill_process};
use sampi_tests::fake_llm::{FakeLlm, RecordedRequest, Reply, text, tool_call};
use sampi_tests::harness::{Daemon, Finished, Model, finished};
use serde_json::json;

/// A PNG of one pixel.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\
    \x00\x00\x00\rIDATx\xdacd\xf8\xcfP\x0f\x00\x03\x86\x01\x80Z4}k\x00\x00\x00\x00IEND\xaeB`\x82";

async fn print(llm: &FakeLlm, args: &[&str], stdin: &str) -> Finished {
    Daemon::builder(llm).args(args.iter().copied()).run_once(stdin).await
}

#[tokio::test]
async fn the_last_answer_goes_to_stdout_and_nothing_else_does() {
    let llm = FakeLlm::start().await;
    llm.push_all([
        tool_call("c1", "bash", json!({ "command": "echo hidden" })).text("Looking."),
        text("Done.\n"),
    ]);
    let run = print(&llm, &["-p", "do it"], "").await;
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "Done.\n\n", ""));
    let sessions = run.workspace.files_below(&run.workspace.agent_dir().join("sessions"));
    assert_eq!(sessions.len(), 1, "the conversation is kept");
    llm.finish();
}

#[tokio::test]
async fn a_pipe_asks_for_print_mode_and_each_message_is_a_prompt_of_its_own() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("One."), text("Two.")]);
    let run = print(&llm, &["first", "second"], " piped \n").await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Two.\n"));
    assert_eq!(llm.requests()[1].user_texts(), ["pipedfirst", "second"]);
    llm.finish();
}

#[tokio::test]
async fn files_and_images_go_with_the_first_prompt() {
    let llm = FakeLlm::start().await;
    llm.push(text("Seen."));
    let run = Daemon::builder(&llm)
        .file("a.txt", "one\n")
        .file("p.png", PIXEL)
        .args(["--print", "@a.txt", "@p.png", "look"])
        .run_once("")
        .await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Seen.\n"));
    let cwd = run.workspace.cwd();
    let user = llm.requests()[0].messages_of("user")[0].clone();
    assert_eq!(
        RecordedRequest::text_of(&user),
        format!(
            "<file name=\"{0}/a.txt\">\none\n\n</file>\n<file name=\"{0}/p.png\"></file>\nlook",
            cwd.display()
        )
    );
    assert!(user["content"][1]["image_url"]["url"].as_str().unwrap().starts_with("data:image/png;base64,"));
    llm.finish();
}

#[tokio::test]
async fn a_file_that_is_not_there_is_an_error_before_anything_is_asked() {
    let llm = FakeLlm::start().await;
    let run = print(&llm, &["-p", "@nope.txt", "look"], "").await;
    let expected = format!("Error: File not found: {}/nope.txt\n", run.workspace.cwd().display());
    assert_eq!((run.code, run.stdout.as_str(), run.stderr), (Some(1), "", expected));
    llm.finish();
}

// case 36
#[tokio::test]
async fn an_answer_that_failed_is_an_error_on_stderr_and_a_bad_exit_code() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::error(401, "authentication_error", "bad key"));
    let run = Daemon::builder(&llm).model(Model::Anthropic).args(["-p", "hi"]).run_once("").await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.contains("401") && run.stderr.contains("bad key"), "{}", run.stderr);
    llm.finish();
}

#[tokio::test]
async fn only_the_last_answer_decides_how_it_ended() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::error(401, "authentication_error", "bad key"));
    llm.push(text("Fine."));
    let run = print(&llm, &["-p", "first", "second"], "").await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Fine.\n"));
    llm.finish();
}

#[tokio::test]
async fn an_answer_that_was_cut_off_is_printed_with_a_warning_and_a_bad_exit_code() {
    let llm = FakeLlm::start().await;
    llm.push(text("Half of").stop("length"));
    let run = print(&llm, &["-p", "tell"], "").await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), "Half of\n"));
    assert!(run.stderr.contains("cut off"), "{}", run.stderr);
    llm.finish();
}

#[tokio::test]
async fn nothing_to_do_is_no_error_and_no_model_is_one() {
    let llm = FakeLlm::start().await;
    let run = print(&llm, &["-p"], " \n").await;
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(0), "", ""));
    let run = Daemon::builder(&llm)
        .model(Model::Unnamed)
        .models(json!({ "providers": {} }))
        .args(["-p", "hi"])
        .run_once("")
        .await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.contains("No API key found"), "{}", run.stderr);
    llm.finish();
}

// case 36
#[tokio::test]
async fn a_signal_aborts_the_answer_and_is_told_by_the_exit_code() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::silence());
    let (mut child, workspace) = Daemon::builder(&llm).args(["-p", "hi"]).spawn_once();
    drop(child.stdin.take());
    llm.request(0).await;
    let pid = rustix::process::Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let run = finished(child, workspace).await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(143), ""));
    assert!(run.stderr.contains("aborted"), "{}", run.stderr);
}

#[tokio::test]
async fn a_session_is_exported_from_the_command_line() {
    let llm = FakeLlm::start().await;
    llm.push(text("The answer."));
    let run = print(&llm, &["-p", "The question?"], "").await;
    let workspace = run.workspace;
    let session = workspace.files_below(&workspace.agent_dir().join("sessions")).remove(0);
    let name = format!("pi-session-{}.html", session.file_stem().unwrap().to_str().unwrap());
    let session = session.to_str().unwrap().to_owned();
    let builder = || Daemon::builder(&llm).model(Model::Unnamed);
    let run = builder().in_workspace(workspace).args(["--export", &session]).run_once("").await;
    assert_eq!((run.code, run.stdout), (Some(0), format!("Exported to: {name}\n")), "{}", run.stderr);
    let page = std::fs::read_to_string(run.workspace.cwd().join(name)).unwrap();
    assert!(page.contains("The question?") && page.contains("The answer."));
    let run =
        builder().in_workspace(run.workspace).args(["--export", &session, "sub.html"]).run_once("").await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "Exported to: sub.html\n"));
    assert!(run.workspace.cwd().join("sub.html").exists());
    let run = builder().in_workspace(run.workspace).args(["--export", "nope.jsonl"]).run_once("").await;
    let missing = run.workspace.cwd().join("nope.jsonl");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert_eq!(run.stderr, format!("Error: File not found: {}\n", missing.display()));
    llm.finish();
}
