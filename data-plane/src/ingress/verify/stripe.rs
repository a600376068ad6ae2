//! Scheme `stripe`: `Stripe-Signature: t=<seconds>,v1=<hex>,...` over `<seconds>.<body>`.

use serde::Deserialize;

use super::signature::from_hex;
use super::{Refusal, SignedRequest, Verification};

const HEADER: &str = "stripe-signature";

pub(super) fn check(signed: &SignedRequest<'_>) -> Result<Verification, Refusal> {
    let header = signed.inbound.header(HEADER)?;
    let mut stamp = None;
    let mut signatures = Vec::new();
    for pair in header.split(',') {
        match pair.trim().split_once('=') {
            Some(("t", seconds)) => stamp = Some(seconds),
            // One that cannot be read is wrong, and says nothing of the others.
            Some(("v1", text)) => signatures.extend(from_hex(text)),
            // Other versions are for the future.
            Some(_) | None => {}
        }
    }
    let stamp = stamp.ok_or_else(|| Refusal::Malformed(format!("header {HEADER}")))?;
    signed.matches::<sha2::Sha256>(&[stamp.as_bytes(), b".", signed.inbound.body], &signatures)?;
    let window = signed.fresh(stamp)?;
    // A repeated event is signed anew, and keeps its id.
    let event: Event = serde_json::from_slice(signed.inbound.body).unwrap_or_default();
    Ok(Verification {
        delivery: Some(event.id.unwrap_or_else(|| header.to_owned())),
        window,
    })
}

#[derive(Default, Deserialize)]
struct Event {
    id: Option<String>,
}
