//! The Python client: its wheel, its types, its tests.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use crate::checks::{self, Profile};

/// How long all of it may take, the daemon's build aside.
const TIME_LIMIT: Duration = Duration::from_secs(30 * 60);

/// The command line of the agent that the tests of a real one run against.
const AGENT: &str = "SAMPI_TEST_AGENT";

/// How often a step that runs is looked at.
const POLL: Duration = Duration::from_millis(50);

/// What the checks need beside maturin. The file is the key of the environment: when it changes, the
/// environment is made anew.
const REQUIREMENTS: &str = include_str!("../../client-py/tests/requirements.txt");

/// Makes a virtual environment under `target/`, builds the wheel with the debug daemon in it, installs it,
/// and runs mypy, stubtest and pytest. The tests of a real agent run against that daemon, unless
/// `SAMPI_TEST_AGENT` names another.
pub(crate) fn test(pytest: Vec<OsString>) -> anyhow::Result<()> {
    let daemon = checks::build_daemon(Profile::Debug)?;
    let steps = Steps { until: Instant::now() + TIME_LIMIT, project: checks::root().join("client-py") };
    let folder = checks::target_dir()?.join("python");
    let environment = Environment::prepare(&steps, &folder.join("venv"))?;
    let wheel = build_wheel(&steps, &environment, &folder, &daemon)?;
    environment.install(&steps, &["--force-reinstall", "--no-deps"], &wheel)?;
    check_types(&steps, &environment)?;
    let mut command = environment.python(["-m", "pytest", "--quiet", "-p", "no:cacheprovider"]);
    command.args(pytest);
    // Tests of a real agent, which may also be Pi, do not find the daemon by themselves.
    if std::env::var_os(AGENT).is_none() {
        command.env(AGENT, shell_word(&daemon)?);
    }
    steps.run(command)
}

/// A path as one word of a command line.
fn shell_word(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?;
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

struct Steps {
    until: Instant,
    project: PathBuf,
}

impl Steps {
    /// Runs one command in the project's folder; it is killed when the time is up.
    fn run(&self, mut command: Command) -> anyhow::Result<()> {
        println!("$ {}", shown(&command));
        let mut child = command
            .current_dir(&self.project)
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| shown(&command))?;
        loop {
            if let Some(status) = child.try_wait()? {
                ensure!(status.success(), "{} failed: {status}", shown(&command));
                return Ok(());
            }
            if Instant::now() > self.until {
                child.kill()?;
                child.wait()?;
                bail!("{} was not done after {} s in all", shown(&command), TIME_LIMIT.as_secs());
            }
            std::thread::sleep(POLL);
        }
    }
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// A virtual environment with what the checks need.
struct Environment {
    bin: PathBuf,
}

impl Environment {
    fn prepare(steps: &Steps, folder: &Path) -> anyhow::Result<Self> {
        let environment = Self { bin: folder.join("bin") };
        let mark = folder.join("requirements.txt");
        if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == REQUIREMENTS) {
            return Ok(environment);
        }
        let python = std::env::var_os("PYTHON").unwrap_or_else(|| OsString::from("python3"));
        let mut command = Command::new(python);
        command.args(["-m", "venv", "--clear"]).arg(folder);
        steps.run(command)?;
        environment.install(steps, &["--requirement"], &steps.project.join("tests/requirements.txt"))?;
        std::fs::write(&mark, REQUIREMENTS).with_context(|| mark.display().to_string())?;
        Ok(environment)
    }

    fn python<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(self.bin.join("python"));
        command.args(args);
        command
    }

    fn install(&self, steps: &Steps, options: &[&str], what: &Path) -> anyhow::Result<()> {
        let mut command = self.python(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        command.args(options).arg(what);
        steps.run(command)
    }
}

/// Builds the wheel through its own build backend, as `pip install ./client-py` does, but in debug mode and
/// with the daemon that is there.
fn build_wheel(
    steps: &Steps,
    environment: &Environment,
    folder: &Path,
    daemon: &Path,
) -> anyhow::Result<PathBuf> {
    let wheels = folder.join("wheels");
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels).with_context(|| wheels.display().to_string())?;
    }
    let mut command = environment.python(["-m", "pip", "wheel", "--quiet", "--no-deps"]);
    command
        .args(["--no-build-isolation", "--disable-pip-version-check", "--wheel-dir"])
        .arg(&wheels)
        .arg(".")
        .env("SAMPI_DAEMON", daemon)
        .env("MATURIN_PEP517_ARGS", "--profile dev")
        .env("PATH", path_with(&environment.bin)?);
    steps.run(command)?;
    let mut found = std::fs::read_dir(&wheels)?.filter_map(Result::ok).map(|entry| entry.path());
    found.find(|path| path.extension() == Some(OsStr::new("whl"))).context("no wheel was built")
}

/// `PATH` with one folder before the others.
fn path_with(folder: &Path) -> anyhow::Result<OsString> {
    let others = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&others));
    Ok(std::env::join_paths(folders)?)
}

fn check_types(steps: &Steps, environment: &Environment) -> anyhow::Result<()> {
    let cache = environment.bin.join("../mypy-cache");
    // A notebook's cells await outside of functions, which mypy does not know.
    let programs = ["--exclude", "notebook_cell", "tests", "tools/make_sync.py", "../examples/python"];
    for checked in [["-p", "sampi"].as_slice(), &programs] {
        let mut command = environment.python(["-m", "mypy", "--config-file", "pyproject.toml"]);
        command.arg("--cache-dir").arg(&cache).args(checked).env("MYPYPATH", "tests");
        steps.run(command)?;
    }
    let mut command = environment.python(["-m", "mypy.stubtest", "sampi"]);
    command.args(["--allowlist", "tools/stubtest-allowlist.txt"]);
    steps.run(command)
}
