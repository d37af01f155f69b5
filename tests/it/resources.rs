//! Skills, prompt templates, instruction files and project trust. `RESOURCES.md` lists the rules.

use std::path::Path;

use sampi_tests::fake_llm::{FakeLlm, Gate, text, tool_call};
use sampi_tests::harness::{Daemon, DaemonBuilder, text_of_content};
use serde_json::{Value, json};

fn skill(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Does {name}\n---\n{body}\n")
}

/// What the slash commands are: name, and where it comes from.
async fn commands(daemon: &Daemon) -> Vec<String> {
    let data = daemon.ok(json!({ "type": "get_commands" })).await;
    let ours = data["commands"].as_array().unwrap().iter().filter(|command| command["source"] != "extension");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    ours.map(|command| {
        let info = &command["sourceInfo"];
        format!("{} {} {}", text(&command["name"]), text(&info["source"]), text(&info["scope"]))
    })
    .collect()
}

/// The sections of every system message so far.
async fn system_sections(daemon: &Daemon) -> Vec<Value> {
    let messages = daemon.messages().await;
    messages
        .iter()
        .filter(|message| message["role"] == "system")
        .map(|message| message["sections"].clone())
        .collect()
}

async fn user_texts(daemon: &Daemon) -> Vec<String> {
    let messages = daemon.messages().await;
    let users = messages.iter().filter(|message| message["role"] == "user");
    users.map(|message| text_of_content(&message["content"])).collect()
}

fn project(builder: DaemonBuilder) -> DaemonBuilder {
    builder
        .file(".pi/skills/pj/SKILL.md", skill("pj", "P"))
        .file(".pi/prompts/pp.md", "pp")
        .file(".pi/SYSTEM.md", "You are the project's.")
        .file(".agents/skills/pa/SKILL.md", skill("pa", "A"))
}

#[tokio::test]
async fn get_commands_lists_templates_then_skills_with_their_source() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm)
        .agent_file(
            "prompts/greet.md",
            "---\ndescription: Greets\nargument-hint: <name>\n---\nSay hi to $1\n",
        )
        .agent_file("skills/demo/SKILL.md", &skill("demo", "# Demo"))
        .file("cli/c.md", "First line\n")
        .args(["--prompt-template", "cli"])
        .spawn()
        .await;
    let data = daemon.ok(json!({ "type": "get_commands" })).await;
    let commands = data["commands"].as_array().unwrap().iter();
    let ours: Vec<&Value> = commands.filter(|command| command["source"] != "extension").collect();
    let (agent, cwd) = (daemon.workspace().agent_dir(), daemon.workspace().cwd());
    let path = |dir: &Path, file: &str| dir.join(file).to_string_lossy().into_owned();
    assert_eq!(
        json!(ours),
        json!([
            {
                "name": "greet", "description": "Greets", "source": "prompt",
                "sourceInfo": {
                    "path": path(&agent, "prompts/greet.md"), "source": "auto", "scope": "user",
                    "origin": "top-level", "baseDir": path(&agent, ""). trim_end_matches('/'),
                },
            },
            {
                "name": "c", "description": "First line", "source": "prompt",
                "sourceInfo": {
                    "path": path(&cwd, "cli/c.md"), "source": "local", "scope": "temporary",
                    "origin": "top-level", "baseDir": path(&cwd, "cli"),
                },
            },
            {
                "name": "skill:demo", "description": "Does demo", "source": "skill",
                "sourceInfo": {
                    "path": path(&agent, "skills/demo/SKILL.md"), "source": "auto", "scope": "user",
                    "origin": "top-level", "baseDir": path(&agent, ""). trim_end_matches('/'),
                },
            },
        ])
    );
    daemon.finish().await;
}

