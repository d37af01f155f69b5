use std::ffi::OsString;

use secrecy::ExposeSecret;

use super::*;
use crate::branding::{BRANDING, Branding};
use crate::resources::Environment;

fn parse_in(environment: &Environment, args: &[&str]) -> Result<Invocation, CliError> {
    parse(std::iter::once("/usr/bin/sampi").chain(args.iter().copied()).map(OsString::from), environment)
}

fn invocation(args: &[&str]) -> Result<Invocation, CliError> {
    parse_in(&Environment::default(), args)
}

fn config(args: &[&str]) -> Config {
    match invocation(args) {
        Ok(Invocation::Run(config)) => *config,
        other => panic!("{args:?}: {other:?}"),
    }
}

fn error(args: &[&str]) -> String {
    match invocation(args) {
        Err(error) => error.to_string(),
        Ok(other) => panic!("{args:?}: {other:?}"),
    }
}

#[test]
fn values_follow_their_option_or_an_equals_sign() {
    for args in [
        &["--mode", "rpc", "--model", "a=b", "--thinking", "high"][..],
        &["--mode=rpc", "--model=a=b", "--thinking=high"],
    ] {
        let config = config(args);
        assert_eq!(config.mode, Mode::Rpc);
        assert_eq!(config.model.as_deref(), Some("a=b"));
        assert_eq!(config.thinking, Some(ThinkingLevel::High));
    }
    assert_eq!(config(&["--system-prompt", "--dashes"]).system_prompt.as_deref(), Some("--dashes"));
    assert_eq!(error(&["--model"]), "--model requires a value");
    assert_eq!(error(&["--offline=1"]), "--offline takes no value");
}

#[test]
fn short_words_are_whole_options_and_do_not_cluster() {
    let config = config(&[
        "-nt",
        "-xt",
        "a, b",
        "-nbt",
        "-ne",
        "-ns",
        "-np",
        "-nc",
        "-na",
        "-n",
        " My\n name ",
        "-e",
        "x",
        "-e",
        "y",
    ]);
    assert_eq!(
        config.tools,
        ToolSelection { start: ToolStart::Nothing, list: None, exclude: vec!["a".into(), "b".into()] }
    );
    let resources = &config.resources;
    assert!(
        resources.no_extensions
            && resources.no_skills
            && resources.no_prompt_templates
            && resources.no_context_files
    );
    assert_eq!(resources.extensions, ["x", "y"]);
    assert_eq!(config.trust, TrustOverride::Deny);
    assert_eq!(config.name.as_deref(), Some("My name"));
    assert_eq!(error(&["-pc"]), "Unknown option: -pc");
    assert_eq!(error(&["-q"]), "Unknown option: -q");
    assert_eq!(error(&["-"]), "Unknown option: -");
    assert_eq!(error(&["--nope=3"]), "Unknown option: --nope");
}

#[test]
fn every_option_of_the_table_is_accepted_and_in_the_help() {
    let help = help_text(BRANDING);
    for (_, specs) in options::GROUPS {
        for spec in *specs {
            assert!(help.contains(spec.long), "{}", spec.long);
            let value = match spec.option {
                options::Opt::Mode => "json",
                options::Opt::TuiMode => "regular",
                options::Opt::Thinking => "low",
                _ => "demo",
            };
            let names = [spec.long, spec.short].into_iter().filter(|name| !name.is_empty());
            for name in names {
                let with_value: &[&str] =
                    if matches!(spec.takes, options::Takes::Nothing) { &[name] } else { &[name, value] };
                match invocation(with_value) {
                    Ok(_) => {}
                    // These ask for company.
                    Err(error) => assert!(["--resume", "-r", "--api-key"].contains(&name), "{name}: {error}"),
                }
            }
        }
    }
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
}

#[test]
fn a_double_dash_ends_the_options_and_at_names_a_file() {
    let config = config(&["-p", "first", "@a.txt", "--", "-x", "@b.txt", "@"]);
    assert!(config.print);
    assert_eq!(config.messages, ["first", "-x", "@"]);
    assert_eq!(config.files, ["a.txt", "b.txt"]);
    assert_eq!(error(&["--mode", "rpc", "@foo"]), "@file arguments are not supported in RPC mode");
}

#[test]
fn a_bad_mode_is_an_error_and_a_bad_thinking_level_a_warning_both_with_the_allowed_values() {
    assert_eq!(error(&["--mode", "crazy"]), "Invalid mode \"crazy\". Valid values: text, json, rpc");
    assert_eq!(error(&["--mode"]), "--mode requires text, json, or rpc");
    let config = config(&["--thinking", "crazy"]);
    assert_eq!(config.thinking, None);
    let expected =
        "Invalid thinking level \"crazy\". Valid values: off, minimal, low, medium, high, xhigh, max";
    assert_eq!(config.warnings, [expected]);
}

