//! What only shows over a real connection: cancelling, silence, error statuses, broken connections.

use std::sync::Arc;
use std::time::Duration;

use sampi_protocol::data::{StopReason, ThinkingLevel};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::testing::{model, request, short, user};
use super::{Completion, FailureKind, ModelRequest, Provider, Providers};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A server for one request; what it was sent comes back through the handle.
pub(super) struct Server {
    pub(super) url: String,
    pub(super) request: tokio::task::JoinHandle<String>,
}

/// Answers one request with these bytes, then closes the connection or keeps it open in silence.
pub(super) async fn serve(answer: impl Into<Vec<u8>>, after: After) -> Server {
    let answer = answer.into();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let request = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let request = read_request(&mut socket).await;
        socket.write_all(&answer).await.unwrap();
        socket.flush().await.unwrap();
        match after {
            After::Close => {}
            After::Reset => socket.set_zero_linger().unwrap(),
            After::Silence => {
                // Ends when the client hangs up.
                let _ = socket.read(&mut [0; 16]).await;
            }
        }
        request
    });
    Server { url, request }
}

#[derive(Clone, Copy)]
pub(super) enum After {
    Close,
    Reset,
    Silence,
}

async fn read_request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65536];
    let mut whole = None;
    while whole.is_none_or(|whole| bytes.len() < whole) {
        let read = socket.read(&mut buffer).await.unwrap();
        assert!(read > 0, "the client hung up");
        bytes.extend_from_slice(&buffer[..read]);
        if whole.is_none()
            && let Some((head, _)) = String::from_utf8_lossy(&bytes).split_once("\r\n\r\n")
        {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            whole = Some(head.len() + 4 + length.parse::<usize>().unwrap());
        }
    }
    String::from_utf8(bytes).unwrap()
}

fn ask(api: &str, url: &str) -> ModelRequest {
    let model = model(api, json!({ "baseUrl": url }));
    request(model, ThinkingLevel::Off, json!([user("hi")]))
}

fn provider(request: &ModelRequest) -> Arc<dyn Provider> {
    Providers::new().get(&request.model.api).unwrap()
}

/// Runs a request; `on_update` sees every update in short form.
async fn run(
    request: &ModelRequest,
    cancel: &CancellationToken,
    mut on_update: impl FnMut(&str),
) -> (Vec<String>, Completion) {
    let (sender, mut receiver) = mpsc::channel(1);
    let watch = async {
        let mut updates = Vec::new();
        while let Some(update) = receiver.recv().await {
            let update = short(&update);
            on_update(&update);
            updates.push(update);
        }
        updates
    };
    let provider = provider(request);
    let stream = async {
        let sender = sender;
        provider.stream(request, &sender, cancel).await
    };
    let (end, updates) = tokio::join!(stream, watch);
    (updates, end)
}

fn chunk(delta: Value, finish: Value) -> String {
    let chunk =
        json!({ "id": "c1", "model": "m1", "choices": [{ "delta": delta, "finish_reason": finish }] });
    format!("data: {chunk}\n\n")
}

#[tokio::test]
async fn a_whole_answer_comes_over_a_connection() {
    let answer = HEAD.to_owned()
        + &chunk(json!({ "content": "hi" }), Value::Null)
        + &chunk(json!({}), json!("stop"))
        + "data: [DONE]\n\n";
    let server = serve(answer, After::Close).await;
    let (updates, end) =
        run(&ask("openai-completions", &server.url), &CancellationToken::new(), |_| {}).await;
    assert_eq!(updates, ["start 0", "text_start 0", "text_delta 0 hi", "text_end 0 hi"]);
    assert_eq!((end.message.stop_reason, end.failure), (StopReason::Stop, None));
    let request = server.request.await.unwrap();
    assert!(request.starts_with("POST /chat/completions HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: Bearer k\r\n"), "{request}");
}

#[tokio::test]
async fn cancelling_while_the_server_says_nothing_ends_the_request() {
    let server = serve(String::new(), After::Silence).await;
    let cancel = CancellationToken::new();
    let request = ask("openai-completions", &server.url);
    let (sender, _receiver) = mpsc::channel(1);
    let provider = provider(&request);
    let stream = provider.stream(&request, &sender, &cancel);
    tokio::pin!(stream);
    tokio::select! {
        _ = &mut stream => panic!("the server said nothing"),
        () = tokio::time::sleep(Duration::from_millis(50)) => cancel.cancel(),
    }
    let end = stream.await;
    assert_eq!(end.message.stop_reason, StopReason::Aborted);
    assert_eq!(end.message.error_message.as_deref(), Some("This operation was aborted"));
    assert_eq!(end.failure, None);
}

