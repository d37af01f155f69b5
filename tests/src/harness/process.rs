use std::time::Duration;

use serde_json::Value;

use super::within_timeout;

/// The id of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pid(pub i32);

impl Pid {
    /// True while the process runs; a process that has ended and waits to be reaped does not.
    pub fn is_alive(self) -> bool {
        match std::fs::read_to_string(format!("/proc/{}/stat", self.0)) {
            // The state follows the name, which is in parentheses and may hold any character.
            Ok(stat) => {
                let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
                !matches!(state, Some('Z' | 'X'))
            }
            Err(_) if cfg!(target_os = "linux") => false,
            Err(_) => rustix::process::Pid::from_raw(self.0)
                .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok()),
        }
    }

    /// Waits until the process is gone.
    pub async fn gone(self) {
        eventually(&format!("process {} to be gone", self.0), || !self.is_alive()).await;
    }

    /// The memory that the process holds, in bytes. Linux only; `None` elsewhere.
    pub fn resident_bytes(self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
    }
}

/// The numbers that a text holds one a line, as process ids.
pub fn pids_in(text: &Value) -> Vec<Pid> {
    let lines = text.as_str().unwrap_or_default().lines();
    lines.filter_map(|line| line.trim().parse().ok()).map(Pid).collect()
}

/// Waits for a condition outside the protocol that nothing reports, such as the end of a process.
pub async fn eventually(what: &str, condition: impl Fn() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    within_timeout(what, async {
        while !condition() {
            ticks.tick().await;
        }
    })
    .await;
}
