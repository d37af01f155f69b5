//! The page of this machine to which a browser comes back with the code (RFC 8252, section 7.3).

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Most bytes of a request's head.
const MAX_HEAD: usize = 16 * 1024;

/// How long a browser may take to send its request. It may hold connections open that it never uses.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Connections that may be open at once.
const MAX_CONNECTIONS: usize = 16;

/// Waits for the browser.
#[derive(Debug)]
pub(super) struct Callback {
    listener: TcpListener,
    host: String,
    path: String,
}

/// The parameters that a browser brought.
pub(super) type Parameters = Vec<(String, String)>;

impl Callback {
    /// Listens at this path; on any port that is free when `port` is 0.
    pub(super) async fn bind(host: &str, port: u16, path: &str) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, host: format!("{host}:{port}"), path: path.to_owned() })
    }

    /// The address that the browser is sent to.
    pub(super) fn url(&self) -> String {
        format!("http://{}{}", self.host, self.path)
    }

    /// The parameters of the first request that `fits`. Others are told so and do no harm.
    pub(super) async fn wait(&self, fits: impl Fn(&Parameters) -> bool) -> Parameters {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    // A connection that broke at once is the browser's business.
                    if let Ok((stream, _)) = accepted {
                        connections.spawn(read_request(stream));
                    }
                }
                Some(read) = connections.join_next() => {
                    let Ok(Some((mut stream, target))) = read else { continue };
                    let parameters = self.parameters(&target).filter(|parameters| fits(parameters));
                    answer(&mut stream, parameters.is_some()).await;
                    if let Some(parameters) = parameters {
                        return parameters;
                    }
                }
            }
        }
    }

    fn parameters(&self, target: &str) -> Option<Parameters> {
        let url = reqwest::Url::parse(&format!("http://{}{target}", self.host)).ok()?;
        (url.path() == self.path).then(|| url.query_pairs().into_owned().collect())
    }
}

/// The target of a GET request.
async fn read_request(mut stream: TcpStream) -> Option<(TcpStream, String)> {
    let mut head = Vec::new();
    let read = async {
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut chunk = [0; 2048];
            let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
            head.extend_from_slice(chunk.get(..count)?);
            if head.len() > MAX_HEAD {
                return None;
            }
        }
        Some(())
    };
    tokio::time::timeout(REQUEST_TIMEOUT, read).await.ok()??;
    let text = String::from_utf8_lossy(&head);
    let mut words = text.lines().next()?.split(' ');
    let target = (words.next()? == "GET").then(|| words.next()).flatten()?.to_owned();
    Some((stream, target))
}

async fn answer(stream: &mut TcpStream, is_expected: bool) {
    let (status, text) = match is_expected {
        true => ("200 OK", "The answer has arrived. You can close this page and go back to the terminal."),
        false => ("404 Not Found", "This is not the answer of the sign-in that is under way."),
    };
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Sign-in</title><p>{text}</p></html>\n"
    );
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nconnection: close\r\n\r\n{page}",
        page.len()
    );
    // The code counts, whether its page is shown or not.
    stream.write_all(response.as_bytes()).await.ok();
    stream.shutdown().await.ok();
}
