use std::future::poll_fn;
use std::os::unix::process::ExitStatusExt;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::Child;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::builder::{DaemonBuilder, Workspace};
use super::locate::is_reference;
use super::normalise::Normaliser;
use super::process::Pid;
use super::records::{Found, Mark, Record, Records, like};
use super::within_timeout;
use crate::fake_llm::FakeLlm;

/// A daemon that runs, and all that it wrote.
///
/// Waiting for an event goes forward: each [`Daemon::wait_for`] begins behind the record that the last one
/// found. Waiting for a response does not; responses are found by their id.
pub struct Daemon {
    writer: tokio::sync::Mutex<Option<Writer>>,
    records: Arc<Records>,
    stderr: Arc<Mutex<String>>,
    reading: watch::Sender<bool>,
    reader: Mutex<Option<AbortOnDropHandle<()>>>,
    stderr_reader: Option<AbortOnDropHandle<()>>,
    child: tokio::sync::Mutex<Option<Child>>,
    pid: Option<Pid>,
    cursor: Mutex<Mark>,
    ids: AtomicUsize,
    workspace: Workspace,
}

/// How many times [`super::TIMEOUT`] a record may take while the daemon writes others.
const PATIENCE: usize = 5;

type Writer = Pin<Box<dyn AsyncWrite + Send>>;
type Reader = Pin<Box<dyn AsyncRead + Send>>;

/// A refused command.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The text for people.
    pub error: String,
    /// The code for programs.
    pub code: Option<String>,
    /// The whole response.
    pub response: Value,
}

impl Failure {
    fn of(response: Value) -> Self {
        assert_eq!(response["success"], false, "expected a failure: {response}");
        let error = response["error"].as_str().expect("a failure has a text").to_owned();
        assert!(!error.is_empty(), "the text of a failure is empty: {response}");
        Self { error, code: response["code"].as_str().map(str::to_owned), response }
    }

    /// Fails the test unless the code is this one. Pi has no codes.
    #[track_caller]
    pub fn assert_code(&self, code: &str) -> &Self {
        assert!(is_reference() || self.code.as_deref() == Some(code), "expected the code {code}: {self:?}");
        self
    }

    /// Fails the test unless the text says this.
    #[track_caller]
    pub fn assert_says(&self, part: &str) -> &Self {
        assert!(self.error.contains(part), "expected {part:?} in the text: {self:?}");
        self
    }
}

