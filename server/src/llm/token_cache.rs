//! Access tokens that are kept until they run out: one exchange for all requests that want the same token.
//!
//! Knows no vendor. A token is used until its late margin; from its early margin on, a request that has it gets
//! the next one beside its own work.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use ring::digest;
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;

use super::exchange::{ABORTED_BEFORE, Fault};
use super::token_endpoint::Fresh;
use super::{Completion, FailureKind, redact};

/// How long no next token is got early after an exchange, whether it failed or gave a token for a short time.
const PAUSE: SignedDuration = SignedDuration::from_secs(5);

/// How long before its end a token is renewed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Margins {
    /// From here on the next one is got while the last one is in use.
    pub(crate) early: SignedDuration,
    /// From here on a request waits for the next one.
    pub(crate) late: SignedDuration,
}

/// The last token. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct TokenCache {
    margins: Margins,
    kept: Arc<Mutex<Option<Kept>>>,
    /// One exchange at a time.
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug)]
struct Kept {
    of: Origin,
    token: SecretString,
    until: Timestamp,
    /// When the next one may be got early.
    early: Timestamp,
}

/// What a token was got with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin([u8; digest::SHA256_OUTPUT_LEN]);

impl Origin {
    /// The origin that these texts describe.
    pub(crate) fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut context = digest::Context::new(&digest::SHA256);
        for text in texts {
            // The length keeps texts apart.
            context.update(&text.len().to_le_bytes());
            context.update(text.as_bytes());
        }
        let mut bytes = [0; digest::SHA256_OUTPUT_LEN];
        bytes.copy_from_slice(context.finish().as_ref());
        Self(bytes)
    }
}

impl TokenCache {
    pub(crate) fn new(margins: Margins) -> Self {
        Self { margins, kept: Arc::default(), turn: Arc::default() }
    }

    /// The token of this origin. Without one that holds, `exchange` gets it.
    pub(crate) async fn token(
        &self,
        of: Origin,
        exchange: impl Future<Output = Result<Fresh, Fault>>,
        cancel: &CancellationToken,
    ) -> Result<SecretString, Fault> {
        if let Some(token) = self.held(of) {
            return Ok(token);
        }
        let shared = async {
            let _turn = self.turn.lock().await;
            // Another request may have got it meanwhile.
            if let Some(token) = self.held(of) {
                return Ok(token);
            }
            let fresh = exchange.await?;
            let token = fresh.token.clone();
            self.keep(of, fresh);
            Ok(token)
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cancelled()),
            token = shared => token,
        }
    }

    /// Does `work`. If the token of this origin runs out soon, `exchange` gets the next one meanwhile; when
    /// the work is done first, a later request does so.
    pub(crate) async fn beside<T>(
        &self,
        of: Origin,
        exchange: impl Future<Output = Result<Fresh, Fault>>,
        work: impl Future<Output = T>,
    ) -> T {
        let renewal = self.renew_early(of, exchange);
        tokio::pin!(renewal, work);
        let mut is_renewed = false;
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = &mut renewal, if !is_renewed => is_renewed = true,
            }
        }
    }

    async fn renew_early(&self, of: Origin, exchange: impl Future<Output = Result<Fresh, Fault>>) {
        let is_due = self.last().as_ref().is_some_and(|kept| kept.of == of && kept.early <= Timestamp::now());
        // When it is somebody else's turn, that one gets the token.
        let Some(_turn) = self.turn.try_lock().ok().filter(|_| is_due) else { return };
        match exchange.await {
            Ok(fresh) => self.keep(of, fresh),
            Err(fault) => {
                tracing::warn!(
                    error = fault.text,
                    "an access token could not be renewed; the last one still holds"
                );
                if let Some(kept) = self.last().as_mut().filter(|kept| kept.of == of) {
                    kept.early = after_pause();
                }
            }
        }
    }

    /// Takes note of how a request with this token ended. A token may be taken back before it runs out, and
    /// an answer may repeat it.
    pub(crate) fn learn(&self, token: &SecretString, completion: &mut Completion) {
        let error = completion.message.error_message.take();
        completion.message.error_message = error.map(|text| redact(&text, std::iter::once(token)));
        if completion.failure.as_ref().is_some_and(|failure| failure.status == Some(401)) {
            let mut last = self.last();
            if last.as_ref().is_some_and(|kept| kept.token.expose_secret() == token.expose_secret()) {
                *last = None;
            }
        }
    }

    fn held(&self, of: Origin) -> Option<SecretString> {
        let holds = |kept: &&Kept| kept.of == of && before(kept.until, self.margins.late) > Timestamp::now();
        self.last().as_ref().filter(holds).map(|kept| kept.token.clone())
    }

    fn keep(&self, of: Origin, Fresh { token, until }: Fresh) {
        let early = before(until, self.margins.early).max(after_pause());
        *self.last() = Some(Kept { of, token, until, early });
    }

    fn last(&self) -> MutexGuard<'_, Option<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn before(end: Timestamp, margin: SignedDuration) -> Timestamp {
    end.checked_sub(margin).unwrap_or(Timestamp::MIN)
}

fn after_pause() -> Timestamp {
    Timestamp::now().checked_add(PAUSE).unwrap_or(Timestamp::MAX)
}

