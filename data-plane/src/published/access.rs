//! Authentication of callers. Credentials are removed from the request, so that no flow sees them.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use kanat_model::Timestamp;
use kanat_net::jwks::{self, TokenVerifier};
use kanat_rate_limit::{LimitExceeded, LimitStatus};

use super::limit_headers;
use super::route::Target;
use crate::error::Refusal;
use crate::limit::Limiter;
use crate::oauth2::{self, Subject, TokenError};
use crate::plans::published::api::Auth;
use crate::plans::published::keys::{Key, KeyError, bearer};

/// Caller of an API.
pub(crate) enum Caller {
    Anyone,
    Key(Arc<Key>),
    /// Owner of an access token.
    Subject(Subject),
}

impl Caller {
    /// Returns the id of the caller within one API. It stays when the key of a consumer is rotated.
    pub fn id(&self) -> &str {
        match self {
            Self::Anyone => "",
            Self::Key(key) => &key.consumer,
            Self::Subject(subject) => &subject.name,
        }
    }

    /// Returns the name of the consumer.
    pub fn consumer(&self) -> Option<&str> {
        match self {
            Self::Anyone => None,
            Self::Key(key) => Some(&key.consumer),
            Self::Subject(subject) => Some(&subject.name)
                .filter(|name| !name.is_empty())
                .map(String::as_str),
        }
    }
}

/// Authenticates the caller, and removes the credentials from the headers.
///
/// # Errors
/// The answer 400, 401, 403 or 503 for a caller that is not authenticated.
pub(crate) async fn authenticate(
    tokens: &TokenVerifier,
    target: &Target,
    headers: &mut HeaderMap,
    now: Timestamp,
) -> Result<Caller, Refusal> {
    if headers
        .get_all(header::AUTHORIZATION)
        .iter()
        .nth(1)
        .is_some()
    {
        return Err(Refusal::new(
            StatusCode::BAD_REQUEST,
            "there is more than one Authorization header",
        ));
    }
    let caller = match &target.api.auth {
        Auth::Anyone => return Ok(Caller::Anyone),
        Auth::ConsumerKey => match target.environment.keys.find(&target.api.id, headers, now) {
            Ok(key) => Caller::Key(Arc::clone(key)),
            Err(refused) => return Err(unauthenticated(refused)),
        },
        Auth::OAuth2(issuer) => {
            let token = bearer(headers).ok_or_else(no_token)?;
            let verified = Box::pin(oauth2::authenticate(tokens, issuer, token, now)).await;
            Caller::Subject(verified.map_err(|refused| unproved(&refused))?)
        }
    };
    headers.remove(header::AUTHORIZATION);
    Ok(caller)
}

/// Admits the call of a key within its limits, and returns what is left of them. Callers without a
/// key have no limits.
///
/// # Errors
/// The answer 429 when the call is beyond a limit.
pub(crate) async fn enforce_limits(
    limiter: &Limiter,
    caller: &Caller,
) -> Result<Option<LimitStatus>, Refusal> {
    match caller {
        Caller::Anyone | Caller::Subject(_) => Ok(None),
        Caller::Key(key) => match limiter.check(&key.limit_key, key.limits).await {
            Ok(status) => {
                tracing::debug!(
                    api.id = key.api_id,
                    key.id = %key.limit_key,
                    key.prefix = key.prefix(),
                    "a call was admitted",
                );
                Ok(Some(status))
            }
            Err(exceeded) => {
                let api = &key.api_id;
                let id = &key.limit_key;
                tracing::debug!(
                    api.id = api,
                    key.id = %id,
                    key.prefix = key.prefix(),
                    "a call was beyond a limit",
                );
                Err(beyond(&exceeded))
            }
        },
    }
}

fn beyond(exceeded: &LimitExceeded) -> Refusal {
    let mut headers = HeaderMap::new();
    limit_headers::write_exceeded(exceeded, &mut headers);
    let refusal = Refusal::new(
        StatusCode::TOO_MANY_REQUESTS,
        limit_headers::message(exceeded),
    );
    headers.iter().fold(refusal, |refusal, (name, value)| {
        refusal.with(name.clone(), value.clone())
    })
}

fn unauthenticated(refused: KeyError) -> Refusal {
    let challenge = HeaderValue::from_static(match refused {
        KeyError::Missing => "Bearer realm=\"api\"",
        KeyError::Invalid => "Bearer realm=\"api\", error=\"invalid_token\"",
    });
    Refusal::new(StatusCode::UNAUTHORIZED, refused.to_string())
        .with(header::WWW_AUTHENTICATE, challenge)
}

fn no_token() -> Refusal {
    let refusal = Refusal::new(
        StatusCode::UNAUTHORIZED,
        "an access token is needed, as a bearer token",
    );
    refusal.with(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static("Bearer realm=\"api\""),
    )
}

fn unproved(refused: &TokenError) -> Refusal {
    let (status, error, scope) = match refused {
        TokenError::Unverified(jwks::Error::KeysUnavailable) => {
            return Refusal::unavailable(refused.to_string(), Duration::from_secs(5));
        }
        TokenError::Unverified(jwks::Error::Invalid(_)) => {
            (StatusCode::UNAUTHORIZED, "invalid_token", String::new())
        }
        TokenError::Scope(scopes) => (
            StatusCode::FORBIDDEN,
            "insufficient_scope",
            format!(", scope=\"{scopes}\""),
        ),
    };
    let challenge =
        HeaderValue::from_str(&format!("Bearer realm=\"api\", error=\"{error}\"{scope}"));
    let challenge = challenge.unwrap_or(HeaderValue::from_static("Bearer realm=\"api\""));
    Refusal::new(status, refused.to_string()).with(header::WWW_AUTHENTICATE, challenge)
}