#[tokio::test]
async fn cancelling_in_the_middle_keeps_the_text_and_ends_its_block() {
    let answer = HEAD.to_owned() + &chunk(json!({ "content": "part" }), Value::Null);
    let server = serve(answer, After::Silence).await;
    let cancel = CancellationToken::new();
    let (updates, end) = run(&ask("openai-completions", &server.url), &cancel, |update| {
        if update.starts_with("text_delta") {
            cancel.cancel();
        }
    })
    .await;
    assert_eq!(updates, ["start 0", "text_start 0", "text_delta 0 part", "text_end 0 part"]);
    assert_eq!(end.message.text(), "part");
    assert_eq!(end.message.stop_reason, StopReason::Aborted);
    assert_eq!(end.message.error_message.as_deref(), Some("Request was aborted"));
    // The server ends only when the client hung up.
    server.request.await.unwrap();
}

#[tokio::test]
async fn cancelling_in_the_middle_keeps_what_came_over_every_api() {
    let item = json!({ "type": "message", "id": "m", "content": [] });
    let added = json!({ "type": "response.output_item.added", "output_index": 0, "item": item });
    let delta = json!({ "type": "response.output_text.delta", "output_index": 0, "delta": "part" });
    let gemini = json!({ "candidates": [{ "content": { "parts": [{ "text": "part" }] } }] });
    let mistral = json!({ "choices": [{ "index": 0, "delta": { "content": "part" } }] });
    for (api, events, text) in [
        ("openai-responses", vec![added, delta], "Request was aborted"),
        ("google-generative-ai", vec![gemini.clone()], "This operation was aborted"),
        ("google-vertex", vec![gemini], "This operation was aborted"),
        ("mistral-conversations", vec![mistral], "This operation was aborted"),
    ] {
        let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
        let server = serve(HEAD.to_owned() + &stream, After::Silence).await;
        let cancel = CancellationToken::new();
        let (updates, end) = run(&ask(api, &server.url), &cancel, |update| {
            if update.starts_with("text_delta") {
                cancel.cancel();
            }
        })
        .await;
        assert_eq!(updates, ["start 0", "text_start 0", "text_delta 0 part"], "{api}");
        assert_eq!(end.message.text(), "part");
        assert_eq!(end.message.stop_reason, StopReason::Aborted);
        assert_eq!(end.message.error_message.as_deref(), Some(text));
        server.request.await.unwrap();
    }
}

#[tokio::test]
async fn the_variables_of_the_credentials_go_before_those_of_the_environment() {
    for (api, variable, sent) in [
        ("azure-openai-responses", "AZURE_OPENAI_BASE_URL", "POST /responses?api-version=v1 "),
        ("bedrock-converse-stream", "AWS_BEARER_TOKEN_BEDROCK", "authorization: Bearer http://127.0.0.1:"),
    ] {
        let refusal = "HTTP/1.1 400 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let server = serve(refusal, After::Close).await;
        let is_azure = api.starts_with("azure");
        let mut request = ask(api, if is_azure { "http://127.0.0.1:1" } else { &server.url });
        request.credentials.variables = vec![(variable.to_owned(), server.url.clone().into())];
        if !is_azure {
            request.credentials.api_key = None;
        }
        run(&request, &CancellationToken::new(), |_| {}).await;
        let request = tokio::time::timeout(Duration::from_secs(10), server.request).await;
        let request = request.expect("the request went elsewhere").unwrap();
        assert!(request.contains(sent), "{api}: {request}");
    }
}

#[tokio::test]
async fn what_a_provider_wants_is_sent_with_every_api_and_headers_of_the_user_replace_it() {
    for api in ["openai-completions", "openai-responses", "anthropic-messages", "google-generative-ai"] {
        let refusal = "HTTP/1.1 400 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let server = serve(refusal, After::Close).await;
        let mut request = ask(api, &server.url);
        request.model.provider = "github-copilot".to_owned();
        request.credentials.headers = vec![("X-Initiator".to_owned(), "mine".into())];
        run(&request, &CancellationToken::new(), |_| {}).await;
        let sent = server.request.await.unwrap();
        let own: Vec<&str> = sent.lines().filter(|line| line.starts_with("x-initiator")).collect();
        assert_eq!(own, ["x-initiator: mine"], "{api}: {sent}");
        assert!(sent.contains("\r\nopenai-intent: conversation-edits\r\n"), "{api}: {sent}");
    }
}

