//! The agent inside a program: one session, its prompts, its tools, what it writes and what it does not.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use sampi_protocol::commands::{Disposition, StreamingBehavior};
use sampi_protocol::data::{StopReason, ThinkingLevel, ToolDefinition, ToolOutput};
use sampi_protocol::events::SessionEvent;
use sampi_server::BoxFuture;
use sampi_server::agent::AgentError;
use sampi_server::embed::{AgentSession, EmbedError, Event, Prompt, Subscription};
use sampi_server::resources::Resources;
use sampi_server::resources::settings::SettingsSource;
use sampi_server::resources::templates::PromptTemplate;
use sampi_server::tools::{Tool, ToolContext, ToolError, text_output};
use sampi_tests::fake_llm::{FakeLlm, Gate, Reply, text, tool_call};
use sampi_tests::harness::{Daemon, Model, Workspace, within_timeout};
use serde_json::{Map, Value, json};

/// A session in memory, with the model of the fake server.
async fn session(llm: &FakeLlm) -> (AgentSession, Workspace) {
    let (builder, workspace) = Daemon::builder(llm).embed();
    (builder.in_memory().build().await.unwrap(), workspace)
}

/// What is left of a subscription that has ended.
pub(crate) async fn rest(mut events: Subscription) -> Vec<Event> {
    let mut rest = Vec::new();
    while let Some(event) = within_timeout("the end of a subscription", events.next()).await {
        rest.push(event);
    }
    rest
}

/// A task that prompts the session.
pub(crate) fn prompting(
    session: &AgentSession,
    text: &'static str,
) -> tokio::task::JoinHandle<Result<sampi_server::embed::PromptOutcome, EmbedError>> {
    let session = session.clone();
    tokio::spawn(async move { session.prompt(text).await })
}

#[tokio::test]
async fn a_prompt_resolves_when_its_run_has_settled_with_all_that_was_said() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::error(529, "overloaded_error", "Overloaded"));
    llm.push(tool_call("c1", "bash", json!({ "command": "echo found" })));
    llm.push(text("All done."));
    let settings = json!({ "retry": { "baseDelayMs": 1 } });
    let (builder, _workspace) = Daemon::builder(&llm).settings(settings).embed();
    let session = builder.in_memory().build().await.unwrap();
    let mut events = session.subscribe();
    let outcome = session.prompt("look").await.unwrap();
    assert_eq!(outcome.disposition, Disposition::Started);
    assert_eq!(outcome.text(), "All done.");
    assert!(outcome.is_ok());
    let roles: Vec<Value> = outcome
        .messages
        .iter()
        .map(|message| serde_json::to_value(message).unwrap()["role"].clone())
        .filter(|role| role != "system")
        .collect();
    assert_eq!(
        roles,
        ["user", "assistant", "assistant", "toolResult", "assistant"],
        "the failed try is among them"
    );
    assert!(!session.state().await.unwrap().is_streaming);
    assert_eq!(session.last_assistant_text().await.unwrap().as_deref(), Some("All done."));
    session.dispose().await;
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event);
    }
    assert!(matches!(last.unwrap().as_session(), Some(SessionEvent::AgentSettled(_))));
    llm.finish();
}

#[tokio::test]
async fn a_model_that_fails_is_told_by_the_outcome_and_no_model_by_an_error() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::error(400, "invalid_request_error", "no such thing"));
    let (session, _workspace) = session(&llm).await;
    let outcome = session.prompt("hi").await.unwrap();
    assert!(outcome.error().unwrap().contains("no such thing"), "{outcome:?}");
    assert!(!outcome.is_ok() && !outcome.aborted);
    session.dispose().await;

    let (builder, _workspace) = Daemon::builder(&llm).model(Model::Unnamed).models(json!({})).embed();
    let session = builder.in_memory().build().await.unwrap();
    let refused = session.prompt("hi").await.unwrap_err();
    assert!(matches!(refused, EmbedError::Agent(AgentError::NoModel(_))), "{refused}");
    session.dispose().await;
    llm.finish();
}

