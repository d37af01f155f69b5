//! Every kind of stream over every API: a table of recorded shapes, of which no cell may be missing.
//!
//! What the streams say is checked over a connection, through the provider as the agent has it. How their bytes
//! are cut, how their lines end and what comments stand between their events is checked on all of them.

mod anthropic_messages;
mod bedrock_converse_stream;
mod google;
mod mistral_conversations;
mod openai_completions;
mod openai_responses;

use std::collections::HashMap;

use sampi_protocol::data::{StopReason, ThinkingLevel};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::socket_tests::{After, serve};
use super::testing::{model, request, short, user};
use super::{Completion, DEMO_API, FailureKind, ModelRequest, Providers};

/// Bytes of the arguments of a huge call.
const HUGE: usize = 2_000_000;

/// Streams up to this length are cut at every byte.
const CUT_EVERYWHERE: usize = 4000;

/// A kind of stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Text,
    Thinking,
    Redacted,
    ParallelTools,
    Refusal,
    Length,
    ErrorMidStream,
    UnknownEvents,
    CommentLines,
    SplitUtf8,
    CrLf,
    HugeToolInput,
}

impl Kind {
    const ALL: [Self; 12] = [
        Self::Text,
        Self::Thinking,
        Self::Redacted,
        Self::ParallelTools,
        Self::Refusal,
        Self::Length,
        Self::ErrorMidStream,
        Self::UnknownEvents,
        Self::CommentLines,
        Self::SplitUtf8,
        Self::CrLf,
        Self::HugeToolInput,
    ];
}

