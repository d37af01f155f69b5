//! The arguments of `auth`: login, logout, check, print-api-key, print-bearer-token.

use std::time::Duration;

use crate::branding::{BRANDING, Branding};

/// What is to be done with credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthCommand {
    /// The help.
    Help,
    /// Save credentials.
    Login {
        /// The provider.
        provider: String,
        /// How.
        way: LoginWay,
    },
    /// Remove saved credentials.
    Logout {
        /// The provider.
        provider: String,
    },
    /// Say whether requests can be authorised.
    Check {
        /// Whose.
        subject: Subject,
        /// `--json`
        form: CheckForm,
        /// `--credentials`
        credentials: Shown,
        /// `--no-refresh`
        refresh: Refreshing,
    },
    /// Print the key.
    PrintApiKey {
        /// Whose.
        subject: Subject,
    },
    /// Print the access token of a sign-in.
    PrintBearerToken {
        /// Whose.
        subject: Subject,
        /// How long it must still hold.
        min_expiry: Option<Duration>,
    },
}

/// How to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginWay {
    /// With an account where the provider's sign-in is known, else with a key.
    Account(Browser),
    /// With a key.
    ApiKey,
}

/// Who opens the page of a sign-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Browser {
    /// The program.
    Open,
    /// Whoever signs in.
    Leave,
}

/// How a check is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckForm {
    /// In a word.
    Word,
    /// As a JSON object.
    Json,
}

/// Whether the credentials are told with a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// They are not.
    Hidden,
    /// They are.
    Credentials,
}

/// Whether tokens that have expired are renewed for a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refreshing {
    /// They are.
    Allowed,
    /// They are not.
    Forbidden,
}

/// Whose credentials are meant: one of the two at least.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subject {
    /// `--provider`
    pub provider: Option<String>,
    /// `--model`
    pub model: Option<String>,
}

/// Arguments that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct AuthUsage {
    /// What is wrong with them.
    pub text: String,
    /// The exit code, as in Pi.
    pub code: i32,
}

/// Wrong options and commands.
const WRONG: i32 = 1;

/// A check that says nothing of the credentials because it was asked wrongly.
const WRONG_CHECK: i32 = 2;

const LOGIN_USAGE: &str = "login <provider> [--api-key] [--no-browser]";
const LOGOUT_USAGE: &str = "logout <provider>";
const COMMANDS: [&str; 5] = ["login", "logout", "check", "print-api-key", "print-bearer-token"];

fn usage<T>(text: &str) -> Result<T, AuthUsage> {
    wrong(format!("Usage: {} auth {text}", BRANDING.name))
}

fn wrong<T>(text: impl Into<String>) -> Result<T, AuthUsage> {
    Err(AuthUsage { text: text.into(), code: WRONG })
}

/// Reads the arguments after `auth`.
pub fn parse_auth(args: &[String]) -> Result<AuthCommand, AuthUsage> {
    let Some((command, rest)) = args.split_first() else { return Ok(AuthCommand::Help) };
    if is_help(command) || (COMMANDS.contains(&command.as_str()) && rest.iter().any(|arg| is_help(arg))) {
        return Ok(AuthCommand::Help);
    }
    match command.as_str() {
        "login" => login(rest),
        "logout" => match rest {
            [provider] if is_name(provider) => Ok(AuthCommand::Logout { provider: provider.clone() }),
            [option, ..] if option.starts_with('-') => unknown_option(option, "logout"),
            _ => usage(LOGOUT_USAGE),
        },
        "check" | "print-api-key" | "print-bearer-token" => credentials(command, rest),
        other => {
            let commands = COMMANDS.map(|command| format!("\"{} auth {command}\"", BRANDING.name)).join(", ");
            wrong(format!("Unknown auth command \"{other}\". Use {commands}"))
        }
    }
}

fn is_help(arg: &str) -> bool {
    arg == "--help" || arg == "-h"
}

fn is_name(arg: &str) -> bool {
    !arg.starts_with('-') && !arg.trim().is_empty()
}

fn unknown_option<T>(option: &str, command: &str) -> Result<T, AuthUsage> {
    let option = option.split_once('=').map_or(option, |(name, _)| name);
    wrong(format!("Unknown option {option} for \"auth {command}\". Use \"{} auth --help\"", BRANDING.name))
}