#[tokio::test]
async fn during_a_run_a_prompt_must_say_what_to_do_and_steering_comes_before_follow_ups() {
    let llm = FakeLlm::start().await;
    let gate = Gate::new();
    llm.push(tool_call("c1", "bash", json!({ "command": "echo x" })).wait(&gate));
    llm.push_all([text("Steered."), text("Also steered."), text("Followed.")]);
    let (session, _workspace) = session(&llm).await;
    let run = prompting(&session, "begin");
    gate.reached().await;
    let refused = session.prompt("what now").await.unwrap_err();
    assert!(matches!(refused, EmbedError::Agent(AgentError::Busy(_))), "{refused}");
    assert_eq!(session.follow_up("then this").await.unwrap(), Disposition::Queued);
    assert_eq!(session.steer("rather this").await.unwrap(), Disposition::Queued);
    let queued = Prompt::new("and this").during_run(StreamingBehavior::Steer);
    assert_eq!(session.prompt(queued).await.unwrap().disposition, Disposition::Queued);
    gate.open();
    let outcome = run.await.unwrap().unwrap();
    assert_eq!(outcome.text(), "Followed.");
    let last = llm.requests().pop().unwrap().user_texts();
    assert_eq!(last, ["begin", "rather this", "and this", "then this"]);
    session.dispose().await;
    llm.finish();
}

#[tokio::test]
async fn an_abort_returns_when_the_session_is_idle_and_the_prompt_resolves_as_aborted() {
    let llm = FakeLlm::start().await;
    let gate = Gate::new();
    llm.push(text("So far").wait(&gate));
    llm.push(text("Again."));
    let (session, _workspace) = session(&llm).await;
    let run = prompting(&session, "begin");
    gate.reached().await;
    session.abort().await.unwrap();
    assert!(!session.state().await.unwrap().is_streaming);
    let outcome = run.await.unwrap().unwrap();
    assert!(outcome.aborted);
    assert_eq!(outcome.answer().unwrap().stop_reason, StopReason::Aborted);
    assert_eq!(session.prompt("again").await.unwrap().text(), "Again.");
    session.dispose().await;
    llm.finish();
}

#[tokio::test]
async fn waiting_for_idle_ends_no_earlier_than_the_run_and_stops_nothing() {
    let llm = FakeLlm::start().await;
    let gate = Gate::new();
    llm.push(text("Whole.").wait(&gate));
    let (session, _workspace) = session(&llm).await;
    session.wait_for_idle().await.unwrap();
    let run = prompting(&session, "begin");
    gate.reached().await;
    let mut idle = pin!(session.wait_for_idle());
    poll_fn(|cx| {
        assert!(idle.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
    assert!(session.state().await.unwrap().is_streaming);
    gate.open();
    idle.await.unwrap();
    assert_eq!(session.last_assistant_text().await.unwrap().as_deref(), Some("Whole."));
    run.await.unwrap().unwrap();
    session.dispose().await;
    llm.finish();
}

#[tokio::test]
async fn a_dropped_prompt_abandons_the_wait_and_the_run_goes_on() {
    let llm = FakeLlm::start().await;
    let gate = Gate::new();
    llm.push(text("Whole.").wait(&gate));
    let (session, _workspace) = session(&llm).await;
    let run = prompting(&session, "begin");
    gate.reached().await;
    run.abort();
    assert!(run.await.unwrap_err().is_cancelled());
    gate.open();
    session.wait_for_idle().await.unwrap();
    assert_eq!(session.last_assistant_text().await.unwrap().as_deref(), Some("Whole."));
    session.dispose().await;
    llm.finish();
}

#[tokio::test]
async fn dispose_ends_the_run_the_subscriptions_and_every_handle() {
    let llm = FakeLlm::start().await;
    let gate = Gate::new();
    llm.push(text("So far").wait(&gate));
    let (session, _workspace) = session(&llm).await;
    let events = session.subscribe();
    let run = prompting(&session, "begin");
    gate.reached().await;
    let other = session.clone();
    session.dispose().await;
    assert!(run.await.unwrap().unwrap().aborted);
    let events = rest(events).await;
    let settled = |event: &Event| matches!(event.as_session(), Some(SessionEvent::AgentSettled(_)));
    assert!(settled(events.last().unwrap()), "the run's end is told first");
    assert!(matches!(other.prompt("more").await, Err(EmbedError::Disposed)));
    assert!(matches!(other.messages().await, Err(EmbedError::Disposed)));
    assert!(rest(other.subscribe()).await.is_empty(), "there is nothing more to hear");
    other.dispose().await;
    llm.finish();
}

#[tokio::test]
async fn dropping_the_last_handle_ends_the_session_in_the_background() {
    let llm = FakeLlm::start().await;
    let (session, _workspace) = session(&llm).await;
    let other = session.clone();
    let events = session.subscribe();
    drop(session);
    assert!(other.messages().await.unwrap().is_empty(), "another handle is left");
    drop(other);
    assert!(rest(events).await.is_empty());
    llm.finish();
}

/// A tool of a host.
struct Weather(ToolDefinition);

impl Weather {
    fn new(name: &str) -> Self {
        let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } },
            "required": ["city"] });
        let definition =
            json!({ "name": name, "description": "Tells the weather", "parameters": parameters });
        Self(serde_json::from_value(definition).unwrap())
    }
}

