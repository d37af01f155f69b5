//! From arguments to an [`Invocation`].

use std::ffi::OsString;

use sampi_protocol::data::ThinkingLevel;

use super::options::{Opt, Spec, Takes};
use super::{CliError, Config, Invocation, Mode, SessionChoice, ToolStart, version_text};
use crate::branding::{BRANDING, OFFLINE_VARIABLE};
use crate::resources::Environment;
use crate::resources::models::DEMO_PROVIDER;
use crate::resources::settings::{TrustOverride, is_change_list};

/// Commands of Pi that this version does not have.
const COMMANDS_NOT_YET: [&str; 7] = ["config", "install", "list", "mcp", "remove", "uninstall", "update"];

/// Options that say together what happens, before they are combined.
#[derive(Default)]
struct Draft {
    config: Config,
    continue_last: bool,
    resume: bool,
    session: Option<String>,
    session_id: Option<String>,
    fork: Option<String>,
    no_session: bool,
    list_models: Option<String>,
    export: Option<String>,
    help: bool,
    version: bool,
}

/// Reads the arguments, the program's name first.
pub fn parse(
    args: impl IntoIterator<Item = OsString>,
    environment: &Environment,
) -> Result<Invocation, CliError> {
    let mut args = args.into_iter();
    let program = args.next().unwrap_or_default();
    let args = args
        .enumerate()
        .map(|(nth, arg)| {
            arg.into_string().map_err(|_| CliError(format!("argument {} is not valid UTF-8", nth + 1)))
        })
        .collect::<Result<Vec<String>, CliError>>()?;
    if let Some(first) = args.first() {
        if first == "schema" {
            return schema(&args[1..]);
        }
        if first == "auth" {
            return Ok(Invocation::Auth(args.into_iter().skip(1).collect()));
        }
        if let Some(command) = COMMANDS_NOT_YET.into_iter().find(|command| command == first) {
            return Ok(Invocation::NotYet(command));
        }
    }
    let mut draft = Draft::default();
    let mut args = args.into_iter().peekable();
    while let Some(arg) = args.next() {
        if arg == "--" {
            args.by_ref().for_each(|arg| draft.positional(arg));
        } else if !arg.starts_with('-') {
            draft.positional(arg);
        } else {
            let (name, inline) = match arg.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (arg.as_str(), None),
            };
            let spec = Spec::find(name).ok_or_else(|| CliError(format!("Unknown option: {name}")))?;
            let value = match (spec.takes, inline) {
                (Takes::Nothing, Some(_)) => return Err(CliError(format!("{name} takes no value"))),
                (Takes::Nothing, None) => String::new(),
                (_, Some(value)) => value,
                (Takes::Value(_), None) => args.next().ok_or_else(|| missing_value(spec))?,
                (Takes::Maybe(_), None) => {
                    args.next_if(|next| !next.starts_with(['-', '@'])).unwrap_or_default()
                }
            };
            draft.option(spec.option, value)?;
        }
    }
    draft.finish(&program, environment)
}

fn schema(args: &[String]) -> Result<Invocation, CliError> {
    match args.first().map(String::as_str) {
        None => Ok(Invocation::Schema),
        Some("--help" | "-h") => Ok(Invocation::Help),
        Some(other) => Err(CliError(format!("schema takes no arguments, but {other:?} was given"))),
    }
}

fn missing_value(spec: &Spec) -> CliError {
    CliError(match spec.option {
        Opt::Mode => "--mode requires text, json, or rpc".to_owned(),
        _ => format!("{} requires a value", spec.long),
    })
}

impl Draft {
    fn positional(&mut self, arg: String) {
        match arg.strip_prefix('@') {
            Some(path) if !path.is_empty() => self.config.files.push(path.to_owned()),
            _ => self.config.messages.push(arg),
        }
    }