#[test]
fn what_has_no_effect_is_a_warning() {
    for (args, expected) in [
        (&["--model", ""][..], "--model is empty and counts as not given"),
        (&["--provider", " "], "--provider is empty and counts as not given"),
        (&["--api-key", ""], "--api-key is empty and counts as not given"),
        (&["-a", "-na"], "--approve and --no-approve exclude each other; --no-approve counts, it came last"),
        (&["-na", "-a"], "--approve and --no-approve exclude each other; --approve counts, it came last"),
        (
            &["--mode", "rpc", "hello"],
            "prompts on the command line are ignored in RPC mode; the host sends them as commands",
        ),
    ] {
        assert_eq!(config(args).warnings, [expected], "{args:?}");
    }
    for args in
        [&["-a", "-a"][..], &["-na"], &["--models", ""], &["--mode", "rpc"], &["--mode", "json", "hello"]]
    {
        assert!(config(args).warnings.is_empty(), "{args:?}");
    }
    assert_eq!(config(&["--models", ""]).models, Some(Vec::new()));
    assert_eq!(config(&["-na", "-a"]).trust, TrustOverride::Approve);
}

#[test]
fn session_options_choose_one_session() {
    use SessionChoice::*;
    let open = |text: &str| Open(text.to_owned());
    for (args, expected) in [
        (&[][..], New),
        (&["-c"], Continue),
        (&["--session", "x"], open("x")),
        (&["-c", "--session", "x"], open("x")),
        (&["--session-id", "a.b-c_1"], WithId("a.b-c_1".to_owned())),
        (&["--fork", "x"], Fork { source: "x".to_owned(), id: None }),
        (&["--fork", "x", "--session-id", "y"], Fork { source: "x".to_owned(), id: Some("y".to_owned()) }),
        (&["--no-session"], InMemory { id: None }),
        (&["--no-session", "-c"], InMemory { id: None }),
        (&["--no-session", "--session-id", "y"], InMemory { id: Some("y".to_owned()) }),
    ] {
        assert_eq!(config(args).session, expected, "{args:?}");
    }
}

#[test]
fn session_options_that_contradict_each_other_are_errors() {
    for (args, expected) in [
        (&["--fork", "a", "--continue"][..], "--fork cannot be combined with --continue"),
        (&["--fork", "a", "--session", "b"], "--fork cannot be combined with --session"),
        (&["--fork", "a", "-r"], "--fork cannot be combined with --resume"),
        (&["--fork", "a", "--no-session"], "--fork cannot be combined with --no-session"),
        (&["--session-id", "a", "-c"], "--session-id cannot be combined with --continue"),
        (&["--session-id", "a", "--session", "b"], "--session-id cannot be combined with --session"),
        (&["--session-id", "a", "--resume"], "--session-id cannot be combined with --resume"),
        (&["--name", "  "], "--name requires a non-empty value"),
    ] {
        assert_eq!(error(args), expected, "{args:?}");
    }
    for id in ["", "-x-", "a/b", "a b", "é", "x."] {
        assert!(error(&["--session-id", id]).starts_with("Session id must be non-empty"), "{id}");
    }
    assert!(error(&["-r"]).contains("--continue"));
}

#[test]
fn a_provider_or_a_key_needs_a_model_except_the_demo() {
    assert_eq!(
        error(&["--provider", "mock"]),
        "--provider requires --model (for example: --provider mock --model <pattern>)"
    );
    assert!(error(&["--provider", "p", "--model", ""]).starts_with("--provider requires --model"));
    assert_eq!(config(&["--provider", "demo"]).provider.as_deref(), Some("demo"));
    assert!(error(&["--api-key", "k"]).starts_with("--api-key requires a model"));
    let config = config(&["--models", "a, ,b:low", "--api-key", "s3cret"]);
    assert_eq!(config.models, Some(vec!["a".to_owned(), "b:low".to_owned()]));
    assert_eq!(config.api_key.as_ref().map(|key| key.expose_secret()), Some("s3cret"));
    assert!(!format!("{config:?}").contains("s3cret"));
}

#[test]
fn tools_are_names_or_changes_but_not_both() {
    assert_eq!(
        error(&["--tools", "+read,write"]),
        "--tools: tool names cannot be mixed with +name or -name entries"
    );
    let known = ["read", "bash", "edit", "write", "grep", "find", "ls", "mine"].map(str::to_owned);
    let (defaults, own) = (&known[..4], &known[7..]);
    for (args, expected) in [
        (&[][..], "read bash edit write"),
        (&["-t", "ls,read,ls"], "ls read"),
        (&["-t", "r*"], "read"),
        (&["-t", ""], ""),
        (&["-t", "+grep,-bash"], "read edit write grep"),
        (&["-xt", "*a*"], "edit write"),
        (&["-xt", "*"], ""),
        (&["-xt", "w*t*e,r*a*d"], "bash edit"),
        (&["-nt"], ""),
        (&["-nbt"], ""),
        (&["-nt", "-t", "read"], "read"),
        (&["-nbt", "-t", "+ls"], "ls"),
        (&["-t", "nosuch"], ""),
        (&["-t", "+nosuch"], "read bash edit write"),
    ] {
        let (tools, unknown) = config(args).tools.select(defaults, &[], &known);
        assert_eq!(tools.join(" "), expected, "{args:?}");
        assert_eq!(unknown.is_empty(), !args.join("").contains("nosuch"), "{args:?}");
    }
    for (args, expected) in [
        (&[][..], "read bash edit write mine"),
        (&["-nbt"], "mine"),
        (&["-nt"], ""),
        (&["-t", "read"], "read"),
        (&["-t", "m*"], "mine"),
        (&["-t", "-bash"], "read edit write mine"),
        (&["-xt", "mine"], "read bash edit write"),
    ] {
        let (tools, _) = config(args).tools.select(defaults, own, &known);
        assert_eq!(tools.join(" "), expected, "{args:?}, with a tool of the host");
    }
}

