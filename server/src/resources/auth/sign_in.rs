//! Using the tokens of sign-ins, and renewing them in step with other programs.
//!
//! A refresh token may be good for one use: whoever renews holds the lock of `auth.json` from reading the
//! last tokens to writing the next ones.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use tokio_util::task::TaskTracker;

use super::AuthError;
use super::file::read_tokens;
use super::store::write_tokens;
use crate::llm::http::Http;
use crate::oauth::{self, OAuthClient, OAuthError, Service, Tokens};
use crate::resources::jsonc;
use crate::resources::shared_file::{SharedObject, TOUCH_EVERY};

/// How long before their end tokens are renewed, as in Pi.
const MARGIN: Duration = Duration::from_secs(300);

/// How long to wait for another program that renews.
const WAIT_FOR_LOCK: Duration = Duration::from_secs(60);

/// Whether tokens that expire may be renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// They are, when less than this time is left, or five minutes if that is more.
    WhenLess(Duration),
    /// They are given as they are.
    Never,
}

impl Default for Renewal {
    fn default() -> Self {
        Self::WhenLess(MARGIN)
    }
}

/// The sign-ins of `auth.json`.
#[derive(Clone)]
pub(in crate::resources) struct SignIns(Arc<Shared>);

struct Shared {
    file: PathBuf,
    /// What is known of authorization servers, once somebody needs it.
    services: OnceLock<Vec<Service>>,
    client: OAuthClient,
    /// Tokens that are newer than those that were read when the program started.
    renewed: Mutex<HashMap<String, Renewed>>,
    /// One renewal at a time; other programs are held off by the file's lock.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Renewed {
    tokens: Tokens,
    /// The access token that the file had afterwards: these, or the last ones where they could not be saved.
    in_file: SecretString,
}

impl Default for SignIns {
    /// Those of no file.
    fn default() -> Self {
        Self::new(PathBuf::new())
    }
}

/// The renewals of this process. Their tokens would be lost with it: it waits for them when it ends.
static RENEWALS: LazyLock<TaskTracker> = LazyLock::new(TaskTracker::new);

/// Waits until no renewal is under way.
pub async fn renewals_done() {
    RENEWALS.close();
    RENEWALS.wait().await;
}

impl SignIns {
    pub(in crate::resources) fn new(file: PathBuf) -> Self {
        Self::with(file, OnceLock::new(), OAuthClient::new())
    }

    /// Takes these for what is known of authorization servers.
    #[cfg(test)]
    pub(in crate::resources) fn with_services(file: PathBuf, services: Vec<Service>) -> Self {
        Self::with(file, OnceLock::from(services), OAuthClient::new())
    }

    fn with(file: PathBuf, services: OnceLock<Vec<Service>>, client: OAuthClient) -> Self {
        let (renewed, turn) = (Mutex::default(), tokio::sync::Mutex::default());
        Self(Arc::new(Shared { file, services, client, renewed, turn }))
    }

    /// The same over another HTTP client.
    pub(in crate::resources) fn over(&self, http: Http) -> Self {
        Self::with(self.0.file.clone(), self.0.services.clone(), OAuthClient::over(http))
    }

    /// Why these tokens cannot be used: they have expired, and there is no way to new ones.
    pub(in crate::resources) fn obstacle(&self, provider: &str, saved: &Tokens) -> Option<String> {
        let tokens = self.0.renewed(provider).map_or_else(|| saved.clone(), |renewed| renewed.tokens);
        let is_usable = tokens.outlast(Duration::ZERO) || self.0.renewable(provider, &tokens);
        (!is_usable).then(|| {
            format!(
                "the sign-in saved in auth.json expired at {}, and how to renew one of {provider} is not \
                 documented; sign in again with Pi, or save an API key",
                tokens.expires
            )
        })
    }

    /// The tokens, renewed if need be.
    pub(in crate::resources) async fn tokens(
        &self,
        provider: &str,
        saved: &Tokens,
        renewal: Renewal,
    ) -> Result<Tokens, AuthError> {
        let margin = match renewal {
            Renewal::Never => return Ok(self.0.newest(provider, saved).await),
            Renewal::WhenLess(time) => time.max(MARGIN),
        };
        let tokens = self.0.newest(provider, saved).await;
        if tokens.outlast(margin) || !self.0.renewable(provider, &tokens) {
            return match tokens.outlast(Duration::ZERO) {
                true => Ok(tokens),
                false => {
                    Err(not_renewed(provider, &OAuthError::Denied("the sign-in has expired".to_owned())))
                }
            };
        }
        // It goes on when whoever asked does not wait any more: new tokens must not be lost.
        let task = RENEWALS.spawn(Arc::clone(&self.0).renew(provider.to_owned(), tokens.clone(), margin));
        let renewed = task.await.unwrap_or_else(|error| Err(OAuthError::Failed(error.to_string())));
        match renewed {
            Ok(tokens) => Ok(tokens),
            Err(error) if tokens.outlast(Duration::ZERO) => {
                tracing::warn!(provider, %error, "the tokens of a sign-in could not be renewed; they still hold");
                Ok(tokens)
            }
            Err(error) => Err(not_renewed(provider, &error)),
        }
    }
}