    fn option(&mut self, option: Opt, value: String) -> Result<(), CliError> {
        let config = &mut self.config;
        let resources = &mut config.resources;
        match option {
            Opt::Mode => {
                config.mode = match value.as_str() {
                    "text" => Mode::Text,
                    "json" => Mode::Json,
                    "rpc" => Mode::Rpc,
                    _ => {
                        return Err(CliError(format!(
                            "Invalid mode \"{value}\". Valid values: text, json, rpc"
                        )));
                    }
                };
            }
            Opt::Print => config.print = true,
            Opt::Provider => self.config.provider = self.non_empty(value, "--provider"),
            Opt::Model => self.config.model = self.non_empty(value, "--model"),
            // An empty list is one: the list of the settings does not count then, as in Pi.
            Opt::Models => config.models = Some(split_list(&value)),
            Opt::ListModels => self.list_models = Some(value),
            Opt::ApiKey => self.config.api_key = self.non_empty(value, "--api-key").map(Into::into),
            Opt::Thinking => match ThinkingLevel::parse(&value) {
                Some(level) => config.thinking = Some(level),
                None => {
                    let levels = ThinkingLevel::ALL.map(ThinkingLevel::as_str).join(", ");
                    config
                        .warnings
                        .push(format!("Invalid thinking level \"{value}\". Valid values: {levels}"));
                }
            },
            Opt::Continue => self.continue_last = true,
            Opt::Resume => self.resume = true,
            Opt::Session => self.session = Some(required(value, "--session")?),
            Opt::SessionId => self.session_id = Some(session_id(value)?),
            Opt::Fork => self.fork = Some(required(value, "--fork")?),
            Opt::SessionDir => config.session_dir = Some(required(value, "--session-dir")?),
            Opt::NoSession => self.no_session = true,
            Opt::Name => {
                // A name is one line.
                let lines = value.lines().map(str::trim).filter(|line| !line.is_empty());
                config.name = Some(required(lines.collect::<Vec<_>>().join(" "), "--name")?);
            }
            Opt::Tools => config.tools.list = Some(tool_list(&value)?),
            Opt::ExcludeTools => config.tools.exclude = split_list(&value),
            Opt::NoBuiltinTools => {
                if config.tools.start == ToolStart::Defaults {
                    config.tools.start = ToolStart::NoBuiltins;
                }
            }
            Opt::NoTools => config.tools.start = ToolStart::Nothing,
            Opt::SystemPrompt => config.system_prompt = Some(value),
            Opt::AppendSystemPrompt => config.append_system_prompt.push(value),
            Opt::Extension => resources.extensions.push(value),
            Opt::NoExtensions => resources.no_extensions = true,
            Opt::NoMcp => resources.no_mcp = true,
            Opt::Skill => resources.skills.push(value),
            Opt::NoSkills => resources.no_skills = true,
            Opt::PromptTemplate => resources.prompt_templates.push(value),
            Opt::NoPromptTemplates => resources.no_prompt_templates = true,
            Opt::Theme => resources.themes.push(value),
            Opt::NoThemes => resources.no_themes = true,
            Opt::NoContextFiles => resources.no_context_files = true,
            Opt::UseTheme => {
                required(value, "--use-theme")?;
            }
            Opt::Export => self.export = Some(required(value, "--export")?),
            Opt::TuiMode => {
                if !["regular", "fullscreen"].contains(&value.as_str()) {
                    return Err(CliError(format!(
                        "Invalid TUI mode \"{value}\". Valid values: regular, fullscreen"
                    )));
                }
            }
            Opt::Approve => self.trust(TrustOverride::Approve, "--approve"),
            Opt::NoApprove => self.trust(TrustOverride::Deny, "--no-approve"),
            Opt::Offline => config.offline = true,
            // It is about the start of Pi's terminal interface.
            Opt::Verbose => {}
            Opt::Help => self.help = true,
            Opt::Version => self.version = true,
        }
        Ok(())
    }

    /// A value that says something. One that does not counts as not given, as in Pi.
    fn non_empty(&mut self, value: String, option: &str) -> Option<String> {
        let value = non_empty(value);
        if value.is_none() {
            self.config.warnings.push(format!("{option} is empty and counts as not given"));
        }
        value
    }

    /// The last of several counts, as in Pi.
    fn trust(&mut self, trust: TrustOverride, option: &str) {
        if ![TrustOverride::Unset, trust].contains(&self.config.trust) {
            let warning =
                format!("--approve and --no-approve exclude each other; {option} counts, it came last");
            self.config.warnings.push(warning);
        }
        self.config.trust = trust;
    }

