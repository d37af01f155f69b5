//! A server on loopback that keeps what it was asked, for tests of exchanges that are not streams of a model.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// What the server was asked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// Method and path.
    pub(crate) line: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Call {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// A field of a form.
    pub(crate) fn field(&self, name: &str) -> String {
        let url = reqwest::Url::parse(&format!("http://h/?{}", self.body)).unwrap();
        let found = url.query_pairs().find(|(known, _)| known == name).map(|(_, value)| value.into_owned());
        found.unwrap_or_else(|| panic!("no {name} in {}", self.body))
    }
}

/// What it answers.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Json(u16, String),
    Stream(String),
    /// Nothing, until the client hangs up.
    Silence,
}

pub(crate) struct FakeServer {
    pub(crate) url: String,
    calls: Arc<Mutex<Vec<Call>>>,
    /// Tells of each call before it is answered.
    pub(crate) arrivals: mpsc::UnboundedReceiver<String>,
}

impl FakeServer {
    pub(crate) async fn start(answer: impl Fn(&Call) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let calls = Arc::new(Mutex::new(Vec::new()));
        let (tell, arrivals) = mpsc::unbounded_channel();
        let answer = Arc::new(answer);
        let kept = Arc::clone(&calls);
        // Ends with the runtime of the test.
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(socket, Arc::clone(&answer), Arc::clone(&kept), tell.clone()));
            }
        });
        Self { url, calls, arrivals }
    }

    pub(crate) fn host(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    /// All calls so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }

    /// Method and path of all calls so far.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.calls().into_iter().map(|call| call.line).collect()
    }
}

async fn serve(
    mut socket: TcpStream,
    answer: Arc<impl Fn(&Call) -> Reply>,
    calls: Arc<Mutex<Vec<Call>>>,
    tell: mpsc::UnboundedSender<String>,
) {
    let call = read(&mut socket).await;
    calls.lock().unwrap().push(call.clone());
    let reply = answer(&call);
    let _ = tell.send(call.line);
    let (status, kind, body) = match reply {
        Reply::Json(status, body) => (status, "application/json", body),
        Reply::Stream(body) => (200, "text/event-stream", body),
        Reply::Silence => {
            let _ = socket.read(&mut [0; 16]).await;
            return;
        }
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    socket.write_all((head + &body).as_bytes()).await.unwrap();
}

async fn read(socket: &mut TcpStream) -> Call {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let mut lines = head.lines();
            let line = lines.next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
            let headers: Vec<(String, String)> = lines
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
                .collect();
            let call = Call { line, headers, body: body.to_owned() };
            if call.body.len() >= call.header("content-length").parse().unwrap_or(0) {
                return call;
            }
        }
        let mut buffer = [0; 4096];
        let read = socket.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the client hung up in the middle of {text}");
        bytes.extend_from_slice(&buffer[..read]);
    }
}
