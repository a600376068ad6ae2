//! Scheme `standard-webhooks`: `<id>.<timestamp>.<body>` signed, as standardwebhooks.com and Svix
//! say.

use kanat_flow::webhook_key;

use super::signature::{from_base64, matches};
use super::{Inbound, Refusal, SignedRequest, Verification};

pub(super) fn check(signed: &SignedRequest<'_>) -> Result<Verification, Refusal> {
    let id = header(signed.inbound, "webhook-id", "svix-id")?;
    let stamp = header(signed.inbound, "webhook-timestamp", "svix-timestamp")?.trim();
    let text = header(signed.inbound, "webhook-signature", "svix-signature")?;
    let signatures: Vec<Vec<u8>> = text
        .split_ascii_whitespace()
        // Other versions, such as `v1a`, are of another kind of key.
        .filter_map(|one| one.strip_prefix("v1,"))
        // One that cannot be read is wrong, and says nothing of the others.
        .filter_map(|text| from_base64(text).ok())
        .collect();
    let keys: Vec<Vec<u8>> = signed
        .secrets
        .iter()
        .filter_map(|secret| webhook_key(secret.expose()))
        .collect();
    if keys.is_empty() {
        return Err(Refusal::Unconfigured);
    }
    let parts = [
        id.as_bytes(),
        b".",
        stamp.as_bytes(),
        b".",
        signed.inbound.body,
    ];
    matches::<sha2::Sha256>(keys.iter().map(Vec::as_slice), &parts, &signatures)?;
    let window = signed.fresh(stamp)?;
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