/// Stands for the end of something that an abort ended.
pub(crate) fn cancelled() -> Fault {
    Fault::of_kind(FailureKind::Other, ABORTED_BEFORE)
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    fn of() -> Origin {
        Origin::of(["a"])
    }

    /// Gives `token-1`, `token-2` and so on, each for so many seconds.
    struct Mint {
        seconds: i64,
        given: AtomicUsize,
    }

    impl Mint {
        fn new(seconds: i64) -> Self {
            Self { seconds, given: AtomicUsize::new(0) }
        }

        async fn exchange(&self) -> Result<Fresh, Fault> {
            // Others come to their turn.
            tokio::task::yield_now().await;
            let n = self.given.fetch_add(1, Ordering::Relaxed) + 1;
            let until = Timestamp::now() + SignedDuration::from_secs(self.seconds);
            Ok(Fresh { token: format!("token-{n}").into(), until })
        }
    }

    fn cache() -> TokenCache {
        let [early, late] = [120, 30].map(SignedDuration::from_secs);
        TokenCache::new(Margins { early, late })
    }

    async fn token(cache: &TokenCache, of: Origin, mint: &Mint) -> String {
        let cancel = CancellationToken::new();
        cache.token(of, mint.exchange(), &cancel).await.unwrap().expose_secret().to_owned()
    }

    /// Lets the time pass in which nothing is got early.
    fn pass_pause(cache: &TokenCache) {
        let mut last = cache.last();
        let kept = last.as_mut().unwrap();
        kept.early = before(kept.until, cache.margins.early);
    }

    #[tokio::test]
    async fn requests_at_the_same_time_share_one_exchange() {
        let (cache, mint) = (cache(), Mint::new(3600));
        let shared = cache.clone();
        let tokens =
            tokio::join!(token(&cache, of(), &mint), token(&cache, of(), &mint), token(&shared, of(), &mint));
        assert_eq!(tokens, ("token-1".into(), "token-1".into(), "token-1".into()));
    }

    #[tokio::test]
    async fn a_token_serves_its_origin_alone_and_until_its_late_margin() {
        let (cache, mint) = (cache(), Mint::new(31));
        assert_eq!(token(&cache, of(), &mint).await, "token-1");
        assert_eq!(token(&cache, of(), &mint).await, "token-1");
        assert_eq!(token(&cache, Origin::of(["b"]), &mint).await, "token-2");
        assert_ne!(Origin::of(["a", "bc"]), Origin::of(["ab", "c"]));

        let (cache, mint) = (self::cache(), Mint::new(30));
        assert_eq!(token(&cache, of(), &mint).await, "token-1");
        assert_eq!(token(&cache, of(), &mint).await, "token-2");
    }

    #[tokio::test]
    async fn from_the_early_margin_on_the_next_token_comes_while_the_last_one_is_at_work() {
        let (cache, mint) = (cache(), Mint::new(121));
        assert_eq!(token(&cache, of(), &mint).await, "token-1");
        pass_pause(&cache);
        cache.beside(of(), async { panic!("it is too early") }, tokio::task::yield_now()).await;

        let (cache, mint) = (self::cache(), Mint::new(119));
        assert_eq!(token(&cache, of(), &mint).await, "token-1");
        cache.beside(of(), async { panic!("it is just there") }, tokio::task::yield_now()).await;
        pass_pause(&cache);
        let renewed = Notify::new();
        let exchange = async {
            let fresh = mint.exchange().await;
            renewed.notify_one();
            fresh
        };
        cache.beside(of(), exchange, renewed.notified()).await;
        assert_eq!(token(&cache, of(), &mint).await, "token-2");
    }

    #[tokio::test]
    async fn work_never_waits_for_an_early_renewal_and_a_later_request_makes_up_for_it() {
        let (cache, mint) = (cache(), Mint::new(119));
        assert_eq!(token(&cache, of(), &mint).await, "token-1");
        pass_pause(&cache);
        cache.beside(of(), pending(), tokio::task::yield_now()).await;
        assert_eq!(token(&cache, of(), &mint).await, "token-1");
        let renewed = Notify::new();
        let exchange = async {
            renewed.notify_one();
            mint.exchange().await
        };
        let work = async {
            renewed.notified().await;
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
        };
        cache.beside(of(), exchange, work).await;
        assert_eq!(token(&cache, of(), &mint).await, "token-2");
    }

    #[tokio::test]
    async fn after_an_early_renewal_that_failed_the_last_token_goes_on_and_nothing_is_tried_for_a_while() {
        let (cache, mint) = (cache(), Mint::new(119));
        assert_eq!(token(&cache, of(), &mint).await, "token-1");
        pass_pause(&cache);
        let asked = Notify::new();
        let refused = async {
            asked.notify_one();
            Err(Fault::of_kind(FailureKind::Auth, "no"))
        };
        cache.beside(of(), refused, asked.notified()).await;
        let work = async {
            tokio::task::yield_now().await;
            token(&cache, of(), &mint).await
        };
        let last = cache.beside(of(), async { panic!("it is too soon") }, work).await;
        assert_eq!(last, "token-1");
    }

    #[tokio::test]
    async fn an_abort_ends_the_wait_for_a_token() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let fault = cache().token(of(), pending(), &cancel).await.unwrap_err();
        assert_eq!(fault.text, ABORTED_BEFORE);
        // An exchange that failed leaves the turn to the next request.
        let cache = cache();
        let failed = cache.token(of(), ready(Err(cancelled())), &CancellationToken::new()).await;
        assert!(failed.is_err());
        assert_eq!(token(&cache, of(), &Mint::new(60)).await, "token-1");
    }
}
