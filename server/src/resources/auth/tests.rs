use std::fs;

use super::variables::api_key;
use super::*;
use crate::resources::{Environment, Paths};

fn load(text: &str) -> (AuthFile, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let environment = Environment::new(dir.path(), [("PI_CODING_AGENT_DIR", dir.path().to_str().unwrap())]);
    let paths = Paths::new(&environment, dir.path());
    fs::write(paths.auth_file(), text).unwrap();
    AuthFile::load(&paths)
}

fn describe(source: Option<KeySource>) -> String {
    match source {
        None => "nothing".to_owned(),
        Some(KeySource::Ready(key)) => key.expose_secret().to_owned(),
        Some(KeySource::Command(command)) => format!("! {}", command.expose_secret()),
        Some(KeySource::SignIn(tokens)) => {
            format!("{} until {}", tokens.access.expose_secret(), tokens.expires)
        }
        Some(KeySource::NotNeeded) => "not needed".to_owned(),
        Some(KeySource::Missing(why)) => why.unwrap_or_default(),
    }
}

#[test]
fn api_keys_are_literal_or_interpolated_or_commands_and_own_variables_win() {
    let (auth, warnings) = load(
        r#"{"a":{"type":"api_key","key":"lit"},"b":{"type":"api_key","key":"$FOO"},
            "c":{"type":"api_key","key":"$FOO","env":{"FOO":"own"}},"d":{"type":"api_key","key":"!pass x"},
            "e":{"type":"api_key","key":"$NOPE"},"f":{"type":"api_key"},"g":{"type":"api_key","key":""},
            "h":{"type":"oauth","access":"tok","expires":5}}"#,
    );
    assert!(warnings.is_empty(), "{warnings:?}");
    let environment = Environment::new("/", [("FOO", "env")]);
    for (provider, expected) in [
        ("a", "lit"),
        ("b", "env"),
        ("c", "own"),
        ("d", "! pass x"),
        ("e", "the key in auth.json refers to NOPE, which is not set"),
        ("f", "auth.json has no key for f"),
        ("g", "the key in auth.json is empty"),
        ("h", "tok until 1970-01-01T00:00:00.005Z"),
        ("i", "nothing"),
    ] {
        assert_eq!(describe(auth.key_source(provider, &environment)), expected, "{provider}");
    }
}

#[test]
fn wrong_entries_are_warnings_without_values_and_the_others_count() {
    let (auth, warnings) = load(
        r#"{"a":"s3cret","b":{"type":"zork","key":"s3cret"},"c":{"type":"api_key","key":["s3cret"]},
            "d":{"type":"api_key","key":"k","env":{"X":1}},"e":{"type":"api_key","key":"ok"}}"#,
    );
    assert_eq!(warnings.len(), 4);
    assert!(warnings[0].contains("auth.json: a: must be an object"), "{warnings:?}");
    assert!(warnings[3].contains("d: env.X must be a string"), "{warnings:?}");
    assert!(!warnings.join("").contains("s3cret"));
    let environment = Environment::default();
    assert_eq!(describe(auth.key_source("e", &environment)), "ok");
    assert_eq!(describe(auth.key_source("a", &environment)), "nothing");
}

#[test]
fn a_broken_file_is_a_warning_with_its_position() {
    let (_, warnings) = load("{\"a\": {\"type\": \"api_key\", \"key\": \"s3cret\"");
    assert!(warnings[0].contains("auth.json:1:"), "{warnings:?}");
    assert!(!warnings[0].contains("s3cret"));
}

#[test]
fn every_documented_provider_has_its_variable() {
    assert_eq!(environment_variables("openai"), [api_key("OPENAI_API_KEY")]);
    assert_eq!(environment_variables("google"), [api_key("GEMINI_API_KEY")]);
    assert_eq!(environment_variables("anthropic").first().map(|key| key.form), Some(KeyForm::Bearer));
    assert!(environment_variables("mine").is_empty());
}

#[test]
fn error_texts_begin_like_pi_and_say_what_to_do() {
    let text = AuthError::NoModel.to_string();
    assert!(text.starts_with("No API key found for the selected model.\n\n"), "{text}");
    let text = AuthError::NoKey { provider: "groq".to_owned(), why: None }.to_string();
    assert!(text.starts_with("No API key found for groq.\n\n") && text.contains("GROQ_API_KEY"), "{text}");
    let text = AuthError::Unresolved { provider: "px".to_owned(), why: "x".to_owned() }.to_string();
    assert_eq!(text, "API key auth failed for provider px: x");
}

#[test]
fn debug_of_a_key_source_shows_no_secret() {
    for source in [KeySource::Ready("s3cret".into()), KeySource::Command("s3cret".into())] {
        assert!(!format!("{source:?}").contains("s3cret"));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_command_runs_once_even_when_it_fails() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let environment = Environment::new("/", [("PATH", "/usr/bin:/bin")]);
    let cache = CommandCache::default();
    for tail in ["echo key", "exit 1"] {
        fs::write(&log, "").unwrap();
        let command: SecretString = format!("echo x >> '{}'; {tail}", log.display()).into();
        let (first, second) =
            tokio::join!(cache.run(&command, &environment), cache.run(&command, &environment));
        assert_eq!(first.is_ok(), tail == "echo key");
        assert_eq!(first.is_ok(), second.is_ok());
        assert_eq!(fs::read_to_string(&log).unwrap(), "x\n");
    }
}

#[test]
fn tokens_that_do_not_say_when_they_expire_do_not_and_wrong_ones_are_named() {
    let (auth, warnings) = load(
        r#"{"a":{"type":"oauth","access":"tok"},"b":{"type":"oauth"},"c":{"type":"oauth","access":"t0k","expires":"x"},
            "d":{"type":"oauth","access":"tok","refresh":7},"e":{"type":"oauth","access":"tok","expires":1e300}}"#,
    );
    let told: Vec<&str> =
        warnings.iter().map(|warning| warning.split_once("auth.json: ").unwrap().1).collect();
    assert_eq!(
        told,
        [
            "b: access must be a string that is not empty; the entry is ignored",
            "c: expires must be a number of milliseconds since 1970; the entry is ignored",
            "d: refresh must be a string; the entry is ignored",
        ]
    );
    let environment = Environment::default();
    for provider in ["a", "e"] {
        let Some(KeySource::SignIn(tokens)) = auth.key_source(provider, &environment) else { panic!() };
        assert!(tokens.outlast(std::time::Duration::from_secs(1_000_000_000)), "{provider}");
    }
}