#[tokio::test]
async fn a_prompt_that_names_a_template_or_a_skill_becomes_its_text_and_any_other_goes_through() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("1"), text("2"), text("3")]);
    let daemon = Daemon::builder(&llm)
        .agent_file("prompts/greet.md", "Say hi to $1 and ${2:-nobody}, all: $@\n")
        .agent_file("skills/demo/SKILL.md", &skill("demo", "# Demo\nDo $1."))
        .spawn()
        .await;
    daemon.run("/greet Bob \"two words\"").await;
    daemon.run("/skill:demo do it").await;
    daemon.run("/unknown thing").await;
    let dir = daemon.workspace().agent_dir().join("skills/demo");
    let expanded = format!(
        "<skill name=\"demo\" location=\"{0}/SKILL.md\">\nReferences are relative to {0}.\n\n# Demo\nDo $1.\n</skill>\n\ndo it",
        dir.display()
    );
    let expected = ["Say hi to Bob and two words, all: Bob two words\n", &expanded, "/unknown thing"];
    assert_eq!(user_texts(&daemon).await, expected);
    assert_eq!(llm.requests()[2].user_texts(), expected);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn queued_messages_are_expanded_before_they_are_queued() {
    let llm = FakeLlm::start().await;
    let gate = Gate::new();
    llm.push(tool_call("c1", "bash", json!({ "command": "echo x" })).wait(&gate));
    llm.push_all([text("a"), text("b"), text("c")]);
    let daemon = Daemon::builder(&llm).agent_file("prompts/h.md", "H $1").spawn().await;
    daemon.prompt("go").await;
    gate.reached().await;
    for (kind, more) in
        [("steer", json!({})), ("follow_up", json!({})), ("prompt", json!({ "streamingBehavior": "steer" }))]
    {
        let mut command = json!({ "type": kind, "message": format!("/h {kind}") });
        command.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(daemon.ok(command).await, json!({ "disposition": "queued" }));
    }
    let updates = daemon.all(json!({ "type": "queue_update" }));
    let last = updates.last().unwrap();
    assert_eq!(
        json!([last["steering"], last["followUp"]]),
        json!([["H steer", "H prompt"], ["H follow_up"]])
    );
    gate.open();
    daemon.settled().await;
    assert_eq!(user_texts(&daemon).await, ["go", "H steer", "H prompt", "H follow_up"]);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_skill_that_is_gone_is_told_as_an_error_and_the_message_goes_through_as_it_is() {
    let llm = FakeLlm::start().await;
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm).agent_file("skills/demo/SKILL.md", &skill("demo", "D")).spawn().await;
    assert_eq!(commands(&daemon).await, ["skill:demo auto user"]);
    let file = daemon.workspace().agent_dir().join("skills/demo/SKILL.md");
    std::fs::remove_file(&file).unwrap();
    daemon.run("/skill:demo x").await;
    let errors = daemon.all(json!({ "type": "extension_error" }));
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0]["event"], "skill_expansion");
    assert_eq!(errors[0]["extensionPath"], json!(file));
    assert_eq!(user_texts(&daemon).await, ["/skill:demo x"]);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn the_model_is_told_of_the_skills_it_may_load_and_of_the_instruction_files() {
    let llm = FakeLlm::start().await;
    llm.push(text("ok"));
    let hidden = "---\nname: hidden\ndescription: d\ndisable-model-invocation: true\n---\n";
    let daemon = Daemon::builder(&llm)
        .agent_file("AGENTS.md", "Of the user.")
        .agent_file("skills/demo/SKILL.md", &skill("demo", "D"))
        .agent_file("skills/hidden/SKILL.md", hidden)
        .file("CLAUDE.md", "Of the folder.")
        .spawn()
        .await;
    daemon.run("hi").await;
    let sections = system_sections(&daemon).await;
    let skills = sections[0]["skills"].as_str().unwrap();
    assert!(
        skills.starts_with("<skills>\n") && skills.ends_with("</available_skills>\n</skills>"),
        "{skills}"
    );
    assert!(skills.contains("<name>demo</name>") && !skills.contains("hidden"), "{skills}");
    let context = sections[0]["project_context"].as_str().unwrap();
    assert!(context.find("Of the user.").unwrap() < context.find("Of the folder.").unwrap(), "{context}");
    assert_eq!(commands(&daemon).await, ["skill:demo auto user", "skill:hidden auto user"]);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_resumed_session_is_told_only_what_changed() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("1"), text("2")]);
    let builder = Daemon::builder(&llm);
    let daemon = builder
        .agent_file("skills/demo/SKILL.md", &skill("demo", "D"))
        .file("AGENTS.md", "Old.")
        .spawn()
        .await;
    daemon.run("one").await;
    let workspace = daemon.finish().await;
    std::fs::remove_dir_all(workspace.agent_dir().join("skills")).unwrap();
    std::fs::write(workspace.cwd().join("AGENTS.md"), "New.").unwrap();
    let daemon = Daemon::builder(&llm).in_workspace(workspace).args(["--continue"]).spawn().await;
    daemon.run("two").await;
    let sections = system_sections(&daemon).await;
    assert_eq!(sections.len(), 2);
    let patch = sections[1].as_object().unwrap();
    assert_eq!(patch["skills"], Value::Null);
    assert!(patch["project_context"].as_str().unwrap().contains("New."));
    assert!(!patch.contains_key("preamble") && !patch.contains_key("tools"), "{patch:?}");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn what_an_untrusted_project_brings_is_left_out_and_named_once() {
    let llm = FakeLlm::start().await;
    llm.push(text("ok"));
    let daemon =
        project(Daemon::builder(&llm)).file("AGENTS.md", "Instructions need no trust.").spawn().await;
    assert_eq!(commands(&daemon).await, [""; 0]);
    daemon.run("hi").await;
    let sections = system_sections(&daemon).await;
    assert_ne!(sections[0]["preamble"], "You are the project's.");
    assert!(sections[0]["project_context"].as_str().unwrap().contains("need no trust"));
    let cwd = daemon.workspace().cwd();
    let said = daemon.stderr();
    let named: Vec<&str> = said.lines().filter(|line| line.contains("the project is not trusted")).collect();
    assert_eq!(named.len(), 1, "{said}");
    for path in [".pi/skills", ".pi/prompts", ".pi/SYSTEM.md", ".agents/skills"] {
        assert!(named[0].contains(&*cwd.join(path).to_string_lossy()), "{path}: {said}");
    }
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_project_is_trusted_by_the_command_line_a_saved_decision_or_the_settings() {
    let llm = FakeLlm::start().await;
    let all = ["pp auto project", "skill:pj auto project", "skill:pa auto project"];
    for (saved, settings, arguments, trusted) in [
        (None, json!({}), &["--approve"][..], true),
        (Some(true), json!({}), &[], true),
        (Some(true), json!({}), &["-na"], false),
        (Some(false), json!({}), &["-a"], true),
        (Some(false), json!({ "defaultProjectTrust": "always" }), &[], false),
        (None, json!({ "defaultProjectTrust": "always" }), &[], true),
        (None, json!({ "defaultProjectTrust": "never" }), &[], false),
    ] {
        let mut builder =
            project(Daemon::builder(&llm)).settings(settings.clone()).args(arguments.iter().copied());
        if let Some(saved) = saved {
            // The decision for a folder counts for all folders in it.
            let decisions = json!({ builder.workspace().root().to_str().unwrap(): saved });
            builder = builder.agent_file("trust.json", &decisions.to_string());
        }
        let daemon = builder.spawn().await;
        let expected: &[&str] = if trusted { &all } else { &[] };
        assert_eq!(commands(&daemon).await, expected, "{saved:?} {settings} {arguments:?}");
        let said = daemon.stderr();
        assert!(!said.contains("not trusted"), "somebody decided: {said}");
        daemon.finish().await;
    }
}

#[tokio::test]
async fn a_file_of_decisions_that_cannot_be_read_trusts_nothing_and_the_daemon_runs() {
    let llm = FakeLlm::start().await;
    let daemon = project(Daemon::builder(&llm)).agent_file("trust.json", "nope").spawn().await;
    assert_eq!(commands(&daemon).await, [""; 0]);
    let said = daemon.stderr();
    assert!(said.contains("trust.json:1:2: not valid JSON"), "{said}");
    daemon.finish().await;
}

#[tokio::test]
async fn options_name_resources_and_switch_the_others_off() {
    let llm = FakeLlm::start().await;
    llm.push(text("ok"));
    let daemon = Daemon::builder(&llm)
        .agent_file("AGENTS.md", "Of the user.")
        .agent_file("skills/demo/SKILL.md", &skill("demo", "D"))
        .agent_file("prompts/greet.md", "hi")
        .agent_file("listed/s/SKILL.md", &skill("listed", "L"))
        .settings(json!({ "skills": ["listed"] }))
        .file("mine/SKILL.md", skill("mine", "M"))
        .file("one.md", "one")
        .args(["-ns", "-np", "-nc", "--skill", "mine", "--prompt-template", "one.md"])
        .spawn()
        .await;
    assert_eq!(commands(&daemon).await, ["one local temporary", "skill:mine local temporary"]);
    daemon.run("hi").await;
    assert_eq!(system_sections(&daemon).await[0]["project_context"], Value::Null);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn settings_add_resources_and_switch_single_ones_off() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm)
        .agent_file("skills/a/SKILL.md", &skill("a", "A"))
        .agent_file("skills/b/SKILL.md", &skill("b", "B"))
        .agent_file("more/c/SKILL.md", &skill("c", "C"))
        .agent_file("ex/n/deep.md", "deep")
        .agent_file("ex/out.md", "out")
        .settings(json!({ "skills": ["more", "-skills/b"], "prompts": ["ex", "!out.md", "nosuch"], "mine": { "x": 1 } }))
        .spawn()
        .await;
    assert_eq!(commands(&daemon).await, ["deep local user", "skill:c local user", "skill:a auto user"]);
    let said = daemon.stderr();
    assert_eq!(said.matches("agent/nosuch: the prompt template path does not exist").count(), 1, "{said}");
    daemon.finish().await;
}

