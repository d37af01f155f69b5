//! What a file of credentials says.
//!
//! The kinds of files and their fields are those of <https://google.aip.dev/auth/4110> to 4117. Errors name the
//! field and never hold its value.

use secrecy::SecretString;
use serde_json::{Map, Value};

/// Where tokens come from when the file does not say.
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";

/// How long a token of an account that is impersonated lasts when the file does not say, in seconds.
const LIFETIME: u64 = 3600;

/// The domain of the public Google Cloud.
const UNIVERSE: &str = "googleapis.com";

/// What the file gives tokens for.
#[derive(Debug)]
pub(super) struct Credential {
    pub(super) grant: Grant,
    /// The account that is acted for.
    pub(super) impersonation: Option<Impersonation>,
    pub(super) quota_project: Option<String>,
}

/// How a token is got.
#[derive(Debug)]
pub(super) enum Grant {
    ServiceAccount(ServiceAccount),
    AuthorizedUser(AuthorizedUser),
    External(External),
    /// From the metadata server of this host.
    Metadata(String),
}

#[derive(Debug)]
pub(super) struct ServiceAccount {
    pub(super) client_email: String,
    pub(super) private_key: SecretString,
    pub(super) private_key_id: Option<String>,
    pub(super) token_uri: String,
}

#[derive(Debug)]
pub(super) struct AuthorizedUser {
    pub(super) client_id: String,
    pub(super) client_secret: SecretString,
    pub(super) refresh_token: SecretString,
    pub(super) token_uri: String,
}

/// An identity that another provider vouches for.
#[derive(Debug)]
pub(super) struct External {
    pub(super) audience: String,
    pub(super) subject_token_type: String,
    pub(super) token_url: String,
    pub(super) subject: Subject,
    pub(super) form: SubjectForm,
    /// The project that a workforce's requests count for.
    pub(super) user_project: Option<String>,
}

/// Where the other provider's token is.
#[derive(Debug)]
pub(super) enum Subject {
    File(String),
    Url { url: String, headers: Vec<(String, SecretString)> },
}

/// How it stands there.
#[derive(Debug)]
pub(super) enum SubjectForm {
    Text,
    /// In this field of a JSON object.
    Json(String),
}

#[derive(Debug)]
pub(super) struct Impersonation {
    pub(super) url: String,
    pub(super) delegates: Vec<String>,
    /// In seconds.
    pub(super) lifetime: u64,
}

impl Credential {
    /// What the metadata server of this host gives.
    pub(super) fn metadata(host: &str) -> Self {
        Self { grant: Grant::Metadata(host.to_owned()), impersonation: None, quota_project: None }
    }

    /// Reads the text of a file.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| format!("it is not JSON (line {}, column {})", error.line(), error.column()))?;
        let fields = Fields::of(&value, "")?;
        if fields.optional("universe_domain")?.is_some_and(|domain| domain != UNIVERSE) {
            return Err(format!("universe_domain must be {UNIVERSE}"));
        }
        let quota_project = fields.optional("quota_project_id")?;
        let (grant, impersonation) = match fields.text("type")?.as_str() {
            "impersonated_service_account" => {
                let source = fields.object("source_credentials")?;
                let (grant, own) = read_grant(&source)?;
                if own.is_some() {
                    return Err("source_credentials must not impersonate an account themselves".to_owned());
                }
                let impersonation = Impersonation {
                    url: fields.text("service_account_impersonation_url")?,
                    delegates: fields.texts("delegates")?,
                    lifetime: LIFETIME,
                };
                (grant, Some(impersonation))
            }
            _ => read_grant(&fields)?,
        };
        Ok(Self { grant, impersonation, quota_project })
    }
}

