//! Workload identity federation: the token by which a platform vouches for this program, exchanged for an access
//! token of the API.
//!
//! Facts: <https://platform.claude.com/docs/en/manage-claude/wif-reference>. No text holds a token.

use std::io;
use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};
use tokio::io::AsyncReadExt;

use super::request::{BETA, OAUTH};
use crate::llm::exchange::Fault;
use crate::llm::headers::header;
use crate::llm::token_cache::{Margins, Origin};
use crate::llm::token_endpoint::{AskError, Asker, Fresh, access_token};
use crate::llm::{FailureKind, ModelRequest};

/// The provider whose requests can be authorised so.
const PROVIDER: &str = "anthropic";

/// The headers that authorise a request.
const KEY_HEADERS: [&str; 2] = ["authorization", "x-api-key"];

const RULE: &str = "ANTHROPIC_FEDERATION_RULE_ID";
const ORGANIZATION: &str = "ANTHROPIC_ORGANIZATION_ID";
const TOKEN_FILE: &str = "ANTHROPIC_IDENTITY_TOKEN_FILE";
const ACCOUNT: &str = "ANTHROPIC_SERVICE_ACCOUNT_ID";
const WORKSPACE: &str = "ANTHROPIC_WORKSPACE_ID";

/// Lets exchanges in.
const FEDERATION: &str = "oidc-federation-2026-04-01";

/// The largest identity token that is taken.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// When access tokens are renewed, as by the vendor's own libraries.
pub(super) const MARGINS: Margins =
    Margins { early: SignedDuration::from_secs(120), late: SignedDuration::from_secs(30) };

/// What an identity token is exchanged with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Federation {
    rule: String,
    organization: String,
    file: String,
    account: Option<String>,
    workspace: Option<String>,
    /// Where the API is.
    base_url: String,
}

impl Federation {
    /// What these variables have. `None` when they do not ask for it, else what is missing is an error.
    pub fn find(variable: impl Fn(&str) -> Option<String>) -> Option<Result<Self, String>> {
        let set = |name: &str| {
            let value = variable(name)?.trim().to_owned();
            Some(value).filter(|value| !value.is_empty())
        };
        let needed = |name: &str| set(name).ok_or_else(|| format!("{name} is not set, and {RULE} is"));
        let rule = set(RULE)?;
        let federation = || {
            Ok(Self {
                rule,
                organization: needed(ORGANIZATION)?,
                file: needed(TOKEN_FILE)?,
                account: set(ACCOUNT),
                workspace: set(WORKSPACE),
                base_url: String::new(),
            })
        };
        Some(federation())
    }

    /// What authorises a request that has no key, also not in a header of the user.
    pub(super) fn of(request: &ModelRequest) -> Option<Self> {
        let credentials = &request.credentials;
        let is_key = |name: &str| KEY_HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known));
        if request.model.provider != PROVIDER
            || credentials.api_key.is_some()
            || credentials.headers.iter().any(|(name, _)| is_key(name))
        {
            return None;
        }
        let found = Self::find(|name| credentials.variable(name))?.ok()?;
        Some(Self { base_url: request.model.base_url.trim_end_matches('/').to_owned(), ..found })
    }

    /// What its access tokens are known by.
    pub(super) fn origin(&self) -> Origin {
        let Self { rule, organization, file, account, workspace, base_url } = self;
        let optional = [account, workspace].map(|text| text.as_deref().unwrap_or_default());
        Origin::of([rule.as_str(), organization, file, base_url].into_iter().chain(optional))
    }

    /// An access token for the identity token that is in the file now.
    pub(super) async fn exchange(&self, asker: Asker<'_>) -> Result<Fresh, Fault> {
        let url = format!("{}/v1/oauth/token", self.base_url);
        if !is_private(&url) {
            let text = format!(
                "workload identity federation needs an address that begins with https://, and the one of \
                 {PROVIDER} is {}",
                self.base_url
            );
            return Err(Fault::of_kind(FailureKind::Auth, text));
        }
        let assertion = self.identity_token().await?;
        let mut body = Map::new();
        body.insert("grant_type".into(), json!("urn:ietf:params:oauth:grant-type:jwt-bearer"));
        body.insert("assertion".into(), json!(assertion.expose_secret()));
        body.insert("federation_rule_id".into(), json!(self.rule));
        body.insert("organization_id".into(), json!(self.organization));
        let optional = [("service_account_id", &self.account), ("workspace_id", &self.workspace)];
        for (name, value) in optional.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
            body.insert(name.into(), json!(value));
        }
        let further = vec![header(BETA, &format!("{OAUTH},{FEDERATION}"))];
        let answer = asker.post_json(&url, &Value::Object(body), further, &[&assertion]).await;
        answer
            .and_then(|answer| access_token(&answer, &url, Timestamp::now()))
            .map_err(|error| self.failed(error))
    }

    /// The identity token. The platform writes a new one into the file before the last one runs out.
    async fn identity_token(&self) -> Result<SecretString, Fault> {
        let failed = |why: String| {
            let text = format!(
                "the identity token in {}, the file of {TOKEN_FILE}, cannot be used: {why}",
                self.file
            );
            Fault::of_kind(FailureKind::Auth, text)
        };
        // Space around it does not count, and twice the size leaves room for that.
        let limit = 2 * MAX_TOKEN_BYTES as u64;
        let read = async {
            let mut bytes = Vec::new();
            tokio::fs::File::open(&self.file).await?.take(limit).read_to_end(&mut bytes).await?;
            Ok(bytes)
        };
        let bytes = read.await.map_err(|error: io::Error| failed(error.to_string()))?;
        let text = SecretString::from(
            String::from_utf8(bytes).map_err(|_| failed("the file is not UTF-8".to_owned()))?,
        );
        let token = text.expose_secret().trim();
        match token.len() {
            0 => Err(failed("the file is empty".to_owned())),
            1..=MAX_TOKEN_BYTES => Ok(token.into()),
            _ => Err(failed(format!("it is larger than {} KiB", MAX_TOKEN_BYTES / 1024))),
        }
    }

    fn failed(&self, error: AskError) -> Fault {
        let is_unauthorized = matches!(error, AskError::Refused { status: 401, .. });
        let context = format!("cannot exchange the identity token in {} for an access token", self.file);
        let mut fault = error.into_fault(&context);
        if is_unauthorized {
            fault.text.push_str(&format!("; the federation rule of {RULE} must match the identity token"));
            if self.workspace.is_none() {
                fault.text.push_str(&format!(", and a rule for several workspaces needs {WORKSPACE}"));
            }
        }
        fault
    }
}

/// True where nobody on the way can read what is sent.
fn is_private(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    let is_loopback = host == "localhost" || address.is_ok_and(|address: IpAddr| address.is_loopback());
    url.scheme() == "https" || (url.scheme() == "http" && is_loopback)
}

#[cfg(test)]
mod tests;
