//! A client of agent daemons that speak the RPC protocol of the Pi coding agent: `sampi --mode rpc`, and
//! `pi --mode rpc` as well.
//!
//! ```no_run
//! use sampi_client::{RpcClient, SessionChoice};
//!
//! # async fn example() -> Result<(), sampi_client::ClientError> {
//! let agent = RpcClient::builder()
//!     .cwd("/some/project")
//!     .provider("demo") // the daemon's offline model; leave it out to use your own
//!     .session(SessionChoice::InMemory)
//!     .spawn()
//!     .await?;
//!
//! let outcome = agent.prompt_and_wait("What does this project do?").await?;
//! println!("{}", outcome.text);
//! agent.stop().await;
//! # Ok(()) }
//! ```
//!
//! [`RpcClient`] is a handle: clone it, share it, call it from many tasks at once. It has one typed method
//! for each command of the protocol, [`RpcClient::call`] for a command of the table and
//! [`RpcClient::call_raw`] for any other. What the daemon reports comes in through
//! [`RpcClient::subscribe`], a bounded stream that says when its reader lagged, or
//! [`RpcClient::on_event`], a function on a thread of its own. [`RpcClient::run`] gives a handle of one
//! [`Run`]: its events, steering, abort, and its [`RunOutcome`]. [`MessageAssembler`] puts the message that
//! is being streamed together. A [`UiHandler`] answers the dialogs of extensions; by default they are
//! dismissed at once, so that no run hangs.
//!
//! What holds:
//!
//! - A call is sent when its future is first polled, and its answer is found by its id. Dropping the future
//!   abandons the wait. There are no time limits but those that [`Call::with_timeout`] sets.
//! - When the daemon dies, what it had written still counts; then every pending call fails at once with
//!   [`ClientError::Exited`], which has the exit status and the end of stderr, and so does every later call.
//! - Neither a slow subscriber nor a slow dialog nor a slow listener delays responses.
//! - Records that cannot be read are reported and never end the connection.
//! - A process that was started lives in a process group of its own, which is killed when the last handle
//!   is dropped.

mod builder;
mod call;
mod client;
mod connection;
mod error;
mod events;
mod methods;
mod pending;
mod process;
mod run;
mod scan;
mod supervise;
mod tree;
mod ui;

pub use builder::{RpcClientBuilder, SessionChoice};
pub use call::Call;
pub use client::RpcClient;
pub use error::{ClientError, CommandError, Exit, ExitReason};
pub use events::{DEFAULT_EVENT_CAPACITY, EventItem, Listener, MalformedRecord, Subscription};
pub use process::{STDERR_TAIL, StderrSink, StopDelays};
pub use run::{Run, RunOutcome, RunWaiter};
pub use sampi_protocol as protocol;
pub use sampi_protocol::{Assembled, MessageAssembler};
pub use tree::{SessionTree, TreeNode};
pub use ui::{Answer, ApproveWhen, Ask, DenyAll, Dialog, Question, UiHandler};