#[test]
fn list_models_takes_a_search_unless_an_option_follows() {
    for (args, expected) in [
        (&["--list-models"][..], ""),
        (&["--list-models", "ant"], "ant"),
        (&["--list-models", "--offline"], ""),
        (&["--list-models=gpt 5"], "gpt 5"),
    ] {
        let Ok(Invocation::ListModels { search, .. }) = invocation(args) else { panic!("{args:?}") };
        assert_eq!(search, expected);
    }
}

#[test]
fn help_version_schema_and_what_is_not_there_yet_are_told_apart() {
    assert!(matches!(invocation(&["-h", "--mode", "rpc"]), Ok(Invocation::Help)));
    assert!(matches!(invocation(&["schema"]), Ok(Invocation::Schema)));
    assert!(matches!(invocation(&["schema", "--help"]), Ok(Invocation::Help)));
    assert_eq!(error(&["schema", "x"]), "schema takes no arguments, but \"x\" was given");
    assert!(
        matches!(invocation(&["auth", "login", "x"]), Ok(Invocation::Auth(args)) if args == ["login", "x"])
    );
    assert!(matches!(invocation(&["mcp", "list"]), Ok(Invocation::NotYet("mcp"))));
    assert!(matches!(
        invocation(&["--export", "x", "out.html", "more"]),
        Ok(Invocation::Export { session, output: Some(output) }) if session == "x" && output == "out.html"
    ));
    assert!(matches!(invocation(&["--export", "x"]), Ok(Invocation::Export { output: None, .. })));
    assert!(invocation(&["--export"]).is_err());
    assert_eq!(config(&["--mode", "rpc", "auth"]).messages, ["auth"]);
    let version = |program: &str| match parse([program, "-v"].map(OsString::from), &Environment::default()) {
        Ok(Invocation::Version(text)) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(version("/opt/bin/pi"), "1.6.0");
    assert_eq!(version("sampi"), format!("sampi {} (compatible with Pi 1.6.0)", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_fork_speaks_of_itself_and_its_own_files_and_variables() {
    let fork = Branding { name: "my-agent", config_dir: ".mine", shared_name: "" };
    let help = help_text(fork);
    assert!(help.starts_with("my-agent: a coding agent"), "{help}");
    for line in [
        "  my-agent --mode rpc [options]       serve a host until stdin ends\n",
        "  MY_AGENT_CODING_AGENT_DIR         configuration directory (default: ~/.mine/agent)\n",
        "  MY_AGENT_CODING_AGENT_SESSION_DIR where sessions are kept; --session-dir goes before it\n",
        "  MY_AGENT_DEMO_SCRIPT              file with the script of the demo model\n",
        "  PI_OFFLINE                        1, true or yes: as --offline\n",
        "  ~/.mine/agent/settings.json       settings; .mine/settings.json of a trusted project over them\n",
    ] {
        assert!(help.contains(line), "{line}\n{help}");
    }
    for gone in ["sampi", "SAMPI", ".pi", "PI_CODING", "Pi's", "{"] {
        assert!(!help.contains(gone), "{gone}\n{help}");
    }
    let version = version_text(fork, "/opt/bin/my-agent".as_ref());
    assert_eq!(version, format!("my-agent {} (compatible with Pi 1.6.0)", env!("CARGO_PKG_VERSION")));
    assert!(!help_text(BRANDING).contains('{'));
}

#[test]
fn offline_comes_from_the_environment_too() {
    for (value, expected) in [("1", true), ("0", false)] {
        let environment = Environment::new("/", [("PI_OFFLINE", value)]);
        let Ok(Invocation::Run(config)) = parse_in(&environment, &[]) else { panic!() };
        assert_eq!(config.offline, expected);
    }
}

#[cfg(unix)]
#[test]
fn an_argument_that_is_no_text_is_an_error() {
    use std::os::unix::ffi::OsStringExt;
    let args = [OsString::from("sampi"), OsString::from_vec(vec![0xff])];
    assert!(parse(args, &Environment::default()).is_err());
}
