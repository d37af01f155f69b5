//! A model server on this machine that streams a fixed number of text deltas to whoever asks.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use anyhow::Context;
use serde_json::{Value, json};

/// What each delta adds.
pub(crate) const DELTA: &str = "word and ";

/// How many events go out in one write, as a busy server would send them.
const EVENTS_PER_WRITE: usize = 20;

/// Starts a server that speaks OpenAI's chat completions; gives its base URL. It runs until this process
/// ends.
pub(crate) fn start(deltas: usize) -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("could not open a port")?;
    let address = listener.local_addr()?;
    let chunks = Arc::new(answer(deltas)?);
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let chunks = Arc::clone(&chunks);
            // A client that hangs up is its own affair; a broken answer shows in the figures.
            std::thread::spawn(move || connection.and_then(|connection| serve(connection, &chunks)));
        }
    });
    Ok(format!("http://{address}/v1"))
}

fn answer(deltas: usize) -> anyhow::Result<Vec<String>> {
    let chunk = |delta: Value, finish: Value| {
        json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "bench",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
        })
    };
    let mut events = vec![chunk(json!({ "role": "assistant", "content": "" }), Value::Null)];
    events.extend((0..deltas).map(|_| chunk(json!({ "content": DELTA }), Value::Null)));
    events.push(chunk(json!({}), json!("stop")));
    events.push(json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "bench", "choices": [],
        "usage": { "prompt_tokens": 100, "completion_tokens": deltas, "total_tokens": 100 + deltas },
    }));
    let mut chunks = Vec::new();
    for events in events.chunks(EVENTS_PER_WRITE) {
        let mut text = String::new();
        for event in events {
            write!(text, "data: {event}\n\n")?;
        }
        chunks.push(text);
    }
    chunks.push("data: [DONE]\n\n".to_owned());
    Ok(chunks)
}

fn serve(mut connection: TcpStream, chunks: &[String]) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    connection
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    for chunk in chunks {
        connection.write_all(chunk.as_bytes())?;
    }
    Ok(())
}
