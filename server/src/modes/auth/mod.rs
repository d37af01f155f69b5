//! `auth`: saving, checking, printing and removing credentials.

mod check;
mod login;
mod names;
mod terminal;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::path::Path;

use serde_json::Map;

use crate::branding::BRANDING;
use crate::cli::{AuthCommand, LoginWay, auth_help, parse_auth};
use crate::llm::http::Http;
use crate::modes::signals::{Signal, Signals};
use crate::oauth::{self, OAuthClient, Service};
use crate::resources::auth::store::{self, Kind};
use crate::resources::models::ModelRegistry;
use crate::resources::settings::{Settings, SettingsSource, SettingsWish, TrustOverride};
use crate::resources::{Environment, Paths};
use login::Login;
use names::shown_name;
use terminal::{ProcessTerminal, Terminal};

/// Exit code when what was asked for could not be done.
const FAILED: i32 = 1;

/// What to say at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// The exit code.
    pub(super) code: i32,
    /// For stdout when all is well, else for stderr.
    pub(super) text: String,
    /// True for text on stdout.
    pub(super) is_result: bool,
}

impl Answer {
    fn result(code: i32, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), is_result: true }
    }

    fn error(text: impl Into<String>) -> Self {
        Self { code: FAILED, text: text.into(), is_result: false }
    }
}

/// Does what the arguments after `auth` say.
pub(super) async fn run(
    args: &[String],
    environment: &Environment,
    cwd: &Path,
    signals: &mut Signals,
) -> Answer {
    let command = match parse_auth(args) {
        Ok(command) => command,
        Err(usage) => return Answer { code: usage.code, text: usage.text, is_result: false },
    };
    if command == AuthCommand::Help {
        return Answer::result(0, auth_help(BRANDING).trim_end());
    }
    let paths = Paths::new(environment, cwd);
    let mut registry = ModelRegistry::load(environment, &paths, Vec::new());
    super::tell(registry.warnings());
    let http = Http::new();
    // The proxy is the user's own setting: no project has a say in it.
    let wish = SettingsWish {
        source: &SettingsSource::Files,
        overrides: &Map::new(),
        trust: TrustOverride::Deny,
        changes: &[],
    };
    if let Some(proxy) = Settings::load(&paths, wish).settings.http_proxy {
        http.use_proxy(&proxy);
    }
    registry.use_http(http.clone());
    let is_login = matches!(command, AuthCommand::Login { .. });
    let services = oauth::known();
    let client = OAuthClient::over(http);
    let desk = Desk { paths: &paths, registry: &registry, services: &services, client: &client };
    let done = async {
        match command {
            AuthCommand::Login { provider, way } => {
                let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
                let terminal = is_terminal.then(ProcessTerminal::open);
                desk.login(&provider, way, terminal).await
            }
            other => desk.run(other).await,
        }
    };
    tokio::select! {
        biased;
        signal = signals.next() => match (is_login, signal) {
            (true, Signal::Interrupt) => Answer::error(CANCELLED),
            (_, signal) => Answer { code: signal.exit_code(), text: String::new(), is_result: false },
        },
        answer = done => answer,
    }
}

/// Said when whoever logs in stops.
const CANCELLED: &str = "the login was cancelled; nothing was saved";

/// What the commands work with.
struct Desk<'a> {
    paths: &'a Paths,
    registry: &'a ModelRegistry,
    services: &'a [Service],
    client: &'a OAuthClient,
}

impl Desk<'_> {
    /// A command that asks nobody anything.
    async fn run(&self, command: AuthCommand) -> Answer {
        match command {
            AuthCommand::Logout { provider } => self.logout(&provider),
            AuthCommand::Check { subject, form, credentials, refresh } => {
                self.check(&subject, form, credentials, refresh).await
            }
            AuthCommand::PrintApiKey { subject } => self.print_api_key(&subject).await,
            AuthCommand::PrintBearerToken { subject, min_expiry } => {
                self.print_bearer_token(&subject, min_expiry).await
            }
            AuthCommand::Help | AuthCommand::Login { .. } => Answer::error("this command needs a terminal"),
        }
    }

    /// Logs in with questions to whoever sits at the terminal.
    async fn login<T: Terminal>(
        &self,
        provider: &str,
        way: LoginWay,
        terminal: Option<std::io::Result<T>>,
    ) -> Answer {
        if !self.is_known(provider) {
            let mut names: Vec<&str> = self.registry.providers().collect();
            names.extend(self.services.iter().map(|service| service.provider));
            names.sort_unstable();
            names.dedup();
            return Answer::error(format!(
                "unknown provider \"{provider}\"; providers: {}",
                names.join(", ")
            ));
        }
        match terminal {
            Some(Ok(terminal)) => {
                let file = self.paths.auth_file();
                let Self { registry, services, client, .. } = *self;
                Login { provider, file: &file, registry, services, client, terminal }.run(way).await
            }
            Some(Err(error)) => Answer::error(format!("the terminal cannot be used: {error}")),
            None => Answer::error(
                "auth login asks questions and needs a terminal; without one, set the provider's variable in the \
                 environment or write auth.json",
            ),
        }
    }

    fn logout(&self, provider: &str) -> Answer {
        const UNCHANGED: &str = "environment variables and models.json are unchanged";
        let file = self.paths.auth_file();
        let name = shown_name(provider);
        let removed = match store::remove(&file, provider) {
            Ok(removed) => removed,
            Err(error) => return Answer::error(format!("{}: {error}", file.display())),
        };
        let what = match removed {
            Some(Kind::ApiKey) => "API key",
            Some(Kind::SignIn) => "sign-in",
            Some(Kind::Other) => "entry",
            None if self.is_known(provider) => {
                return Answer::result(0, format!("Nothing is saved for {name}; {UNCHANGED}."));
            }
            None => {
                let saved: Vec<&str> = self.registry.saved_providers().collect();
                let saved = if saved.is_empty() { "none".to_owned() } else { saved.join(", ") };
                return Answer::error(format!("unknown provider \"{provider}\"; saved credentials: {saved}"));
            }
        };
        Answer::result(0, format!("Removed the {what} saved for {name}; {UNCHANGED}."))
    }

    fn is_known(&self, provider: &str) -> bool {
        self.registry.has_provider(provider) || oauth::find(self.services, provider).is_some()
    }
}
