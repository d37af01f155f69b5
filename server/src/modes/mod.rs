//! Modes: how a host talks to the agent. The only place that writes to stdout.

use std::ffi::OsString;
use std::io::Write;

use crate::cli::{self, Config, Invocation, Mode, Startup};
use crate::llm::demo_models;
use crate::resources::models::list_models;
use crate::resources::{Environment, Paths};

pub mod rpc;
pub mod signals;
pub mod startup;

use rpc::RpcLimits;
use signals::Signals;

/// The schema of the protocol, as it is committed.
const SCHEMA: &str = include_str!("../../../protocol/schema/protocol.schema.json");

/// Threads that run tasks; the work of a daemon is waiting.
const WORKER_THREADS: usize = 2;

/// Runs the program with these arguments, the program's name first; gives back the exit code.
pub fn run(arguments: Vec<OsString>) -> i32 {
    start_logging();
    let environment = Environment::from_process();
    match cli::parse(arguments, &environment) {
        Ok(invocation) => run_invocation(invocation, environment),
        Err(error) => fail(&error.to_string()),
    }
}

fn run_invocation(invocation: Invocation, environment: Environment) -> i32 {
    match invocation {
        Invocation::Help => print(&cli::help_text()),
        Invocation::Version(version) => print(&format!("{version}\n")),
        Invocation::Schema => print(SCHEMA),
        Invocation::NotYet(what) => fail(&format!("{what} is not implemented in this version of sampi")),
        Invocation::ListModels { search, config } => with_cwd(|cwd| {
            let paths = Paths::new(&environment, cwd);
            match Startup::prepare(&config, &environment, &paths, demo_models()) {
                Ok(startup) => print(&list_models(&startup.registry, &search)),
                Err(error) => fail(&error.to_string()),
            }
        }),
        Invocation::Run(config) => match config.mode {
            Mode::Rpc => run_rpc(&config, &environment),
            Mode::Json => fail("--mode json is not implemented in this version of sampi; use --mode rpc"),
            Mode::Text => fail(
                "print mode and the terminal interface are not implemented in this version of sampi; use --mode rpc",
            ),
        },
    }
}

fn run_rpc(config: &Config, environment: &Environment) -> i32 {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(WORKER_THREADS).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("the runtime could not be started: {error}")),
    };
    let code = with_cwd(|cwd| {
        runtime.block_on(async {
            let agent = match startup::start(config, environment, cwd) {
                Ok(agent) => agent,
                Err(error) => return fail(&error.to_string()),
            };
            let signals = match Signals::of_process() {
                Ok(signals) => signals,
                Err(error) => return fail(&format!("signals could not be handled: {error}")),
            };
            rpc::serve(agent, tokio::io::stdin(), tokio::io::stdout(), signals, RpcLimits::default()).await
        })
    });
    crate::process::kill_all();
    // The task that reads stdin may wait for a host that sends nothing more.
    runtime.shutdown_background();
    code
}

fn with_cwd(run: impl FnOnce(&std::path::Path) -> i32) -> i32 {
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
    // Nothing can be said when stderr is closed.
    writeln!(std::io::stderr(), "Error: {error}").ok();
    i32::from(cli::EXIT_USAGE)
}

/// Logs go to stderr: warnings and errors, or what `SAMPI_LOG` says (`error`, `warn`, `info`, `debug`, `trace`).
fn start_logging() {
    let level = std::env::var("SAMPI_LOG").ok().and_then(|level| level.parse().ok());
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(level.unwrap_or(tracing::Level::WARN))
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .init();
}
