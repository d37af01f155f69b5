//! How a service account proves who it is: a JWT, signed with its key.
//!
//! <https://developers.google.com/identity/protocols/oauth2/service-account#httprest>

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, json};

use super::exchange::SCOPE;
use super::file::ServiceAccount;

/// How long the assertion holds, in seconds; Google allows no more.
const LIFETIME: i64 = 3600;

/// The assertion. The error says what is wrong with the account.
pub(super) fn assertion(account: &ServiceAccount, now: Timestamp) -> Result<SecretString, String> {
    let key = key_pair(&account.private_key)
        .ok_or("private_key must be an RSA key in PEM, as Google Cloud writes it")?;
    let mut head = Map::new();
    head.insert("alg".into(), json!("RS256"));
    head.insert("typ".into(), json!("JWT"));
    if let Some(id) = &account.private_key_id {
        head.insert("kid".into(), json!(id));
    }
    let claims = json!({
        "iss": account.client_email,
        "scope": SCOPE,
        "aud": account.token_uri,
        "iat": now.as_second(),
        "exp": now.as_second().saturating_add(LIFETIME),
    });
    let part = |text: String| URL_SAFE_NO_PAD.encode(text);
    let signed = format!("{}.{}", part(json!(head).to_string()), part(claims.to_string()));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
        .map_err(|_| "private_key cannot sign")?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)).into())
}

/// The key, whichever of its two forms is in the PEM.
fn key_pair(pem: &SecretString) -> Option<RsaKeyPair> {
    let pem = pem.expose_secret();
    let body = |label: &str| {
        let (_, rest) = pem.split_once(&format!("-----BEGIN {label}-----"))?;
        let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
        let body: String = body.chars().filter(|c| !c.is_whitespace()).collect();
        STANDARD.decode(body).ok()
    };
    match body("PRIVATE KEY") {
        Some(der) => RsaKeyPair::from_pkcs8(&der).ok(),
        None => RsaKeyPair::from_der(&body("RSA PRIVATE KEY")?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
    use serde_json::Value;

    use super::*;

    /// Made for these tests and used for nothing else.
    const TEST_KEY: &str = include_str!("../tests/throwaway_test_key.pem");

    fn account(private_key: &str) -> ServiceAccount {
        ServiceAccount {
            client_email: "svc@p.iam.gserviceaccount.com".into(),
            private_key: private_key.into(),
            private_key_id: Some("kid1".into()),
            token_uri: "https://oauth2.googleapis.com/token".into(),
        }
    }

    #[test]
    fn the_assertion_says_who_asks_for_what_and_is_signed() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let assertion = assertion(&account(TEST_KEY), now).unwrap();
        let (signed, signature) = assertion.expose_secret().rsplit_once('.').unwrap();
        let json =
            |part: &str| -> Value { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap() };
        let (head, claims) = signed.split_once('.').unwrap();
        assert_eq!(json(head), json!({ "alg": "RS256", "typ": "JWT", "kid": "kid1" }));
        assert_eq!(
            json(claims),
            json!({ "iss": "svc@p.iam.gserviceaccount.com",
                "scope": "https://www.googleapis.com/auth/cloud-platform",
                "aud": "https://oauth2.googleapis.com/token", "iat": 1_700_000_000, "exp": 1_700_003_600 })
        );
        let key = key_pair(&TEST_KEY.into()).unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public().as_ref());
        assert!(public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).is_ok());
    }

    #[test]
    fn a_key_that_is_none_is_named_and_not_shown() {
        let cut = TEST_KEY.replace("-----END", "-----CUT");
        for key in
            ["", "s3cret", "-----BEGIN PRIVATE KEY-----\ns3cret\n-----END PRIVATE KEY-----", cut.as_str()]
        {
            let error = assertion(&account(key), Timestamp::UNIX_EPOCH).unwrap_err();
            assert_eq!(error, "private_key must be an RSA key in PEM, as Google Cloud writes it");
        }
    }
}
