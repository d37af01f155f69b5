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

use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};

use crate::llm::FailureKind;
use crate::llm::exchange::Fault;
use crate::llm::http::{Http, Patience};
use crate::llm::token_cache::{Margins, Origin, TokenCache};
use crate::llm::token_endpoint::Asker;
use crate::paths::expand_tilde;
use exchange::Exchange;
use file::Credential;

/// How long before its end a token counts as expired.
const MARGIN: SignedDuration = SignedDuration::from_secs(60);

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

/// Access tokens.
#[derive(Debug, Clone)]
pub(super) struct Tokens {
    pub(super) cache: TokenCache,
}

impl Default for Tokens {
    fn default() -> Self {
        Self { cache: TokenCache::new(Margins { early: MARGIN, late: MARGIN }) }
    }
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

    /// What stands there, and what tokens of it are known by.
    async fn read(&self) -> Result<(Credential, Origin), Fault> {
        match self {
            Self::Metadata(host) => Ok((Credential::metadata(host), Origin::of(["metadata", host]))),
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
                let origin = Origin::of(["file", text.expose_secret()]);
                Ok((Credential::read(text.expose_secret()).map_err(failed)?, origin))
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
        let (credential, origin) = place.read().await?;
        let quota_project = credential.quota_project.clone();
        let asker = Asker::for_request(http, patience);
        let exchange = async {
            let exchange = Exchange { asker, from: &place.name() };
            exchange.token(&credential, Timestamp::now()).await
        };
        let token = self.cache.token(origin, exchange, patience.cancel).await?;
        Ok(Access { token, quota_project })
    }
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
