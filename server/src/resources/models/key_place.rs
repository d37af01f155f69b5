//! Where the key goes, for providers that want it in another place than the API of their models says.

use secrecy::{ExposeSecret, SecretString};

use super::AuthError;
use crate::llm::Credentials;

/// Cloudflare's header for the key of its gateway. The API's own place is for the key of the vendor behind it.
const GATEWAY_HEADER: &str = "cf-aig-authorization";

/// Puts the key where the provider wants it.
pub(super) fn place_key(provider: &str, credentials: &mut Credentials) -> Result<(), AuthError> {
    match provider {
        "github-copilot" => credentials.bearer = true,
        "cloudflare-ai-gateway" => place_in_gateway_header(credentials)?,
        _ => {}
    }
    Ok(())
}

fn place_in_gateway_header(credentials: &mut Credentials) -> Result<(), AuthError> {
    if credentials.bearer {
        // Sending it to the vendor behind the gateway would give the key to somebody else.
        return Err(AuthError::Unresolved {
            provider: "cloudflare-ai-gateway".to_owned(),
            why: format!(
                "authHeader requires a resolved API key, and the gateway's goes into {GATEWAY_HEADER}; set \
                 authorization in headers to the key of the vendor behind the gateway"
            ),
        });
    }
    let Some(key) = credentials.api_key.take() else { return Ok(()) };
    if !credentials.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(GATEWAY_HEADER)) {
        let value: SecretString = format!("Bearer {}", key.expose_secret()).into();
        credentials.headers.push((GATEWAY_HEADER.to_owned(), value));
    }
    Ok(())
}
