//! Authentication of inbound webhooks: one file per scheme. All functions are pure. Secrets are
//! compared in constant time, and each secret of a list is compared whatever the results of the
//! others.

mod basic;
mod credentials;
mod hmac;
mod meta;
mod provider;
mod signature;
mod slack;
mod standard_webhooks;
mod stripe;
mod token;

use std::time::Duration;

use http::HeaderMap;
use kanat_model::{Secret, Timestamp};
use kanat_proto::plan::v1::Verify;

pub(crate) use credentials::Credentials;
pub(crate) use meta::challenge;
pub(crate) use slack::url_verification;

const DEFAULT_TOLERANCE: Duration = Duration::from_secs(300);

/// Raw request to verify.
pub(crate) struct Inbound<'a> {
    pub headers: &'a HeaderMap,
    /// Undecoded, without the `?`.
    pub query: &'a str,
    pub body: &'a [u8],
    pub now: Timestamp,
}

/// Result of a successful verification.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verification {
    /// Id of the delivery. A second one within `window` is a repeat.
    pub delivery: Option<String>,
    pub window: Duration,
}

/// Reason why a request is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("the request carries no {0}")]
    Missing(String),
    #[error("{0} cannot be read")]
    Malformed(String),
    #[error(
        "the signature cannot be read: a prefix stands before it, and the flow's source.verify \
         names no prefix"
    )]
    UnknownPrefix,
    #[error("the signature does not begin with the prefix that the flow's source.verify names")]
    NoPrefix,
    #[error("the signature or secret is wrong")]
    Wrong,
    #[error("the timestamp lies too far from now")]
    Stale,
    #[error(
        "the flow's verification has no secret that can be used: there is none, or it is not of \
         the form that the scheme asks for"
    )]
    Unconfigured,
    #[error("the flow's verification scheme is not known here")]
    UnknownScheme,
}

impl Inbound<'_> {
    fn header(&self, name: &str) -> Result<&str, Refusal> {
        let value = self
            .headers
            .get(name)
            .ok_or_else(|| Refusal::Missing(format!("header {name}")))?;
        value
            .to_str()
            .map_err(|_| Refusal::Malformed(format!("header {name}")))
    }

    fn optional(&self, name: &str) -> Option<String> {
        self.header(name)
            .ok()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    }
}

/// Checks a request against a flow's `verify` block, whose secrets are `credentials`.
pub(crate) fn check(
    verify: &Verify,
    credentials: &Credentials,
    inbound: &Inbound<'_>,
) -> Result<Verification, Refusal> {
    let tolerance = tolerance(verify);
    let untimed = |delivery| Verification {
        delivery,
        window: tolerance,
    };
    let signed = || {
        let secrets = credentials.secrets();
        secrets.map(|secrets| SignedRequest {
            inbound,
            secrets,
            tolerance,
        })
    };
    match verify.scheme.as_str() {
        "token" => token::check(verify, &signed()?).map(untimed),
        "basic" => basic::check(credentials, inbound).map(untimed),
        "hmac-sha256" => hmac::check::<sha2::Sha256>(verify, &signed()?).map(untimed),
        "hmac-sha1" => hmac::check::<sha1::Sha1>(verify, &signed()?).map(untimed),
        "hmac-sha512" => hmac::check::<sha2::Sha512>(verify, &signed()?).map(untimed),
        "github" => provider::github(&signed()?).map(untimed),
        "shopify" => provider::shopify(&signed()?).map(untimed),
        "meta" => provider::hub_signature(&signed()?).map(|()| untimed(None)),
        "slack" => slack::check(&signed()?),
        "stripe" => stripe::check(&signed()?),
        "standard-webhooks" => standard_webhooks::check(&signed()?),
        _ => Err(Refusal::UnknownScheme),
    }
}

fn tolerance(verify: &Verify) -> Duration {
    match verify.tolerance_seconds {
        0 => DEFAULT_TOLERANCE,
        seconds => Duration::from_secs(seconds.into()),
    }
}

/// A request that one of some secrets signed, or carries.
struct SignedRequest<'a> {
    inbound: &'a Inbound<'a>,
    /// At least one.
    secrets: &'a [Secret<String>],
    tolerance: Duration,
}

impl SignedRequest<'_> {
    /// Checks the timestamp of the signature, see [`fresh`].
    fn fresh(&self, seconds: &str) -> Result<Duration, Refusal> {
        fresh(seconds, self.inbound.now, self.tolerance)
    }
}

/// Checks a timestamp in seconds since 1970. Returns the time for which its delivery has to be
/// remembered: as long as the request would be accepted, and at least the tolerance.
///
/// # Errors
/// The timestamp lies more than `tolerance` before or after now.
fn fresh(seconds: &str, now: Timestamp, tolerance: Duration) -> Result<Duration, Refusal> {
    let stamped: i64 = seconds
        .parse()
        .map_err(|_| Refusal::Malformed("the timestamp".to_owned()))?;
    // Senders use whole seconds.
    if now.as_millis().div_euclid(1000).abs_diff(stamped) > tolerance.as_secs() {
        return Err(Refusal::Stale);
    }
    let end =
        Timestamp::from_millis(stamped.saturating_add(1).saturating_mul(1000)).after(tolerance);
    Ok(end.since(now).max(tolerance))
}

#[cfg(test)]
mod tests;
