//! Replacing the session of a program: what becomes of the old one, of its subscriptions, of what it works with.

use std::path::{Path, PathBuf};

use sampi_protocol::events::SessionEvent;
use sampi_server::BoxFuture;
use sampi_server::agent::AgentError;
use sampi_server::embed::{AgentSessionRuntime, EmbedError, Event};
use sampi_server::extensions::{Extension, SessionTransition};
use sampi_server::resources::settings::SettingsSource;
use sampi_tests::fake_llm::{FakeLlm, Gate, text};
use sampi_tests::harness::{Daemon, Workspace};
use serde_json::Map;

use crate::embedded::{prompting, rest};
use crate::session_files::{as_lines, written_by_pi};

async fn runtime(llm: &FakeLlm) -> (AgentSessionRuntime, Workspace) {
    let (builder, workspace) = Daemon::builder(llm).embed();
    (builder.build_runtime().await.unwrap(), workspace)
}

fn session_of(cwd: &Path, file: &Path) -> PathBuf {
    std::fs::create_dir_all(cwd).unwrap();
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, as_lines(&written_by_pi(cwd))).unwrap();
    file.to_owned()
}

#[tokio::test]
async fn a_new_session_ends_the_handles_and_subscriptions_of_the_old_one_and_its_file_stays() {
    let llm = FakeLlm::start().await;
    let gate = Gate::new();
    llm.push(text("So far").wait(&gate));
    llm.push(text("Two."));
    let (runtime, _workspace) = runtime(&llm).await;
    let old = runtime.session();
    let events = old.subscribe();
    let run = prompting(&old, "first");
    gate.reached().await;
    let file = old.session_file().await.unwrap().unwrap();
    assert!(!runtime.new_session().await.unwrap().cancelled);
    assert!(run.await.unwrap().unwrap().aborted, "what was under way is over");
    let last = rest(events).await.pop().unwrap();
    assert!(matches!(last.as_session(), Some(SessionEvent::AgentSettled(_))), "{last:?}");
    assert!(matches!(old.prompt("more").await, Err(EmbedError::Disposed)));
    old.dispose().await;
    let before = std::fs::read(&file).unwrap();

    let new = runtime.session();
    let events = new.subscribe();
    assert!(new.messages().await.unwrap().is_empty());
    assert_eq!(new.prompt("second").await.unwrap().text(), "Two.");
    assert_eq!(llm.requests()[1].user_texts(), ["second"]);
    assert_ne!(new.session_file().await.unwrap().unwrap(), file);
    assert_eq!(std::fs::read(&file).unwrap(), before);
    runtime.dispose().await;
    assert!(!rest(events).await.is_empty());
    llm.finish();
}

#[tokio::test]
async fn dropping_handles_of_old_sessions_does_not_end_the_active_one() {
    let llm = FakeLlm::start().await;
    llm.push(text("Here."));
    let (runtime, _workspace) = runtime(&llm).await;
    let old = runtime.session();
    runtime.new_session().await.unwrap();
    drop(old);
    let session = runtime.session();
    let events = session.subscribe();
    drop(runtime);
    assert_eq!(session.prompt("there?").await.unwrap().text(), "Here.");
    drop(session);
    assert!(!rest(events).await.is_empty());
    llm.finish();
}

#[tokio::test]
async fn a_session_of_another_working_directory_works_with_the_configuration_there() {
    let llm = FakeLlm::start().await;
    llm.push(text("Theirs."));
    let (runtime, workspace) = runtime(&llm).await;
    let other = workspace.root().join("other");
    let file = session_of(&other, &other.join("theirs.jsonl"));
    std::fs::write(other.join("AGENTS.md"), "rules of the other folder").unwrap();
    std::fs::write(workspace.cwd().join("AGENTS.md"), "rules of the first folder").unwrap();
    runtime.switch_session(&file).await.unwrap();
    let session = runtime.session();
    assert_eq!(session.cwd().await.unwrap(), other);
    assert_eq!(session.session_file().await.unwrap(), Some(file));
    session.prompt("now").await.unwrap();
    let body = llm.requests()[0].body.to_string();
    assert!(body.contains("rules of the other folder") && !body.contains("rules of the first folder"));
    assert_eq!(llm.requests()[0].user_texts(), ["earlier", "now"]);
    runtime.dispose().await;
    llm.finish();
}

