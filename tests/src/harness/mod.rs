//! The daemon in a directory of its own, with every record that it writes.
//!
//! ```no_run
//! # use sampi_tests::{fake_llm::{FakeLlm, text}, harness::Daemon};
//! # use serde_json::json;
//! # async fn example() {
//! let llm = FakeLlm::start().await;
//! llm.push(text("Hello."));
//! let daemon = Daemon::builder(&llm).file("a.txt", "one\n").spawn().await;
//! daemon.prompt("hi").await;
//! daemon.settled().await;
//! daemon.finish().await;
//! llm.finish();
//! # }
//! ```
//!
//! The daemon is the binary `sampi` of this build, unless `SAMPI_TEST_DAEMON` names another command, such
//! as `node /path/to/pi/cli.js`. With `SAMPI_TEST_REFERENCE=1` that command is Pi itself: what Sampi adds to
//! the protocol (the `code` of a failure) is then not asked for.

mod builder;
mod daemon;
mod locate;
mod normalise;
mod once;
mod pattern;
mod process;
mod records;

use std::time::Duration;

pub use builder::{DaemonBuilder, Model, Workspace};
pub use daemon::{Daemon, Exit, Failure, text_of_content};
pub use locate::{DaemonCommand, is_reference};
pub use normalise::Normaliser;
pub use once::{Finished, finished};
pub use pattern::matches;
pub use process::{Pid, eventually, pids_in};
pub use records::{Mark, Record};

/// How long anything may take before the test fails. Generous: the machine may be busy, and a test that
/// passes never waits for it.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Awaits a future, and fails the test when it takes longer than [`TIMEOUT`].
pub async fn within_timeout<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(TIMEOUT, future).await {
        Ok(output) => output,
        Err(_) => panic!("waited {} s for {what}", TIMEOUT.as_secs()),
    }
}