impl Shared {
    fn services(&self) -> &[Service] {
        self.services.get_or_init(oauth::known)
    }

    fn renewable(&self, provider: &str, tokens: &Tokens) -> bool {
        let service = oauth::find(self.services(), provider);
        service.is_some_and(|service| service.refresh.is_some()) && !tokens.refresh.expose_secret().is_empty()
    }

    fn renewed(&self, provider: &str) -> Option<Renewed> {
        self.renewed.lock().unwrap_or_else(PoisonError::into_inner).get(provider).cloned()
    }

    /// The tokens that count. Once they were renewed, those of a later sign-in or renewal elsewhere go before them.
    async fn newest(&self, provider: &str, saved: &Tokens) -> Tokens {
        let Some(Renewed { tokens, in_file }) = self.renewed(provider) else { return saved.clone() };
        let file = self.file.clone();
        let object = tokio::task::spawn_blocking(move || jsonc::read_object(&file)).await;
        // What cannot be read is no news: somebody may be writing it.
        let object = object.ok().and_then(Result::ok).flatten().unwrap_or_default();
        let entry = object.get(provider).and_then(Value::as_object).filter(|entry| is_sign_in(entry));
        match entry.and_then(|entry| read_tokens(entry).ok()) {
            Some(other) if other.access.expose_secret() != in_file.expose_secret() => {
                self.keep(provider, &other, &other);
                other
            }
            _ => tokens,
        }
    }

    async fn renew(
        self: Arc<Self>,
        provider: String,
        last: Tokens,
        margin: Duration,
    ) -> Result<Tokens, OAuthError> {
        let _turn = self.turn.lock().await;
        let file = self.file.clone();
        let shared = tokio::task::spawn_blocking(move || SharedObject::open(&file, WAIT_FOR_LOCK)).await;
        let failed = |why: String| OAuthError::Failed(format!("{}: {why}", self.file.display()));
        let mut shared =
            shared.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))?;
        let Some(entry) = shared.object.get(&provider).and_then(Value::as_object) else {
            return Err(OAuthError::Denied("the sign-in was removed".to_owned()));
        };
        if !is_sign_in(entry) {
            return Err(OAuthError::Denied("the sign-in was replaced by an API key".to_owned()));
        }
        let saved = read_tokens(entry).map_err(|why| failed(format!("{provider}: {why}")))?;
        // Tokens that could not be saved are newer than those in the file, whose refresh token is spent.
        let is_in_file = |known: &Renewed| known.in_file.expose_secret() == saved.access.expose_secret();
        let unsaved = self.renewed(&provider).filter(is_in_file);
        let newest = unsaved.map_or_else(|| saved.clone(), |known| known.tokens);
        let is_news = newest.access.expose_secret() != last.access.expose_secret();
        if is_news && newest.outlast(margin) {
            // Another program, or another request, was faster.
            self.keep(&provider, &newest, &saved);
            return Ok(newest);
        }
        let tokens = self.next(&provider, &newest, &shared).await?;
        // They count for this process even if they cannot be saved.
        self.keep(&provider, &tokens, &saved);
        if let Some(entry) = shared.object.get_mut(&provider).and_then(Value::as_object_mut) {
            write_tokens(entry, &tokens);
        }
        let done = tokio::task::spawn_blocking(move || shared.save_private()).await;
        let done = done.map_err(|error| error.to_string());
        match done.and_then(|done| done.map_err(|error| error.to_string())) {
            Ok(()) => self.keep(&provider, &tokens, &tokens),
            Err(error) => {
                let file = self.file.display();
                tracing::error!(provider, %error, %file, "the renewed tokens of a sign-in could not be saved");
            }
        }
        Ok(tokens)
    }

    /// Asks for the next tokens, and holds the lock meanwhile.
    async fn next(&self, provider: &str, last: &Tokens, shared: &SharedObject) -> Result<Tokens, OAuthError> {
        let service = oauth::find(self.services(), provider).and_then(|service| service.refresh.as_ref());
        let service = service.ok_or_else(|| OAuthError::Failed("there is no way to renew it".to_owned()))?;
        let next = oauth::refresh(service, &self.client, last);
        tokio::pin!(next);
        let mut tick = tokio::time::interval(TOUCH_EVERY);
        loop {
            tokio::select! {
                next = &mut next => return next,
                _ = tick.tick() => {
                    if let Err(error) = shared.touch() {
                        tracing::warn!(%error, "the lock of auth.json could not be kept");
                    }
                }
            }
        }
    }

    fn keep(&self, provider: &str, tokens: &Tokens, in_file: &Tokens) {
        let renewed = Renewed { tokens: tokens.clone(), in_file: in_file.access.clone() };
        let mut all = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(provider.to_owned(), renewed);
    }
}

