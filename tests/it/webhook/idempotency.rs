//! A repeated idempotency key is answered as a duplicate, and stores nothing.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

const FLOW: &str = r"flow: once
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
idempotency_key: source.id
";

#[tokio::test]
async fn the_same_key_is_answered_with_the_first_id_across_a_restart() {
    let mut app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(FLOW).await;
    let first = app.api.webhook(&url, &json!({"id": "a", "n": 1})).await;
    app.kill().await;
    app.restart().await;
    let repeat = app
        .api
        .without_key()
        .post(&url, &json!({"id": "a", "n": 2}))
        .await
        .expect(202);
    assert_eq!(repeat, json!({"messageId": first, "status": "duplicate"}));
    let other = app
        .api
        .without_key()
        .post(&url, &json!({"id": "b"}))
        .await
        .expect(202);
    assert_eq!(other["status"], "accepted");
    let list = app
        .api
        .get(&format!("/api/v1/messages?flowId={flow}"))
        .await
        .expect(200);
    assert_eq!(list["pagination"]["total"], 2);
}

#[tokio::test]
async fn many_at_once_with_one_key_store_one_message() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(FLOW).await;
    let payload = json!({"id": "same"});
    let answers = futures::future::join_all(
        (0..50).map(|_| app.api.without_key().post_owned(&url, &payload)),
    )
    .await;
    let accepted = answers
        .into_iter()
        .filter(|answer| answer.clone().expect(202)["status"] == "accepted")
        .count();
    assert_eq!(accepted, 1);
    let list = app
        .api
        .get(&format!("/api/v1/messages?flowId={flow}"))
        .await
        .expect(200);
    assert_eq!(list["pagination"]["total"], 1);
}
