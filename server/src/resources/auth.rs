//! Saved credentials (`auth.json`), the environment variables of each provider, and turning either
//! into what a request needs.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use tokio::sync::OnceCell;

use super::config_value::{CommandError, ConfigValue, run_command};
use super::{Environment, Paths, jsonc};
use crate::branding::BRANDING;

/// Where a provider's key comes from.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// The key itself.
    Ready(SecretString),
    /// A shell command that prints the key. It may hold secrets itself.
    Command(SecretString),
    /// The provider takes no key.
    NotNeeded,
    /// There is no key, and why, where more is known than that nothing is configured.
    Missing(Option<String>),
}

impl KeySource {
    /// True when a request may be tried.
    pub fn is_usable(&self) -> bool {
        !matches!(self, Self::Missing(_))
    }
}

/// Why a request cannot be authorised. No secret and no command is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthError {
    /// No model is selected.
    NoModel,
    /// There is no key.
    NoKey {
        /// The provider.
        provider: String,
        /// What stands in the way, where more is known than that nothing is configured.
        why: Option<String>,
    },
    /// A key or header is configured and cannot be had.
    Unresolved {
        /// The provider.
        provider: String,
        /// What could not be had, and why.
        why: String,
    },
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoModel => write!(
                f,
                "No API key found for the selected model.\n\nNo model is available. Set a provider's key in the \
                 environment (such as ANTHROPIC_API_KEY or OPENAI_API_KEY), save one in auth.json, or describe a \
                 provider in models.json; both files are in the agent directory ({}, or {}). `--provider demo` \
                 selects the built-in demo model, which needs no key.",
                BRANDING.agent_dir(),
                BRANDING.agent_dir_variable()
            ),
            Self::NoKey { provider, why } => {
                write!(f, "No API key found for {provider}.\n\n")?;
                match why {
                    Some(why) => write!(f, "{why}.")?,
                    None => {
                        write!(
                            f,
                            "Save one in auth.json as {{\"{provider}\": {{\"type\": \"api_key\", \"key\": ...}}}}"
                        )?;
                        match environment_variables(provider).last() {
                            Some(EnvironmentKey { name, .. }) => write!(f, ", set {name},")?,
                            None => write!(f, ", set apiKey of the provider in models.json,")?,
                        }
                        write!(f, " or pass --api-key.")?;
                    }
                }
                Ok(())
            }
            Self::Unresolved { provider, why } => {
                write!(f, "API key auth failed for provider {provider}: {why}")
            }
        }
    }
}

impl std::error::Error for AuthError {}

/// How a key from the environment is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    /// The way the API wants keys.
    ApiKey,
    /// As `Authorization: Bearer`, whatever the API wants.
    Bearer,
}

/// A variable that may hold a provider's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvironmentKey {
    /// The variable's name.
    pub name: &'static str,
    /// How its value is sent.
    pub form: KeyForm,
}

const fn api_key(name: &'static str) -> EnvironmentKey {
    EnvironmentKey { name, form: KeyForm::ApiKey }
}