#[tokio::test]
async fn bad_files_and_collisions_are_told_once_and_cost_nothing_else() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm)
        .agent_file("skills/broken/SKILL.md", "---\nname: [x\n---\n")
        .agent_file("skills/nodesc/SKILL.md", "---\nname: nodesc\n---\n")
        .agent_file("skills/Bad/SKILL.md", &skill("Bad_Name", "B"))
        .agent_file("skills/README.md", "# Not a skill")
        .agent_file("prompts/broken.md", "---\nx: [\n---\n")
        .agent_file("prompts/same.md", "user's")
        .file("same.md", "mine")
        .args(["--prompt-template", "same.md"])
        .spawn()
        .await;
    assert_eq!(commands(&daemon).await, ["same auto user", "skill:Bad_Name auto user"]);
    let said = daemon.stderr();
    for expected in [
        "skills/broken/SKILL.md: the front matter is not valid YAML",
        "skills/nodesc/SKILL.md: description is required; the skill is not loaded",
        "skills/Bad/SKILL.md: name contains invalid characters",
        "prompts/broken.md: the front matter is not valid YAML",
        "w/same.md: ignored, ",
    ] {
        assert_eq!(said.matches(expected).count(), 1, "{expected}: {said}");
    }
    assert!(!said.contains("README"), "{said}");
    daemon.finish().await;
}
