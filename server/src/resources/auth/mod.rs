//! Saved credentials (`auth.json`), the environment variables of each provider, and turning either
//! into what a request needs.

mod command;
mod file;
mod sign_in;
pub mod store;
#[cfg(test)]
mod tests;
mod variables;

use std::fmt;

use secrecy::{ExposeSecret, SecretString};

use super::config_value::ConfigValue;
use crate::branding::BRANDING;
use crate::llm::FailureKind;
use crate::oauth::Tokens;
pub(super) use command::CommandCache;
pub(super) use file::AuthFile;
pub(super) use sign_in::SignIns;
pub use sign_in::{Renewal, renewals_done};
pub use variables::{EnvironmentKey, KeyForm, environment_variables};

/// Where a provider's key comes from.
#[derive(Debug, Clone)]
pub enum KeySource {
    /// The key itself.
    Ready(SecretString),
    /// A shell command that prints the key. It may hold secrets itself.
    Command(SecretString),
    /// The tokens of a sign-in. The access token may have expired.
    SignIn(Box<Tokens>),
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
    /// The tokens of a sign-in have expired, and there are no new ones.
    NotRenewed {
        /// The provider.
        provider: String,
        /// Why not.
        why: String,
        /// True when the authorization server was not reached: it may be later.
        unreachable: bool,
    },
}

impl AuthError {
    /// What kind of failure this is for a request.
    pub fn failure_kind(&self) -> FailureKind {
        match self {
            Self::NotRenewed { unreachable: true, .. } => FailureKind::Network,
            _ => FailureKind::Auth,
        }
    }
}

impl fmt::Display for AuthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoModel => write!(
                f,
                "No API key found for the selected model.\n\nNo model is available. Set a provider's key in the \
                 environment (such as ANTHROPIC_API_KEY or OPENAI_API_KEY), save one in auth.json with `{} auth login \
                 <provider>`, or describe a provider in models.json; both files are in the agent directory ({}, or {}). \
                 `--provider demo` selects the built-in demo model, which needs no key.",
                BRANDING.name,
                BRANDING.agent_dir(),
                BRANDING.agent_dir_variable()
            ),
            Self::NoKey { provider, why } => {
                write!(f, "No API key found for {provider}.\n\n")?;
                match why {
                    Some(why) => write!(f, "{why}.")?,
                    None => {
                        write!(f, "Save one with `{} auth login {provider}`", BRANDING.name)?;
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
            Self::NotRenewed { provider, why, .. } => {
                write!(f, "OAuth refresh failed for {provider}: {why}")
            }
        }
    }
}

impl std::error::Error for AuthError {}

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
