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

/// How long nothing is tried after the next token could not be had early.
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
                tracing::warn!(error = fault.text, "an access token could not be renewed; the last one still holds");
                if let Some(kept) = self.last().as_mut().filter(|kept| kept.of == of) {
                    kept.early = Timestamp::now().saturating_add(PAUSE).unwrap_or(Timestamp::MAX);
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
        let early = before(until, self.margins.early);
        *self.last() = Some(Kept { of, token, until, early });
    }

    fn last(&self) -> MutexGuard<'_, Option<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn before(end: Timestamp, margin: SignedDuration) -> Timestamp {
    end.checked_sub(margin).unwrap_or(Timestamp::MIN)
}

/// Stands for the end of something that an abort ended.
pub(crate) fn cancelled() -> Fault {
    Fault::of_kind(FailureKind::Other, ABORTED_BEFORE)
}
