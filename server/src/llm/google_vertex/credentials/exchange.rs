//! Getting an access token: what each kind of credentials asks whom for.

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::assertion::assertion;
use super::file::{
    AuthorizedUser, Credential, External, Grant, Impersonation, ServiceAccount, Subject, SubjectForm,
};
use crate::llm::FailureKind;
use crate::llm::exchange::Fault;
use crate::llm::headers::{bearer, header};
use crate::llm::token_endpoint::{AskError, Asker, Fresh, access_token, text_field, usual_end};

/// What tokens are wanted for.
pub(super) const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// <https://cloud.google.com/compute/docs/access/authenticate-workloads#applications>
const METADATA_PATH: &str = "/computeMetadata/v1/instance/service-accounts/default/token";

/// Gets tokens with these credentials.
pub(super) struct Exchange<'a> {
    pub(super) asker: Asker<'a>,
    /// The name of the credentials in errors.
    pub(super) from: &'a str,
}

impl Exchange<'_> {
    /// A token of these credentials.
    pub(super) async fn token(&self, credential: &Credential, now: Timestamp) -> Result<Fresh, Fault> {
        let fresh = match &credential.grant {
            Grant::ServiceAccount(account) => self.of_service_account(account, now).await,
            Grant::AuthorizedUser(user) => self.of_user(user, now).await,
            Grant::External(external) => self.of_external(external, now).await,
            Grant::Metadata(host) => self.of_metadata(host, now).await,
        }?;
        match &credential.impersonation {
            Some(impersonation) => self.impersonated(impersonation, &fresh.token, now).await,
            None => Ok(fresh),
        }
    }

    async fn of_service_account(&self, account: &ServiceAccount, now: Timestamp) -> Result<Fresh, Fault> {
        let assertion = assertion(account, now).map_err(|why| self.fault(FailureKind::Auth, &why))?;
        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            ("assertion", assertion.expose_secret()),
        ];
        self.post_form(&account.token_uri, &form, &[&assertion], now).await
    }

    async fn of_user(&self, user: &AuthorizedUser, now: Timestamp) -> Result<Fresh, Fault> {
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", &user.client_id),
            ("client_secret", user.client_secret.expose_secret()),
            ("refresh_token", user.refresh_token.expose_secret()),
        ];
        self.post_form(&user.token_uri, &form, &[&user.client_secret, &user.refresh_token], now).await
    }

    async fn of_external(&self, external: &External, now: Timestamp) -> Result<Fresh, Fault> {
        let subject = self.subject(external).await?;
        let options =
            external.user_project.as_ref().map(|project| json!({ "userProject": project }).to_string());
        let mut form = vec![
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("audience", external.audience.as_str()),
            ("scope", SCOPE),
            ("requested_token_type", "urn:ietf:params:oauth:token-type:access_token"),
            ("subject_token", subject.expose_secret()),
            ("subject_token_type", &external.subject_token_type),
        ];
        form.extend(options.as_deref().map(|options| ("options", options)));
        self.post_form(&external.token_url, &form, &[&subject], now).await
    }

    async fn of_metadata(&self, host: &str, now: Timestamp) -> Result<Fresh, Fault> {
        let url = format!("http://{host}{METADATA_PATH}");
        let headers = vec![header("metadata-flavor", "Google")];
        let Asker { http, patience } = self.asker;
        let response = http.get(url.clone(), headers, patience).await;
        let answer = self.asker.json(&url, response, &[]).await.map_err(|error| self.failed(error))?;
        self.fresh(&url, &answer, now)
    }

    /// The token by which the other provider vouches.
    async fn subject(&self, external: &External) -> Result<SecretString, Fault> {
        let (text, place) = match &external.subject {
            Subject::File(path) => {
                let text = tokio::fs::read_to_string(path).await;
                let text = text.map_err(|error| {
                    self.fault(FailureKind::Auth, &format!("credential_source.file {path}: {error}"))
                })?;
                (text, path)
            }
            Subject::Url { url, headers } => {
                let Asker { http, patience } = self.asker;
                let response = http.get(url.clone(), headers.clone(), patience).await;
                let text = self.asker.text("credential_source.url", response, &[]).await;
                (text.map_err(|error| self.failed(error))?, url)
            }
        };
        let subject = match &external.form {
            SubjectForm::Text => Some(text),
            SubjectForm::Json(field) => {
                let json: Option<Value> = serde_json::from_str(&text).ok();
                json.and_then(|json| Some(json.get(field)?.as_str()?.to_owned()))
            }
        };
        subject
            .filter(|subject| !subject.is_empty())
            .map(SecretString::from)
            .ok_or_else(|| self.fault(FailureKind::Auth, &format!("there is no subject token in {place}")))
    }

    /// A token of the account that is acted for.
    async fn impersonated(
        &self,
        impersonation: &Impersonation,
        token: &SecretString,
        now: Timestamp,
    ) -> Result<Fresh, Fault> {
        let body = json!({ "scope": [SCOPE], "delegates": impersonation.delegates,
            "lifetime": format!("{}s", impersonation.lifetime) });
        let url = &impersonation.url;
        let answer = self.asker.post_json(url, &body, vec![bearer(token)], &[token]).await;
        let answer = answer.map_err(|error| self.failed(error))?;
        let token = text_field(&answer, "accessToken", url).map_err(|error| self.failed(error))?;
        let until = answer.get("expireTime").and_then(Value::as_str).and_then(|time| time.parse().ok());
        let until = until.unwrap_or_else(|| usual_end(now));
        Ok(Fresh { token: token.into(), until })
    }

    async fn post_form(
        &self,
        url: &str,
        form: &[(&str, &str)],
        secrets: &[&SecretString],
        now: Timestamp,
    ) -> Result<Fresh, Fault> {
        let answer = self.asker.post_form(url, form, secrets).await.map_err(|error| self.failed(error))?;
        self.fresh(url, &answer, now)
    }

    fn fresh(&self, url: &str, answer: &Value, now: Timestamp) -> Result<Fresh, Fault> {
        access_token(answer, url, now).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: AskError) -> Fault {
        error.into_fault(&self.context())
    }

    fn fault(&self, kind: FailureKind, why: &str) -> Fault {
        Fault::of_kind(kind, format!("{}: {why}", self.context()))
    }

    fn context(&self) -> String {
        format!("cannot get an access token for Google Cloud with {}", self.from)
    }
}
