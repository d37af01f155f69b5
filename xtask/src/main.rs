//! Tasks of the workspace: `cargo xtask help` lists them.

#![allow(clippy::print_stdout, reason = "a task reports to the terminal")]

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use anyhow::{Context, bail};

mod bench;
mod catalogue;
mod checks;
mod demo;
mod model_server;
mod python;
mod sample;
mod scratch;

const HELP: &str = "\
cargo xtask TASK

  demo [--release] [--program PATH] [--keep]
           Build the daemon and let it read, edit and run something in a scratch folder, offline.
           Fails when the file did not change as it should.
  test     All tests: the Python client's, then those of the workspace, documentation examples included.
  ci       Formatting, lints, then test.
  schema   Write protocol/schema/protocol.schema.json anew from the types.
  catalogue PATH
           Write the table of built-in models anew from a file of facts: for each provider a list of models
           in the form of get_available_models.
  test-python [PYTEST ARGUMENTS]
           Build the Python package with the daemon in it, install it in an environment under target/,
           check its types and run its tests. The tests of a real agent run against this daemon, or against
           the command line that SAMPI_TEST_AGENT holds.
  bench [--spawns N] [--deltas N] [--program PATH] [--peer \"COMMAND ARGS\"]
           Measure the release build: start, memory, size, streaming; beside a peer when one is given.
           Asserts nothing.
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without a backtrace: what failed is what the user asked for, not this program.
            // When stderr is gone there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> anyhow::Result<()> {
    let mut args = lexopt::Parser::from_env();
    let task = match args.next()? {
        Some(lexopt::Arg::Value(task)) => task.into_string().map_err(|_| anyhow::anyhow!("odd task name"))?,
        Some(lexopt::Arg::Long("help") | lexopt::Arg::Short('h')) | None => "help".to_owned(),
        Some(other) => return Err(other.unexpected().into()),
    };
    match task.as_str() {
        "help" => {
            print!("{HELP}");
            Ok(())
        }
        "demo" => demo::run(args),
        "test" => {
            no_more(args)?;
            test()
        }
        "ci" => {
            no_more(args)?;
            checks::lint()?;
            test()
        }
        "schema" => {
            no_more(args)?;
            schema()
        }
        "bench" => bench::run(args),
        "catalogue" => catalogue::run(args),
        "test-python" => python::test(pytest_arguments(args)?),
        other => bail!("no task {other:?}\n\n{HELP}"),
    }
}

fn no_more(mut args: lexopt::Parser) -> anyhow::Result<()> {
    match args.next()? {
        Some(arg) => Err(arg.unexpected().into()),
        None => Ok(()),
    }
}

fn test() -> anyhow::Result<()> {
    python::test(Vec::new())?;
    checks::test()
}

fn pytest_arguments(mut args: lexopt::Parser) -> anyhow::Result<Vec<OsString>> {
    let mut arguments = Vec::new();
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Value(value) => arguments.push(value),
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(arguments)
}

fn schema() -> anyhow::Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../protocol/schema/protocol.schema.json");
    std::fs::write(path, sampi_protocol::schema::protocol_schema_text()).context(path)
}
