//! The client.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sampi_protocol::commands::{Command, Prompt, Request, RpcCommand};
use sampi_protocol::jsonl;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::builder::RpcClientBuilder;
use crate::call::Call;
use crate::error::{ClientError, Exit};
use crate::events::{DEFAULT_EVENT_CAPACITY, EventItem, Listener, Listeners, Queue, Subscription};
use crate::pending::Reply;
use crate::process::{Launch, StopDelays};
use crate::run::{Run, RunOutcome, Tracker, text_prompt};
use crate::supervise::Connection;
use crate::ui::UiHandler;

/// A client of one agent daemon.
///
/// It is a handle: cloning it is cheap, every method takes `&self`, and calls may run at the same time.
/// When the last clone is dropped, a process that the client started is killed with all it started.
#[derive(Clone)]
pub struct RpcClient {
    inner: Arc<Inner>,
}

struct Inner {
    /// Before the connection, so that listeners do not hear of an end that the client's own drop causes.
    listeners: Listeners,
    connection: Mutex<Arc<Connection>>,
    /// One change of the process at a time.
    lifecycle: tokio::sync::Mutex<()>,
    launch: Option<Launch>,
    frame_limit: usize,
    handler: Arc<dyn UiHandler>,
    ids: Ids,
}

impl RpcClient {
    /// Describes a client to start.
    pub fn builder() -> RpcClientBuilder {
        RpcClientBuilder::default()
    }