fn login(args: &[String]) -> Result<AuthCommand, AuthUsage> {
    let (mut provider, mut api_key, mut browser) = (None, false, Browser::Open);
    for arg in args {
        match arg.as_str() {
            "--api-key" => api_key = true,
            "--no-browser" => browser = Browser::Leave,
            option if option.starts_with('-') => return unknown_option(option, "login"),
            name if is_name(name) && provider.is_none() => provider = Some(name.to_owned()),
            _ => return usage(LOGIN_USAGE),
        }
    }
    let Some(provider) = provider else { return usage(LOGIN_USAGE) };
    let way = match (api_key, browser) {
        (true, Browser::Leave) => {
            return wrong("--no-browser is about signing in to an account; leave it out with --api-key");
        }
        (true, Browser::Open) => LoginWay::ApiKey,
        (false, browser) => LoginWay::Account(browser),
    };
    Ok(AuthCommand::Login { provider, way })
}

fn credentials(command: &str, args: &[String]) -> Result<AuthCommand, AuthUsage> {
    let is_check = command == "check";
    let mut subject = Subject::default();
    let (mut form, mut shown, mut refresh) = (CheckForm::Word, Shown::Hidden, Refreshing::Allowed);
    let mut min_expiry = None;
    let only = |option: &str, owner: &str| match command == owner {
        true => Ok(()),
        false => wrong(format!("{option} is only supported by auth {owner}")),
    };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let (name, inline) = match arg.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (arg.as_str(), None),
        };
        let mut value = || match inline.clone().or_else(|| args.next().cloned()) {
            Some(value) => Ok(value),
            None => wrong(format!("{name} requires a value")),
        };
        match name {
            "--provider" => subject.provider = Some(value()?).filter(|name| !name.trim().is_empty()),
            "--model" => subject.model = Some(value()?).filter(|name| !name.trim().is_empty()),
            "--min-expiry" => {
                let value = value()?;
                only(name, "print-bearer-token")?;
                let Some(time) = duration(&value) else {
                    return wrong("--min-expiry must be a duration such as 30m or 1h (units: ms, s, m, h)");
                };
                min_expiry = Some(time);
            }
            "--json" | "--credentials" | "--no-refresh" if inline.is_some() => {
                return wrong(format!("{name} takes no value"));
            }
            "--json" => only(name, "check").map(|()| form = CheckForm::Json)?,
            "--credentials" => only(name, "check").map(|()| shown = Shown::Credentials)?,
            "--no-refresh" => only(name, "check").map(|()| refresh = Refreshing::Forbidden)?,
            option if option.starts_with('-') => return unknown_option(option, command),
            _ => {
                let code = if is_check { WRONG_CHECK } else { WRONG };
                let text = format!("auth {command} takes --provider and --model only, but {arg:?} was given");
                return Err(AuthUsage { text, code });
            }
        }
    }
    if subject == Subject::default() {
        let code = if is_check { WRONG_CHECK } else { WRONG };
        let text = format!("auth {command} requires --provider <provider> or --model <model>");
        return Err(AuthUsage { text, code });
    }
    Ok(match command {
        "check" => AuthCommand::Check { subject, form, credentials: shown, refresh },
        "print-api-key" => AuthCommand::PrintApiKey { subject },
        _ => AuthCommand::PrintBearerToken { subject, min_expiry },
    })
}

/// `30m`, `1h`, `90s`, `500ms`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.len() - text.trim_start_matches(|digit: char| digit.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let seconds = |each: u64| number.checked_mul(each).map(Duration::from_secs);
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => seconds(1),
        "m" => seconds(60),
        "h" => seconds(3600),
        _ => None,
    }
}

/// The text of `auth --help`. Ends in a newline.
pub fn auth_help(branding: Branding) -> String {
    HELP.replace("{name}", branding.name)
}

const HELP: &str = "{name} auth: credentials of model providers, in auth.json of the configuration directory

