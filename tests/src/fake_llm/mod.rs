//! A model server that answers from a script and checks what it is asked.
//!
//! One [`FakeLlm`] speaks the OpenAI completions API under `/v1/chat/completions` and the Anthropic
//! messages API under `/v1/messages`, with the exchange of tokens under `/v1/oauth/token`. An [`Answer`] knows no
//! vendor: it is written in the form of the endpoint that was asked.

mod answer;
pub mod anthropic;
mod check;
mod exchange;
mod gate;
pub mod openai;
mod reply;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::response::Response;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

pub use answer::{Answer, Tokens, redacted_thinking, text, thinking, tool_call};
pub use exchange::{Api, Exchange, RecordedRequest};
pub use gate::Gate;
pub use reply::Reply;

use crate::harness::within_timeout;

/// Decides about a request that the queue has no reply for.
type Handler = Box<dyn Fn(&RecordedRequest) -> Reply + Send + Sync>;

/// The running server. Dropping it fails the test when a request was not as it must be.
pub struct FakeLlm {
    address: SocketAddr,
    script: Arc<Script>,
    _server: AbortOnDropHandle<()>,
}

struct Script {
    queue: Mutex<VecDeque<Reply>>,
    handler: Mutex<Option<Handler>>,
    exchanges: watch::Sender<Vec<Arc<Exchange>>>,
    violations: Mutex<Vec<String>>,
}

impl FakeLlm {
    /// Starts a server on a free port.
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound address");
        let script = Arc::new(Script {
            queue: Mutex::default(),
            handler: Mutex::default(),
            exchanges: watch::Sender::new(Vec::new()),
            violations: Mutex::default(),
        });
        let router = axum::Router::new().fallback(answer_request).with_state(script.clone());
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("the fake model server runs");
        });
        Self { address, script, _server: AbortOnDropHandle::new(server) }
    }

    /// Where it listens, such as `http://127.0.0.1:4711`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds the reply to one request. Requests take the replies in order.
    pub fn push(&self, reply: impl Into<Reply>) {
        self.script.queue.lock().unwrap().push_back(reply.into());
    }

    /// Adds replies to as many requests.
    pub fn push_all<R: Into<Reply>>(&self, replies: impl IntoIterator<Item = R>) {
        replies.into_iter().for_each(|reply| self.push(reply));
    }

    /// Decides about every request that the queue has no reply for.
    pub fn on_request<R: Into<Reply>>(
        &self,
        handler: impl Fn(&RecordedRequest) -> R + Send + Sync + 'static,
    ) {
        *self.script.handler.lock().unwrap() = Some(Box::new(move |request| handler(request).into()));
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.script.exchanges.borrow().iter().map(|exchange| exchange.request.clone()).collect()
    }

    /// The exchange with this number, from 0, as soon as its request has arrived.
    pub async fn exchange(&self, number: usize) -> Arc<Exchange> {
        let mut exchanges = self.script.exchanges.subscribe();
        let what = format!("request {number} to the model");
        let arrived = exchanges.wait_for(|all| all.len() > number);
        within_timeout(&what, arrived).await.expect("the server lives")[number].clone()
    }

    /// The request with this number, from 0, as soon as it has arrived.
    pub async fn request(&self, number: usize) -> RecordedRequest {
        self.exchange(number).await.request.clone()
    }

    /// Ends the test: every request was as it must be, and every scripted reply was asked for.
    pub fn finish(self) {
        let left = self.script.queue.lock().unwrap().len();
        assert_eq!(left, 0, "{left} scripted replies were never asked for");
    }
}

impl Drop for FakeLlm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let violations = self.script.violations.lock().unwrap();
        assert!(violations.is_empty(), "the model server was asked wrongly:\n{}", violations.join("\n"));
    }
}

async fn answer_request(State(script): State<Arc<Script>>, request: Request) -> Response {
    let request = RecordedRequest::read(request).await;
    let mut violations = check::violations(&request);
    let scripted = script.queue.lock().unwrap().pop_front();
    let reply = scripted.or_else(|| script.handler.lock().unwrap().as_ref().map(|handler| handler(&request)));
    if reply.is_none() {
        violations.push("no reply is scripted for it".to_owned());
    }
    let exchange = Arc::new(Exchange::new(request));
    let mut number = 0;
    script.exchanges.send_modify(|all| {
        number = all.len();
        all.push(exchange.clone());
    });
    if !violations.is_empty() {
        let text = format!("request {number}: {}", violations.join("; "));
        let body = format!("{text}\n{}", exchange.request.body);
        script.violations.lock().unwrap().push(body);
        return Reply::error(400, "invalid_request_error", &text).respond(&exchange).await;
    }
    reply.expect("checked above").respond(&exchange).await
}

/// A body that is complete.
fn whole_body(text: String) -> Body {
    Body::from(Bytes::from(text))
}
