//! Secrets are nowhere to be read: not in answers, not in traces, not in logs, not on disk.

use kanat_tests::app::KEY;
use kanat_tests::target::{ReceivedRequest, Reply};
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

const TOKEN: &str = "bearer-token-that-nobody-may-read-7f3a";
const WEBHOOK_SECRET: &str = "webhook-secret-that-nobody-may-read-91bc";

const FLOW: &str = r#"flow: discreet
version: 1
source:
  connector: erp
  trigger: webhook
  verify:
    scheme: token
    secret: "{{ instance.webhook_secret }}"
target:
  connector: erp
  endpoint: /in
  method: POST
on_error:
  retry: 1x fixed(10ms)
"#;

/// A target that sends back what it was sent, credentials too, and fails.
fn parrot(received: &ReceivedRequest, _earlier: usize) -> Reply {
    let echo = json!({ "you sent": received.header("authorization") });
    Reply::Answer(500, Vec::new(), echo.to_string())
}

#[tokio::test]
async fn no_secret_shows_in_answers_traces_logs_or_files() {
    let mut app = TestApp::start_with(&[("KANAT_LOG", "debug")]).await;
    let target = FakeTarget::scripted(parrot).await;
    let config = json!({
        "base_url": target.url(),
        "auth": "bearer",
        "token": TOKEN,
        "webhook_secret": WEBHOOK_SECRET,
    });
    let body = json!({"catalogId": "http", "name": "erp", "config": config});
    let made = app.api.post("/api/v1/connectors/instances", &body).await;
    let (flow, url) = app.api.deployed(FLOW).await;
    let sender = app
        .api
        .without_key()
        .with_header("x-webhook-token", WEBHOOK_SECRET);
    let accepted = sender.post(&url, &json!({"n": 1})).await.expect(202);
    let id = accepted["messageId"].as_str().unwrap();
    app.api.message_becomes(id, "dead_letter").await;
    assert_eq!(
        target.received()[0].header("authorization"),
        format!("Bearer {TOKEN}")
    );

    let mut seen = vec![made.text];
    for path in [
        "connectors/instances",
        &format!("flows/{flow}"),
        &format!("messages/{id}"),
        "nodes",
        "api-keys",
    ] {
        seen.push(app.api.get(&format!("/api/v1/{path}")).await.text);
    }
    assert_eq!(app.terminate().await, Some(0));
    seen.push(app.log());
    for text in &seen {
        for secret in [TOKEN, WEBHOOK_SECRET, KEY] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
    for (path, bytes) in app.files() {
        // The message keeps the headers that it came with; the configuration keeps no secret in the
        // clear.
        for secret in [TOKEN, KEY] {
            let found = bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} in {}", path.display());
        }
    }
}