/// The variables that may hold a provider's key, the first that is set counts.
pub fn environment_variables(provider: &str) -> &'static [EnvironmentKey] {
    macro_rules! one {
        ($name:literal) => {{
            const KEYS: &[EnvironmentKey] = &[api_key($name)];
            KEYS
        }};
    }
    const ANTHROPIC: &[EnvironmentKey] = &[
        EnvironmentKey { name: "ANTHROPIC_AUTH_TOKEN", form: KeyForm::Bearer },
        api_key("ANTHROPIC_OAUTH_TOKEN"),
        api_key("ANTHROPIC_API_KEY"),
    ];
    match provider {
        "anthropic" => ANTHROPIC,
        "amazon-bedrock" => one!("AWS_BEARER_TOKEN_BEDROCK"),
        "ant-ling" => one!("ANT_LING_API_KEY"),
        "azure" => one!("AZURE_OPENAI_API_KEY"),
        "baseten" => one!("BASETEN_API_KEY"),
        "cerebras" => one!("CEREBRAS_API_KEY"),
        "cloudflare-ai-gateway" | "cloudflare-workers-ai" => one!("CLOUDFLARE_API_KEY"),
        "deepseek" => one!("DEEPSEEK_API_KEY"),
        "fireworks" => one!("FIREWORKS_API_KEY"),
        "github-copilot" => one!("COPILOT_GITHUB_TOKEN"),
        "google" => one!("GEMINI_API_KEY"),
        "google-vertex" => one!("GOOGLE_CLOUD_API_KEY"),
        "groq" => one!("GROQ_API_KEY"),
        "huggingface" => one!("HF_TOKEN"),
        "kimi-coding" => one!("KIMI_API_KEY"),
        "meta" => one!("META_API_KEY"),
        "minimax" => one!("MINIMAX_API_KEY"),
        "minimax-cn" => one!("MINIMAX_CN_API_KEY"),
        "mistral" => one!("MISTRAL_API_KEY"),
        "moonshotai" | "moonshotai-cn" => one!("MOONSHOT_API_KEY"),
        "nvidia" => one!("NVIDIA_API_KEY"),
        "openai" => one!("OPENAI_API_KEY"),
        "opencode" | "opencode-go" => one!("OPENCODE_API_KEY"),
        "openrouter" => one!("OPENROUTER_API_KEY"),
        "qwen-token-plan" => one!("QWEN_TOKEN_PLAN_TEAM_API_KEY"),
        "qwen-token-plan-cn" => one!("QWEN_TOKEN_PLAN_TEAM_CN_API_KEY"),
        "qwen-token-plan-individual" => one!("QWEN_TOKEN_PLAN_INDIVIDUAL_API_KEY"),
        "qwen-token-plan-individual-cn" => one!("QWEN_TOKEN_PLAN_INDIVIDUAL_CN_API_KEY"),
        "radius" => one!("RADIUS_API_KEY"),
        "together" => one!("TOGETHER_API_KEY"),
        "typesafe" => one!("TYPESAFE_API_KEY"),
        "vercel-ai-gateway" => one!("AI_GATEWAY_API_KEY"),
        "xai" => one!("XAI_API_KEY"),
        "xiaomi" => one!("XIAOMI_API_KEY"),
        "xiaomi-token-plan-ams" => one!("XIAOMI_TOKEN_PLAN_AMS_API_KEY"),
        "xiaomi-token-plan-cn" => one!("XIAOMI_TOKEN_PLAN_CN_API_KEY"),
        "xiaomi-token-plan-sgp" => one!("XIAOMI_TOKEN_PLAN_SGP_API_KEY"),
        "zai" => one!("ZAI_API_KEY"),
        "zai-coding-cn" => one!("ZAI_CODING_CN_API_KEY"),
        _ => &[],
    }
}

/// What `auth.json` says of a provider.
#[derive(Clone)]
enum Entry {
    ApiKey { key: Option<SecretString>, variables: BTreeMap<String, SecretString> },
    OAuth,
    Invalid,
}

/// The credentials of `auth.json`.
#[derive(Clone, Default)]
pub(super) struct AuthFile {
    entries: BTreeMap<String, Entry>,
}

impl AuthFile {
    /// Reads the file. What is wrong in it is a warning, never with a value from it.
    pub(super) fn load(paths: &Paths) -> (Self, Vec<String>) {
        let path = paths.auth_file();
        let file = path.display();
        let mut warnings = Vec::new();
        let object = match jsonc::read_object(&path) {
            Ok(object) => object.unwrap_or_default(),
            Err(error) => {
                warnings.push(format!("{error}; saved credentials are ignored"));
                Map::new()
            }
        };
        let mut entries = BTreeMap::new();
        for (provider, value) in object {
            let entry = match read_entry(&value) {
                Ok(entry) => entry,
                Err(problem) => {
                    warnings.push(format!("{file}: {provider}: {problem}; the entry is ignored"));
                    Entry::Invalid
                }
            };
            entries.insert(provider, entry);
        }
        (Self { entries }, warnings)
    }

