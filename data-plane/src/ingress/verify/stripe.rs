//! Scheme `stripe`: `Stripe-Signature: t=<seconds>,v1=<hex>,...` over `<seconds>.<body>`.

use std::time::Duration;

use kanat_model::Secret;
use serde::Deserialize;

use super::signature::{from_hex, matches, plain};
use super::{Inbound, Refusal, Verification, fresh};

const HEADER: &str = "stripe-signature";

pub(super) fn check(
    secrets: &[Secret<String>],
    inbound: &Inbound<'_>,
    tolerance: Duration,
) -> Result<Verification, Refusal> {
    let header = inbound.header(HEADER)?;
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
    matches::<sha2::Sha256>(
        plain(secrets),
        &[stamp.as_bytes(), b".", inbound.body],
        &signatures,
    )?;
    let window = fresh(stamp, inbound.now, tolerance)?;
    // A repeated event is signed anew, and keeps its id.
    let event: Event = serde_json::from_slice(inbound.body).unwrap_or_default();
    Ok(Verification {
        delivery: Some(event.id.unwrap_or_else(|| header.to_owned())),
        window,
    })
}

#[derive(Default, Deserialize)]
struct Event {
    id: Option<String>,
}
