//! Pausing loses nothing: messages are accepted, held, and run when the flow is resumed.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::passthrough;

#[tokio::test]
async fn a_paused_flow_holds_its_messages_until_it_is_resumed() {
    let (mut app, target) = (TestApp::start().await, FakeTarget::start().await);
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(&passthrough("paused")).await;
    let (other, other_url) = app.api.deployed(&passthrough("not-paused")).await;
    let paused = app.api.post(&format!("/api/v1/flows/{flow}/pause"), &json!({})).await.expect(200);
    assert_eq!(paused["status"], "paused");

    let held = app.api.webhook(&url, &json!({"n": 1})).await;
    let passing = app.api.webhook(&other_url, &json!({"n": 2})).await;
    app.api.message_becomes(&passing, "delivered").await;
    assert_eq!(app.api.message(&held).await["status"], "held");
    app.kill().await;
    app.restart().await;
    assert_eq!(app.api.message(&held).await["status"], "held");

    let resumed = app.api.post(&format!("/api/v1/flows/{flow}/resume"), &json!({})).await.expect(200);
    assert_eq!(resumed["status"], "active");
    app.api.message_becomes(&held, "delivered").await;
    assert_eq!(target.received().len(), 2);
    let again = app.api.post(&format!("/api/v1/flows/{other}/resume"), &json!({})).await;
    again.expect_error(400, "FAILED_PRECONDITION");
}