    /// A client of a daemon behind two streams, with the default settings; see
    /// [`RpcClientBuilder::connect`]. Must be called on a tokio runtime.
    pub fn connect<R, W>(reader: R, writer: W) -> Result<Self, ClientError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        Self::builder().connect(reader, writer)
    }

    pub(crate) fn start(
        connection: Connection,
        launch: Option<Launch>,
        frame_limit: usize,
        handler: Arc<dyn UiHandler>,
        listeners: Listeners,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                listeners,
                connection: Mutex::new(Arc::new(connection)),
                lifecycle: tokio::sync::Mutex::new(()),
                launch,
                frame_limit,
                handler,
                ids: Ids::new(),
            }),
        }
    }

    /// Calls a command with its typed parameters and gives its typed result.
    pub fn call<C: RpcCommand>(&self, parameters: &C) -> Call<C::Data>
    where
        C::Data: Send + 'static,
    {
        let id = self.inner.ids.next();
        let record = encode(&Request::new(Some(&id), parameters));
        self.send(id, C::NAME.to_owned(), record, None, |reply, command| reply.read(command))
    }

    /// Calls any command of the table; the result is `data` as it came, `null` when there is none.
    pub fn call_command(&self, command: &Command) -> Call<Value> {
        let id = self.inner.ids.next();
        let record = command
            .parameters()
            .map_err(|error| error.to_string())
            .and_then(|parameters| encode_raw(&id, command.name(), parameters));
        self.send(id, command.name().to_owned(), record, None, |reply, command| reply.read(command))
    }

    /// Calls a command by name, also one that this version does not know. `parameters` is an object; its
    /// `id` and `type`, if it has them, are replaced.
    pub fn call_raw(&self, command: impl Into<String>, parameters: Value) -> Call<Value> {
        self.call_raw_as(command, parameters)
    }

    /// [`call_raw`](Self::call_raw) with a typed result, for a command of the table with parameters that this
    /// version does not know.
    pub fn call_raw_as<T>(&self, command: impl Into<String>, parameters: Value) -> Call<T>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let (id, command) = (self.inner.ids.next(), command.into());
        let record = encode_raw(&id, &command, parameters);
        self.send(id, command, record, None, |reply, command| reply.read(command))
    }

    /// Sends a prompt and gives a handle of the run that it starts or joins.
    ///
    /// Nothing of the run is missed, however fast it is: the handle's stream begins before the prompt is
    /// sent. Fails when the prompt is refused.
    pub async fn run(&self, message: impl Into<String>) -> Result<Run, ClientError> {
        self.run_prompt(text_prompt(message)).await
    }

    /// [`run`](Self::run) for a prompt with images or for one that may be queued.
    pub async fn run_prompt(&self, prompt: Prompt) -> Result<Run, ClientError> {
        self.start_run(prompt, DEFAULT_EVENT_CAPACITY).await
    }

    /// [`run_prompt`](Self::run_prompt) whose stream keeps this many items for a reader that is behind.
    pub async fn run_prompt_with_capacity(
        &self,
        prompt: Prompt,
        capacity: usize,
    ) -> Result<Run, ClientError> {
        self.start_run(prompt, capacity.max(1)).await
    }

    /// Sends a prompt and waits until its run has settled.
    ///
    /// Returns at once when an extension handled the prompt, so that there is no run. A run that failed or
    /// was aborted is an outcome, not an error.
    pub async fn prompt_and_wait(&self, message: impl Into<String>) -> Result<RunOutcome, ClientError> {
        self.prompt_and_wait_with(text_prompt(message)).await
    }

    /// [`prompt_and_wait`](Self::prompt_and_wait) for a prompt with images or for one that may be queued;
    /// a queued prompt is waited for until the run that it became part of has settled.
    pub async fn prompt_and_wait_with(&self, prompt: Prompt) -> Result<RunOutcome, ClientError> {
        self.start_run(prompt, 0).await?.outcome().await
    }

    /// A stream of everything that happens from now on.
    pub fn subscribe(&self) -> Subscription {
        self.subscribe_with_capacity(DEFAULT_EVENT_CAPACITY)
    }

    /// A stream that keeps this many items for a reader that is behind.
    pub fn subscribe_with_capacity(&self, capacity: usize) -> Subscription {
        self.connection().link.hub().subscribe(capacity)
    }

    /// Calls a function for everything that happens from now on, also after a restart.
    ///
    /// The function runs on a thread of its own: it may block, which delays nothing but its own next
    /// event, and a panic in it stays there. When it falls behind by [`DEFAULT_EVENT_CAPACITY`] items it
    /// is told with [`EventItem::Lagged`]. Fails when the thread cannot be started. What the daemon writes as
    /// soon as it starts is heard for certain only by [`RpcClientBuilder::on_event`].
    pub fn on_event(&self, listener: impl FnMut(EventItem) + Send + 'static) -> std::io::Result<Listener> {
        let queue = Queue::new(DEFAULT_EVENT_CAPACITY);
        let started = Listener::start(&queue, listener)?;
        // Under one lock with the list, so that a restart at the same time attaches it once.
        let mut listeners = self.inner.listeners.lock();
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(&queue));
        self.connection().link.hub().attach_listener(&queue);
        Ok(started)
    }

    /// The id of the process; `None` when the client started none.
    pub fn process_id(&self) -> Option<u32> {
        self.connection().process_id()
    }

    /// How the daemon ended, if it did.
    pub fn exit(&self) -> Option<Arc<Exit>> {
        self.connection().exit()
    }

    /// Waits until the daemon has ended by itself or was stopped.
    pub async fn closed(&self) -> Arc<Exit> {
        self.connection().closed().await
    }

    /// How many calls wait for their answer.
    pub fn pending_calls(&self) -> usize {
        self.connection().link.pending_count()
    }

    /// Stops the daemon in an orderly way: its input is closed, so that it ends its run and exits; if it
    /// takes too long it gets SIGTERM, then SIGKILL. Gives how it ended. Calls that were not answered
    /// until then fail.
    pub async fn stop(&self) -> Arc<Exit> {
        self.stop_with(StopDelays::default()).await
    }

    /// [`stop`](Self::stop) with other delays.
    pub async fn stop_with(&self, delays: StopDelays) -> Arc<Exit> {
        let _alone = self.inner.lifecycle.lock().await;
        self.connection().stop(delays).await
    }

    /// Starts the daemon again, after it was stopped, died, or while it runs; then it is stopped first.
    ///
    /// Nothing of the old process reaches the new one or its callers: old calls fail, old subscriptions
    /// and runs end. Listeners of [`on_event`](Self::on_event) stay and see [`EventItem::Closed`] in
    /// between.
    pub async fn restart(&self) -> Result<(), ClientError> {
        let launch = self.inner.launch.as_ref().ok_or(ClientError::NotSpawned)?;
        let _alone = self.inner.lifecycle.lock().await;
        let old = self.connection();
        if old.exit().is_none() {
            old.stop(StopDelays::default()).await;
        }
        let mut listeners = self.inner.listeners.lock();
        // They are there before the first record is read.
        let hub = Listeners::hub_of(&mut listeners);
        let new = Connection::spawn(launch, self.inner.frame_limit, Arc::clone(&self.inner.handler), hub)?;
        *self.lock_connection() = Arc::new(new);
        Ok(())
    }

    async fn start_run(&self, prompt: Prompt, capacity: usize) -> Result<Run, ClientError> {
        let tracker = Tracker::new(prompt.streaming_behavior, capacity);
        let id = self.inner.ids.next();
        let record = encode(&Request::new(Some(&id), &prompt));
        let result = self
            .send(id, Prompt::NAME.to_owned(), record, Some(Arc::clone(&tracker)), |reply, command| {
                reply.read::<<Prompt as RpcCommand>::Data>(command)
            })
            .await?;
        Ok(Run::new(self.clone(), tracker, result.disposition))
    }

    /// The one way out: every call goes through here.
    pub(crate) fn send<T: Send + 'static>(
        &self,
        id: String,
        command: String,
        record: Result<Vec<u8>, String>,
        tracker: Option<Arc<Tracker>>,
        read: impl FnOnce(Reply, &str) -> Result<T, ClientError> + Send + 'static,
    ) -> Call<T> {
        let (client, call_id, name) = (self.clone(), id.clone(), command.clone());
        Call::new(call_id, name, async move {
            let record = record.map_err(|reason| ClientError::Encode { command: command.clone(), reason })?;
            let connection = client.connection();
            let reply = connection.link.request(&id, &command, record, tracker).await?;
            read(reply, &command)
        })
    }

    pub(crate) fn next_id(&self) -> String {
        self.inner.ids.next()
    }

    fn connection(&self) -> Arc<Connection> {
        Arc::clone(&self.lock_connection())
    }

    fn lock_connection(&self) -> MutexGuard<'_, Arc<Connection>> {
        self.inner.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for RpcClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RpcClient").field("process_id", &self.process_id()).finish_non_exhaustive()
    }
}