fn is_sign_in(entry: &Map<String, Value>) -> bool {
    entry.get("type").and_then(Value::as_str) == Some("oauth")
}

fn not_renewed(provider: &str, error: &OAuthError) -> AuthError {
    AuthError::NotRenewed {
        provider: provider.to_owned(),
        why: error.to_string(),
        unreachable: matches!(error, OAuthError::Unreachable(_)),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;
    use crate::llm::fake_server::{FakeServer, Reply};
    use crate::oauth::SignIn;

    const NEXT: &str = r#"{"access_token":"new","refresh_token":"rt2","expires_in":3600}"#;

    struct Place {
        _dir: tempfile::TempDir,
        file: PathBuf,
        sign_ins: SignIns,
    }

    /// A file with a sign-in that expires in so many seconds, and a server that renews it.
    fn place(server: &FakeServer, seconds: i64) -> Place {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("auth.json");
        let expires = jiff::Timestamp::now().as_millisecond() + seconds * 1000;
        let entry = json!({ "type": "oauth", "access": "old", "refresh": "rt1", "expires": expires,
            "accountId": "acc" });
        fs::write(&file, json!({ "px": entry, "other": 1 }).to_string()).unwrap();
        let mut services = oauth::known();
        services.retain(|service| service.provider == "kimi-coding");
        for service in &mut services {
            service.provider = "px";
            service.refresh.as_mut().unwrap().token_url.clone_from(&server.url);
        }
        assert!(matches!(services[0].sign_in, SignIn::Device(_)));
        let sign_ins = SignIns::with_services(file.clone(), services);
        Place { _dir: dir, file, sign_ins }
    }

    impl Place {
        fn object(&self) -> Value {
            serde_json::from_str(&fs::read_to_string(&self.file).unwrap()).unwrap()
        }

        fn saved(&self) -> Tokens {
            read_tokens(self.object()["px"].as_object().unwrap()).unwrap()
        }

        async fn ask(&self, saved: &Tokens) -> Result<String, String> {
            let tokens = self.sign_ins.tokens("px", saved, Renewal::default()).await;
            tokens.map(|tokens| tokens.access.expose_secret().to_owned()).map_err(|error| error.to_string())
        }
    }

    async fn server(status: u16, text: &'static str) -> FakeServer {
        FakeServer::start(move |_| Reply::Json(status, text.to_owned())).await
    }

    #[tokio::test]
    async fn tokens_that_hold_are_used_and_those_that_soon_expire_are_renewed_once_for_all() {
        let server = server(200, NEXT).await;
        let place = place(&server, 1000);
        let saved = place.saved();
        assert_eq!(place.ask(&saved).await.unwrap(), "old");
        assert!(server.calls().is_empty());
        let place = self::place(&server, 200);
        let saved = place.saved();
        let (one, other) = tokio::join!(place.ask(&saved), place.ask(&saved));
        assert_eq!((one.unwrap(), other.unwrap()), ("new".to_owned(), "new".to_owned()));
        assert_eq!(place.ask(&saved).await.unwrap(), "new");
        assert_eq!(server.calls().len(), 1);
        let object = place.object();
        let (entry, now) = (&object["px"], jiff::Timestamp::now().as_millisecond());
        assert_eq!((&entry["access"], &entry["refresh"]), (&json!("new"), &json!("rt2")));
        assert_eq!((&entry["accountId"], &object["other"]), (&json!("acc"), &json!(1)));
        assert!(entry["expires"].as_i64().is_some_and(|expires| (expires - now - 3_600_000).abs() < 60_000));
        assert_eq!(fs::metadata(&place.file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!place.file.with_extension("json.lock").exists());
    }

    #[tokio::test]
    async fn what_another_program_renewed_or_removed_counts() {
        let server = server(200, NEXT).await;
        let place = place(&server, -10);
        let stale = place.saved();
        let mut object = place.object();
        object["px"]["access"] = json!("theirs");
        object["px"]["expires"] = json!(9_999_999_999_999_i64);
        fs::write(&place.file, object.to_string()).unwrap();
        assert_eq!(place.ask(&stale).await.unwrap(), "theirs");
        for (entry, why) in [
            (json!(null), "the sign-in was removed"),
            (json!({ "type": "api_key", "key": "k" }), "the sign-in was replaced by an API key"),
        ] {
            let place = self::place(&server, -10);
            let stale = place.saved();
            fs::write(&place.file, json!({ "px": entry }).to_string()).unwrap();
            let error = place.ask(&stale).await.unwrap_err();
            assert_eq!(error, format!("OAuth refresh failed for px: {why}"));
        }
        assert!(server.calls().is_empty());
    }

    #[tokio::test]
    async fn after_a_renewal_a_later_sign_in_elsewhere_counts_and_nothing_else_in_the_file_does() {
        let server = server(200, NEXT).await;
        let place = place(&server, -10);
        let stale = place.saved();
        assert_eq!(place.ask(&stale).await.unwrap(), "new");
        let renewed = place.object();
        for text in ["{ half", "{}", r#"{"px":{"type":"api_key","key":"k"}}"#] {
            fs::write(&place.file, text).unwrap();
            assert_eq!(place.ask(&stale).await.unwrap(), "new", "{text}");
        }
        let mut object = renewed;
        object["px"]["access"] = json!("again");
        fs::write(&place.file, object.to_string()).unwrap();
        assert_eq!(place.ask(&stale).await.unwrap(), "again");
        assert_eq!(place.ask(&stale).await.unwrap(), "again");
        assert_eq!(server.calls().len(), 1);
    }

    #[tokio::test]
    async fn who_waits_for_renewals_finds_their_tokens_in_the_file_also_when_nobody_asked_any_more() {
        let server = server(200, NEXT).await;
        let place = place(&server, -10);
        let saved = place.saved();
        {
            let asked = std::pin::pin!(place.ask(&saved));
            assert!(futures::poll!(asked).is_pending());
        }
        renewals_done().await;
        assert_eq!(place.saved().access.expose_secret(), "new");
    }

    #[tokio::test]
    async fn tokens_that_could_not_be_saved_go_before_the_last_ones_in_the_file() {
        let server = server(200, NEXT).await;
        let place = place(&server, -10);
        let last = place.saved();
        let next = Tokens { access: "next".into(), expires: jiff::Timestamp::MAX, ..last.clone() };
        place.sign_ins.0.keep("px", &next, &last);
        assert_eq!(place.ask(&last).await.unwrap(), "next");
        // Once they run out, they are the ones that are renewed.
        let next = Tokens { refresh: "rt2".into(), expires: jiff::Timestamp::MIN, ..next };
        place.sign_ins.0.keep("px", &next, &last);
        assert_eq!(place.ask(&last).await.unwrap(), "new");
        assert!(server.calls()[0].body.contains("rt2"), "{}", server.calls()[0].body);
        assert_eq!(place.saved().access.expose_secret(), "new");
    }

    #[tokio::test]
    async fn a_failed_renewal_is_told_unless_the_tokens_still_hold() {
        for (status, unreachable) in [(400, false), (503, true)] {
            let server = server(status, r#"{"error":"rt1-was-used"}"#).await;
            assert_eq!(place(&server, 100).ask(&place(&server, 100).saved()).await.unwrap(), "old");
            let place = place(&server, -10);
            let before = place.object();
            let error = place.sign_ins.tokens("px", &place.saved(), Renewal::default()).await.unwrap_err();
            assert_eq!(error.failure_kind() == crate::llm::FailureKind::Network, unreachable);
            let text = error.to_string();
            assert!(
                text.starts_with("OAuth refresh failed for px: 127.0.0.1 answered with status"),
                "{text}"
            );
            assert_eq!(place.object(), before);
            let as_it_is = place.sign_ins.tokens("px", &place.saved(), Renewal::Never).await.unwrap();
            assert_eq!(as_it_is.access.expose_secret(), "old");
        }
    }

    #[tokio::test]
    async fn a_renewal_goes_on_when_whoever_asked_is_gone() {
        let mut server = server(200, NEXT).await;
        let place = place(&server, -10);
        let saved = place.saved();
        {
            let ask = place.ask(&saved);
            tokio::pin!(ask);
            // Gone once the server has the question.
            tokio::select! {
                _ = &mut ask => {}
                line = server.arrivals.recv() => assert!(line.is_some()),
            }
        }
        let file = place.file.clone();
        let object = tokio::task::spawn_blocking(move || SharedObject::open(&file, WAIT_FOR_LOCK)).await;
        let object = object.unwrap().unwrap().object;
        assert_eq!(object["px"]["access"], json!("new"));
    }

    #[tokio::test]
    async fn an_expired_sign_in_that_nobody_can_renew_is_no_credential() {
        let server = server(200, NEXT).await;
        let place = place(&server, -10);
        let saved = place.saved();
        assert_eq!(place.sign_ins.obstacle("px", &saved), None);
        let why = place.sign_ins.obstacle("qx", &saved).unwrap();
        assert!(why.contains("how to renew one of qx is not documented"), "{why}");
        let error = place.sign_ins.tokens("qx", &saved, Renewal::default()).await.unwrap_err();
        assert_eq!(error.to_string(), "OAuth refresh failed for qx: the sign-in has expired");
    }
}
