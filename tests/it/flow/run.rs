//! `POST /flows/{id}/run`: a deployed flow, started by hand.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::manual;

#[tokio::test]
async fn a_payload_is_accepted_and_delivered() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (id, _) = app.api.deployed(&manual("handy")).await;
    let body = r#"{"payload": {"id": 9007199254740993, "x": 1.10}}"#;
    let answer = app
        .api
        .raw(
            "POST",
            &format!("/api/v1/flows/{id}/run"),
            "application/json",
            body,
        )
        .await
        .expect(202);
    let message = app
        .api
        .message_becomes(answer["messageId"].as_str().unwrap(), "delivered")
        .await;
    assert_eq!(message["trigger"], "manual");
    assert_eq!(
        target.received()[0].body,
        r#"{"id":9007199254740993}"#.as_bytes()
    );
    let read = app
        .api
        .get(&format!(
            "/api/v1/messages/{}",
            message["id"].as_str().unwrap()
        ))
        .await;
    assert!(
        read.text.contains("9007199254740993") && read.text.contains("1.10"),
        "{}",
        read.text
    );
}

#[tokio::test]
async fn a_draft_cannot_be_run() {
    let app = TestApp::start().await;
    let id = app.api.flow(&manual("draft")).await;
    let answer = app
        .api
        .post(&format!("/api/v1/flows/{id}/run"), &json!({"payload": {}}))
        .await;
    answer.expect_error(400, "FAILED_PRECONDITION");
}
