//! The other end of a client: a script over pipes in memory.

use sampi_client::{RpcClient, RpcClientBuilder};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

pub(crate) struct Peer {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
}

/// A client and its peer.
pub(crate) fn pair() -> (RpcClient, Peer) {
    pair_with(RpcClient::builder())
}

pub(crate) fn pair_with(builder: RpcClientBuilder) -> (RpcClient, Peer) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(ours);
    let client = builder.connect(reader, writer).unwrap();
    let (reader, writer) = tokio::io::split(theirs);
    (client, Peer { reader: BufReader::new(reader), writer })
}

impl Peer {
    /// The next record that the client wrote.
    pub(crate) async fn read(&mut self) -> Value {
        self.read_or_end().await.expect("the client closed its output")
    }

    /// The next record that the client wrote; `None` when it closed.
    pub(crate) async fn read_or_end(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.reader.read_line(&mut line).await.unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    pub(crate) async fn raw(&mut self, bytes: impl AsRef<[u8]>) {
        self.writer.write_all(bytes.as_ref()).await.unwrap();
        self.writer.flush().await.unwrap();
    }

    /// Writes records in one chunk.
    pub(crate) async fn send(&mut self, records: &[Value]) {
        let text: String = records.iter().map(|record| format!("{record}\n")).collect();
        self.raw(text).await;
    }

    /// Reads a command, checks its name and answers it.
    pub(crate) async fn serve(&mut self, command: &str, data: Value) -> Value {
        let request = self.read().await;
        assert_eq!(request["type"], command);
        self.send(&[response(&request, data)]).await;
        request
    }

    pub(crate) async fn close_output(&mut self) {
        self.writer.shutdown().await.unwrap();
    }
}

/// A success.
pub(crate) fn response(request: &Value, data: Value) -> Value {
    let mut response =
        json!({ "id": request["id"], "type": "response", "command": request["type"], "success": true });
    if !data.is_null() {
        response["data"] = data;
    }
    response
}

/// A failure.
pub(crate) fn failure(request: &Value, error: &str, code: &str) -> Value {
    json!({
        "id": request["id"], "type": "response", "command": request["type"], "success": false,
        "error": error, "code": code,
    })
}

pub(crate) fn started(request: &Value) -> Value {
    response(request, json!({ "disposition": "started" }))
}

pub(crate) fn settled() -> Value {
    json!({ "type": "agent_settled", "aborted": false })
}

pub(crate) fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text, "timestamp": 1 })
}

pub(crate) fn assistant(text: &str, stop_reason: &str) -> Value {
    let cost = json!({ "input": 0.5, "output": 0.5, "cacheRead": 0, "cacheWrite": 0, "total": 1 });
    json!({
        "role": "assistant", "content": [{ "type": "text", "text": text }], "api": "a", "provider": "p",
        "model": "m", "timestamp": 1, "stopReason": stop_reason,
        "usage": { "input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15, "cost": cost },
    })
}

pub(crate) fn message(kind: &str, message: Value) -> Value {
    json!({ "type": format!("message_{kind}"), "message": message })
}

pub(crate) fn event(kind: &str) -> Value {
    json!({ "type": kind })
}

pub(crate) fn queue(steering: &[&str], follow_up: &[&str]) -> Value {
    json!({ "type": "queue_update", "steering": steering, "followUp": follow_up })
}