impl Tool for Weather {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    fn snippet(&self) -> &str {
        "The weather in a city"
    }

    fn run<'a>(
        &'a self,
        arguments: Map<String, Value>,
        _context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { Ok(text_output(format!("Rain in {}", arguments["city"].as_str().unwrap()))) })
    }
}

fn names(tools: &[&str]) -> Vec<String> {
    tools.iter().map(|&name| name.to_owned()).collect()
}

#[tokio::test]
async fn a_tool_of_the_host_is_declared_and_called() {
    let llm = FakeLlm::start().await;
    llm.push(tool_call("c1", "weather", json!({ "city": "Oslo" })));
    llm.push(text("Take an umbrella."));
    let (builder, _workspace) = Daemon::builder(&llm).embed();
    let session = builder.in_memory().tool(Weather::new("weather")).build().await.unwrap();
    let outcome = session.prompt("Oslo?").await.unwrap();
    assert_eq!(outcome.text(), "Take an umbrella.");
    assert_eq!(llm.requests()[0].tool_names(), ["read", "bash", "edit", "write", "weather"]);
    assert!(llm.requests()[1].body.to_string().contains("Rain in Oslo"));
    assert!(session.system_prompt().await.unwrap().contains("weather: The weather in a city"));
    session.dispose().await;
    llm.finish();
}

#[tokio::test]
async fn tools_are_allowed_denied_left_out_and_replaced() {
    let llm = FakeLlm::start().await;
    let (builder, _workspace) = Daemon::builder(&llm).embed();
    let builder = builder.in_memory();
    let with_own = builder.clone().tool(Weather::new("weather"));
    for (builder, expected) in [
        (builder.clone().tools(["read", "grep"]), &["read", "grep"][..]),
        (builder.clone().exclude_tools(["bash", "e*"]), &["read", "write"]),
        (builder.clone().no_tools(), &[]),
        (with_own.clone().no_builtin_tools(), &["weather"]),
        (with_own.clone().no_tools(), &[]),
        (with_own.clone().tools(["read", "weather"]), &["read", "weather"]),
        (with_own.exclude_tools(["weather"]), &["read", "bash", "edit", "write"]),
        (builder.clone().tool(Weather::new("bash")), &["read", "bash", "edit", "write"]),
    ] {
        let session = builder.build().await.unwrap();
        assert_eq!(session.active_tools().await.unwrap(), names(expected));
        session.dispose().await;
    }
    llm.push(tool_call("c1", "bash", json!({ "command": "echo no" })));
    llm.push(text("It is not there."));
    let session = builder.exclude_tools(["bash"]).build().await.unwrap();
    session.prompt("run it").await.unwrap();
    assert!(!llm.requests()[0].tool_names().contains(&"bash".to_owned()));
    assert!(llm.requests()[1].body.to_string().contains("bash not found"), "a denied tool does not run");
    session.set_active_tools(["ls"]).await.unwrap();
    assert_eq!(session.active_tools().await.unwrap(), ["ls"]);
    assert!(session.set_active_tools(["nosuch"]).await.is_err());
    assert_eq!(session.active_tools().await.unwrap(), ["ls"]);
    session.dispose().await;
    llm.finish();
}