fn read_grant(fields: &Fields<'_>) -> Result<(Grant, Option<Impersonation>), String> {
    let token_uri = || fields.optional("token_uri").map(|uri| uri.unwrap_or_else(|| TOKEN_URI.to_owned()));
    let grant = match fields.text("type")?.as_str() {
        "service_account" => Grant::ServiceAccount(ServiceAccount {
            client_email: fields.text("client_email")?,
            private_key: fields.text("private_key")?.into(),
            private_key_id: fields.optional("private_key_id")?,
            token_uri: token_uri()?,
        }),
        "authorized_user" => Grant::AuthorizedUser(AuthorizedUser {
            client_id: fields.text("client_id")?,
            client_secret: fields.text("client_secret")?.into(),
            refresh_token: fields.text("refresh_token")?.into(),
            token_uri: token_uri()?,
        }),
        "external_account" => {
            let grant = Grant::External(read_external(fields)?);
            return Ok((grant, read_impersonation(fields)?));
        }
        other => {
            let more = if fields.name.is_empty() { ", impersonated_service_account" } else { "" };
            return Err(format!(
                "{} is \"{}\"; expected service_account, authorized_user, external_account{more}",
                fields.path("type"),
                other.escape_default().take(60).collect::<String>()
            ));
        }
    };
    Ok((grant, None))
}

fn read_external(fields: &Fields<'_>) -> Result<External, String> {
    let source = fields.object("credential_source")?;
    for unsupported in ["environment_id", "executable", "certificate"] {
        if source.has(unsupported) {
            let place = source.path(unsupported);
            return Err(format!("{place} is not supported; credential_source must have file or url"));
        }
    }
    let subject = match (source.optional("file")?, source.optional("url")?) {
        (Some(file), _) => Subject::File(file),
        (None, Some(url)) => Subject::Url { url, headers: source.headers()? },
        (None, None) => return Err(format!("{} must have file or url", source.name)),
    };
    let form = match source.has("format") {
        false => SubjectForm::Text,
        true => {
            let format = source.object("format")?;
            match format.optional("type")?.as_deref() {
                None | Some("text") => SubjectForm::Text,
                Some("json") => SubjectForm::Json(format.text("subject_token_field_name")?),
                Some(_) => return Err(format!("{} must be \"text\" or \"json\"", format.path("type"))),
            }
        }
    };
    Ok(External {
        audience: fields.text("audience")?,
        subject_token_type: fields.text("subject_token_type")?,
        token_url: fields.text("token_url")?,
        subject,
        form,
        user_project: fields.optional("workforce_pool_user_project")?,
    })
}

fn read_impersonation(fields: &Fields<'_>) -> Result<Option<Impersonation>, String> {
    let Some(url) = fields.optional("service_account_impersonation_url")? else { return Ok(None) };
    let lifetime = match fields.has("service_account_impersonation") {
        true => fields.object("service_account_impersonation")?.count("token_lifetime_seconds")?,
        false => None,
    };
    Ok(Some(Impersonation { url, delegates: Vec::new(), lifetime: lifetime.unwrap_or(LIFETIME) }))
}

/// The fields of an object of the file.
struct Fields<'a> {
    map: &'a Map<String, Value>,
    /// The object's own name in the file; empty for the whole of it.
    name: String,
}

impl<'a> Fields<'a> {
    fn of(value: &'a Value, name: &str) -> Result<Self, String> {
        let what = if name.is_empty() { "it" } else { name };
        let map = value.as_object().ok_or_else(|| format!("{what} must be an object"))?;
        Ok(Self { map, name: name.to_owned() })
    }

    fn path(&self, field: &str) -> String {
        if self.name.is_empty() { field.to_owned() } else { format!("{}.{field}", self.name) }
    }