Usage:
  {name} auth login <provider> [--api-key] [--no-browser]
      Save credentials. Signs in to an account in the browser where that is known (openrouter,
      kimi-coding, openai-codex), else asks for an API key without showing it.
      --api-key              save an API key, also where an account could be used
      --no-browser           only show the address of the sign-in
  {name} auth logout <provider>
      Remove what is saved. The environment and models.json stay as they are.
  {name} auth check [options]
      Print ready, not_ready or invalid; exit with 0, 1 or 2.
      --json                 print a JSON object: status, provider, reason?, authType?, credentials?
      --credentials          print the credentials when they are ready
      --no-refresh           do not renew a sign-in that has expired; it counts as ready
  {name} auth print-api-key [options]
      Print the API key. Commands that give one are run.
  {name} auth print-bearer-token [options]
      Print the access token of a sign-in, renewed when it expires.
      --min-expiry <time>    how long it must still hold: 30m, 1h, 90s, 500ms

check and the print commands want one of these at least:
  --provider <provider>      whose credentials
  --model <model>            those of the model's provider
";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<AuthCommand, AuthUsage> {
        let args: Vec<String> = line.split(' ').filter(|arg| !arg.is_empty()).map(str::to_owned).collect();
        parse_auth(&args)
    }

    fn of(provider: &str) -> Subject {
        Subject { provider: Some(provider.to_owned()), model: None }
    }

    #[test]
    fn commands_are_read_with_their_options() {
        for line in ["", "--help", "-h", "login --help", "check --provider x -h"] {
            assert_eq!(parse(line), Ok(AuthCommand::Help), "{line}");
        }
        let provider = "x".to_owned();
        for (line, way) in [
            ("login x", LoginWay::Account(Browser::Open)),
            ("login --no-browser x", LoginWay::Account(Browser::Leave)),
            ("login x --api-key", LoginWay::ApiKey),
        ] {
            assert_eq!(parse(line), Ok(AuthCommand::Login { provider: provider.clone(), way }), "{line}");
        }
        assert_eq!(parse("logout x"), Ok(AuthCommand::Logout { provider }));
        assert_eq!(
            parse("check --provider=x --json --credentials --no-refresh"),
            Ok(AuthCommand::Check {
                subject: of("x"),
                form: CheckForm::Json,
                credentials: Shown::Credentials,
                refresh: Refreshing::Forbidden
            })
        );
        assert_eq!(parse("print-api-key --provider x"), Ok(AuthCommand::PrintApiKey { subject: of("x") }));
        for (text, time) in [("30m", 1_800_000), ("1h", 3_600_000), ("90s", 90_000), ("500ms", 500)] {
            let min_expiry = Some(Duration::from_millis(time));
            let expected = AuthCommand::PrintBearerToken { subject: of("x"), min_expiry };
            assert_eq!(parse(&format!("print-bearer-token --provider x --min-expiry {text}")), Ok(expected));
        }
    }

    #[test]
    fn what_cannot_be_used_is_told_with_pis_exit_codes() {
        for (line, code, expected) in [
            ("foo", 1, "Unknown auth command \"foo\". Use \"sampi auth login\", "),
            ("login", 1, "Usage: sampi auth login <provider>"),
            ("login a b", 1, "Usage: sampi auth login <provider>"),
            ("login a --zork=1", 1, "Unknown option --zork for \"auth login\""),
            ("login a --api-key --no-browser", 1, "--no-browser is about signing in"),
            ("logout", 1, "Usage: sampi auth logout"),
            ("logout --x", 1, "Unknown option --x for \"auth logout\""),
            ("check", 2, "auth check requires --provider <provider> or --model <model>"),
            ("check --provider=", 2, "auth check requires --provider"),
            ("check x --provider y", 2, "auth check takes --provider and --model only, but \"x\" was given"),
            ("check --foo", 1, "Unknown option --foo for \"auth check\""),
            ("check --provider", 1, "--provider requires a value"),
            ("check --provider x --json=1", 1, "--json takes no value"),
            ("print-api-key", 1, "auth print-api-key requires --provider"),
            ("print-api-key --provider x --json", 1, "--json is only supported by auth check"),
            (
                "check --provider x --min-expiry 1h",
                1,
                "--min-expiry is only supported by auth print-bearer-token",
            ),
            ("print-bearer-token --provider x --min-expiry 1", 1, "--min-expiry must be a duration such as"),
            ("print-bearer-token --provider x --min-expiry 99999999999999999h", 1, "--min-expiry must be"),
            ("print-bearer-token --provider x --min-expiry é", 1, "--min-expiry must be"),
        ] {
            let error = parse(line).unwrap_err();
            assert_eq!(error.code, code, "{line}: {error}");
            assert!(error.text.starts_with(expected), "{line}: {error}");
        }
    }
}
