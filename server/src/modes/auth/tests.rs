use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Mutex;

use secrecy::SecretString;
use serde_json::{Value, json};

use super::terminal::{Echo, TerminalError};
use super::*;
use crate::cli::AuthCommand;
use crate::llm::fake_server::{FakeServer, Reply};
use crate::oauth::SignIn;

/// An answer, made of what was said so far.
type Typed<'t> = Box<dyn Fn(&str) -> String + 't>;

/// Somebody who types these answers.
struct Person<'t> {
    answers: VecDeque<Typed<'t>>,
    told: &'t Mutex<String>,
}

impl<'t> Person<'t> {
    fn with(told: &'t Mutex<String>, answers: &[&str]) -> Self {
        let answers = answers.iter().map(|answer| {
            let answer = (*answer).to_owned();
            Box::new(move |_: &str| answer.clone()) as Typed<'t>
        });
        Self { answers: answers.collect(), told }
    }

    fn write(&self, text: &str) {
        self.told.lock().unwrap().push_str(text);
    }
}

impl Terminal for Person<'_> {
    async fn ask(&mut self, prompt: &str, echo: Echo) -> Result<SecretString, TerminalError> {
        self.write(&format!("{prompt}{}\n", if echo == Echo::Hidden { "***" } else { "" }));
        let said = self.told.lock().unwrap().clone();
        match self.answers.pop_front() {
            Some(answer) => match answer(&said).as_str() {
                "^C" => Err(TerminalError::Interrupted),
                "" if said.ends_with("Address or code: \n") => std::future::pending().await,
                answer => Ok(answer.into()),
            },
            None => std::future::pending().await,
        }
    }

    fn say(&mut self, text: &str) {
        self.write(&format!("{text}\n"));
    }
}

struct Home {
    dir: tempfile::TempDir,
    variables: Vec<(&'static str, &'static str)>,
    services: Vec<Service>,
}

impl Home {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), variables: Vec::new(), services: oauth::known() }
    }

    fn auth(self, auth: &Value) -> Self {
        fs::write(self.file(), auth.to_string()).unwrap();
        self
    }

    fn models(self, models: &Value) -> Self {
        fs::write(self.dir.path().join("models.json"), models.to_string()).unwrap();
        self
    }

    fn variable(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.push((name, value));
        self
    }

    /// Every service is at this server.
    fn at(mut self, server: &FakeServer) -> Self {
        for service in &mut self.services {
            let here = |url: &mut String| url.clone_from(&server.url);
            match &mut service.sign_in {
                SignIn::Browser(sign_in) => here(&mut sign_in.exchange_url),
                SignIn::Device(sign_in) => {
                    here(&mut sign_in.device_url);
                    here(&mut sign_in.token_url);
                }
            }
            if let Some(refresh) = &mut service.refresh {
                here(&mut refresh.token_url);
            }
        }
        self
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("auth.json")
    }

    fn saved(&self) -> Value {
        fs::read_to_string(self.file()).map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
    }

    async fn with_desk<A>(&self, work: impl AsyncFnOnce(Desk<'_>) -> A) -> A {
        let mut variables =
            vec![("PI_CODING_AGENT_DIR", self.dir.path().to_str().unwrap()), ("PATH", "/usr/bin:/bin")];
        variables.extend(self.variables.iter().copied());
        let environment = Environment::new(self.dir.path(), variables);
        let paths = Paths::new(&environment, self.dir.path());
        let mut registry = ModelRegistry::load(&environment, &paths, Vec::new());
        registry.set_services(paths.auth_file(), self.services.clone());
        let client = OAuthClient::new();
        work(Desk { paths: &paths, registry: &registry, services: &self.services, client: &client }).await
    }

    /// The exit code and the text that a command line ends with.
    async fn run(&self, line: &str) -> (i32, String) {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let answer = match parse_auth(&args) {
            Ok(command) => self.with_desk(async |desk| desk.run(command).await).await,
            Err(usage) => panic!("{usage}"),
        };
        assert_eq!(answer.code == 0, answer.is_result && answer.code == 0);
        (answer.code, answer.text)
    }

    async fn login(&self, line: &str, person: Person<'_>) -> (i32, String) {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let Ok(AuthCommand::Login { provider, way }) = parse_auth(&args) else { panic!("{line}") };
        let answer = self.with_desk(async |desk| desk.login(&provider, way, Some(Ok(person))).await).await;
        (answer.code, answer.text.replace(self.dir.path().to_str().unwrap(), "DIR"))
    }
}

