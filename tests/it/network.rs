//! The ways to a model: proxies, and authorities that the system does not know.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sampi_tests::fake_llm::{FakeLlm, text};
use sampi_tests::harness::{Daemon, DaemonBuilder};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tls").join(name)
}

/// Something that listens on loopback and ends with the test.
struct Relay {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
    _task: AbortOnDropHandle<()>,
}

impl Relay {
    async fn start<F: Future<Output = Option<()>> + Send + 'static>(
        serve: impl Fn(TcpStream, Arc<Mutex<Vec<String>>>) -> F + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = asked.clone();
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, log.clone()));
            }
        });
        Self { port, asked, _task: AbortOnDropHandle::new(task) }
    }

    /// Speaks TLS for a server that does not, as `localhost` and `model.test`.
    async fn tls(target: &FakeLlm) -> Self {
        let chain = CertificateDer::pem_file_iter(fixture("server.pem")).unwrap();
        let chain = chain.map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let target = address(target);
        Self::start(move |socket, _| {
            let (acceptor, target) = (acceptor.clone(), target.clone());
            async move {
                let mut inside = acceptor.accept(socket).await.ok()?;
                let mut outside = TcpStream::connect(target).await.ok()?;
                copy_bidirectional(&mut inside, &mut outside).await.ok().map(drop)
            }
        })
        .await
    }

    /// A proxy that connects everybody to this port, whatever host was asked for.
    async fn proxy(port: u16) -> Self {
        Self::start(move |mut socket, asked| async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.ok()?);
            }
            let head = String::from_utf8(head).ok()?;
            let line = head.lines().next()?.to_owned();
            let is_tunnel = line.starts_with("CONNECT ");
            asked.lock().unwrap().push(line);
            let mut target = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
            if is_tunnel {
                socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
            } else {
                target.write_all(head.as_bytes()).await.ok()?;
            }
            copy_bidirectional(&mut socket, &mut target).await.ok().map(drop)
        })
        .await
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn address(llm: &FakeLlm) -> String {
    llm.url().strip_prefix("http://").unwrap().to_owned()
}

fn port(llm: &FakeLlm) -> u16 {
    address(llm).rsplit(':').next().unwrap().parse().unwrap()
}

fn with_base_url(llm: &FakeLlm, url: &str) -> DaemonBuilder {
    let models = json!({ "providers": { "mock": { "api": "openai-completions", "baseUrl": url, "apiKey": "k",
        "models": [{ "id": "m1" }] } } });
    Daemon::builder(llm).models(models).settings(json!({ "retry": { "enabled": false } }))
}

/// The answer to one prompt, or why there is none.
async fn answer(builder: DaemonBuilder) -> String {
    let daemon = builder.spawn().await;
    daemon.run("hi").await;
    let last = daemon.messages().await.pop().unwrap();
    daemon.finish().await;
    match last["errorMessage"].as_str() {
        Some(error) => error.to_owned(),
        None => last["content"][0]["text"].as_str().unwrap().to_owned(),
    }
}

#[tokio::test]
async fn requests_go_through_the_proxy_of_the_environment_but_not_to_hosts_that_it_excludes() {
    let llm = FakeLlm::start().await;
    let proxy = Relay::proxy(port(&llm)).await;
    llm.push(text("Through."));
    let builder = with_base_url(&llm, "http://model.test/v1").env("HTTP_PROXY", &proxy.url());
    assert_eq!(answer(builder).await, "Through.");
    assert_eq!(proxy.asked(), ["POST http://model.test/v1/chat/completions HTTP/1.1"]);

    llm.push(text("Past it."));
    let builder = with_base_url(&llm, &format!("{}/v1", llm.url()));
    let builder = builder.env("HTTP_PROXY", &proxy.url()).env("NO_PROXY", "127.0.0.1,other.test");
    assert_eq!(answer(builder).await, "Past it.");
    assert_eq!(proxy.asked().len(), 1);
    llm.finish();
}

#[tokio::test]
async fn the_proxy_of_the_settings_counts_where_the_environment_names_none() {
    let llm = FakeLlm::start().await;
    let (own, other) = (Relay::proxy(port(&llm)).await, Relay::proxy(port(&llm)).await);
    let builder = || with_base_url(&llm, "http://model.test/v1").settings(json!({ "httpProxy": own.url() }));
    llm.push_all([text("Through."), text("Through the other.")]);
    assert_eq!(answer(builder()).await, "Through.");
    assert_eq!(answer(builder().env("HTTP_PROXY", &other.url())).await, "Through the other.");
    assert_eq!((own.asked().len(), other.asked().len()), (1, 1));
    let builder = with_base_url(&llm, "http://model.test/v1");
    let settings = json!({ "httpProxy": "http://us er:s3cret@[", "retry": { "enabled": false } });
    let error = answer(builder.settings(settings)).await;
    assert_eq!(error, "httpProxy of the settings is not the address of a proxy");
    llm.finish();
}

#[tokio::test]
async fn a_server_of_an_authority_that_nobody_named_is_not_trusted_and_one_that_was_named_is() {
    let llm = FakeLlm::start().await;
    let server = Relay::tls(&llm).await;
    let url = format!("https://localhost:{}/v1", server.port);
    let ca = fixture("ca.pem");
    let ca = ca.to_str().unwrap();

    let error = answer(with_base_url(&llm, &url)).await;
    assert!(error.starts_with("Connection error.: ") && error.contains("certificate"), "{error}");
    for variable in ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"] {
        llm.push(text("Trusted."));
        assert_eq!(answer(with_base_url(&llm, &url).env(variable, ca)).await, "Trusted.", "{variable}");
    }

    let proxy = Relay::proxy(server.port).await;
    llm.push(text("Through a tunnel."));
    let builder = with_base_url(&llm, "https://model.test/v1").env("HTTPS_PROXY", &proxy.url());
    assert_eq!(answer(builder.env("NODE_EXTRA_CA_CERTS", ca)).await, "Through a tunnel.");
    assert_eq!(proxy.asked(), ["CONNECT model.test:443 HTTP/1.1"]);
    llm.finish();
}

#[tokio::test]
async fn a_file_of_authorities_that_cannot_be_used_is_told_and_does_not_count() {
    let llm = FakeLlm::start().await;
    let missing = "/nowhere/ca.pem";
    llm.push(text("Still."));
    let builder = with_base_url(&llm, &format!("{}/v1", llm.url())).env("NODE_EXTRA_CA_CERTS", missing);
    let daemon = builder.spawn().await;
    daemon.run("hi").await;
    let stderr = daemon.stderr();
    assert!(stderr.contains("/nowhere/ca.pem, which NODE_EXTRA_CA_CERTS names, cannot be used"), "{stderr}");
    daemon.finish().await;
    llm.finish();
}
