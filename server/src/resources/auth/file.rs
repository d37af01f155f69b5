//! What `auth.json` says.

use std::collections::BTreeMap;

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use super::{KeySource, key_source};
use crate::oauth::Tokens;
use crate::resources::config_value::ConfigValue;
use crate::resources::{Environment, Paths, jsonc};

/// What `auth.json` says of a provider.
#[derive(Clone)]
enum Entry {
    ApiKey { key: Option<SecretString>, variables: BTreeMap<String, SecretString> },
    OAuth { tokens: Tokens, enterprise_url: Option<String> },
    Invalid,
}

/// The credentials of `auth.json`.
#[derive(Clone, Default)]
pub(in crate::resources) struct AuthFile {
    entries: BTreeMap<String, Entry>,
}

impl AuthFile {
    /// Reads the file. What is wrong in it is a warning, never with a value from it.
    pub(in crate::resources) fn load(paths: &Paths) -> (Self, Vec<String>) {
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
    pub(in crate::resources) fn providers(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Where the provider's key comes from. `None` when the file says nothing of the provider; an entry
    /// that gives no key still counts: nothing else is asked then, as in Pi.
    pub(in crate::resources) fn key_source(
        &self,
        provider: &str,
        environment: &Environment,
    ) -> Option<KeySource> {
        Some(match self.entries.get(provider)? {
            Entry::ApiKey { key: Some(key), .. } => {
                let value =
                    ConfigValue::read(key.expose_secret(), |name| self.variable(provider, name, environment));
                key_source(value, "the key in auth.json")
            }
            Entry::ApiKey { key: None, .. } => {
                KeySource::Missing(Some(format!("auth.json has no key for {provider}")))
            }
            Entry::OAuth { tokens, .. } => KeySource::SignIn(Box::new(tokens.clone())),
            Entry::Invalid => return None,
        })
    }

    /// What the provider's sign-in says of the company whose own service it is for.
    pub(in crate::resources) fn enterprise_url(&self, provider: &str) -> Option<String> {
        match self.entries.get(provider) {
            Some(Entry::OAuth { enterprise_url, .. }) => enterprise_url.clone(),
            _ => None,
        }
    }

    /// The provider's own variables.
    pub(in crate::resources) fn own_variables(&self, provider: &str) -> Vec<(String, SecretString)> {
        match self.entries.get(provider) {
            Some(Entry::ApiKey { variables, .. }) => {
                let set = variables.iter().filter(|(_, value)| !value.expose_secret().is_empty());
                set.map(|(name, value)| (name.clone(), value.clone())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A variable as the provider sees it: its own from `auth.json`, then the environment's.
    pub(in crate::resources) fn variable<'a>(
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

fn read_entry(value: &Value) -> Result<Entry, String> {
    let object = value.as_object().ok_or("must be an object with type and key")?;
    match object.get("type").and_then(Value::as_str) {
        Some("api_key") => {}
        Some("oauth") => {
            let enterprise_url = object.get("enterpriseUrl").and_then(Value::as_str).map(str::to_owned);
            return Ok(Entry::OAuth { tokens: read_tokens(object)?, enterprise_url });
        }
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

/// The tokens of an entry. One that does not say when it expires does not, as in Pi.
pub(super) fn read_tokens(entry: &Map<String, Value>) -> Result<Tokens, String> {
    let text = |name: &str| match entry.get(name) {
        None | Some(Value::Null) => Ok(SecretString::default()),
        Some(Value::String(text)) => Ok(SecretString::from(text.as_str())),
        Some(_) => Err(format!("{name} must be a string")),
    };
    let access = text("access")?;
    if access.expose_secret().is_empty() {
        return Err("access must be a string that is not empty".to_owned());
    }
    #[expect(clippy::cast_possible_truncation, reason = "a time beyond the range is held at its end")]
    let expires = match entry.get("expires") {
        None | Some(Value::Null) => Timestamp::MAX,
        Some(Value::Number(number)) => number
            .as_f64()
            .and_then(|millis| Timestamp::from_millisecond(millis as i64).ok())
            .unwrap_or(Timestamp::MAX),
        Some(_) => return Err("expires must be a number of milliseconds since 1970".to_owned()),
    };
    Ok(Tokens { access, refresh: text("refresh")?, expires })
}