    fn get(&self, field: &str) -> Option<&'a Value> {
        self.map.get(field).filter(|value| !value.is_null())
    }

    fn has(&self, field: &str) -> bool {
        self.get(field).is_some()
    }

    fn optional(&self, field: &str) -> Result<Option<String>, String> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| format!("{} must be a string", self.path(field)))?;
        Ok(Some(text.to_owned()))
    }

    fn text(&self, field: &str) -> Result<String, String> {
        let text = self.optional(field)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| format!("{} is missing", self.path(field)))
    }

    fn texts(&self, field: &str) -> Result<Vec<String>, String> {
        let Some(value) = self.get(field) else { return Ok(Vec::new()) };
        let texts = value.as_array().and_then(|list| {
            list.iter().map(|text| text.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        });
        texts.ok_or_else(|| format!("{} must be a list of strings", self.path(field)))
    }

    fn count(&self, field: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let count = value.as_u64().ok_or_else(|| format!("{} must be a number", self.path(field)))?;
        Ok(Some(count))
    }

    fn object(&self, field: &str) -> Result<Fields<'a>, String> {
        let path = self.path(field);
        let value = self.get(field).ok_or_else(|| format!("{path} is missing"))?;
        Fields::of(value, &path)
    }

    fn headers(&self) -> Result<Vec<(String, SecretString)>, String> {
        if !self.has("headers") {
            return Ok(Vec::new());
        }
        let headers = self.object("headers")?;
        let names = headers.map.keys();
        names.map(|name| Ok((name.clone(), headers.text(name)?.into()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(value: Value) -> String {
        Credential::read(&value.to_string()).unwrap_err()
    }

    #[test]
    fn what_is_wrong_is_named_and_no_value_is_shown() {
        assert_eq!(Credential::read("{\"a\": s3cret").unwrap_err(), "it is not JSON (line 1, column 7)");
        let source = |source: Value| {
            error(json!({ "type": "external_account", "audience": "a", "subject_token_type": "t",
                "token_url": "http://h", "credential_source": source }))
        };
        let impersonated = |source: Value| {
            error(json!({ "type": "impersonated_service_account", "source_credentials": source }))
        };
        for (error, expected) in [
            (error(json!("s3cret")), "it must be an object"),
            (error(json!({})), "type is missing"),
            (error(json!({ "type": ["s3cret"] })), "type must be a string"),
            (
                error(json!({ "type": "gdch_service_account" })),
                "type is \"gdch_service_account\"; expected service_account, authorized_user, external_account, \
                 impersonated_service_account",
            ),
            (
                error(json!({ "type": "service_account", "universe_domain": "x" })),
                "universe_domain must be googleapis.com",
            ),
            (error(json!({ "type": "service_account", "client_email": "e" })), "private_key is missing"),
            (
                error(
                    json!({ "type": "service_account", "client_email": "e", "private_key": { "s3cret": 1 } }),
                ),
                "private_key must be a string",
            ),
            (
                error(json!({ "type": "authorized_user", "client_id": "i", "client_secret": "s3cret" })),
                "refresh_token is missing",
            ),
            (source(json!(null)), "credential_source is missing"),
            (source(json!({})), "credential_source must have file or url"),
            (
                source(json!({ "environment_id": "aws1" })),
                "credential_source.environment_id is not supported; credential_source must have file or url",
            ),
            (
                source(json!({ "file": "f", "format": { "type": "json" } })),
                "credential_source.format.subject_token_field_name is missing",
            ),
            (
                source(json!({ "file": "f", "format": { "type": "xml" } })),
                "credential_source.format.type must be \"text\" or \"json\"",
            ),
            (
                source(json!({ "url": "u", "headers": ["s3cret"] })),
                "credential_source.headers must be an object",
            ),
            (
                impersonated(json!({ "type": "service_account" })),
                "source_credentials.client_email is missing",
            ),
            (
                impersonated(json!({ "type": "impersonated_service_account" })),
                "source_credentials.type is \"impersonated_service_account\"; expected service_account, \
                 authorized_user, external_account",
            ),
        ] {
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let file = json!({ "type": "authorized_user", "client_id": "i", "client_secret": "s3cret",
            "refresh_token": "s3cret" });
        let shown = format!("{:?}", Credential::read(&file.to_string()).unwrap());
        assert!(shown.contains("oauth2.googleapis.com") && !shown.contains("s3cret"), "{shown}");
    }
}
