//! Pausing loses nothing: messages are accepted, held, and run when the flow is resumed.

use kanat_tests::target::{Reply, status};
use kanat_tests::{FakeTarget, TestApp, until};
use serde_json::json;

use super::passthrough;

#[tokio::test]
async fn a_paused_flow_holds_its_messages_until_it_is_resumed() {
    let mut app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(&passthrough("paused")).await;
    let (other, other_url) = app.api.deployed(&passthrough("not-paused")).await;
    let paused = app
        .api
        .post(&format!("/api/v1/flows/{flow}/pause"), &json!({}))
        .await
        .expect(200);
    assert_eq!(paused["status"], "paused");

    let held = app.api.webhook(&url, &json!({"n": 1})).await;
    let passing = app.api.webhook(&other_url, &json!({"n": 2})).await;
    app.api.message_becomes(&passing, "delivered").await;
    assert_eq!(app.api.message(&held).await["status"], "held");
    app.kill().await;
    app.restart().await;
    assert_eq!(app.api.message(&held).await["status"], "held");

    let resumed = app
        .api
        .post(&format!("/api/v1/flows/{flow}/resume"), &json!({}))
        .await
        .expect(200);
    assert_eq!(resumed["status"], "active");
    app.api.message_becomes(&held, "delivered").await;
    assert_eq!(target.received().len(), 2);
    let again = app
        .api
        .post(&format!("/api/v1/flows/{other}/resume"), &json!({}))
        .await;
    again.expect_error(400, "FAILED_PRECONDITION");
}

#[tokio::test]
async fn what_waits_for_its_turn_at_a_connector_is_not_sent_once_the_flow_is_paused() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, _| Reply::Hang).await;
    let other = FakeTarget::start().await;
    let config = json!({ "base_url": target.url(), "auth": "none", "concurrency": 1 });
    let instance = json!({ "catalogId": "http", "name": "erp", "config": config });
    let made = app
        .api
        .post("/api/v1/connectors/instances", &instance)
        .await
        .expect(201);
    let (flow, url) = app.api.deployed(&passthrough("paused")).await;
    let first = app.api.webhook(&url, &json!({"n": 1})).await;
    until("the first call hangs", || async {
        (target.count() == 1).then_some(())
    })
    .await;
    let waits = app.api.webhook(&url, &json!({"n": 2})).await;
    app.api.message_becomes(&waits, "processing").await;
    app.api
        .post(&format!("/api/v1/flows/{flow}/pause"), &json!({}))
        .await
        .expect(200);
    app.api.message_becomes(&waits, "held").await;

    // The same holds for a connector that leads elsewhere by now.
    app.api
        .post(&format!("/api/v1/flows/{flow}/resume"), &json!({}))
        .await
        .expect(200);
    app.api.message_becomes(&waits, "processing").await;
    let path = format!(
        "/api/v1/connectors/instances/{}",
        made["id"].as_str().unwrap()
    );
    let moved = json!({ "config": { "base_url": other.url() } });
    app.api.put(&path, &moved).await.expect(200);
    target.release();
    for message in [&first, &waits] {
        app.api.message_becomes(message, "delivered").await;
    }
    assert_eq!(target.count(), 1);
    assert_eq!(other.count(), 1);
}

/// One message waits for its next attempt, which is a day away; one is a dead letter that is
/// retried.
const WAITING: &str = r"flow: waiting
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
mapping:
  id: source.id | required
on_error:
  retry: 1x fixed(1d)
";

#[tokio::test]
async fn what_waits_in_a_paused_flow_is_held_whatever_it_waited_for() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, _| status(500)).await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(WAITING).await;
    let retrying = app.api.webhook(&url, &json!({"id": 1})).await;
    let dead = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&retrying, "retrying").await;
    app.api.message_becomes(&dead, "dead_letter").await;

    app.api
        .post(&format!("/api/v1/flows/{flow}/pause"), &json!({}))
        .await
        .expect(200);
    app.api
        .post(&format!("/api/v1/messages/{dead}/retry"), &json!({}))
        .await
        .expect(202);
    let held = app.api.message(&retrying).await;
    assert_eq!(held["status"], "held");
    assert_eq!(held["nextAttemptAt"], json!(null));
    assert_eq!(app.api.message(&dead).await["status"], "held");
    let both = vec![dead.clone(), retrying.clone()];
    for flow_id in [flow.as_str(), "-"] {
        assert_eq!(listed(&app, flow_id, "held").await, both, "{flow_id}");
        assert_eq!(
            listed(&app, flow_id, "held&status=delivered").await,
            both,
            "{flow_id}"
        );
        assert_eq!(
            listed(&app, flow_id, "retrying").await,
            Vec::<String>::new(),
            "{flow_id}"
        );
        assert_eq!(
            listed(&app, flow_id, "received").await,
            Vec::<String>::new(),
            "{flow_id}"
        );
    }
    let all = app
        .api
        .get(&format!("/api/v1/messages?flowId={flow}"))
        .await
        .expect(200);
    assert_eq!(all["data"][0]["status"], "held");
    assert_eq!(all["data"][1]["status"], "held");

    app.api
        .post(&format!("/api/v1/flows/{flow}/resume"), &json!({}))
        .await
        .expect(200);
    app.api.message_becomes(&dead, "dead_letter").await;
    let message = app.api.message(&retrying).await;
    assert_eq!(message["status"], "retrying");
    assert!(message["nextAttemptAt"].is_string(), "{message}");
    assert_eq!(target.received().len(), 1);
}

/// Ids of the messages that a list has, the newest first.
async fn listed(app: &TestApp, flow_id: &str, status: &str) -> Vec<String> {
    let list = app
        .api
        .get(&format!(
            "/api/v1/messages?flowId={flow_id}&status={status}"
        ))
        .await
        .expect(200);
    let data = list["data"].as_array().unwrap();
    data.iter()
        .map(|message| message["id"].as_str().unwrap().to_owned())
        .collect()
}
