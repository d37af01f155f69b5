//! Changing `auth.json`, in step with other programs that do.
//!
//! The shapes are those of Pi: `{"type": "api_key", "key", "env"?}` and `{"type": "oauth", "access", "refresh",
//! "expires"}`, with `expires` in Unix milliseconds. Fields that are not known stay.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};

use crate::oauth::Tokens;
use crate::resources::shared_file::{SharedObject, WAIT_AT_MOST};

/// A kind of saved credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A key.
    ApiKey,
    /// A sign-in.
    SignIn,
    /// Something else.
    Other,
}

/// A key to save, with the variables of its provider.
#[derive(Debug, Default)]
pub struct SavedKey {
    /// The key. A cloud may have none.
    pub key: Option<SecretString>,
    /// The variables.
    pub variables: BTreeMap<&'static str, String>,
}

/// Saves a key. It replaces what was saved for the provider.
pub fn save_key(file: &Path, provider: &str, saved: &SavedKey) -> io::Result<()> {
    let mut entry = Map::new();
    entry.insert("type".to_owned(), json!("api_key"));
    if let Some(key) = &saved.key {
        entry.insert("key".to_owned(), json!(key.expose_secret()));
    }
    if !saved.variables.is_empty() {
        entry.insert("env".to_owned(), json!(saved.variables));
    }
    change(file, |object| drop(object.insert(provider.to_owned(), Value::Object(entry))))
}

/// Saves the tokens of a sign-in. They replace what was saved for the provider.
pub fn save_tokens(file: &Path, provider: &str, tokens: &Tokens) -> io::Result<()> {
    let mut entry = Map::new();
    entry.insert("type".to_owned(), json!("oauth"));
    write_tokens(&mut entry, tokens);
    change(file, |object| drop(object.insert(provider.to_owned(), Value::Object(entry))))
}

/// Removes what is saved for the provider. `None` when nothing is.
pub fn remove(file: &Path, provider: &str) -> io::Result<Option<Kind>> {
    let mut removed = None;
    // A file that is not there is not made.
    if file.exists() {
        change(file, |object| removed = object.shift_remove(provider))?;
    }
    Ok(removed.map(|entry| match entry.get("type").and_then(Value::as_str) {
        Some("api_key") => Kind::ApiKey,
        Some("oauth") => Kind::SignIn,
        _ => Kind::Other,
    }))
}

/// Puts tokens into an entry.
pub(super) fn write_tokens(entry: &mut Map<String, Value>, tokens: &Tokens) {
    for (name, value) in [
        ("access", json!(tokens.access.expose_secret())),
        ("refresh", json!(tokens.refresh.expose_secret())),
        ("expires", json!(tokens.expires.as_millisecond())),
    ] {
        entry.insert(name.to_owned(), value);
    }
}

fn change(file: &Path, change: impl FnOnce(&mut Map<String, Value>)) -> io::Result<()> {
    let mut shared = SharedObject::open(file, WAIT_AT_MOST)?;
    change(&mut shared.object);
    shared.save_private()
}
