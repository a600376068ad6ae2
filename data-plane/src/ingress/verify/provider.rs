//! Schemes `github` and `shopify`: HMAC-SHA256 of the body under the providers' own header names.

use kanat_model::Secret;

use super::signature::{from_base64, from_hex, matches, plain};
use super::{Inbound, Refusal};

pub(super) fn github(
    secrets: &[Secret<String>],
    inbound: &Inbound<'_>,
) -> Result<Option<String>, Refusal> {
    hub_signature(secrets, inbound)?;
    Ok(inbound.optional("x-github-delivery"))
}

pub(super) fn shopify(
    secrets: &[Secret<String>],
    inbound: &Inbound<'_>,
) -> Result<Option<String>, Refusal> {
    let signature = from_base64(inbound.header("x-shopify-hmac-sha256")?.trim())?;
    matches::<sha2::Sha256>(plain(secrets), &[inbound.body], &[signature])?;
    Ok(inbound.optional("x-shopify-webhook-id"))
}

/// `X-Hub-Signature-256: sha256=<hex>`, which GitHub and Meta share.
pub(super) fn hub_signature(
    secrets: &[Secret<String>],
    inbound: &Inbound<'_>,
) -> Result<(), Refusal> {
    let text = inbound.header("x-hub-signature-256")?.trim();
    let signature = from_hex(text.strip_prefix("sha256=").ok_or(Refusal::Wrong)?)?;
    matches::<sha2::Sha256>(plain(secrets), &[inbound.body], &[signature])
}
