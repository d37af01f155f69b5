//! The environment as a value that is handed in, so that two agents in one process can have two.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::paths::expand_tilde;

/// Environment variables and the home directory, as values. `Debug` shows names only: values may be keys.
#[derive(Clone, Default)]
pub struct Environment {
    // Each request has a clone.
    variables: Arc<BTreeMap<String, String>>,
    home: Option<PathBuf>,
}

impl Environment {
    /// The environment of this process. Variables that are not Unicode are left out.
    pub fn from_process() -> Self {
        let variables: BTreeMap<_, _> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self { variables: Arc::new(variables), home: std::env::home_dir() }
    }

    /// An environment made of these variables.
    pub fn new<N: Into<String>, V: Into<String>>(
        home: impl Into<PathBuf>,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let variables: BTreeMap<_, _> =
            variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { variables: Arc::new(variables), home: Some(home.into()) }
    }

    /// The same environment with this variable set.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.variables).insert(name.to_owned(), value.into());
        self
    }

    /// A variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Every variable, empty ones too.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.variables.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The home directory.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// True when the variable says so: `1`, `true` or `yes`, in any case.
    pub fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| {
            ["1", "true", "yes"].iter().any(|yes| value.trim().eq_ignore_ascii_case(yes))
        })
    }

    /// A path as a user writes it: a leading `~` is the home directory, a relative one starts at `base`.
    pub fn resolve_path(&self, base: &Path, text: &str) -> PathBuf {
        base.join(self.expand_tilde(text))
    }

    /// Replaces a leading `~` or `~/` by the home directory. `~other` stays as it is.
    pub fn expand_tilde(&self, text: &str) -> PathBuf {
        expand_tilde(text, self.home.as_deref())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("home", &self.home)
            .finish()
    }
}
