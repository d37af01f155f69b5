//! Application Default Credentials: where they are, and the access tokens that they give.
//!
//! As <https://cloud.google.com/docs/authentication/application-default-credentials> has it: the file that
//! `GOOGLE_APPLICATION_CREDENTIALS` names, else the one that `gcloud auth application-default login` wrote,
//! else the metadata server. The last is asked only when `GCE_METADATA_HOST` names it: to look for one would
//! cost every other user a wait.

mod assertion;
mod exchange;
mod file;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use ring::digest;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Mutex;

use crate::llm::FailureKind;
use crate::llm::exchange::Fault;
use crate::llm::http::{Http, Patience};
use crate::llm::token_endpoint::Asker;
use crate::paths::expand_tilde;
use exchange::Exchange;
use file::Credential;

/// How long before its end a token counts as expired.
const MARGIN: SignedDuration = SignedDuration::from_secs(60);

/// How long an exchange for a token may be silent.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Where credentials are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// In a file.
    File(PathBuf),
    /// At the metadata server of this host.
    Metadata(String),
}

/// What authorises a request.
#[derive(Debug, Clone)]
pub(super) struct Access {
    pub(super) token: SecretString,
    pub(super) quota_project: Option<String>,
}

/// Access tokens: one exchange at a time, and none while the last token is good.
#[derive(Debug, Clone, Default)]
pub(super) struct Tokens {
    last: Arc<Mutex<Option<Kept>>>,
}

#[derive(Debug)]
struct Kept {
    /// The digest of the credentials that gave it.
    of: [u8; digest::SHA256_OUTPUT_LEN],
    token: SecretString,
    until: Timestamp,
}

impl Place {
    /// Where these variables say that credentials are. A file that is named need not be there.
    pub(super) fn find(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let home = set("HOME").or_else(|| set("USERPROFILE")).map(PathBuf::from);
        if let Some(path) = set("GOOGLE_APPLICATION_CREDENTIALS") {
            return Some(Self::File(expand_tilde(&path, home.as_deref())));
        }
        let folder = set("CLOUDSDK_CONFIG").map(PathBuf::from).or_else(|| {
            let windows =
                set("APPDATA").filter(|_| cfg!(windows)).map(|data| PathBuf::from(data).join("gcloud"));
            windows.or_else(|| home.map(|home| home.join(".config/gcloud")))
        });
        let file = folder.map(|folder| Self::File(folder.join("application_default_credentials.json")));
        file.filter(Self::is_there).or_else(|| set("GCE_METADATA_HOST").map(Self::Metadata))
    }

    /// True for a file that exists, and for a server that is named.
    pub(super) fn is_there(&self) -> bool {
        match self {
            Self::File(path) => path.is_file(),
            Self::Metadata(_) => true,
        }
    }

    /// What stands there, and its digest.
    async fn read(&self) -> Result<(Credential, digest::Digest), Fault> {
        match self {
            Self::Metadata(host) => {
                let digest = digest::digest(&digest::SHA256, host.as_bytes());
                Ok((Credential::metadata(host), digest))
            }
            Self::File(path) => {
                let failed = |why: String| {
                    let text = format!(
                        "the credentials of Google Cloud in {} cannot be used: {why}",
                        path.display()
                    );
                    Fault::of_kind(FailureKind::Auth, text)
                };
                let text = tokio::fs::read_to_string(path).await;
                let text: SecretString = text.map_err(|error| failed(error.to_string()))?.into();
                let digest = digest::digest(&digest::SHA256, text.expose_secret().as_bytes());
                Ok((Credential::read(text.expose_secret()).map_err(failed)?, digest))
            }
        }
    }

    /// The name of the place in errors.
    fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Metadata(host) => format!("the metadata server {host}"),
        }
    }
}

impl Tokens {
    /// A token of the credentials at this place. They are read each time, as logins change them.
    pub(super) async fn access(
        &self,
        place: &Place,
        http: &Http,
        patience: Patience<'_>,
    ) -> Result<Access, Fault> {
        let (credential, digest) = place.read().await?;
        let mut last = tokio::select! {
            biased;
            () = patience.cancel.cancelled() => return Err(cancelled()),
            last = self.last.lock() => last,
        };
        let quota_project = credential.quota_project.clone();
        let now = Timestamp::now();
        if let Some(kept) = last.as_ref().filter(|kept| kept.of == digest.as_ref() && kept.until > now) {
            return Ok(Access { token: kept.token.clone(), quota_project });
        }
        let idle = patience.idle.map_or(EXCHANGE_TIMEOUT, |idle| idle.min(EXCHANGE_TIMEOUT));
        let asker = Asker { http, patience: Patience { idle: Some(idle), ..patience } };
        let exchange = Exchange { asker, from: &place.name() };
        let fresh = exchange.token(&credential, now).await?;
        let mut of = [0; digest::SHA256_OUTPUT_LEN];
        of.copy_from_slice(digest.as_ref());
        let until = fresh.until.checked_sub(MARGIN).unwrap_or(now);
        *last = Some(Kept { of, token: fresh.token.clone(), until });
        Ok(Access { token: fresh.token, quota_project })
    }

    /// Forgets a token that is not good any more.
    pub(super) async fn forget(&self, token: &SecretString) {
        let mut last = self.last.lock().await;
        if last.as_ref().is_some_and(|kept| kept.token.expose_secret() == token.expose_secret()) {
            *last = None;
        }
    }
}

/// Stands for the end of something that an abort ended.
fn cancelled() -> Fault {
    Fault::of_kind(FailureKind::Other, crate::llm::exchange::ABORTED_BEFORE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(pairs: &[(&str, &str)]) -> Option<Place> {
        Place::find(|name| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn file(path: &str) -> Option<Place> {
        Some(Place::File(PathBuf::from(path)))
    }

    #[test]
    fn a_named_file_goes_before_the_one_of_gcloud_and_that_before_the_metadata_server() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap();
        let usual = format!("{home}/.config/gcloud/application_default_credentials.json");
        let metadata = Some(Place::Metadata("m:1".into()));
        let host = ("GCE_METADATA_HOST", "m:1");
        assert_eq!(place(&[]), None);
        assert_eq!(place(&[("HOME", home)]), None);
        assert_eq!(place(&[("HOME", home), host]), metadata);

        std::fs::create_dir_all(folder.path().join(".config/gcloud")).unwrap();
        std::fs::write(&usual, "{}").unwrap();
        assert_eq!(place(&[("HOME", home), host]), file(&usual));
        let named = |path| place(&[("HOME", home), host, ("GOOGLE_APPLICATION_CREDENTIALS", path)]);
        assert_eq!(named(""), file(&usual));
        assert_eq!(named("~/x.json"), file(&format!("{home}/x.json")));
        assert_eq!(named("/nope.json"), file("/nope.json"));
        assert!(!named("/nope.json").unwrap().is_there());

        let elsewhere = format!("{home}/elsewhere");
        let set = [("HOME", home), ("CLOUDSDK_CONFIG", elsewhere.as_str())];
        assert_eq!(place(&set), None);
        std::fs::create_dir(&elsewhere).unwrap();
        let moved = format!("{elsewhere}/application_default_credentials.json");
        std::fs::write(&moved, "{}").unwrap();
        assert_eq!(place(&set), file(&moved));
    }
}