/// What the table has for a kind and an API.
enum Cell {
    /// A recorded stream and what becomes of it.
    Stream(Stream),
    /// The other streams of the API, their bytes put in another form.
    Reframed,
    /// There can be none, and why.
    Impossible(&'static str),
}

struct Stream {
    bytes: Vec<u8>,
    content: Value,
    end: End,
}

/// How an answer ends.
#[derive(Debug, PartialEq)]
enum End {
    Well(StopReason),
    Badly(String, FailureKind),
}

/// All streams of an API.
struct Column {
    api: &'static str,
    /// The fields of the model that is asked.
    model: Value,
    cells: Vec<(Kind, Cell)>,
    replay: Replay,
}

/// Decodes the answer to a request from its chunks: the updates, and the end.
type Replay = fn(&ModelRequest, &[&[u8]]) -> (Vec<String>, Completion);

fn stream(bytes: impl Into<Vec<u8>>, content: Value, stop: StopReason) -> Cell {
    Cell::Stream(Stream { bytes: bytes.into(), content, end: End::Well(stop) })
}

fn failing(bytes: impl Into<Vec<u8>>, content: Value, text: &str, kind: FailureKind) -> Cell {
    Cell::Stream(Stream { bytes: bytes.into(), content, end: End::Badly(text.to_owned(), kind) })
}

/// Server-sent events without names.
fn sse(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// Server-sent events that are named by their `type`.
fn named_sse(events: &[Value]) -> String {
    let named = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(named).collect()
}

/// Text as a block of an answer.
fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// A call of `read` as a block of an answer.
fn call(id: &str, arguments: Value) -> Value {
    json!({ "type": "toolCall", "id": id, "name": "read", "arguments": arguments })
}

/// The arguments of a huge call.
fn huge_arguments() -> Value {
    json!({ "a": "xé".repeat(HUGE / 3) })
}

/// JSON in pieces, as arguments are streamed.
fn pieces(json: &Value) -> Vec<String> {
    let text: Vec<char> = json.to_string().chars().collect();
    text.chunks(50_000).map(|piece| piece.iter().collect()).collect()
}

fn columns() -> Vec<Column> {
    vec![
        openai_completions::column(),
        anthropic_messages::column(),
        openai_responses::column("openai-responses"),
        openai_responses::column("azure-openai-responses"),
        google::column("google-generative-ai"),
        google::column("google-vertex"),
        mistral_conversations::column(),
        bedrock_converse_stream::column(),
    ]
}

impl Column {
    fn ask(&self, url: &str) -> ModelRequest {
        let mut fields = self.model.clone();
        fields["baseUrl"] = json!(url);
        request(model(self.api, fields), ThinkingLevel::Low, json!([user("q")]))
    }

    fn streams(&self) -> impl Iterator<Item = (Kind, &Stream)> {
        self.cells.iter().filter_map(|(kind, cell)| match cell {
            Cell::Stream(stream) => Some((*kind, stream)),
            Cell::Reframed | Cell::Impossible(_) => None,
        })
    }

    fn is_reframed(&self, kind: Kind) -> bool {
        self.cells.iter().any(|(known, cell)| *known == kind && matches!(cell, Cell::Reframed))
    }

    /// Updates, content and end of the answer in these chunks.
    fn outcome(&self, chunks: &[&[u8]]) -> (Vec<String>, Value, End) {
        let (updates, completion) = (self.replay)(&self.ask("http://h"), chunks);
        let (content, end) = outcome(completion);
        (updates, content, end)
    }
}

fn outcome(completion: Completion) -> (Value, End) {
    let message = completion.message;
    let end = match completion.failure {
        Some(failure) => End::Badly(message.error_message.unwrap_or_default(), failure.kind),
        None => End::Well(message.stop_reason),
    };
    (serde_json::to_value(message.content).unwrap(), end)
}

#[test]
fn no_cell_of_the_table_is_missing() {
    let columns = columns();
    let mut wrong = Vec::new();
    for api in Providers::new().apis().filter(|api| *api != DEMO_API) {
        let Some(column) = columns.iter().find(|column| column.api == api) else {
            wrong.push(format!("{api}: no streams at all"));
            continue;
        };
        for kind in Kind::ALL {
            match column.cells.iter().filter(|(known, _)| *known == kind).count() {
                0 => wrong.push(format!("{api}: no stream of the kind {kind:?}")),
                1 => {}
                many => wrong.push(format!("{api}: {many} cells of the kind {kind:?}")),
            }
        }
        for (kind, cell) in &column.cells {
            match cell {
                Cell::Impossible("") => wrong.push(format!("{api}: no reason why {kind:?} cannot be")),
                Cell::Reframed if !matches!(kind, Kind::CommentLines | Kind::SplitUtf8 | Kind::CrLf) => {
                    wrong.push(format!("{api}: {kind:?} is not a matter of form"));
                }
                _ => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn every_stream_becomes_what_it_says() {
    for column in columns() {
        for (kind, stream) in column.streams() {
            let name = format!("{}: {kind:?}", column.api);
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            let server = serve([head.as_slice(), &stream.bytes].concat(), After::Close).await;
            let request = column.ask(&server.url);
            let (sender, mut reader) = mpsc::channel(16);
            let provider = Providers::new().get(column.api).unwrap();
            let cancel = CancellationToken::new();
            let (completion, updates) = tokio::join!(
                async {
                    let sender = sender;
                    provider.stream(&request, &sender, &cancel).await
                },
                async {
                    let mut updates = Vec::new();
                    while let Some(update) = reader.recv().await {
                        updates.push(short(&update));
                    }
                    updates
                }
            );
            let (content, end) = outcome(completion);
            assert_eq!(end, stream.end, "{name}");
            // Assertions do not print megabytes.
            assert!(
                content == stream.content,
                "{name}: {}",
                content.to_string().chars().take(2000).collect::<String>()
            );
            assert_in_order(&name, &updates, &content, &end);
        }
    }
}

/// Updates begin with the start; every block begins once, in order, and ends once, unless the answer failed.
fn assert_in_order(name: &str, updates: &[String], content: &Value, end: &End) {
    assert!(updates[0].starts_with("start "), "{name}: {:?}", updates[0]);
    let mut begun = 0;
    let mut ends: HashMap<usize, usize> = HashMap::new();
    for update in &updates[1..] {
        let mut words = update.splitn(3, ' ');
        let (what, index) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
        if what.ends_with("_start") {
            assert_eq!(index, begun, "{name}: {what}");
            begun += 1;
        } else {
            assert!(index < begun && !ends.contains_key(&index), "{name}: {what} {index}");
        }
        if what.ends_with("_end") {
            ends.insert(index, 1);
        }
    }
    assert_eq!(begun, content.as_array().unwrap().len(), "{name}");
    if matches!(end, End::Well(_)) {
        assert_eq!(ends.len(), begun, "{name}");
    }
}

#[test]
fn no_cut_of_the_bytes_changes_what_a_stream_says() {
    for column in columns().iter().filter(|column| column.is_reframed(Kind::SplitUtf8)) {
        for (kind, stream) in column.streams() {
            let bytes = stream.bytes.as_slice();
            let whole = column.outcome(&[bytes]);
            let agrees = |chunks: &[&[u8]]| column.outcome(chunks) == whole;
            if bytes.len() <= CUT_EVERYWHERE {
                for at in 1..bytes.len() {
                    assert!(agrees(&[&bytes[..at], &bytes[at..]]), "{}: {kind:?} cut at {at}", column.api);
                }
                let single: Vec<&[u8]> = bytes.chunks(1).collect();
                assert!(agrees(&single), "{}: {kind:?} byte by byte", column.api);
            } else {
                let odd: Vec<&[u8]> = bytes.chunks(1021).collect();
                assert!(agrees(&odd), "{}: {kind:?}", column.api);
            }
        }
    }
}

#[test]
fn comments_and_line_ends_change_nothing() {
    fn with_comments(text: &str) -> String {
        format!(": hello\n\n:\n{}", text.replace("\n\n", "\n\n: ping\n\n"))
    }
    fn with_crlf(text: &str) -> String {
        text.replace('\n', "\r\n")
    }
    type Change = fn(&str) -> String;
    let forms: [(Kind, Change); 2] = [(Kind::CommentLines, with_comments), (Kind::CrLf, with_crlf)];
    for column in columns() {
        for (form, change) in &forms {
            if !column.is_reframed(*form) {
                continue;
            }
            for (kind, stream) in column.streams() {
                let changed = change(std::str::from_utf8(&stream.bytes).unwrap());
                assert!(changed.len() > stream.bytes.len());
                let whole = column.outcome(&[&stream.bytes]);
                let name = format!("{}: {kind:?} with {form:?}", column.api);
                assert!(column.outcome(&[changed.as_bytes()]) == whole, "{name}");
                if changed.len() <= CUT_EVERYWHERE {
                    let single: Vec<&[u8]> = changed.as_bytes().chunks(1).collect();
                    assert!(column.outcome(&single) == whole, "{name}, byte by byte");
                }
            }
        }
    }
}
