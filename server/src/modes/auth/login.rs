//! Logging in: a key, the variables of a cloud, or a sign-in to an account.

use std::path::Path;
use std::process::Stdio;

use secrecy::ExposeSecret;

use super::names::{shown_name, variable_name};
use super::terminal::{Echo, Terminal, TerminalError};
use super::{Answer, CANCELLED};
use crate::cli::{Browser, LoginWay};
use crate::oauth::{
    self, Authorization, DeviceAuthorization, OAuthClient, OAuthError, Service, SignIn, Tokens,
};
use crate::resources::auth::environment_variables;
use crate::resources::auth::store::{self, SavedKey};
use crate::resources::models::ModelRegistry;

/// A login that is under way.
pub(super) struct Login<'a, T> {
    pub(super) provider: &'a str,
    pub(super) file: &'a Path,
    pub(super) registry: &'a ModelRegistry,
    pub(super) services: &'a [Service],
    pub(super) client: &'a OAuthClient,
    pub(super) terminal: T,
}

/// Why a login saved nothing.
#[derive(Debug, thiserror::Error)]
enum LoginError {
    #[error("{CANCELLED}")]
    Cancelled,
    #[error("{0}; nothing was saved")]
    NoAnswer(String),
    #[error("the sign-in failed: {0}; nothing was saved")]
    SignIn(OAuthError),
    #[error("the terminal cannot be used: {0}; nothing was saved")]
    Terminal(std::io::Error),
    #[error("{0}")]
    Store(String),
}

impl From<TerminalError> for LoginError {
    fn from(error: TerminalError) -> Self {
        match error {
            TerminalError::Interrupted => Self::Cancelled,
            TerminalError::Io(error) => Self::Terminal(error),
        }
    }
}

/// What a cloud can be used with.
struct CloudUse {
    title: &'static str,
    key: bool,
    required: &'static [&'static str],
    optional: &'static [&'static str],
}

impl<T: Terminal> Login<'_, T> {
    pub(super) async fn run(mut self, way: LoginWay) -> Answer {
        let done = match (way, oauth::find(self.services, self.provider)) {
            (LoginWay::Account(browser), Some(service)) => self.with_account(service, browser).await,
            (LoginWay::ApiKey, Some(_)) if environment_variables(self.provider).is_empty() => {
                let name = shown_name(self.provider);
                return Answer::error(format!("{name} takes no API key; leave out --api-key to sign in"));
            }
            _ => self.with_key().await,
        };
        match done {
            Ok(what) => {
                let (name, file) = (shown_name(self.provider), self.file.display());
                Answer::result(0, format!("Saved the {what} for {name} in {file}."))
            }
            Err(error) => Answer::error(error.to_string()),
        }
    }

    async fn with_key(&mut self) -> Result<&'static str, LoginError> {
        let name = shown_name(self.provider);
        let mut saved = SavedKey::default();
        let (with_key, required, optional) = match options(self.provider) {
            [] => (true, self.registry.required_variables(self.provider), &[][..]),
            options => {
                let option = self.choose(options).await?;
                (option.key, option.required, option.optional)
            }
        };
        if with_key {
            let key = self.terminal.ask(&format!("{name} API key (not shown): "), Echo::Hidden).await?;
            let key = key.expose_secret().trim();
            if key.is_empty() {
                return Err(LoginError::NoAnswer("the API key is empty".to_owned()));
            }
            saved.key = Some(literal(key).into());
        }
        for (variables, is_required) in [(required, true), (optional, false)] {
            for variable in variables {
                let what = variable_name(variable);
                let hint = if is_required { "" } else { " (empty for none)" };
                let value = self.terminal.ask(&format!("{what}{hint}: "), Echo::Shown).await?;
                let value = value.expose_secret().trim().to_owned();
                if !value.is_empty() {
                    saved.variables.insert(variable, value);
                } else if is_required {
                    return Err(LoginError::NoAnswer(format!("the {what} is empty")));
                }
            }
        }
        store::save_key(self.file, self.provider, &saved).map_err(|error| self.not_saved(&error))?;
        Ok(if with_key { "API key" } else { "settings" })
    }

    async fn choose<'o>(&mut self, options: &'o [CloudUse]) -> Result<&'o CloudUse, LoginError> {
        let name = shown_name(self.provider);
        self.terminal.say(&format!("{name} can be used with"));
        for (nth, option) in options.iter().enumerate() {
            self.terminal.say(&format!("  {}  {}", nth + 1, option.title));
        }
        let answer = self.terminal.ask("Which one? ", Echo::Shown).await?;
        let number = answer.expose_secret().trim().parse::<usize>().ok();
        number
            .and_then(|number| options.get(number.checked_sub(1)?))
            .ok_or_else(|| LoginError::NoAnswer(format!("expected a number from 1 to {}", options.len())))
    }

    async fn with_account(
        &mut self,
        service: &Service,
        browser: Browser,
    ) -> Result<&'static str, LoginError> {
        let client = self.client;
        let tokens = match &service.sign_in {
            SignIn::Browser(sign_in) => {
                let sign_in = Authorization::begin(sign_in).await.map_err(LoginError::SignIn)?;
                self.with_browser(&sign_in, client, browser).await?
            }
            SignIn::Device(sign_in) => {
                let sign_in =
                    DeviceAuthorization::begin(sign_in, client).await.map_err(LoginError::SignIn)?;
                self.with_device(&sign_in, client, browser).await?
            }
        };
        store::save_tokens(self.file, self.provider, &tokens).map_err(|error| self.not_saved(&error))?;
        Ok("sign-in")
    }

    async fn with_browser(
        &mut self,
        sign_in: &Authorization<'_>,
        client: &OAuthClient,
        browser: Browser,
    ) -> Result<Tokens, LoginError> {
        let url = sign_in.url();
        self.terminal
            .say(&format!("Open this address to sign in to {}:\n\n{url}\n", shown_name(self.provider)));
        open(&url, browser);
        self.terminal.say(
            "The page comes back to this program by itself. Where it cannot, paste the address that the\n\
             browser ended at, or the code.",
        );
        let code = loop {
            let code = tokio::select! {
                code = sign_in.code_from_browser() => {
                    self.terminal.say("");
                    code
                }
                pasted = self.terminal.ask("Address or code: ", Echo::Shown) => {
                    sign_in.read_pasted(pasted?.expose_secret())
                }
            };
            match code {
                Err(OAuthError::NoCode(why)) => self.terminal.say(&why),
                code => break code.map_err(LoginError::SignIn)?,
            }
        };
        sign_in.exchange(client, code).await.map_err(LoginError::SignIn)
    }

    async fn with_device(
        &mut self,
        sign_in: &DeviceAuthorization<'_>,
        client: &OAuthClient,
        browser: Browser,
    ) -> Result<Tokens, LoginError> {
        self.terminal.say(&format!(
            "Open {} to sign in to {} and type in this code:\n\n{}\n",
            sign_in.verification_uri,
            shown_name(self.provider),
            sign_in.user_code
        ));
        open(sign_in.complete_uri.as_deref().unwrap_or(&sign_in.verification_uri), browser);
        self.terminal.say("Waiting for the sign-in to be confirmed. Ctrl-C stops.");
        let sleep = |time| -> crate::BoxFuture<'_, ()> { Box::pin(tokio::time::sleep(time)) };
        sign_in.wait(client, &sleep).await.map_err(LoginError::SignIn)
    }

    fn not_saved(&self, error: &std::io::Error) -> LoginError {
        LoginError::Store(format!("{}: {error}; nothing was saved", self.file.display()))
    }
}

