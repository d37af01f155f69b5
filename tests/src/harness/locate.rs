use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The command that starts the daemon.
#[derive(Debug, Clone)]
pub struct DaemonCommand {
    /// The program.
    pub program: OsString,
    /// Its first arguments.
    pub args: Vec<String>,
}

/// True when the daemon is Pi itself.
pub fn is_reference() -> bool {
    std::env::var_os("SAMPI_TEST_REFERENCE").is_some_and(|value| value == "1")
}

impl DaemonCommand {
    /// The command of `SAMPI_TEST_DAEMON`, or the binary of this build.
    pub fn of_this_run() -> Self {
        if let Ok(command) = std::env::var("SAMPI_TEST_DAEMON") {
            let mut words = command.split_whitespace().map(str::to_owned);
            let program = words.next().expect("SAMPI_TEST_DAEMON names a program").into();
            return Self { program, args: words.collect() };
        }
        static BUILT: OnceLock<PathBuf> = OnceLock::new();
        Self { program: BUILT.get_or_init(built_binary).into(), args: Vec::new() }
    }
}

/// The binary beside this test executable, built first unless it is newer than all sources.
///
/// Cargo builds the binaries of other packages for nobody, so the tests see to it themselves.
fn built_binary() -> PathBuf {
    let test = std::env::current_exe().expect("this test has a path");
    let profile = test.ancestors().nth(2).expect("target/<profile>/deps/<test>").to_owned();
    let binary = profile.join(format!("sampi{}", std::env::consts::EXE_SUFFIX));
    let stamp = profile.join("sampi.built-for-tests");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned();
    let sources = ["Cargo.toml", "Cargo.lock", "protocol", "server"];
    let newest = sources.iter().filter_map(|name| newest_in(&root.join(name))).max();
    let built = [&binary, &stamp].into_iter().filter_map(|path| modified(path)).max();
    if binary.exists() && built > newest {
        return binary;
    }
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.current_dir(&root).args(["build", "--package", "sampi-server", "--bin", "sampi"]);
    if profile.file_name().is_some_and(|name| name == "release") {
        build.arg("--release");
    }
    let status = build.status().expect("cargo can be run");
    assert!(status.success(), "the daemon could not be built");
    std::fs::write(&stamp, "").expect("the target folder can be written");
    binary
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|metadata| metadata.modified()).ok()
}

fn newest_in(path: &Path) -> Option<SystemTime> {
    let Ok(entries) = path.read_dir() else { return modified(path) };
    entries.flatten().filter_map(|entry| newest_in(&entry.path())).max()
}
