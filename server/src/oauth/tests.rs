use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::services::{BrowserSignIn, CodeClient, DeviceSignIn, Dialect, Refresh};
use super::*;
use crate::BoxFuture;
use crate::llm::fake_server::{Call, FakeServer, Reply};

const TOKENS: &str = r#"{"access_token":"at","refresh_token":"rt","expires_in":3600}"#;

async fn server(reply: impl Fn(&Call) -> Reply + Send + Sync + 'static) -> FakeServer {
    FakeServer::start(reply).await
}

fn json(status: u16, text: &str) -> Reply {
    Reply::Json(status, text.to_owned())
}

fn code_service(server: &FakeServer) -> BrowserSignIn {
    BrowserSignIn {
        authorize_url: "https://auth.example/authorize".to_owned(),
        exchange_url: format!("{}/token", server.url),
        dialect: Dialect::Code(CodeClient {
            client_id: "cid".to_owned(),
            scope: "a b".to_owned(),
            port: 0,
            path: "/back".to_owned(),
            extra: vec![("flow", "simple")],
        }),
    }
}

fn key_service(server: &FakeServer) -> BrowserSignIn {
    BrowserSignIn {
        authorize_url: "https://auth.example/auth".to_owned(),
        exchange_url: format!("{}/keys", server.url),
        dialect: Dialect::KeyExchange,
    }
}

fn query(url: &str) -> impl Fn(&str) -> String + use<> {
    let url = reqwest::Url::parse(url).unwrap();
    let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    move |name| {
        pairs.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()).unwrap_or_default()
    }
}

