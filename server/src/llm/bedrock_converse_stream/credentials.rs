//! Who asks: a bearer token, or the keys of an AWS account.

use std::collections::HashMap;

use secrecy::SecretString;

use crate::llm::{Credentials, redact};

/// What authorises a request.
#[derive(Debug, Clone)]
pub(super) enum Authority {
    /// A token that is sent as it is.
    Bearer(SecretString),
    /// Keys that sign the request.
    Keys(Keys),
}

/// The keys of an account.
#[derive(Debug, Clone)]
pub(super) struct Keys {
    pub(super) id: String,
    pub(super) secret: SecretString,
    pub(super) session_token: Option<SecretString>,
}

/// What the environment and the files of the AWS tools say.
#[derive(Debug, Clone, Default)]
pub(super) struct Environment {
    bearer: Option<SecretString>,
    keys: Option<Keys>,
    region: Option<String>,
}

impl Environment {
    /// Reads the environment, and the files that it names.
    pub(super) async fn read(credentials: &Credentials) -> Self {
        let variable = |name: &str| credentials.variable(name);
        let home = variable("HOME").or_else(|| variable("USERPROFILE")).unwrap_or_default();
        let file = |name: &str, usual: &str| variable(name).unwrap_or_else(|| format!("{home}/.aws/{usual}"));
        let credentials = tokio::fs::read_to_string(file("AWS_SHARED_CREDENTIALS_FILE", "credentials")).await;
        let config = tokio::fs::read_to_string(file("AWS_CONFIG_FILE", "config")).await;
        // Most users have neither file.
        Self::of(variable, &credentials.unwrap_or_default(), &config.unwrap_or_default())
    }

    /// What these variables and files say.
    pub(super) fn of(
        variable: impl Fn(&str) -> Option<String>,
        credentials_file: &str,
        config_file: &str,
    ) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let profile = set("AWS_PROFILE");
        let name = profile.as_deref().unwrap_or("default");
        let from_file = section(credentials_file, name);
        let config = section(config_file, &format!("profile {name}"));
        let config = if config.is_empty() { section(config_file, name) } else { config };
        let keys = |get: &dyn Fn(&str) -> Option<String>| {
            Some(Keys {
                id: get("aws_access_key_id")?,
                secret: get("aws_secret_access_key")?.into(),
                session_token: get("aws_session_token").map(SecretString::from),
            })
        };
        let in_files =
            || keys(&|name| from_file.get(name).cloned()).or_else(|| keys(&|name| config.get(name).cloned()));
        let in_variables = || keys(&|name| set(&name.to_uppercase()));
        Self {
            bearer: set("AWS_BEARER_TOKEN_BEDROCK").map(SecretString::from),
            // A profile that is named goes before keys that happen to be set.
            keys: if profile.is_some() {
                in_files().or_else(in_variables)
            } else {
                in_variables().or_else(in_files)
            },
            region: set("AWS_REGION")
                .or_else(|| set("AWS_DEFAULT_REGION"))
                .or_else(|| config.get("region").cloned()),
        }
    }

    /// The region, when one is named.
    pub(super) fn region(&self) -> Option<&str> {
        self.region.as_deref()
    }

    /// The text without the account's secrets, which no request knows of. AWS repeats signed headers when a
    /// signature is wrong.
    pub(super) fn redact(&self, text: &str) -> String {
        let keys = self.keys.iter();
        let of_keys = keys.flat_map(|keys| std::iter::once(&keys.secret).chain(&keys.session_token));
        redact(text, self.bearer.iter().chain(of_keys))
    }

    /// What authorises a request: its own key, a bearer token, or the keys of the account.
    pub(super) fn authority(&self, credentials: &Credentials) -> Option<Authority> {
        let own = credentials.api_key.clone().or_else(|| self.bearer.clone());
        own.map(Authority::Bearer).or_else(|| self.keys.clone().map(Authority::Keys))
    }
}

/// The fields of a section of an INI file.
fn section(file: &str, name: &str) -> HashMap<String, String> {
    let mut fields = HashMap::new();
    let mut inside = false;
    for line in file.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            inside = header.trim() == name;
        } else if let Some((field, value)) = line.split_once('=').filter(|_| inside && !line.starts_with('#'))
        {
            fields.insert(field.trim().to_lowercase(), value.trim().to_owned());
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    const FILE: &str = "[default]\naws_access_key_id = A\naws_secret_access_key=B\n# x=y\n\n[work]\n\
        aws_access_key_id=C\naws_secret_access_key=D\naws_session_token=E\n";

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        let config = "[default]\nregion=r1\n[profile work]\nregion = r2\n";
        let find =
            |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Environment::of(find, FILE, config)
    }

    fn shown(environment: &Environment, own: Option<&str>) -> String {
        let credentials =
            Credentials { api_key: own.map(|key| key.to_owned().into()), ..Credentials::default() };
        match environment.authority(&credentials) {
            Some(Authority::Bearer(token)) => format!("bearer {}", token.expose_secret()),
            Some(Authority::Keys(keys)) => {
                let token = keys.session_token.as_ref().map_or("-", |token| token.expose_secret());
                format!("{} {} {token}", keys.id, keys.secret.expose_secret())
            }
            None => "none".to_owned(),
        }
    }

    #[test]
    fn the_accounts_secrets_are_taken_out_of_a_text() {
        let set = [
            ("AWS_ACCESS_KEY_ID", "AKID"),
            ("AWS_SECRET_ACCESS_KEY", "secret-key"),
            ("AWS_SESSION_TOKEN", "session-token"),
            ("AWS_BEARER_TOKEN_BEDROCK", "bearer-token"),
        ];
        let text = "of AKID: x-amz-security-token:session-token secret-key bearer-token";
        let redacted = "of AKID: x-amz-security-token:[redacted] [redacted] [redacted]";
        assert_eq!(environment(&set).redact(text), redacted);
    }

    #[test]
    fn tokens_go_before_keys_and_named_profiles_before_variables() {
        let keys = [("AWS_ACCESS_KEY_ID", "F"), ("AWS_SECRET_ACCESS_KEY", "G")];
        let with = |more: (&'static str, &'static str)| environment(&[keys[0], keys[1], more]);
        assert_eq!(shown(&environment(&[]), None), "A B -");
        assert_eq!(shown(&environment(&keys), None), "F G -");
        assert_eq!(shown(&with(("AWS_PROFILE", "work")), None), "C D E");
        assert_eq!(shown(&with(("AWS_PROFILE", "absent")), None), "F G -");
        assert_eq!(shown(&with(("AWS_BEARER_TOKEN_BEDROCK", "T")), None), "bearer T");
        assert_eq!(shown(&with(("AWS_BEARER_TOKEN_BEDROCK", "T")), Some("own")), "bearer own");
        assert_eq!(shown(&Environment::default(), None), "none");
        assert_eq!(environment(&[]).region(), Some("r1"));
        assert_eq!(environment(&[("AWS_PROFILE", "work")]).region(), Some("r2"));
        assert_eq!(environment(&[("AWS_DEFAULT_REGION", "r3")]).region(), Some("r3"));
    }

    #[test]
    fn secrets_are_not_shown() {
        let shown = format!("{:?}", environment(&[("AWS_PROFILE", "work")]));
        assert!(!shown.contains("\"D\"") && !shown.contains("\"E\""), "{shown}");
    }
}