fn told() -> Mutex<String> {
    Mutex::new(String::new())
}

#[tokio::test]
async fn a_key_is_asked_for_without_showing_it_and_saved_for_its_owner_alone() {
    let home = Home::new().auth(&json!({ "groq": { "type": "api_key", "key": "g" } }));
    let told = told();
    let (code, text) = home.login("login openai", Person::with(&told, &[" sk-s3cret\u{7} "])).await;
    assert_eq!((code, text.as_str()), (0, "Saved the API key for OpenAI in DIR/auth.json."));
    assert_eq!(*told.lock().unwrap(), "OpenAI API key (not shown): ***\n");
    let saved = home.saved();
    assert_eq!(saved["openai"], json!({ "type": "api_key", "key": "sk-s3cret\u{7}" }));
    assert_eq!(saved["groq"]["key"], "g");
    assert_eq!(fs::metadata(home.file()).unwrap().permissions().mode() & 0o777, 0o600);

    let (code, _) = home.login("login openai", Person::with(&told, &["!echo $HOME"])).await;
    assert_eq!((code, &home.saved()["openai"]["key"]), (0, &json!("$!echo $$HOME")));
    assert_eq!(home.run("print-api-key --provider openai").await, (0, "!echo $HOME".to_owned()));
}

#[tokio::test]
async fn where_no_sign_in_is_documented_a_key_is_asked_for() {
    let home = Home::new();
    for provider in ["anthropic", "github-copilot", "meta", "xai"] {
        let told = told();
        let (code, _) = home.login(&format!("login {provider}"), Person::with(&told, &["key"])).await;
        assert!(code == 0 && told.lock().unwrap().ends_with(" API key (not shown): ***\n"), "{provider}");
        assert_eq!(home.saved()[provider], json!({ "type": "api_key", "key": "key" }));
    }
}

