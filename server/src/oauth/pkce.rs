//! Proof Key for Code Exchange (RFC 7636).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};
use secrecy::{ExposeSecret, SecretString};

use super::OAuthError;

/// How many random bytes a verifier or a state is made of.
const RANDOM_BYTES: usize = 32;

/// The method of the challenge.
pub(super) const METHOD: &str = "S256";

/// A secret, and what proves its knowledge later.
#[derive(Debug)]
pub(super) struct Pkce {
    pub(super) verifier: SecretString,
    pub(super) challenge: String,
}

impl Pkce {
    pub(super) fn new() -> Result<Self, OAuthError> {
        Ok(Self::of(random_text()?))
    }

    fn of(verifier: String) -> Self {
        let challenge = URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, verifier.as_bytes()));
        let verifier = SecretString::from(verifier);
        debug_assert!(verifier.expose_secret().len() >= 43, "RFC 7636 wants 43 characters at least");
        Self { verifier, challenge }
    }
}

/// A text that nobody can guess.
pub(super) fn random_text() -> Result<String, OAuthError> {
    let mut bytes = [0; RANDOM_BYTES];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| OAuthError::Failed("the system gives no random bytes".to_owned()))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_that_of_the_rfcs_example() {
        let pkce = Pkce::of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".to_owned());
        assert_eq!(pkce.challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
    }

    #[test]
    fn random_texts_differ_and_are_long_enough() {
        let (one, other) = (random_text().unwrap(), random_text().unwrap());
        assert!(one.len() == 43 && one != other);
    }
}
