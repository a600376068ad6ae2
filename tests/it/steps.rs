//! Flows with steps: calls of catalog actions before the target, or instead of one.

mod resume;
mod run;

use kanat_tests::target::{ReceivedRequest, Reply};
use kanat_tests::{FakeTarget, Rest};
use serde_json::json;

/// Adds a contact, opens a ticket with its job, and sends both to the target.
pub const FLOW: &str = r#"flow: welcome
version: 1
source:
  trigger: webhook
steps:
  - name: contact
    action: email-delivery.add-contacts
    params: { contacts: [{ email: "{{ source.email }}" }] }
  - name: ticket
    action: support-ticketing.create-ticket
    connector: desk
    params:
      ticket:
        subject: "Welcome {{ source.name }}"
        comment: { body: "job {{ steps.contact.output.job_id }}", public: false }
        tags: [new]
target:
  connector: erp
  endpoint: /customers/{{ source.name }}
  method: PUT
mapping:
  email: source.email | required
  ticket: steps.ticket.output.ticket.id
  answered: steps.ticket.status
on_error:
  retry: 5x fixed(20ms)
"#;

/// A desk instance whose provider is `desk`, a newsletter whose provider is `mail`, and `erp`.
pub async fn instances(api: &Rest, desk: &FakeTarget, mail: &FakeTarget, erp: &FakeTarget) {
    let config = json!({
        "subdomain": "acme",
        "email": "agent@acme.example",
        "api_token": "s3cr3t-token",
        "base_url": desk.url(),
    });
    instance(api, "support-ticketing", "desk", &config).await;
    let config = json!({ "api_key": "SG.s3cr3t", "base_url": format!("{}/v3", mail.url()) });
    instance(api, "email-delivery", "newsletter", &config).await;
    api.http_instance("erp", &erp.url()).await;
}

pub async fn instance(api: &Rest, entry: &str, name: &str, config: &serde_json::Value) {
    let body = json!({ "catalogId": entry, "name": name, "config": config });
    api.post("/api/v1/connectors/instances", &body)
        .await
        .expect(201);
}

/// Answer of a provider to a call that creates a resource.
pub fn made(body: &str) -> Reply {
    Reply::Answer(201, Vec::new(), body.to_owned())
}

/// `METHOD path`, in order.
pub fn calls(target: &FakeTarget) -> Vec<String> {
    target
        .received()
        .iter()
        .map(|ReceivedRequest { method, path, .. }| format!("{method} {path}"))
        .collect()
}
