//! Modes: how a host talks to the agent. The only place that writes to stdout.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::agent::Agent;
use crate::assembly::{Assembly, Boundaries, StartError, Startup};
use crate::branding::BRANDING;
use crate::cli::{self, Config, Invocation, Mode};
use crate::export::{self, Leaf};
use crate::resources::auth::renewals_done;
use crate::resources::models::list_models;
use crate::resources::{Environment, Paths};

mod auth;
mod logging;
pub mod one_shot;
mod outgoing;
pub mod rpc;
pub mod signals;

use one_shot::{FailedAnswer, Form, PromptSources, read_prompts};
use rpc::RpcLimits;
use signals::Signals;

/// How long the end of the process waits for the renewal of a sign-in.
const RENEWALS_DEADLINE: Duration = Duration::from_secs(3);

/// The schema of the protocol, as it is committed.
const SCHEMA: &str = include_str!("../../../protocol/schema/protocol.schema.json");

/// Runs the program with these arguments, the program's name first; gives back the exit code.
pub fn run(arguments: Vec<OsString>) -> i32 {
    logging::start();
    let environment = Environment::from_process();
    match cli::parse(arguments, &environment) {
        Ok(invocation) => run_invocation(invocation, environment),
        Err(error) => fail(&error.to_string()),
    }
}

fn run_invocation(invocation: Invocation, environment: Environment) -> i32 {
    match invocation {
        Invocation::Help => print(&cli::help_text(BRANDING)),
        Invocation::Version(version) => print(&format!("{version}\n")),
        Invocation::Schema => print(SCHEMA),
        Invocation::NotYet(what) => {
            fail(&format!("{what} is not implemented in this version of {}", BRANDING.name))
        }
        Invocation::ListModels { search, config } => with_cwd(|cwd| {
            let paths = Paths::new(&environment, cwd);
            let assembly = Assembly::new(*config, environment.clone(), Boundaries::default(), cwd);
            let mut warnings = Vec::new();
            let prepared = Startup::prepare(&assembly, &paths, &[], &mut warnings);
            tell(&warnings);
            match prepared {
                Ok(startup) => print(&list_models(&startup.registry, &search)),
                Err(error) => fail(&error.to_string()),
            }
        }),
        Invocation::Auth(args) => in_runtime(async |cwd, mut signals| {
            let answer = auth::run(&args, &environment, &cwd, &mut signals).await;
            match (answer.is_result, answer.text.as_str()) {
                (true, text) if print(&format!("{text}\n")) != 0 => 1,
                (false, text) if !text.is_empty() => {
                    fail(text);
                    answer.code
                }
                _ => answer.code,
            }
        }),
        Invocation::Export { session, output } => export(&session, output),
        Invocation::Run(config) => match Way::of(&config, Ends::of_process()) {
            Way::Rpc => run_rpc(&config, &environment),
            Way::Prompts(form) => run_prompts(&config, &environment, form),
            Way::Terminal => fail(
                "there is no terminal interface; use --print with a prompt, --mode json, or --mode rpc for a host \
                 program",
            ),
        },
    }
}

/// What stdin and stdout are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    Terminals,
    /// One of them at least is something else.
    Piped,
}

impl Ends {
    fn of_process() -> Self {
        match std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
            true => Self::Terminals,
            false => Self::Piped,
        }
    }
}

/// How the program speaks with whoever started it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Rpc,
    Prompts(Form),
    Terminal,
}

impl Way {
    fn of(config: &Config, ends: Ends) -> Self {
        match (config.mode, ends) {
            (Mode::Rpc, _) => Self::Rpc,
            (Mode::Json, _) => Self::Prompts(Form::Json),
            (Mode::Text, Ends::Piped) => Self::Prompts(Form::Text),
            (Mode::Text, Ends::Terminals) if config.print => Self::Prompts(Form::Text),
            (Mode::Text, Ends::Terminals) => Self::Terminal,
        }
    }
}

fn export(session: &str, output: Option<String>) -> i32 {
    with_cwd(|cwd| {
        let file = cwd.join(session);
        if !file.exists() {
            return fail(&format!("File not found: {}", file.display()));
        }
        let target = output.map_or_else(|| export::default_path(&file), PathBuf::from);
        match export::export_file(&file, Leaf::Latest, &target) {
            Ok(()) => print(&format!("Exported to: {}\n", target.display())),
            Err(error) => fail(&error.to_string()),
        }
    })
}

