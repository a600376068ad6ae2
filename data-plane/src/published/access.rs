//! Who calls: what a request has to show is checked and taken off, so that no flow sees it.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use kanat_model::Timestamp;

use super::api::Auth;
use super::keys::{Key, Refused};
use super::route::Target;
use crate::error::Refusal;

/// Who a call is from.
pub(crate) enum Caller {
    Anyone,
    Key(Arc<Key>),
}

impl Caller {
    /// What tells callers of one API apart.
    pub fn id(&self) -> &str {
        match self {
            Self::Anyone => "",
            Self::Key(key) => &key.id,
        }
    }

    /// The name of the consumer.
    pub fn consumer(&self) -> Option<&str> {
        match self {
            Self::Anyone => None,
            Self::Key(key) => Some(&key.consumer),
        }
    }
}

/// The caller, when the API lets it in.
pub(crate) fn let_in(target: &Target, headers: &mut HeaderMap, now: Timestamp) -> Result<Caller, Refusal> {
    let caller = match &target.api.auth {
        Auth::Anyone => return Ok(Caller::Anyone),
        Auth::ConsumerKey => match target.environment.keys.find(&target.api.id, headers, now) {
            Ok(key) => Caller::Key(Arc::clone(key)),
            Err(refused) => return Err(unauthenticated(refused)),
        },
    };
    headers.remove(header::AUTHORIZATION);
    Ok(caller)
}

fn unauthenticated(refused: Refused) -> Refusal {
    let challenge = HeaderValue::from_static(match refused {
        Refused::Missing => "Bearer realm=\"api\"",
        Refused::Invalid => "Bearer realm=\"api\", error=\"invalid_token\"",
    });
    Refusal::new(StatusCode::UNAUTHORIZED, refused.to_string()).with(header::WWW_AUTHENTICATE, challenge)
}