    /// The providers that the file says something of.
    pub(super) fn providers(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Where the provider's key comes from. `None` when the file says nothing of the provider; an entry
    /// that gives no key still counts: nothing else is asked then, as in Pi.
    pub(super) fn key_source(&self, provider: &str, environment: &Environment) -> Option<KeySource> {
        Some(match self.entries.get(provider)? {
            Entry::ApiKey { key: Some(key), .. } => {
                let value =
                    ConfigValue::read(key.expose_secret(), |name| self.variable(provider, name, environment));
                key_source(value, "the key in auth.json")
            }
            Entry::ApiKey { key: None, .. } => {
                KeySource::Missing(Some(format!("auth.json has no key for {provider}")))
            }
            Entry::OAuth => KeySource::Missing(Some(format!(
                "auth.json has a sign-in for {provider}, which is not supported yet; use an API key instead"
            ))),
            Entry::Invalid => return None,
        })
    }

    /// The provider's own variables.
    pub(super) fn own_variables(&self, provider: &str) -> Vec<(String, SecretString)> {
        match self.entries.get(provider) {
            Some(Entry::ApiKey { variables, .. }) => {
                let set = variables.iter().filter(|(_, value)| !value.expose_secret().is_empty());
                set.map(|(name, value)| (name.clone(), value.clone())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A variable as the provider sees it: its own from `auth.json`, then the environment's.
    pub(super) fn variable<'a>(
        &'a self,
        provider: &str,
        name: &str,
        environment: &'a Environment,
    ) -> Option<&'a str> {
        let own = match self.entries.get(provider) {
            Some(Entry::ApiKey { variables, .. }) => variables.get(name),
            _ => None,
        };
        own.map(|value| value.expose_secret())
            .filter(|value| !value.is_empty())
            .or_else(|| environment.get(name))
    }
}

/// The source of a key that was configured as this value.
pub(super) fn key_source(value: ConfigValue, what: &str) -> KeySource {
    match value {
        ConfigValue::Ready(key) if key.expose_secret().is_empty() => {
            KeySource::Missing(Some(format!("{what} is empty")))
        }
        ConfigValue::Ready(key) => KeySource::Ready(key),
        ConfigValue::Command(command) => KeySource::Command(command),
        ConfigValue::MissingVariables(names) => {
            KeySource::Missing(Some(format!("{what} refers to {}, which is not set", names.join(", "))))
        }
    }
}

fn read_entry(value: &Value) -> Result<Entry, String> {
    let object = value.as_object().ok_or("must be an object with type and key")?;
    match object.get("type").and_then(Value::as_str) {
        Some("api_key") => {}
        Some("oauth") => return Ok(Entry::OAuth),
        _ => return Err("type must be \"api_key\" or \"oauth\"".to_owned()),
    }
    let key = match object.get("key") {
        None | Some(Value::Null) => None,
        Some(Value::String(key)) => Some(SecretString::from(key.as_str())),
        Some(_) => return Err("key must be a string".to_owned()),
    };
    let mut variables = BTreeMap::new();
    if let Some(env) = object.get("env").filter(|env| !env.is_null()) {
        for (name, value) in env.as_object().ok_or("env must be an object")? {
            let value = value.as_str().ok_or_else(|| format!("env.{name} must be a string"))?;
            variables.insert(name.clone(), SecretString::from(value));
        }
    }
    Ok(Entry::ApiKey { key, variables })
}

/// Runs commands of `auth.json` once in the life of the process, as Pi does: a key store asks its
/// person once, also when that failed.
#[derive(Default)]
pub(super) struct CommandCache(Mutex<HashMap<String, Arc<OnceCell<CommandResult>>>>);

type CommandResult = Result<SecretString, CommandError>;

impl CommandCache {
    /// The output of the command, which runs at most once.
    pub(super) async fn run(&self, command: &SecretString, environment: &Environment) -> CommandResult {
        let cell = {
            let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(cells.entry(command.expose_secret().to_owned()).or_default())
        };
        cell.get_or_init(|| run_command(command, environment)).await.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn load(text: &str) -> (AuthFile, Vec<String>) {
        let dir = tempfile::tempdir().unwrap();
        let environment =
            Environment::new(dir.path(), [("PI_CODING_AGENT_DIR", dir.path().to_str().unwrap())]);
        let paths = Paths::new(&environment, dir.path());
        fs::write(paths.auth_file(), text).unwrap();
        AuthFile::load(&paths)
    }

    fn describe(source: Option<KeySource>) -> String {
        match source {
            None => "nothing".to_owned(),
            Some(KeySource::Ready(key)) => key.expose_secret().to_owned(),
            Some(KeySource::Command(command)) => format!("! {}", command.expose_secret()),
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
                "h":{"type":"oauth","access":"tok"}}"#,
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
            ("h", "auth.json has a sign-in for h, which is not supported yet; use an API key instead"),
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
        assert!(
            text.starts_with("No API key found for groq.\n\n") && text.contains("GROQ_API_KEY"),
            "{text}"
        );
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
}