#[tokio::test]
async fn settings_in_memory_are_neither_read_from_files_nor_written() {
    let llm = FakeLlm::start().await;
    let stored = json!({ "defaultThinkingLevel": "high", "compaction": { "enabled": false } });
    let (builder, workspace) = Daemon::builder(&llm).model(Model::Reasoning).settings(stored).embed();
    let file = workspace.agent_dir().join("settings.json");
    let before = std::fs::read(&file).unwrap();

    let stored = builder.clone().in_memory().build().await.unwrap();
    assert_eq!(stored.thinking_level().await.unwrap(), ThinkingLevel::High);
    assert!(!stored.state().await.unwrap().auto_compaction_enabled);
    stored.dispose().await;

    let own = json!({ "defaultThinkingLevel": "low" }).as_object().unwrap().clone();
    let session = builder.clone().in_memory().settings(SettingsSource::Memory(own)).build().await.unwrap();
    assert_eq!(session.thinking_level().await.unwrap(), ThinkingLevel::Low);
    assert!(session.state().await.unwrap().auto_compaction_enabled);
    session.set_auto_compaction(false).await.unwrap();
    session.wait_for_idle().await.unwrap();
    assert!(!session.state().await.unwrap().auto_compaction_enabled);
    session.dispose().await;
    assert_eq!(std::fs::read(&file).unwrap(), before);

    let over = json!({ "compaction": { "enabled": true } }).as_object().unwrap().clone();
    let session = builder.in_memory().override_settings(over).build().await.unwrap();
    assert_eq!(session.thinking_level().await.unwrap(), ThinkingLevel::High, "the rest is as stored");
    assert!(session.state().await.unwrap().auto_compaction_enabled);
    session.set_auto_retry(false).await.unwrap();
    session.wait_for_idle().await.unwrap();
    session.dispose().await;
    let after: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(after["retry"]["enabled"], false, "what is changed goes to the file");
    assert_eq!(after["compaction"]["enabled"], false, "an override does not");
    llm.finish();
}

#[tokio::test]
async fn a_session_in_memory_writes_no_file_and_another_one_is_found_again() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("One."), text("Two."), text("Three."), text("Four.")]);
    let (builder, workspace) = Daemon::builder(&llm).embed();
    let files = || workspace.files_below(&workspace.root());
    let before = files();
    let session = builder.clone().in_memory().build().await.unwrap();
    session.prompt("first").await.unwrap();
    assert_eq!(session.session_file().await.unwrap(), None);
    assert_eq!(session.stats().await.unwrap().assistant_messages, 1);
    session.dispose().await;
    assert_eq!(files(), before);

    let session = builder.clone().name("kept").build().await.unwrap();
    session.prompt("second").await.unwrap();
    let file = session.session_file().await.unwrap().unwrap();
    let id = session.session_id().await.unwrap();
    session.dispose().await;
    assert!(file.exists());

    let session = builder.clone().continue_recent().build().await.unwrap();
    assert_eq!(
        (session.session_id().await.unwrap(), session.session_file().await.unwrap()),
        (id.clone(), Some(file.clone()))
    );
    assert_eq!(session.state().await.unwrap().session_name.as_deref(), Some("kept"));
    session.prompt("third").await.unwrap();
    session.dispose().await;

    let session = builder.clone().open_session(&file).build().await.unwrap();
    assert_eq!(session.fork_points().await.unwrap().len(), 2);
    session.dispose().await;

    let session = builder.fork_session(&file).build().await.unwrap();
    assert_ne!(session.session_id().await.unwrap(), id);
    session.prompt("fourth").await.unwrap();
    assert_eq!(llm.requests()[3].user_texts(), ["second", "third", "fourth"]);
    session.dispose().await;
    llm.finish();
}

#[tokio::test]
async fn resources_are_discovered_adjusted_or_supplied_and_prompt_texts_are_taken_as_they_are() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm)
        .agent_file("AGENTS.md", "the user's rules")
        .agent_file("SYSTEM.md", "the user's prompt")
        .agent_file("prompts/found.md", "Found: $1");
    let (builder, _workspace) = daemon.embed();
    let builder = builder.in_memory();
    let own = || PromptTemplate::new("own", "ours", "Own: $1");
    let adjusted = builder.clone().adjust_resources(move |resources| {
        resources.context_files.clear();
        resources.templates.push(own());
    });
    let supplied = Resources { templates: vec![own()], ..Resources::default() };
    let supplied =
        builder.clone().resources(supplied).system_prompt("SYSTEM.md").append_system_prompt("And more.");
    for (builder, commands, rules, prompt) in [
        (builder, &["found"][..], true, "the user's prompt"),
        (adjusted, &["found", "own"], false, "the user's prompt"),
        (supplied, &["own"], false, "SYSTEM.md"),
    ] {
        let session = builder.build().await.unwrap();
        let found: Vec<String> =
            session.commands().await.unwrap().into_iter().map(|command| command.name).collect();
        assert_eq!(found, commands);
        let system = session.system_prompt().await.unwrap();
        assert_eq!(system.contains("the user's rules"), rules, "{system}");
        assert!(system.starts_with(prompt), "{system}");
        session.dispose().await;
    }
    llm.finish();
}

