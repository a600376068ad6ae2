//! Inbound webhooks: accepted and refused requests, and their answers.

mod bad_input;
mod body_kinds;
mod credentials;
mod idempotency;
mod ordering;
mod pause;
mod slow_senders;
mod verify;

/// A flow that hands on what it gets, byte for byte, to the instance `erp`.
pub fn passthrough(name: &str) -> String {
    format!(
        r"flow: {name}
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
"
    )
}
