//! The processes of one command, and how all of them are killed.

use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use memchr::memmem;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::branding::BRANDING;

/// The variable that marks every process of a command, also those that left its group and lost their parent.
pub(super) fn mark_variable() -> String {
    BRANDING.variable("COMMAND_ID")
}

/// Scans for processes that were forked while the ones before them were killed.
const KILL_PASSES: usize = 10;

static RUNNING: LazyLock<Mutex<HashMap<String, Leader>>> = LazyLock::new(Mutex::default);

/// The first process of a command.
#[derive(Debug, Clone, Copy)]
struct Leader {
    pid: Pid,
    /// When it was started, in the kernel's ticks; zero when that is not known.
    start: u64,
}

/// Kills the process trees of all commands that are running.
pub fn kill_all() {
    let trees: Vec<(String, Leader)> =
        running().iter().map(|(mark, leader)| (mark.clone(), *leader)).collect();
    for (mark, leader) in trees {
        kill_tree(&mark, leader);
    }
}

/// The mark of a new command, for its environment.
pub(super) fn new_mark() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// A command's processes. Dropping it kills all of them, without waiting for them to be gone.
#[derive(Debug)]
pub(super) struct ProcessTree {
    mark: String,
    leader: Leader,
}

impl ProcessTree {
    /// Takes charge of the processes that carry `mark` and of the group and the children of `leader`.
    pub(super) fn new(mark: String, leader: Pid) -> Self {
        let start = read_stat(leader.as_raw_pid()).map_or(0, |stat| stat.process.start);
        let leader = Leader { pid: leader, start };
        running().insert(mark.clone(), leader);
        Self { mark, leader }
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        kill_tree(&self.mark, self.leader);
        running().remove(&self.mark);
    }
}

fn running() -> MutexGuard<'static, HashMap<String, Leader>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn kill_tree(mark: &str, leader: Leader) {
    let mut killed = HashSet::new();
    for _ in 0..KILL_PASSES {
        // Found before anything is killed: children of a killed process belong to nobody.
        let found = find_processes(mark, leader);
        // No such group is no failure: everything may have ended by itself.
        kill_process_group(leader.pid, Signal::KILL).ok();
        let mut new = false;
        for process in found {
            if killed.insert(process) {
                new = true;
                if let Some(pid) = Pid::from_raw(process.pid) {
                    kill_process(pid, Signal::KILL).ok();
                }
            }
        }
        if !new {
            return;
        }
    }
    tracing::warn!(leader = leader.pid.as_raw_pid(), "a command forks faster than it can be killed");
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Process {
    pid: i32,
    start: u64,
}

struct Stat {
    process: Process,
    parent: i32,
    group: i32,
}

/// The command's processes by group, by parents and by mark. Empty where there is no /proc.
fn find_processes(mark: &str, leader: Leader) -> Vec<Process> {
    let stats: Vec<Stat> = process_ids().filter_map(read_stat).collect();
    let Leader { pid: leader, start } = leader;
    let leader = leader.as_raw_pid();
    let pattern = format!("{}={mark}", mark_variable());
    let finder = memmem::Finder::new(&pattern);
    let mut members: HashSet<i32> = HashSet::from([leader]);
    for stat in &stats {
        // The environments of processes that are older need not be read.
        if stat.group == leader || (stat.process.start >= start && is_marked(stat.process.pid, &finder)) {
            members.insert(stat.process.pid);
        }
    }
    // Children of children: until nothing is added, as a child may come before its parent.
    loop {
        let before = members.len();
        for stat in &stats {
            if members.contains(&stat.parent) {
                members.insert(stat.process.pid);
            }
        }
        if members.len() == before {
            break;
        }
    }
    stats.into_iter().map(|stat| stat.process).filter(|process| members.contains(&process.pid)).collect()
}

fn process_ids() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// `None` for a process that is gone or only waits to be reaped.
fn read_stat(pid: i32) -> Option<Stat> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name, in parentheses, may have spaces and parentheses itself.
    let (_, fields) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    if matches!(fields.first(), Some(&("Z" | "X"))) {
        return None;
    }
    Some(Stat {
        process: Process { pid, start: fields.get(19)?.parse().ok()? },
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
    })
}

/// False for processes of other users, whose environment cannot be read.
fn is_marked(pid: i32, pattern: &memmem::Finder<'_>) -> bool {
    std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|text| pattern.find(&text).is_some())
}
