//! Access tokens of the OAuth 2.0 issuer of a published API: who may call, with which scopes.
//! Signatures and keys are checked by `kanat_net::jwks`.

#[cfg(test)]
mod tests;

use std::time::Duration;

use kanat_auth::jwt::{DEFAULT_ALGORITHMS, KeyId, Policy};
use kanat_model::Timestamp;
use kanat_net::jwks::{self, TokenVerifier};
use kanat_proto::plan::v1;

/// Age from which keys of an issuer that does not answer verify nothing.
pub(crate) const MAX_KEY_AGE: Duration = Duration::from_secs(60 * 60);

/// Owner of an access token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    /// The client, or else the subject.
    pub name: String,
}

/// Reason why a token does not open an API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TokenError {
    #[error(transparent)]
    Unverified(#[from] jwks::Error),
    /// The scopes that the API needs, separated by spaces.
    #[error("the access token lacks a scope of {0:?}")]
    Scope(String),
}

/// Returns the owner of a token that opens the API at the time `now`.
///
/// # Errors
/// The token does not open it, or the issuer's keys are not available.
pub(crate) async fn authenticate(
    verifier: &TokenVerifier,
    api: &v1::OAuth2,
    token: &[u8],
    now: Timestamp,
) -> Result<Subject, TokenError> {
    let policy = Policy {
        issuer: &api.issuer,
        audience: &api.audience,
        algorithms: DEFAULT_ALGORITHMS,
        key_id: KeyId::Optional,
    };
    let jwks_url = Some(api.jwks_url.as_str()).filter(|url| !url.is_empty());
    let claims = verifier.verify(&policy, jwks_url, token, now).await?;
    if !api.scopes.iter().all(|scope| claims.has_scope(scope)) {
        return Err(TokenError::Scope(api.scopes.join(" ")));
    }
    let name = claims.client_id.or(claims.azp).unwrap_or(claims.sub);
    Ok(Subject { name })
}