/// The ways to use a cloud.
fn options(provider: &str) -> &'static [CloudUse] {
    const NONE: &[&str] = &[];
    match provider {
        "amazon-bedrock" => &[
            CloudUse { title: "an API key of Bedrock", key: true, required: NONE, optional: &["AWS_REGION"] },
            CloudUse {
                title: "a profile of the AWS configuration",
                key: false,
                required: &["AWS_PROFILE"],
                optional: &["AWS_REGION"],
            },
        ],
        "google-vertex" => &[
            CloudUse { title: "an API key", key: true, required: NONE, optional: NONE },
            CloudUse {
                title: "Application Default Credentials (gcloud auth application-default login)",
                key: false,
                required: &["GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"],
                optional: NONE,
            },
            CloudUse {
                title: "a file of credentials, such as a service account's",
                key: false,
                required: &[
                    "GOOGLE_APPLICATION_CREDENTIALS",
                    "GOOGLE_CLOUD_PROJECT",
                    "GOOGLE_CLOUD_LOCATION",
                ],
                optional: NONE,
            },
        ],
        _ => &[],
    }
}

/// The text as a value of the configuration that means itself: `$NAME` and `!command` mean something else.
fn literal(key: &str) -> String {
    let escaped = key.replace('$', "$$");
    match escaped.strip_prefix('!') {
        Some(rest) => format!("$!{rest}"),
        None => escaped,
    }
}

/// Opens a page in the browser. It is shown as well, so that nothing is lost when there is none.
fn open(url: &str, browser: Browser) {
    if browser == Browser::Leave {
        return;
    }
    let own = std::env::var("BROWSER").ok().filter(|program| !program.is_empty());
    let default = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = std::process::Command::new(own.as_deref().unwrap_or(default));
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    if let Err(error) = command.spawn() {
        tracing::debug!(%error, "no browser could be opened");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_looks_like_a_reference_or_a_command_means_itself() {
        assert_eq!(literal("sk-plain"), "sk-plain");
        assert_eq!(literal("a$HOME"), "a$$HOME");
        assert_eq!(literal("!ls $X"), "$!ls $$X");
    }
}
