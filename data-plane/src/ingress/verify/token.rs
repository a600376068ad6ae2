//! Scheme `token`: a shared secret in a header or in the query.

use kanat_proto::plan::v1::Verify;
use url::form_urlencoded;

use super::signature::is_one_of;
use super::{Inbound, Refusal, SignedRequest};

pub(super) const DEFAULT_HEADER: &str = "x-webhook-token";

pub(super) fn check(
    verify: &Verify,
    signed: &SignedRequest<'_>,
) -> Result<Option<String>, Refusal> {
    let given = if verify.query.is_empty() {
        in_header(verify, signed.inbound)?
    } else {
        in_query(verify, signed.inbound)?
    };
    let given = given.strip_prefix(&verify.prefix).unwrap_or(&given);
    if is_one_of(given.as_bytes(), signed.secrets).into() {
        Ok(None)
    } else {
        Err(Refusal::Wrong)
    }
}

fn in_header(verify: &Verify, inbound: &Inbound<'_>) -> Result<String, Refusal> {
    let name = if verify.header.is_empty() {
        DEFAULT_HEADER
    } else {
        &verify.header
    };
    inbound.header(name).map(str::to_owned)
}

fn in_query(verify: &Verify, inbound: &Inbound<'_>) -> Result<String, Refusal> {
    form_urlencoded::parse(inbound.query.as_bytes())
        .find(|(name, _)| *name == verify.query)
        .map(|(_, value)| value.into_owned())
        .ok_or_else(|| Refusal::Missing(format!("query parameter {}", verify.query)))
}