/// Plays the browser: asks for an address and gives the status line of what it is answered.
async fn browse(url: &str) -> String {
    let url = reqwest::Url::parse(url).unwrap();
    let mut socket = tokio::net::TcpStream::connect(("127.0.0.1", url.port().unwrap())).await.unwrap();
    let target = format!("{}?{}", url.path(), url.query().unwrap_or_default());
    socket.write_all(format!("GET {target} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).await.unwrap();
    assert!(!text.contains("c0de"), "the page repeats the code: {text}");
    text.lines().next().unwrap().to_owned()
}

fn challenge_of(verifier: &str) -> String {
    use base64::Engine as _;
    let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(digest)
}

#[tokio::test]
async fn a_browser_brings_the_code_and_the_verifier_proves_who_asked() {
    let server = server(|_| json(200, TOKENS)).await;
    let service = code_service(&server);
    let sign_in = Authorization::begin(&service).await.unwrap();
    let url = sign_in.url();
    let asked = query(&url);
    assert!(url.starts_with("https://auth.example/authorize?response_type=code&client_id=cid&"), "{url}");
    assert_eq!((asked("scope"), asked("flow")), ("a b".to_owned(), "simple".to_owned()));
    assert_eq!(asked("code_challenge_method"), "S256");
    let (back, state) = (asked("redirect_uri"), asked("state"));
    assert!(back.starts_with("http://localhost:") && back.ends_with("/back") && state.len() == 43);

    let client = OAuthClient::new();
    let browser = async {
        // Somebody else's answer, other pages and connections that say nothing do no harm.
        let port = reqwest::Url::parse(&back).unwrap().port().unwrap();
        let _silent = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        assert_eq!(browse(&format!("{back}?code=c0de&state=other")).await, "HTTP/1.1 404 Not Found");
        assert_eq!(browse(&format!("http://localhost:{port}/favicon.ico")).await, "HTTP/1.1 404 Not Found");
        assert_eq!(browse(&format!("{back}?code=c0de%2B1&state={state}")).await, "HTTP/1.1 200 OK");
    };
    let (code, ()) = tokio::join!(sign_in.code_from_browser(), browser);
    let tokens = sign_in.exchange(&client, code.unwrap()).await.unwrap();
    assert_eq!((tokens.access.expose_secret(), tokens.refresh.expose_secret()), ("at", "rt"));
    assert!(tokens.outlast(Duration::from_secs(3500)) && !tokens.outlast(Duration::from_secs(3700)));
    let [call] = &server.calls()[..] else { panic!("{:?}", server.lines()) };
    assert_eq!(call.field("grant_type"), "authorization_code");
    assert_eq!((call.field("code"), call.field("client_id")), ("c0de+1".to_owned(), "cid".to_owned()));
    assert_eq!(call.field("redirect_uri"), back);
    assert_eq!(challenge_of(&call.field("code_verifier")), asked("code_challenge"));
}

#[tokio::test]
async fn a_code_may_be_exchanged_for_a_key_that_does_not_expire() {
    let server = server(|_| json(200, r#"{"key":"sk-or-1"}"#)).await;
    let service = key_service(&server);
    let sign_in = Authorization::begin(&service).await.unwrap();
    let asked = query(&sign_in.url());
    let back = asked("callback_url");
    assert!(back.starts_with("http://127.0.0.1:") && back.contains("/oauth/callback/"), "{back}");
    let answer = format!("{back}?code=c0de");
    let (code, status) = tokio::join!(sign_in.code_from_browser(), browse(&answer));
    assert_eq!(status, "HTTP/1.1 200 OK");
    let tokens = sign_in.exchange(&OAuthClient::new(), code.unwrap()).await.unwrap();
    assert_eq!((tokens.access.expose_secret(), tokens.refresh.expose_secret()), ("sk-or-1", ""));
    assert!(tokens.outlast(Duration::from_secs(1_000_000_000)));
    let body: Value = serde_json::from_str(&server.calls()[0].body).unwrap();
    assert_eq!((&body["code"], &body["code_challenge_method"]), (&"c0de".into(), &"S256".into()));
    assert_eq!(challenge_of(body["code_verifier"].as_str().unwrap()), asked("code_challenge"));
}

#[tokio::test]
async fn what_is_pasted_is_the_address_or_the_code_of_this_sign_in() {
    let server = server(|_| json(200, TOKENS)).await;
    let service = code_service(&server);
    let sign_in = Authorization::begin(&service).await.unwrap();
    let state = query(&sign_in.url())("state");
    let exchanged = async |text: &str| {
        let code = sign_in.read_pasted(text)?;
        sign_in.exchange(&OAuthClient::new(), code).await.unwrap();
        Ok::<_, OAuthError>(server.calls().last().unwrap().field("code"))
    };
    for text in [
        format!("http://localhost:1/back?code=c0de&state={state}"),
        " c0de \n".to_owned(),
        format!("c0de#{state}"),
    ] {
        assert_eq!(exchanged(&text).await.unwrap(), "c0de", "{text}");
    }
    for (text, expected) in [
        ("", "expected the code, or the address that the browser ended at"),
        ("two words", "expected the code, or the address that the browser ended at"),
        ("c0de#other", "the code belongs to another sign-in"),
        (
            "http://h/back?code=c0de&state=x",
            "the address belongs to another sign-in; paste the one of this sign-in",
        ),
    ] {
        assert_eq!(exchanged(text).await.unwrap_err(), OAuthError::NoCode(expected.to_owned()), "{text}");
    }
    let refused = format!("http://h/back?error=access_denied&error_description=no&state={state}");
    let refused = exchanged(&refused).await.unwrap_err();
    assert_eq!(refused.to_string(), "the sign-in was refused (access_denied: no)");
    let empty = exchanged(&format!("http://h/back?state={state}")).await.unwrap_err();
    assert_eq!(empty, OAuthError::NoCode("the address has no code".to_owned()));
}

#[tokio::test]
async fn what_a_token_endpoint_says_is_told_without_what_it_was_sent() {
    for (reply, expected) in [
        (
            json(400, r#"{"error":"invalid_grant","error_description":"bad code c0de-secret"}"#),
            OAuthError::Denied(
                "127.0.0.1 answered with status 400: invalid_grant: bad code [redacted]".to_owned(),
            ),
        ),
        (json(503, "<html>"), OAuthError::Unreachable("127.0.0.1 answered with status 503".to_owned())),
        (json(200, "[]"), OAuthError::Failed("what 127.0.0.1 answered is not a JSON object".to_owned())),
        (json(200, "{}"), OAuthError::Failed("127.0.0.1 sent no access_token".to_owned())),
        (
            json(200, r#"{"access_token":"at"}"#),
            OAuthError::Failed("127.0.0.1 sent no refresh_token".to_owned()),
        ),
    ] {
        let server = server(move |_| reply.clone()).await;
        let service = code_service(&server);
        let sign_in = Authorization::begin(&service).await.unwrap();
        let code = sign_in.read_pasted("c0de-secret").unwrap();
        assert_eq!(sign_in.exchange(&OAuthClient::new(), code).await.unwrap_err(), expected);
        assert!(!format!("{sign_in:?}").contains("c0de-secret"));
    }
}

/// Signs in with a device; gives what came of it and how long was waited before each question.
async fn with_device(replies: &'static [(u16, &'static str)]) -> (Result<String, OAuthError>, Vec<u64>) {
    let asked = AtomicUsize::new(0);
    let server = server(move |call| match call.line.as_str() {
        "POST /device" => json(
            200,
            r#"{"device_code":"dc","user_code":"AB-CD","verification_uri":"https://h/d",
                "verification_uri_complete":"https://h/d?c=AB-CD","interval":2,"expires_in":60}"#,
        ),
        _ => {
            let (status, text) = replies[asked.fetch_add(1, Ordering::Relaxed).min(replies.len() - 1)];
            json(status, text)
        }
    })
    .await;
    let service = DeviceSignIn {
        device_url: format!("{}/device", server.url),
        token_url: format!("{}/token", server.url),
        client_id: "cid".to_owned(),
        scope: String::new(),
    };
    let client = OAuthClient::new();
    let sign_in = DeviceAuthorization::begin(&service, &client).await.unwrap();
    assert_eq!((sign_in.user_code.as_str(), sign_in.verification_uri.as_str()), ("AB-CD", "https://h/d"));
    assert_eq!(sign_in.complete_uri.as_deref(), Some("https://h/d?c=AB-CD"));
    let waits = Mutex::new(Vec::new());
    let sleep = |time: Duration| -> BoxFuture<'_, ()> {
        waits.lock().unwrap().push(time.as_secs());
        Box::pin(std::future::ready(()))
    };
    let tokens = sign_in.wait(&client, &sleep).await;
    let call = server.calls().pop().unwrap();
    assert_eq!(call.field("grant_type"), "urn:ietf:params:oauth:grant-type:device_code");
    assert_eq!((call.field("device_code"), call.field("client_id")), ("dc".to_owned(), "cid".to_owned()));
    let waits = waits.lock().unwrap().clone();
    (tokens.map(|tokens| tokens.access.expose_secret().to_owned()), waits)
}

#[tokio::test]
async fn a_device_waits_as_long_as_the_server_asks_and_learns_how_it_ended() {
    const PENDING: (u16, &str) = (400, r#"{"error":"authorization_pending"}"#);
    const SLOW: (u16, &str) = (400, r#"{"error":"slow_down"}"#);
    let (tokens, waits) = with_device(&[PENDING, SLOW, PENDING, (200, TOKENS)]).await;
    assert_eq!((tokens.unwrap(), waits), ("at".to_owned(), vec![2, 2, 7, 7]));
    let (tokens, waits) = with_device(&[(503, ""), PENDING, (200, TOKENS)]).await;
    assert_eq!((tokens.unwrap(), waits), ("at".to_owned(), vec![2, 4, 4]));
    let denied = with_device(&[(400, r#"{"error":"access_denied"}"#)]).await.0.unwrap_err();
    assert_eq!(denied, OAuthError::Denied("the sign-in was refused".to_owned()));
    let expired = with_device(&[(400, r#"{"error":"expired_token"}"#)]).await.0.unwrap_err();
    assert_eq!(expired, OAuthError::Expired);
    let other = with_device(&[(401, r#"{"error":"invalid_client"}"#)]).await.0.unwrap_err();
    assert_eq!(other.to_string(), "127.0.0.1 answered with status 401: invalid_client");
    let (never, waits) = with_device(&[PENDING]).await;
    assert_eq!((never.unwrap_err(), waits.iter().sum::<u64>()), (OAuthError::Expired, 60));
}

#[tokio::test]
async fn a_refresh_keeps_the_refresh_token_that_is_not_renewed() {
    for (answer, expected) in
        [(TOKENS, "rt"), (r#"{"access_token":"at","expires_in":"60"}"#, "old-refresh-token")]
    {
        let server = server(move |_| json(200, answer)).await;
        let service = Refresh { token_url: server.url.clone(), client_id: "cid".to_owned() };
        let last = Tokens {
            access: "old".into(),
            refresh: "old-refresh-token".into(),
            expires: Timestamp::UNIX_EPOCH,
        };
        let next = refresh(&service, &OAuthClient::new(), &last).await.unwrap();
        assert_eq!((next.access.expose_secret(), next.refresh.expose_secret()), ("at", expected));
        assert!(next.outlast(Duration::from_secs(50)));
        let call = server.calls().pop().unwrap();
        assert_eq!(call.field("grant_type"), "refresh_token");
        assert_eq!(call.field("refresh_token"), "old-refresh-token");
    }
}

#[test]
fn what_is_known_of_the_services_is_addressed_over_tls() {
    let services = known();
    let text = format!("{services:?}");
    assert!(!text.contains("http://") && text.contains("https://openrouter.ai/api/v1/auth/keys"), "{text}");
    assert!(find(&services, "kimi-coding").is_some_and(|service| service.refresh.is_some()));
    assert!(find(&services, "openrouter").is_some_and(|service| service.refresh.is_none()));
    assert!(find(&services, "anthropic").is_none());
}