/// How the daemon ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Daemon {
    /// A daemon whose models are played by this server.
    pub fn builder(llm: &FakeLlm) -> DaemonBuilder {
        DaemonBuilder::new(llm)
    }

    /// A daemon behind any two byte streams. A daemon in this process is attached here.
    pub fn attach(
        reader: impl AsyncRead + Send + 'static,
        writer: impl AsyncWrite + Send + 'static,
        workspace: Workspace,
    ) -> Self {
        let records = Arc::new(Records::new());
        let reading = watch::Sender::new(true);
        let task = read_records(Box::pin(reader), records.clone(), reading.subscribe());
        Self {
            writer: tokio::sync::Mutex::new(Some(Box::pin(writer))),
            records,
            stderr: Arc::default(),
            reading,
            reader: Mutex::new(Some(AbortOnDropHandle::new(tokio::spawn(task)))),
            stderr_reader: None,
            child: tokio::sync::Mutex::new(None),
            pid: None,
            cursor: Mutex::new(Mark(0)),
            ids: AtomicUsize::new(1),
            workspace,
        }
    }

    pub(super) fn of_process(mut child: Child, workspace: Workspace) -> Self {
        let stdin = child.stdin.take().expect("stdin is a pipe");
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let mut stderr = child.stderr.take().expect("stderr is a pipe");
        let mut daemon = Self::attach(stdout, stdin, workspace);
        let text = daemon.stderr.clone();
        daemon.stderr_reader = Some(AbortOnDropHandle::new(tokio::spawn(async move {
            let mut buffer = vec![0; 8192];
            while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
                text.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        })));
        daemon.pid = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid);
        daemon.child = tokio::sync::Mutex::new(Some(child));
        daemon
    }

    /// The directories.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    /// The daemon's process.
    pub fn pid(&self) -> Pid {
        self.pid.expect("the daemon is a process")
    }

    /// What it wrote to stderr so far.
    pub fn stderr(&self) -> String {
        self.stderr.lock().unwrap().clone()
    }

    // Writing

    /// Writes a record.
    pub async fn send(&self, record: Value) {
        self.send_raw(format!("{record}\n").as_bytes()).await;
    }

    /// Writes bytes as they are.
    pub async fn send_raw(&self, bytes: &[u8]) {
        let mut writer = self.writer.lock().await;
        let writer = writer.as_mut().expect("stdin is open");
        within_timeout("the daemon to read its stdin", async {
            writer.write_all(bytes).await?;
            writer.flush().await
        })
        .await
        .unwrap_or_else(|error| self.fail(&format!("stdin cannot be written: {error}")));
    }

    /// Writes a record, with an id unless it has one, and gives its id back.
    pub async fn start(&self, mut command: Value) -> Value {
        let number = self.ids.fetch_add(1, Ordering::Relaxed);
        let fields = command.as_object_mut().expect("a command is an object");
        let id = fields.entry("id").or_insert_with(|| json!(format!("c{number}"))).clone();
        self.send(command).await;
        id
    }

    /// Sends a command and waits for its response.
    pub async fn call(&self, command: Value) -> Value {
        let id = self.start(command).await;
        self.response(&id).await
    }

    /// Sends a command that must succeed; gives `data` back, `null` when there is none.
    pub async fn ok(&self, command: Value) -> Value {
        let response = self.call(command).await;
        if response["success"] != true {
            self.fail(&format!("expected a success: {response}"));
        }
        response["data"].clone()
    }

    /// Sends a command that must fail.
    pub async fn refused(&self, command: Value) -> Failure {
        Failure::of(self.call(command).await)
    }

    /// Sends a prompt, which must start a run.
    pub async fn prompt(&self, message: &str) {
        let data = self.ok(json!({ "type": "prompt", "message": message })).await;
        assert_eq!(data, json!({ "disposition": "started" }));
    }

    /// Sends a prompt and waits until the run is over.
    pub async fn run(&self, message: &str) {
        self.prompt(message).await;
        self.settled().await;
    }

    /// The messages of the context.
    pub async fn messages(&self) -> Vec<Value> {
        let data = self.ok(json!({ "type": "get_messages" })).await;
        data["messages"].as_array().expect("a list of messages").clone()
    }

    /// The session's state.
    pub async fn state(&self) -> Value {
        self.ok(json!({ "type": "get_state" })).await
    }

    /// Closes stdin.
    pub async fn close_stdin(&self) {
        self.writer.lock().await.take();
    }

    // Reading

    /// The place behind the last record so far.
    pub fn mark(&self) -> Mark {
        self.records.mark()
    }

    /// Every record from a place on.
    pub fn records_since(&self, mark: Mark) -> Vec<Record> {
        self.records.since(mark)
    }

    /// Every record.
    pub fn records(&self) -> Vec<Record> {
        self.records_since(Mark(0))
    }

    /// Every record that is like the pattern, see [`super::matches`].
    pub fn all(&self, pattern: Value) -> Vec<Value> {
        let wanted = like(pattern);
        self.records().into_iter().map(|record| record.value).filter(|value| wanted(value)).collect()
    }

    /// Waits for the next record like the pattern, see [`super::matches`].
    pub async fn wait_for(&self, pattern: Value) -> Value {
        let what = pattern.to_string();
        self.wait_until(&what, like(pattern)).await
    }

    /// Waits for the next record that the predicate takes.
    pub async fn wait_until(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let start = *self.cursor.lock().unwrap();
        let (mark, value) = self.find(start, what, wanted).await;
        *self.cursor.lock().unwrap() = mark;
        value
    }

    /// Waits for the response to a command.
    pub async fn response(&self, id: &Value) -> Value {
        let pattern = json!({ "type": "response", "id": id });
        self.find(Mark(0), &pattern.to_string(), like(pattern)).await.1
    }

    /// Waits for the next `agent_settled`.
    pub async fn settled(&self) -> Value {
        self.wait_for(json!({ "type": "agent_settled" })).await
    }

    /// Waits until a running shell command has written something that the predicate takes; gives back all
    /// that it wrote so far.
    pub async fn bash_output(&self, id: &Value, wanted: impl Fn(&str) -> bool) -> String {
        let written = Mutex::new(String::new());
        let pattern = json!({ "type": "bash_execution_update", "id": id });
        let is_enough = |record: &Value| {
            if !super::matches(&pattern, record) {
                return false;
            }
            let mut written = written.lock().unwrap();
            written.push_str(record["delta"].as_str().unwrap_or_default());
            wanted(&written)
        };
        self.find(Mark(0), "enough output of the shell command", is_enough).await;
        written.into_inner().unwrap()
    }

    /// Waits until a running tool call has reported a text that the predicate takes, and gives it back.
    pub async fn tool_output(&self, call: &str, wanted: impl Fn(&str) -> bool) -> String {
        let pattern = json!({ "type": "tool_execution_update", "toolCallId": call });
        let text_of = |record: &Value| text_of_content(&record["partialResult"]["content"]);
        let is_enough = |record: &Value| super::matches(&pattern, record) && wanted(&text_of(record));
        text_of(&self.find(Mark(0), "enough output of the tool", is_enough).await.1)
    }

    /// Stops reading stdout, as a host does that is busy.
    pub fn pause_reading(&self) {
        self.reading.send_replace(false);
    }

    /// Reads stdout again.
    pub fn resume_reading(&self) {
        self.reading.send_replace(true);
    }

    /// Closes both pipes, as the death of the host does.
    pub async fn hang_up(&self) {
        let reader = self.reader.lock().unwrap().take();
        drop(reader);
        self.close_stdin().await;
    }

    async fn find(&self, start: Mark, what: &str, wanted: impl Fn(&Value) -> bool) -> (Mark, Value) {
        let mut search = pin!(self.records.find(start, wanted));
        for _ in 0..PATIENCE {
            let before = self.mark();
            match tokio::time::timeout(super::TIMEOUT, search.as_mut()).await {
                Ok(Found::Record(mark, value)) => return (mark, value),
                Ok(Found::Ended) => self.fail(&format!("stdout ended before {what}")),
                // A daemon that still writes is only slow.
                Err(_) if self.mark() > before => {}
                Err(_) => break,
            }
        }
        self.fail(&format!("no record like {what}"))
    }

    // The end

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid().0).expect("a process id");
        kill_process(pid, signal).unwrap_or_else(|error| self.fail(&format!("no signal: {error}")));
    }

    /// Waits until the process has ended, its output read to the end.
    pub async fn exit(&self) -> Exit {
        let mut child = self.child.lock().await;
        let child = child.as_mut().expect("the daemon is a process");
        let status = match tokio::time::timeout(super::TIMEOUT, child.wait()).await {
            Ok(status) => status.expect("the process can be waited for"),
            Err(_) => self.fail("the process does not end"),
        };
        let reads = self.reader.lock().unwrap().is_some() && *self.reading.borrow();
        if reads {
            within_timeout("the end of stdout", self.records.ended()).await;
        }
        match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => self.fail("neither an exit code nor a signal"),
        }
    }

    /// The exit, if the process has ended.
    pub async fn exited(&self) -> bool {
        let mut child = self.child.lock().await;
        let child = child.as_mut().expect("the daemon is a process");
        child.try_wait().expect("the process can be waited for").is_some()
    }

    /// Closes stdin and expects an orderly end: exit code 0, and nothing but records on stdout.
    pub async fn finish(self) -> Workspace {
        self.close_stdin().await;
        let exit = self.exit().await;
        if exit != Exit::Code(0) {
            self.fail(&format!("expected the exit code 0, not {exit:?}"));
        }
        self.assert_only_records();
        self.workspace
    }

    /// Gives back the directories of a daemon that has ended in any way.
    pub fn into_workspace(self) -> Workspace {
        self.workspace
    }

    /// Fails the test unless every line of stdout is a record.
    pub fn assert_only_records(&self) {
        for record in self.records() {
            if !record.value["type"].is_string() {
                self.fail(&format!("no record: {}", record.line));
            }
        }
    }

    /// The whole transcript in a form that does not change from run to run.
    pub fn normalised(&self) -> String {
        let records = self.records();
        Normaliser::new(&self.workspace).transcript(records.into_iter().map(|record| record.value))
    }

    /// Fails the test, with all that the daemon wrote.
    pub fn fail(&self, what: &str) -> ! {
        let (records, stderr) = (self.records.transcript(), self.stderr());
        panic!("{what}\nrecords:\n{records}stderr:\n{stderr}");
    }
}

/// The text of a message's or a result's content.
pub fn text_of_content(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => String::new(),
    }
}

async fn read_records(mut reader: Reader, records: Arc<Records>, mut reading: watch::Receiver<bool>) {
    let mut partial = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        // An error means that the daemon's owner is gone, and this task with it.
        if reading.wait_for(|reading| *reading).await.is_err() {
            return;
        }
        let mut slice = tokio::io::ReadBuf::new(&mut buffer);
        // Pausing must also stop a read that already waits.
        let read = tokio::select! {
            biased;
            _ = reading.wait_for(|reading| !*reading) => continue,
            read = poll_fn(|context| reader.as_mut().poll_read(context, &mut slice)) => read,
        };
        let bytes = slice.filled();
        if read.is_err() || bytes.is_empty() {
            break;
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            partial.extend_from_slice(piece);
            if partial.last() == Some(&b'\n') {
                records.add(&partial[..partial.len() - 1]);
                partial.clear();
            }
        }
    }
    if !partial.is_empty() {
        records.add(&partial);
    }
    records.end();
}