#[tokio::test]
async fn a_login_that_is_stopped_or_empty_saves_nothing() {
    let home = Home::new();
    for (line, answers, expected) in [
        ("login groq", &["^C"][..], "the login was cancelled; nothing was saved"),
        ("login groq", &["  "], "the API key is empty; nothing was saved"),
        (
            "login cloudflare-workers-ai",
            &["key", ""],
            "the Cloudflare account ID is empty; nothing was saved",
        ),
        ("login google-vertex", &["4"], "expected a number from 1 to 3; nothing was saved"),
        ("login amazon-bedrock", &["0"], "expected a number from 1 to 2; nothing was saved"),
        (
            "login openai-codex --api-key",
            &[],
            "OpenAI Codex takes no API key; leave out --api-key to sign in",
        ),
    ] {
        let told = told();
        assert_eq!(home.login(line, Person::with(&told, answers)).await, (1, expected.to_owned()), "{line}");
        assert!(!home.file().exists());
    }
    let told = told();
    let (code, text) = home.login("login zork", Person::with(&told, &[])).await;
    assert!(
        code == 1 && text.starts_with("unknown provider \"zork\"; providers: amazon-bedrock, ant-ling, ")
    );
    assert!(text.contains(", openai-codex, ") && !text.contains("demo"), "{text}");
    let nobody = home.with_desk(async |desk| {
        desk.login("groq", LoginWay::ApiKey, None::<std::io::Result<Person<'_>>>).await
    });
    let nobody = nobody.await;
    assert!(nobody.code == 1 && nobody.text.contains("needs a terminal"), "{nobody:?}");
}

#[tokio::test]
async fn clouds_are_asked_for_what_their_address_needs() {
    let home = Home::new();
    for (line, answers, expected) in [
        (
            "login cloudflare-ai-gateway",
            &["cf", "acc", "gw"][..],
            json!({ "key": "cf", "env": { "CLOUDFLARE_ACCOUNT_ID": "acc", "CLOUDFLARE_GATEWAY_ID": "gw" } }),
        ),
        ("login amazon-bedrock", &["2", "work", ""], json!({ "env": { "AWS_PROFILE": "work" } })),
        (
            "login google-vertex",
            &["3", "/k.json", "p", "eu"],
            json!({ "env": { "GOOGLE_APPLICATION_CREDENTIALS": "/k.json", "GOOGLE_CLOUD_LOCATION": "eu",
                "GOOGLE_CLOUD_PROJECT": "p" } }),
        ),
    ] {
        let told = told();
        let (code, text) = home.login(line, Person::with(&told, answers)).await;
        assert_eq!(code, 0, "{text}");
        let provider = line.split(' ').nth(1).unwrap();
        let mut entry = home.saved()[provider].clone();
        assert_eq!(entry.as_object_mut().unwrap().shift_remove("type"), Some(json!("api_key")));
        assert_eq!(entry, expected, "{line}");
    }
    // What was saved is enough.
    assert_eq!(home.run("check --provider cloudflare-ai-gateway").await, (0, "ready".to_owned()));
    assert_eq!(home.run("check --provider amazon-bedrock").await, (0, "ready".to_owned()));
}

#[tokio::test]
async fn openrouter_signs_in_with_what_is_pasted_or_what_the_browser_brings() {
    let server = FakeServer::start(|_| Reply::Json(200, r#"{"key":"sk-or-v1"}"#.to_owned())).await;
    let home = Home::new().at(&server);
    let address = told();
    let mut person = Person::with(&address, &["two words"]);
    person.answers.push_back(Box::new(|said| {
        let start = said.find("callback_url=").unwrap() + "callback_url=".len();
        let encoded = said[start..].split('&').next().unwrap();
        let url = reqwest::Url::parse(&format!("http://h/?u={encoded}")).unwrap();
        let back = url.query_pairs().next().unwrap().1.into_owned();
        format!("{back}?code=pasted")
    }));
    let (code, text) = home.login("login openrouter --no-browser", person).await;
    assert_eq!((code, text.as_str()), (0, "Saved the sign-in for OpenRouter in DIR/auth.json."));
    assert!(address.lock().unwrap().contains("expected the code, or the address"));
    let entry = home.saved()["openrouter"].clone();
    assert_eq!(
        entry,
        json!({ "type": "oauth", "access": "sk-or-v1", "refresh": "", "expires": 9_999_999_999_999_i64 })
    );
    assert_eq!(
        home.run("print-bearer-token --provider openrouter --min-expiry 1h").await,
        (0, "sk-or-v1".to_owned())
    );

    let said = told();
    let browser = async {
        let back = loop {
            let text = said.lock().unwrap().clone();
            if let Some((_, rest)) = text.split_once("callback_url=") {
                let encoded = rest.split('&').next().unwrap();
                let url = reqwest::Url::parse(&format!("http://h/?u={encoded}")).unwrap();
                break url.query_pairs().next().unwrap().1.into_owned();
            }
            tokio::task::yield_now().await;
        };
        let http = crate::llm::http::Http::new();
        let cancel = tokio_util::sync::CancellationToken::new();
        let patience = crate::llm::http::Patience { idle: None, cancel: &cancel };
        http.get(format!("{back}?code=brought"), Vec::new(), patience).await.unwrap().status()
    };
    let login = home.login("login openrouter --no-browser", Person::with(&said, &[]));
    let ((code, _), status) = tokio::join!(login, browser);
    assert_eq!((code, status), (0, 200));
    let body: Value = serde_json::from_str(&server.calls().pop().unwrap().body).unwrap();
    assert_eq!(body["code"], "brought");
}

#[tokio::test]
async fn kimi_signs_in_with_a_code_that_is_typed_in_elsewhere() {
    let server = FakeServer::start(|call| {
        let is_start = !call.body.contains("grant_type");
        let text = match is_start {
            true => json!({ "device_code": "dc", "user_code": "AB-CD", "verification_uri": "https://kimi.example/d",
                "interval": 1, "expires_in": 60 }),
            false => json!({ "access_token": "at", "refresh_token": "rt", "expires_in": 3600 }),
        };
        Reply::Json(200, text.to_string())
    })
    .await;
    let home = Home::new().at(&server);
    let said = told();
    let (code, text) = home.login("login kimi-coding --no-browser", Person::with(&said, &[])).await;
    assert_eq!((code, text.as_str()), (0, "Saved the sign-in for Kimi For Coding in DIR/auth.json."));
    let said = said.lock().unwrap().clone();
    assert!(said.contains("https://kimi.example/d") && said.contains("\n\nAB-CD\n"), "{said}");
    assert_eq!(home.saved()["kimi-coding"]["refresh"], "rt");
}

#[tokio::test]
async fn logout_removes_what_is_saved_and_says_what_stays() {
    let home = Home::new().auth(&json!({ "groq": { "type": "api_key", "key": "k" }, "mine": 1,
        "anthropic": { "type": "oauth", "access": "a", "refresh": "r", "expires": 1 } }));
    const UNCHANGED: &str = "environment variables and models.json are unchanged.";
    assert_eq!(
        home.run("logout groq").await,
        (0, format!("Removed the API key saved for Groq; {UNCHANGED}"))
    );
    assert_eq!(
        home.run("logout anthropic").await,
        (0, format!("Removed the sign-in saved for Anthropic; {UNCHANGED}"))
    );
    assert_eq!(home.run("logout groq").await, (0, format!("Nothing is saved for Groq; {UNCHANGED}")));
    let unknown = "unknown provider \"zork\"; saved credentials: mine".to_owned();
    assert_eq!(home.run("logout zork").await, (1, unknown));
    assert_eq!(home.run("logout mine").await, (0, format!("Removed the entry saved for mine; {UNCHANGED}")));
    assert_eq!(home.saved(), json!({}));
    let empty = Home::new();
    assert_eq!(empty.run("logout groq").await.0, 0);
    assert!(!empty.file().exists());
}

#[tokio::test]
async fn a_check_says_what_pi_says() {
    let server = FakeServer::start(|_| Reply::Json(400, r#"{"error":"invalid_grant"}"#.to_owned())).await;
    let oauth =
        |expires: i64| json!({ "type": "oauth", "access": "acc", "refresh": "ref", "expires": expires });
    let far = 9_999_999_999_999_i64;
    let home = Home::new()
        .at(&server)
        .auth(&json!({ "groq": { "type": "api_key", "key": "gsk", "env": { "A": "b" } },
            "anthropic": oauth(far), "kimi-coding": oauth(1), "github-copilot": oauth(1),
            "mistral": { "type": "api_key", "key": "!echo cmd" }, "xai": { "type": "api_key", "key": "$NOPE" },
            "deepseek": { "type": "api_key", "key": "!exit 1" } }))
        .models(&json!({ "providers": { "px": { "baseUrl": "http://h", "api": "openai-completions",
            "apiKey": "!exit 1", "models": [{ "id": "m" }] } } }))
        .variable("AWS_PROFILE", "x")
        .variable("OPENAI_API_KEY", "env");
    for (line, code, expected) in [
        (
            "--provider groq --json --credentials",
            0,
            r#"{"status":"ready","provider":"groq","authType":"api_key","credentials":"gsk"}"#,
        ),
        ("--provider groq --credentials", 0, "gsk"),
        ("--provider groq", 0, "ready"),
        (
            "--provider anthropic --json --credentials",
            0,
            r#"{"status":"ready","provider":"anthropic","authType":"oauth","credentials":"acc"}"#,
        ),
        (
            "--provider anthropic --model claude-opus-4-1 --json",
            0,
            r#"{"status":"ready","provider":"anthropic","authType":"oauth"}"#,
        ),
        ("--provider mistral --credentials", 0, "cmd"),
        (
            "--provider xai --json",
            1,
            r#"{"status":"not_ready","provider":"xai","reason":"credentials_not_configured"}"#,
        ),
        ("--provider deepseek", 1, "not_ready"),
        ("--provider px --json", 2, r#"{"status":"invalid","provider":"px","reason":"invalid_state"}"#),
        (
            "--provider nope --json",
            1,
            r#"{"status":"not_ready","provider":"nope","reason":"provider_not_found"}"#,
        ),
        (
            "--provider demo --json",
            1,
            r#"{"status":"not_ready","provider":"demo","reason":"provider_not_found"}"#,
        ),
        ("--provider cerebras", 1, "not_ready"),
        (
            "--provider openai-codex --json",
            1,
            r#"{"status":"not_ready","provider":"openai-codex","reason":"credentials_not_configured"}"#,
        ),
        (
            "--provider kimi-coding --json --no-refresh --credentials",
            0,
            r#"{"status":"ready","provider":"kimi-coding","authType":"oauth","credentials":"acc"}"#,
        ),
        (
            "--provider kimi-coding --json",
            2,
            r#"{"status":"invalid","provider":"kimi-coding","reason":"invalid_state"}"#,
        ),
        ("--provider github-copilot", 2, "invalid"),
        (
            "--provider amazon-bedrock --json",
            0,
            r#"{"status":"ready","provider":"amazon-bedrock","authType":"api_key"}"#,
        ),
        (
            "--provider amazon-bedrock --json --credentials",
            1,
            r#"{"status":"not_ready","provider":"amazon-bedrock","reason":"credential_not_available"}"#,
        ),
        ("--model groq/llama-3.3-70b-versatile", 0, "ready"),
        ("--provider groq --model zork", 0, "ready"),
        ("--model zork --json", 2, r#"{"status":"invalid","provider":"zork","reason":"invalid_state"}"#),
        (
            "--model foo/bar --json",
            2,
            r#"{"status":"invalid","provider":"foo/bar","reason":"invalid_state"}"#,
        ),
        ("--provider openai", 0, "ready"),
    ] {
        assert_eq!(home.run(&format!("check {line}")).await, (code, expected.to_owned()), "{line}");
    }
}

#[tokio::test]
async fn keys_and_tokens_are_printed_or_it_is_said_why_not() {
    let server = FakeServer::start(|_| {
        Reply::Json(200, r#"{"access_token":"new","refresh_token":"rt","expires_in":3600}"#.to_owned())
    })
    .await;
    let home =
        Home::new().at(&server).variable("GROQ_API_KEY", "env").variable("AWS_PROFILE", "x").auth(&json!({
        "kimi-coding": { "type": "oauth", "access": "acc", "refresh": "ref", "expires": 1 },
        "anthropic": { "type": "oauth", "access": "acc", "refresh": "r", "expires": 1 },
        "xai": { "type": "api_key", "key": "$NOPE" } }));
    for (line, code, expected) in [
        ("print-api-key --provider groq", 0, "env"),
        ("print-api-key --model groq/llama-3.3-70b-versatile", 0, "env"),
        ("print-api-key --provider cerebras", 1, "no usable API key is configured for cerebras"),
        (
            "print-api-key --provider xai",
            1,
            "no usable API key is configured for xai: the key in auth.json refers to NOPE, which is not set",
        ),
        ("print-api-key --provider amazon-bedrock", 1, "no usable API key is configured for amazon-bedrock"),
        (
            "print-api-key --provider kimi-coding",
            1,
            "kimi-coding is configured with a sign-in (OAuth), not an API key",
        ),
        (
            "print-api-key --provider nope",
            1,
            "unknown provider \"nope\"; --list-models shows those that can be used",
        ),
        (
            "print-bearer-token --model zork",
            1,
            "unknown model \"zork\"; --list-models shows those that can be used",
        ),
        ("print-bearer-token --provider groq", 1, "groq is not configured with a sign-in (OAuth)"),
        ("print-bearer-token --provider kimi-coding", 0, "new"),
        ("print-bearer-token --provider kimi-coding --min-expiry 30m", 0, "new"),
        (
            "print-bearer-token --provider anthropic",
            1,
            "OAuth refresh failed for anthropic: the sign-in has expired",
        ),
    ] {
        assert_eq!(home.run(line).await, (code, expected.to_owned()), "{line}");
    }
    let (code, text) = home.run("print-bearer-token --provider kimi-coding --min-expiry 2h").await;
    assert!(code == 1 && text.ends_with("which is sooner than --min-expiry asks"), "{text}");
}
