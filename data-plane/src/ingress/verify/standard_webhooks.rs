//! Scheme `standard-webhooks`: `<id>.<timestamp>.<body>` signed, as standardwebhooks.com and Svix
//! say.

use std::time::Duration;

use kanat_flow::webhook_key;
use kanat_model::Secret;

use super::signature::{from_base64, matches};
use super::{Inbound, Refusal, Verification, fresh};

pub(super) fn check(
    secrets: &[Secret<String>],
    inbound: &Inbound<'_>,
    tolerance: Duration,
) -> Result<Verification, Refusal> {
    let id = header(inbound, "webhook-id", "svix-id")?;
    let stamp = header(inbound, "webhook-timestamp", "svix-timestamp")?.trim();
    let text = header(inbound, "webhook-signature", "svix-signature")?;
    let signatures: Vec<Vec<u8>> = text
        .split_ascii_whitespace()
        // Other versions, such as `v1a`, are of another kind of key.
        .filter_map(|one| one.strip_prefix("v1,"))
        // One that cannot be read is wrong, and says nothing of the others.
        .filter_map(|text| from_base64(text).ok())
        .collect();
    let keys: Vec<Vec<u8>> = secrets
        .iter()
        .filter_map(|secret| webhook_key(secret.expose()))
        .collect();
    if keys.is_empty() {
        return Err(Refusal::Unconfigured);
    }
    let parts = [id.as_bytes(), b".", stamp.as_bytes(), b".", inbound.body];
    matches::<sha2::Sha256>(keys.iter().map(Vec::as_slice), &parts, &signatures)?;
    let window = fresh(stamp, inbound.now, tolerance)?;
    Ok(Verification {
        delivery: Some(id.to_owned()),
        window,
    })
}

fn header<'a>(inbound: &'a Inbound<'_>, name: &str, former: &str) -> Result<&'a str, Refusal> {
    match inbound.header(name) {
        Ok(text) => Ok(text),
        Err(refusal) => inbound.header(former).map_err(|_| refusal),
    }
}