/// One line of a command whose parameters are JSON.
pub(crate) fn encode_raw(id: &str, command: &str, parameters: Value) -> Result<Vec<u8>, String> {
    let mut record = serde_json::Map::new();
    record.insert("id".to_owned(), Value::from(id));
    record.insert("type".to_owned(), Value::from(command));
    match parameters {
        Value::Object(fields) => {
            record.extend(fields.into_iter().filter(|(name, _)| name != "id" && name != "type"));
        }
        Value::Null => {}
        _ => return Err("the parameters are no object".to_owned()),
    }
    encode(&record)
}

/// One line of a record.
pub(crate) fn encode<T: Serialize + ?Sized>(record: &T) -> Result<Vec<u8>, String> {
    let mut line = Vec::new();
    jsonl::encode(record, &mut line).map_err(|error| error.to_string())?;
    Ok(line)
}

/// Ids of commands: a random prefix of this client and a counter. They never look like the UUIDs that
/// daemons make.
struct Ids {
    prefix: String,
    next: AtomicU64,
}

impl Ids {
    fn new() -> Self {
        let random = RandomState::new().build_hasher().finish();
        Self { prefix: format!("c{random:016x}"), next: AtomicU64::new(1) }
    }

    fn next(&self) -> String {
        format!("{}-{}", self.prefix, self.next.fetch_add(1, Ordering::Relaxed))
    }
}
