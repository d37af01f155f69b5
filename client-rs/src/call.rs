//! One call, on its way.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::error::ClientError;

/// A command and its answer, as a future.
///
/// The command is sent when the future is first polled. Dropping it abandons only the wait: a command
/// that was sent has its effect. There is no time limit unless [`with_timeout`](Call::with_timeout) sets
/// one: some commands, like `compact` and `bash`, take as long as they take.
#[must_use = "a call is sent when it is awaited"]
pub struct Call<T> {
    id: String,
    command: String,
    answer: BoxFuture<'static, Result<T, ClientError>>,
}

impl<T: Send + 'static> Call<T> {
    pub(crate) fn new(
        id: String,
        command: String,
        answer: impl Future<Output = Result<T, ClientError>> + Send + 'static,
    ) -> Self {
        Self { id, command, answer: answer.boxed() }
    }

    /// The command's id. `bash_execution_update` events of a `bash` command repeat it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The same call, failing with [`ClientError::Timeout`] when it is not answered in time. The time runs
    /// from the first poll.
    pub fn with_timeout(self, limit: Duration) -> Self {
        let Self { id, command, answer } = self;
        let name = command.clone();
        let answer = async move {
            match tokio::time::timeout(limit, answer).await {
                Ok(answer) => answer,
                Err(_) => Err(ClientError::Timeout { command: name, after: limit }),
            }
        };
        Self { id, command, answer: answer.boxed() }
    }

    /// The same call with its result changed.
    pub(crate) fn map<U: Send + 'static>(self, change: impl FnOnce(T) -> U + Send + 'static) -> Call<U> {
        let Self { id, command, answer } = self;
        Call { id, command, answer: answer.map(|answer| answer.map(change)).boxed() }
    }
}

impl<T> Future for Call<T> {
    type Output = Result<T, ClientError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.answer.poll_unpin(cx)
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("id", &self.id).field("command", &self.command).finish_non_exhaustive()
    }
}
