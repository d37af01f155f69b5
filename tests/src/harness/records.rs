use std::fmt::Write as _;
use std::sync::Mutex;

use serde_json::Value;
use tokio::sync::watch;

use super::pattern::matches;

/// One line that the daemon wrote.
#[derive(Debug, Clone)]
pub struct Record {
    /// The line, without its LF.
    pub line: String,
    /// The line as JSON; `null` when it is none.
    pub value: Value,
}

/// A place in the list of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(pub(super) usize);

/// Every line so far.
#[derive(Debug)]
pub(super) struct Records {
    all: Mutex<Vec<Record>>,
    progress: watch::Sender<Progress>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    count: usize,
    ended: bool,
}

/// How a wait for a record ended.
pub(super) enum Found {
    Record(Mark, Value),
    Ended,
}

impl Records {
    pub(super) fn new() -> Self {
        Self { all: Mutex::default(), progress: watch::Sender::new(Progress::default()) }
    }

    pub(super) fn add(&self, line: &[u8]) {
        let value = serde_json::from_slice(line).unwrap_or(Value::Null);
        let line = String::from_utf8_lossy(line).into_owned();
        let mut all = self.all.lock().unwrap();
        all.push(Record { line, value });
        let count = all.len();
        drop(all);
        self.progress.send_modify(|progress| progress.count = count);
    }

    pub(super) fn end(&self) {
        self.progress.send_modify(|progress| progress.ended = true);
    }

    /// The place behind the last record so far.
    pub(super) fn mark(&self) -> Mark {
        Mark(self.all.lock().unwrap().len())
    }

    pub(super) fn since(&self, mark: Mark) -> Vec<Record> {
        self.all.lock().unwrap()[mark.0..].to_vec()
    }

    /// Waits for the first record from `start` on that the predicate takes.
    pub(super) async fn find(&self, start: Mark, wanted: impl Fn(&Value) -> bool) -> Found {
        let mut progress = self.progress.subscribe();
        let mut at = start.0;
        loop {
            let Progress { count, ended } = *progress.borrow_and_update();
            while at < count {
                let found = {
                    let all = self.all.lock().unwrap();
                    wanted(&all[at].value).then(|| all[at].value.clone())
                };
                at += 1;
                if let Some(value) = found {
                    return Found::Record(Mark(at), value);
                }
            }
            if ended || progress.changed().await.is_err() {
                return Found::Ended;
            }
        }
    }

    /// Waits until the daemon has closed its output.
    pub(super) async fn ended(&self) {
        let mut progress = self.progress.subscribe();
        // An error means that the sender is gone, which it cannot be while `self` lives.
        progress.wait_for(|progress| progress.ended).await.ok();
    }

    /// The records for a failure message: the last ones, long lines cut.
    pub(super) fn transcript(&self) -> String {
        const MOST_RECORDS: usize = 120;
        const MOST_CHARACTERS: usize = 500;
        let all = self.all.lock().unwrap();
        let left_out = all.len().saturating_sub(MOST_RECORDS);
        let mut text = String::new();
        if left_out > 0 {
            writeln!(text, "  ... {left_out} records before").unwrap();
        }
        for record in &all[left_out..] {
            let line: String = record.line.chars().take(MOST_CHARACTERS).collect();
            writeln!(text, "  {line}").unwrap();
        }
        text
    }
}

/// A predicate for a partial match.
pub(super) fn like(pattern: Value) -> impl Fn(&Value) -> bool {
    move |value| matches(&pattern, value)
}
