//! `DELETE /flows/{id}`: out of service; messages stay readable.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use crate::webhook::passthrough;

#[tokio::test]
async fn a_deleted_flow_takes_no_messages_and_frees_its_name() {
    let (app, target) = (TestApp::start().await, FakeTarget::start().await);
    app.api.http_instance("erp", &target.url()).await;
    let (id, url) = app.api.deployed(&passthrough("gone")).await;
    let message = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&message, "delivered").await;
    let deleted = app.api.delete(&format!("/api/v1/flows/{id}")).await;
    assert_eq!((deleted.status, deleted.text.as_str()), (204, ""));
    app.api.without_key().post(&url, &json!({})).await.expect_error(404, "NOT_FOUND");
    app.api.get(&format!("/api/v1/flows/{id}")).await.expect_error(404, "NOT_FOUND");
    app.api.delete(&format!("/api/v1/flows/{id}")).await.expect_error(404, "NOT_FOUND");
    assert_eq!(app.api.message(&message).await["status"], "delivered");
    app.api.flow(&passthrough("gone")).await;
}
