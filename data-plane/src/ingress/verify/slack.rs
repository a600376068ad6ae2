//! Scheme `slack`: `v0:<timestamp>:<body>` signed, and the `url_verification` event that is
//! answered, not stored.

use serde::Deserialize;

use super::signature::from_hex;
use super::{Refusal, SignedRequest, Verification};

pub(super) fn check(signed: &SignedRequest<'_>) -> Result<Verification, Refusal> {
    let stamp = signed.inbound.header("x-slack-request-timestamp")?.trim();
    let text = signed.inbound.header("x-slack-signature")?.trim();
    let signature = from_hex(text.strip_prefix("v0=").ok_or(Refusal::Wrong)?)?;
    let parts = [
        b"v0:".as_slice(),
        stamp.as_bytes(),
        b":",
        signed.inbound.body,
    ];
    signed.matches::<sha2::Sha256>(&parts, &[signature])?;
    let window = signed.fresh(stamp)?;
    // Commands and actions carry no event id: a replay is then known by its signature.
    let delivery = event(signed.inbound.body)
        .event_id
        .unwrap_or_else(|| text.to_owned());
    Ok(Verification {
        delivery: Some(delivery),
        window,
    })
}

/// The challenge, when the body asks to verify this URL.
pub(crate) fn url_verification(body: &[u8]) -> Option<String> {
    let event = event(body);
    event
        .challenge
        .filter(|_| event.kind.as_deref() == Some("url_verification"))
}

#[derive(Default, Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: Option<String>,
    challenge: Option<String>,
    event_id: Option<String>,
}

fn event(body: &[u8]) -> Event {
    serde_json::from_slice(body).unwrap_or_default()
}
