//! Schemes `github` and `shopify`: HMAC-SHA256 of the body under the providers' own header names.

use super::signature::{from_base64, from_hex};
use super::{Refusal, SignedRequest};

pub(super) fn github(signed: &SignedRequest<'_>) -> Result<Option<String>, Refusal> {
    hub_signature(signed)?;
    Ok(signed.inbound.optional("x-github-delivery"))
}

pub(super) fn shopify(signed: &SignedRequest<'_>) -> Result<Option<String>, Refusal> {
    let signature = from_base64(signed.inbound.header("x-shopify-hmac-sha256")?.trim())?;
    signed.matches::<sha2::Sha256>(&[signed.inbound.body], &[signature])?;
    Ok(signed.inbound.optional("x-shopify-webhook-id"))
}

/// `X-Hub-Signature-256: sha256=<hex>`, which GitHub and Meta share.
pub(super) fn hub_signature(signed: &SignedRequest<'_>) -> Result<(), Refusal> {
    let text = signed.inbound.header("x-hub-signature-256")?.trim();
    let signature = from_hex(text.strip_prefix("sha256=").ok_or(Refusal::Wrong)?)?;
    signed.matches::<sha2::Sha256>(&[signed.inbound.body], &[signature])
}