#[tokio::test]
async fn a_key_of_the_host_goes_before_others_and_models_can_come_from_memory() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("One."), text("Two.")]);
    let (builder, workspace) = Daemon::builder(&llm).embed();
    let builder = builder.in_memory();
    let session = builder.clone().api_key("mock", "sk-of-the-host").build().await.unwrap();
    session.prompt("hi").await.unwrap();
    assert_eq!(llm.requests()[0].header("authorization"), Some("Bearer sk-of-the-host"));
    session.dispose().await;

    std::fs::remove_file(workspace.agent_dir().join("models.json")).unwrap();
    let url = llm.url();
    let session = builder
        .models(move |environment, _| {
            let models = json!({ "providers": { "mine": { "api": "openai-completions", "baseUrl": format!("{url}/v1"),
                "models": [{ "id": "m9" }] } } });
            let models = models.as_object().unwrap();
            sampi_server::resources::models::ModelRegistry::in_memory(environment, models, Vec::new())
        })
        .api_key("mine", "sk-mine")
        .model("mine/m9")
        .build()
        .await
        .unwrap();
    assert_eq!(session.model().await.unwrap().unwrap().id, "m9");
    session.prompt("hi").await.unwrap();
    assert_eq!(llm.requests()[1].header("authorization"), Some("Bearer sk-mine"));
    assert!(session.set_model("mine", "nosuch").await.is_err());
    session.dispose().await;
    llm.finish();
}

#[tokio::test]
async fn what_cannot_be_started_is_an_error_and_what_does_no_harm_a_warning() {
    let llm = FakeLlm::start().await;
    let (builder, workspace) = Daemon::builder(&llm).embed();
    let error = builder.clone().model("nosuch/model").build().await.unwrap_err();
    assert!(matches!(error, EmbedError::Start(_)), "{error}");
    let missing = workspace.root().join("nosuch/x.txt");
    std::fs::write(workspace.cwd().join("notes.txt"), "no session\n").unwrap();
    assert!(builder.clone().open_session(workspace.cwd().join("notes.txt")).build().await.is_err());
    let session = builder.in_memory().skill_path(&missing).tools(["read", "nosuch"]).build().await.unwrap();
    let warnings = session.warnings().await.unwrap().join("\n");
    assert!(warnings.contains("nosuch/x.txt") && warnings.contains("there is no tool nosuch"), "{warnings}");
    session.dispose().await;
    llm.finish();
}

#[tokio::test]
async fn a_compaction_and_a_move_in_the_tree_give_their_results() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("One."), text("Two."), text("The summary."), text("The summary of the turn.")]);
    let small = json!({ "compaction": { "keepRecentTokens": 1 } });
    let (builder, _workspace) = Daemon::builder(&llm).settings(small).embed();
    let session = builder.in_memory().build().await.unwrap();
    session.prompt("first").await.unwrap();
    session.prompt("second").await.unwrap();
    let compacted = session.compact_with("names").await.unwrap();
    assert!(compacted.summary.contains("The summary."), "{compacted:?}");
    let (target, text) = session.fork_points().await.unwrap().remove(0);
    let leaving = sampi_server::agent::Leaving::Silent;
    let navigation = sampi_server::agent::Navigation { target, leaving, label: None };
    let navigated = session.navigate(navigation).await.unwrap();
    assert_eq!(navigated.editor_text, Some(text));
    let refused = session.compact().await.unwrap_err();
    assert!(matches!(refused, EmbedError::Agent(AgentError::NotFound(_))), "{refused}");
    session.dispose().await;
    llm.finish();
}

#[tokio::test]
async fn two_sessions_in_one_process_do_not_know_each_other() {
    let llm = FakeLlm::start().await;
    llm.on_request(|request| match &request.user_texts()[..] {
        [one] if one == "to one" => text("One."),
        _ => text("Two."),
    });
    let (builder, _workspace) = Daemon::builder(&llm).embed();
    let one = builder.clone().in_memory().build().await.unwrap();
    let two = builder.in_memory().build().await.unwrap();
    let (first, second) = tokio::join!(one.prompt("to one"), two.prompt("to two"));
    assert_eq!((first.unwrap().text(), second.unwrap().text()), ("One.".to_owned(), "Two.".to_owned()));
    one.dispose().await;
    assert_eq!(two.last_assistant_text().await.unwrap().as_deref(), Some("Two."));
    two.dispose().await;
    llm.finish();
}