#[tokio::test]
async fn a_replacement_that_fails_leaves_the_session_its_run_and_its_subscriptions() {
    let llm = FakeLlm::start().await;
    let gate = Gate::new();
    llm.push(text("Whole.").wait(&gate));
    let (runtime, workspace) = runtime(&llm).await;
    let session = runtime.session();
    let events = session.subscribe();
    let run = prompting(&session, "begin");
    gate.reached().await;
    let missing = workspace.root().join("nosuch.jsonl");
    assert!(runtime.switch_session(&missing).await.is_err());
    assert!(runtime.import_jsonl(&missing).await.is_err());
    assert!(runtime.fork("nosuch".into()).await.is_err());
    let gone = session_of(&workspace.root().join("gone"), &workspace.root().join("gone.jsonl"));
    std::fs::remove_dir(workspace.root().join("gone")).unwrap();
    let error = runtime.switch_session(&gone).await.unwrap_err();
    assert!(matches!(error, EmbedError::Agent(AgentError::Session(_))), "{error}");
    gate.open();
    assert_eq!(run.await.unwrap().unwrap().text(), "Whole.");
    assert_eq!(session.last_assistant_text().await.unwrap().as_deref(), Some("Whole."));
    runtime.dispose().await;
    let settled = |event: &Event| matches!(event.as_session(), Some(SessionEvent::AgentSettled(_)));
    assert!(rest(events).await.iter().any(settled));
    llm.finish();
}

#[tokio::test]
async fn a_fork_has_what_came_before_the_message() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("One."), text("Two."), text("Three.")]);
    let (runtime, _workspace) = runtime(&llm).await;
    let session = runtime.session();
    session.prompt("first").await.unwrap();
    session.prompt("second").await.unwrap();
    let (entry, _) = session.fork_points().await.unwrap().pop().unwrap();
    let forked = runtime.fork(entry).await.unwrap();
    assert_eq!(forked.text.as_deref(), Some("second"));
    runtime.session().prompt("third").await.unwrap();
    assert_eq!(llm.requests()[2].user_texts(), ["first", "third"]);
    runtime.clone_session().await.unwrap();
    assert_eq!(runtime.session().fork_points().await.unwrap().len(), 2);
    runtime.dispose().await;
    llm.finish();
}

#[tokio::test]
async fn an_import_copies_the_file_to_the_sessions_of_its_working_directory_and_opens_the_copy() {
    let llm = FakeLlm::start().await;
    llm.push(text("Going on."));
    let (runtime, workspace) = runtime(&llm).await;
    let other = workspace.root().join("other");
    let file = session_of(&other, &workspace.root().join("from/elsewhere.jsonl"));
    let original = std::fs::read(&file).unwrap();
    runtime.import_jsonl(&file).await.unwrap();
    let session = runtime.session();
    let copy = session.session_file().await.unwrap().unwrap();
    assert!(copy.starts_with(workspace.agent_dir().join("sessions")), "{}", copy.display());
    assert_eq!(copy.file_name(), file.file_name());
    assert_eq!(session.cwd().await.unwrap(), other);
    assert_eq!(session.prompt("on").await.unwrap().text(), "Going on.");
    assert_eq!(llm.requests()[0].user_texts(), ["earlier", "on"]);
    assert_eq!(std::fs::read(&file).unwrap(), original, "the original is left alone");
    let grown = std::fs::read(&copy).unwrap();
    assert!(grown.starts_with(&original) && grown.len() > original.len());

    let again = runtime.import_jsonl(&file).await.unwrap_err();
    assert!(again.to_string().contains("exists"), "{again}");
    assert_eq!(std::fs::read(&copy).unwrap(), grown, "what is there is not written over");
    runtime.dispose().await;

    let (builder, workspace) = Daemon::builder(&llm).embed();
    let runtime = builder.in_memory().build_runtime().await.unwrap();
    let file = session_of(&workspace.root().join("other"), &workspace.root().join("x.jsonl"));
    let refused = runtime.import_jsonl(&file).await.unwrap_err();
    assert!(refused.to_string().contains("in memory"), "{refused}");
    runtime.dispose().await;
    llm.finish();
}

#[tokio::test]
async fn what_was_set_in_memory_outlives_the_session() {
    let llm = FakeLlm::start().await;
    let (builder, workspace) = Daemon::builder(&llm).embed();
    let builder = builder.in_memory().settings(SettingsSource::Memory(Map::new()));
    let before = workspace.files_below(&workspace.root());
    let runtime = builder.build_runtime().await.unwrap();
    runtime.session().set_auto_compaction(false).await.unwrap();
    runtime.new_session().await.unwrap();
    assert!(!runtime.session().state().await.unwrap().auto_compaction_enabled);
    runtime.dispose().await;
    assert_eq!(workspace.files_below(&workspace.root()), before);
    llm.finish();
}

struct Veto;

impl Extension for Veto {
    fn session_before_change<'a>(&'a self, _transition: &'a SessionTransition) -> BoxFuture<'a, bool> {
        Box::pin(async { false })
    }
}

#[tokio::test]
async fn an_extension_that_prevents_a_replacement_leaves_the_session() {
    let llm = FakeLlm::start().await;
    llm.push(text("Still here."));
    let (builder, _workspace) = Daemon::builder(&llm).embed();
    let runtime = builder.in_memory().extension(Veto).build_runtime().await.unwrap();
    let session = runtime.session();
    assert!(runtime.new_session().await.unwrap().cancelled);
    assert_eq!(session.prompt("there?").await.unwrap().text(), "Still here.");
    runtime.dispose().await;
    llm.finish();
}
