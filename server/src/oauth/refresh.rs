//! Getting the next tokens with a refresh token.

use secrecy::ExposeSecret;

use super::services::Refresh;
use super::{OAuthClient, OAuthError, Tokens};

/// The tokens after these.
pub async fn refresh(service: &Refresh, client: &OAuthClient, last: &Tokens) -> Result<Tokens, OAuthError> {
    let form = [
        ("grant_type", "refresh_token"),
        ("client_id", service.client_id.as_str()),
        ("refresh_token", last.refresh.expose_secret()),
    ];
    let answer = client.asker().post_form(&service.token_url, &form, &[&last.refresh]).await?;
    Ok(Tokens::read(&answer, &service.token_url, Some(last))?)
}
