//! What a process has used, from /proc.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};

/// CPU time of all threads of a process so far. Threads that have ended are not counted.
pub(crate) fn cpu(pid: u32) -> anyhow::Result<Duration> {
    let tasks = PathBuf::from(format!("/proc/{pid}/task"));
    let mut nanoseconds = 0u64;
    for task in std::fs::read_dir(&tasks).with_context(|| format!("could not read {}", tasks.display()))? {
        // A thread may end meanwhile.
        let Ok(text) = std::fs::read_to_string(task?.path().join("schedstat")) else { continue };
        nanoseconds +=
            text.split_whitespace().next().and_then(|first| first.parse::<u64>().ok()).unwrap_or(0);
    }
    ensure!(nanoseconds > 0, "the kernel tells no CPU time in /proc/{pid}/task/*/schedstat");
    Ok(Duration::from_nanos(nanoseconds))
}

/// Resident memory of a process in bytes.
pub(crate) fn rss(pid: u32) -> anyhow::Result<u64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| format!("could not read {path}"))?;
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse::<u64>().ok());
    Ok(kilobytes.with_context(|| format!("{path} has no VmRSS"))? * 1024)
}