/// Makes the agent that the command line asks for.
fn start(config: &Config, environment: &Environment, cwd: &Path) -> Result<Agent, StartError> {
    let version = env!("CARGO_PKG_VERSION");
    tracing::debug!(version, pid = std::process::id(), mode = ?config.mode, cwd = %cwd.display(), "start");
    let assembly = Assembly::new(config.clone(), environment.clone(), Boundaries::default(), cwd);
    let mut warnings = Vec::new();
    let agent = assembly.start(cwd, &mut warnings);
    // What is wrong with the configuration may be why the start fails.
    tell(&warnings);
    agent
}

/// Tells what is wrong and does no harm.
fn tell(warnings: &[String]) {
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
}

fn run_rpc(config: &Config, environment: &Environment) -> i32 {
    in_runtime(async |cwd, signals| {
        let agent = match start(config, environment, &cwd) {
            Ok(agent) => agent,
            Err(error) => return fail(&error.to_string()),
        };
        rpc::serve(agent, tokio::io::stdin(), tokio::io::stdout(), signals, RpcLimits::default()).await
    })
}

fn run_prompts(config: &Config, environment: &Environment, form: Form) -> i32 {
    let failed_answer = match form {
        Form::Text => FailedAnswer::Fails,
        // Pi leaves the verdict to the events, unless print mode is asked for as well.
        Form::Json if config.print => FailedAnswer::Fails,
        Form::Json => FailedAnswer::IsTold,
    };
    in_runtime(async |cwd, mut signals| {
        let piped = (!std::io::stdin().is_terminal()).then(tokio::io::stdin);
        let sources = PromptSources {
            messages: config.messages.clone(),
            files: config.files.clone(),
            cwd: cwd.clone(),
            environment: environment.clone(),
        };
        let prompts = tokio::select! {
            signal = signals.next() => return signal.exit_code(),
            prompts = read_prompts(sources, piped) => prompts,
        };
        let prompts = match prompts {
            Ok(prompts) => prompts,
            Err(error) => return fail(&error.to_string()),
        };
        let agent = match start(config, environment, &cwd) {
            Ok(agent) => agent,
            Err(error) => return fail(&error.to_string()),
        };
        let stdout = tokio::io::stdout();
        let ended = one_shot::run(agent, prompts, form, failed_answer, stdout, &mut signals).await;
        if let Some(complaint) = ended.complaint {
            complain(&complaint);
        }
        ended.code
    })
}

/// Runs a mode, with the signals of the process; gives back the exit code.
fn in_runtime(mode: impl AsyncFnOnce(PathBuf, Signals) -> i32) -> i32 {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("the runtime could not be started: {error}")),
    };
    let code = with_cwd(|cwd| {
        runtime.block_on(async {
            match Signals::of_process() {
                Ok(signals) => mode(cwd.to_owned(), signals).await,
                Err(error) => fail(&format!("signals could not be handled: {error}")),
            }
        })
    });
    crate::process::kill_all();
    let saved = runtime.block_on(async { tokio::time::timeout(RENEWALS_DEADLINE, renewals_done()).await });
    if saved.is_err() {
        complain("a sign-in was being renewed; its new tokens may be lost");
    }
    // The task that reads stdin may wait for a host that sends nothing more.
    runtime.shutdown_background();
    code
}

fn with_cwd(run: impl FnOnce(&Path) -> i32) -> i32 {
    match std::env::current_dir() {
        Ok(cwd) => run(&cwd),
        Err(error) => fail(&format!("the working directory cannot be used: {error}")),
    }
}

fn print(text: &str) -> i32 {
    let mut stdout = std::io::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => 0,
        Err(_) => 1,
    }
}

fn fail(error: &str) -> i32 {
    complain(&format!("Error: {error}"));
    i32::from(cli::EXIT_USAGE)
}

fn complain(text: &str) {
    // Nothing can be said when stderr is closed.
    writeln!(std::io::stderr(), "{text}").ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_or_print_asks_for_print_mode_and_two_terminals_for_an_interface_that_is_not_there() {
        let way = |mode, print, ends| Way::of(&Config { mode, print, ..Config::default() }, ends);
        assert_eq!(way(Mode::Text, false, Ends::Terminals), Way::Terminal);
        assert_eq!(way(Mode::Text, true, Ends::Terminals), Way::Prompts(Form::Text));
        assert_eq!(way(Mode::Text, false, Ends::Piped), Way::Prompts(Form::Text));
        for ends in [Ends::Terminals, Ends::Piped] {
            assert_eq!(way(Mode::Json, true, ends), Way::Prompts(Form::Json));
            assert_eq!(way(Mode::Rpc, true, ends), Way::Rpc);
        }
    }
}