    fn finish(
        mut self,
        program: &std::ffi::OsStr,
        environment: &Environment,
    ) -> Result<Invocation, CliError> {
        if self.version {
            return Ok(Invocation::Version(version_text(BRANDING, program)));
        }
        if self.help {
            return Ok(Invocation::Help);
        }
        if let Some(session) = self.export {
            let output = self.config.messages.into_iter().next();
            return Ok(Invocation::Export { session, output });
        }
        let config = &mut self.config;
        config.offline |= environment.flag(OFFLINE_VARIABLE);
        if let Some(search) = self.list_models {
            return Ok(Invocation::ListModels { search, config: Box::new(self.config) });
        }
        if config.mode == Mode::Rpc && !config.files.is_empty() {
            return Err(CliError("@file arguments are not supported in RPC mode".to_owned()));
        }
        if config.mode == Mode::Rpc && !config.messages.is_empty() {
            let warning =
                "prompts on the command line are ignored in RPC mode; the host sends them as commands";
            config.warnings.push(warning.to_owned());
        }
        if let (Some(provider), None) = (&config.provider, &config.model)
            && !provider.eq_ignore_ascii_case(DEMO_PROVIDER)
        {
            return Err(CliError(format!(
                "--provider requires --model (for example: --provider {provider} --model <pattern>)"
            )));
        }
        let has_model = config.model.is_some() || config.models.is_some() || config.provider.is_some();
        if config.api_key.is_some() && !has_model {
            return Err(CliError(
                "--api-key requires a model to be specified via --model, --provider/--model, or --models"
                    .to_owned(),
            ));
        }
        let session = self.session_choice()?;
        self.config.session = session;
        Ok(Invocation::Run(Box::new(self.config)))
    }

    fn session_choice(&mut self) -> Result<SessionChoice, CliError> {
        let given = |present: bool, name: &'static str| present.then_some(name);
        let conflict = |option: &str, others: &[Option<&'static str>]| match others.iter().flatten().next() {
            Some(other) => Err(CliError(format!("{option} cannot be combined with {other}"))),
            None => Ok(()),
        };
        let session = given(self.session.is_some(), "--session");
        let continue_last = given(self.continue_last, "--continue");
        let resume = given(self.resume, "--resume");
        if let Some(source) = self.fork.take() {
            conflict("--fork", &[session, continue_last, resume, given(self.no_session, "--no-session")])?;
            return Ok(SessionChoice::Fork { source, id: self.session_id.take() });
        }
        if self.session_id.is_some() {
            conflict("--session-id", &[session, continue_last, resume])?;
        }
        if self.no_session {
            return Ok(SessionChoice::InMemory { id: self.session_id.take() });
        }
        if let Some(session) = self.session.take() {
            return Ok(SessionChoice::Open(session));
        }
        if let Some(id) = self.session_id.take() {
            return Ok(SessionChoice::WithId(id));
        }
        if self.resume {
            return Err(CliError(
                "--resume needs a terminal to choose a session in; use --continue, or --session with a path or id"
                    .to_owned(),
            ));
        }
        Ok(if self.continue_last { SessionChoice::Continue } else { SessionChoice::New })
    }
}

fn non_empty(value: String) -> Option<String> {
    (!value.trim().is_empty()).then_some(value)
}

fn required(value: String, option: &str) -> Result<String, CliError> {
    non_empty(value).ok_or_else(|| CliError(format!("{option} requires a non-empty value")))
}

fn session_id(id: String) -> Result<String, CliError> {
    let bytes = id.as_bytes();
    let ends = [bytes.first(), bytes.last()];
    let ends_fit = ends.iter().all(|end| end.is_some_and(u8::is_ascii_alphanumeric));
    let fits = bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
    if ends_fit && fits {
        return Ok(id);
    }
    Err(CliError(
        "Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', and start and end \
         with an alphanumeric character"
            .to_owned(),
    ))
}

fn split_list(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect()
}

fn tool_list(list: &str) -> Result<Vec<String>, CliError> {
    let list = split_list(list);
    if list.iter().any(|entry| entry.starts_with(['+', '-'])) && !is_change_list(&list) {
        return Err(CliError("--tools: tool names cannot be mixed with +name or -name entries".to_owned()));
    }
    Ok(list)
}