#[tokio::test]
async fn a_cancelled_request_is_not_sent() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let (_, end) = run(&ask("anthropic-messages", "http://127.0.0.1:1"), &cancel, |_| {}).await;
    assert_eq!(end.message.error_message.as_deref(), Some("This operation was aborted"));
}

#[tokio::test]
async fn silence_ends_in_a_failure_that_is_worth_another_try() {
    for answer in [String::new(), HEAD.to_owned() + &chunk(json!({ "content": "part" }), Value::Null)] {
        let server = serve(answer, After::Silence).await;
        let mut request = ask("openai-completions", &server.url);
        request.options.idle_timeout = Some(Duration::from_millis(200));
        let (_, end) = run(&request, &CancellationToken::new(), |_| {}).await;
        assert_eq!(end.message.stop_reason, StopReason::Error);
        assert!(end.message.error_message.unwrap().contains("no data from the provider for 0.2 seconds"));
        assert_eq!(end.failure.unwrap().kind, FailureKind::Network);
    }
}

#[tokio::test]
async fn an_error_status_is_told_with_its_body_and_the_wait_that_is_asked_for() {
    let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let answer = format!(
        "HTTP/1.1 529 X\r\nretry-after: 7\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let server = serve(answer, After::Close).await;
    let (updates, end) =
        run(&ask("anthropic-messages", &server.url), &CancellationToken::new(), |_| {}).await;
    assert_eq!(updates, Vec::<String>::new());
    assert_eq!(end.message.error_message, Some(format!("529 {body}")));
    let failure = end.failure.unwrap();
    assert_eq!((failure.kind, failure.status), (FailureKind::Overloaded, Some(529)));
    assert_eq!(failure.retry_after, Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn an_endless_error_body_is_cut() {
    let answer = format!("HTTP/1.1 500 X\r\nconnection: close\r\n\r\n{}", "x".repeat(300_000));
    let server = serve(answer, After::Close).await;
    let (_, end) = run(&ask("openai-completions", &server.url), &CancellationToken::new(), |_| {}).await;
    let text = end.message.error_message.unwrap();
    assert!(text.starts_with("500 xxx") && text.len() < 5000, "{}", text.len());
    assert_eq!(end.failure.unwrap().kind, FailureKind::Server);
}

#[tokio::test]
async fn a_connection_that_fails_or_breaks_is_worth_another_try() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let (_, end) = run(&ask("openai-completions", &url), &CancellationToken::new(), |_| {}).await;
    let text = end.message.error_message.unwrap();
    assert!(text.starts_with("Connection error.: ") && text.contains("refused"), "{text}");
    assert!(end.failure.unwrap().kind.is_retryable());

    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n".to_owned()
        + &chunk(json!({ "content": "part" }), Value::Null);
    for after in [After::Close, After::Reset] {
        let server = serve(answer.clone(), after).await;
        let (_, end) = run(&ask("openai-completions", &server.url), &CancellationToken::new(), |_| {}).await;
        assert!(end.message.error_message.unwrap().starts_with("Connection error.: "));
        assert_eq!(end.failure.unwrap().kind, FailureKind::Network);
    }
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed_with_the_key() {
    let answer =
        "HTTP/1.1 307 X\r\nlocation: http://localhost:1/x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let server = serve(answer.to_owned(), After::Close).await;
    let (_, end) = run(&ask("openai-completions", &server.url), &CancellationToken::new(), |_| {}).await;
    assert_eq!(end.message.error_message.as_deref(), Some("307 status code (no body)"));
}

#[tokio::test]
async fn an_answer_is_complete_even_when_nobody_reads_its_updates() {
    let answer = HEAD.to_owned()
        + &chunk(json!({ "content": "hi" }), Value::Null)
        + &chunk(json!({}), json!("stop"))
        + "data: [DONE]\n\n";
    let server = serve(answer, After::Close).await;
    let request = ask("openai-completions", &server.url);
    let (sender, receiver) = mpsc::channel(1);
    drop(receiver);
    let end = provider(&request).stream(&request, &sender, &CancellationToken::new()).await;
    assert_eq!(end.message.text(), "hi");
}

#[tokio::test]
async fn an_error_with_the_status_of_a_success_is_told() {
    let body = r#"{"error":{"type":"overloaded_error","message":"no slot is free"}}"#;
    for api in ["openai-completions", "anthropic-messages"] {
        let answer =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
        let server = serve(answer, After::Close).await;
        let (_, end) = run(&ask(api, &server.url), &CancellationToken::new(), |_| {}).await;
        assert!(end.message.error_message.unwrap().ends_with(body));
        assert_eq!(end.failure.unwrap().kind, FailureKind::Overloaded);
    }
}
