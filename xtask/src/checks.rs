//! Running cargo: tests, lints, formatting, builds.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// How the daemon is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Debug,
    Release,
}

/// The tests of the workspace, with cargo-nextest if it is installed, and the documentation examples.
pub(crate) fn test() -> anyhow::Result<()> {
    // Tests start the daemon as a program.
    let daemon = build_daemon(Profile::Debug)?;
    // nextest runs no documentation examples; they come first so that the summary of all comes last.
    cargo(&["test", "--workspace", "--doc"])?;
    // The client's tests of a real agent, which may also be Pi, do not find the daemon by themselves.
    let real = ["test", "--package", "sampi-client", "--test", "it", "--", "--ignored", "real::"];
    cargo_with(&real, &[("SAMPI_TEST_AGENT", daemon.as_os_str())])?;
    // Examples are part of tests that run them, or checked with the lints: a program of each takes time to link.
    let with: &[&str] = if has_nextest() { &["nextest", "run"] } else { &["test"] };
    cargo(&[with, &["--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"]].concat())
}

/// Formatting and lints.
pub(crate) fn lint() -> anyhow::Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

/// Builds the daemon and gives its path.
pub(crate) fn build_daemon(profile: Profile) -> anyhow::Result<PathBuf> {
    let mut args = vec!["build", "--quiet", "--package", "sampi-server", "--bin", "sampi"];
    if profile == Profile::Release {
        args.push("--release");
    }
    cargo(&args)?;
    let folder = match profile {
        Profile::Debug => "debug",
        Profile::Release => "release",
    };
    Ok(target_dir()?.join(folder).join(format!("sampi{}", std::env::consts::EXE_SUFFIX)))
}

pub(crate) fn target_dir() -> anyhow::Result<PathBuf> {
    let output = Command::new(cargo_path())
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .context("cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata failed");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    Ok(metadata["target_directory"].as_str().context("cargo metadata has no target_directory")?.into())
}

fn cargo(args: &[&str]) -> anyhow::Result<()> {
    cargo_with(args, &[])
}

fn cargo_with(args: &[&str], env: &[(&str, &OsStr)]) -> anyhow::Result<()> {
    println!("$ cargo {}", args.join(" "));
    let mut command = Command::new(cargo_path());
    command.args(args).envs(env.iter().copied()).current_dir(root());
    let status = command.status().context("cargo")?;
    ensure!(status.success(), "cargo {} failed: {status}", args.join(" "));
    Ok(())
}

fn has_nextest() -> bool {
    let probe = Command::new(cargo_path())
        .args(["nextest", "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    probe.is_ok_and(|status| status.success())
}

/// The cargo that runs this task.
fn cargo_path() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// The workspace.
pub(crate) fn root() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/..").into()
}
