//! `GET /flows/{id}`: the flow with its parsed definition and its compiled plan.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::manual;
use crate::webhook::passthrough;

#[tokio::test]
async fn shows_the_definition_as_a_tree_and_the_plan() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let id = app.api.flow(&manual("shown")).await;
    let flow = app
        .api
        .get(&format!("/api/v1/flows/{id}"))
        .await
        .expect(200);
    assert_eq!(flow["config"]["flow"], "shown");
    assert_eq!(flow["config"]["mapping"]["id"], "source.id | required");
    assert!(flow["plan"].is_object(), "{flow}");
    assert_eq!(flow.get("webhookUrl"), None);
}

#[tokio::test]
async fn carries_an_etag_that_guards_updates() {
    let app = TestApp::start().await;
    let id = app.api.flow(&manual("guarded")).await;
    let path = format!("/api/v1/flows/{id}");
    let first = app.api.get(&path).await;
    let etag = first.header("etag").to_owned();
    assert!(!etag.is_empty());
    let body = serde_json::json!({"description": "one"});
    app.api
        .with_header("if-match", &etag)
        .put(&path, &body)
        .await
        .expect(200);
    app.api
        .with_header("if-match", &etag)
        .put(&path, &body)
        .await
        .expect_error(409, "ABORTED");
}

#[tokio::test]
async fn a_tag_changes_with_all_that_is_shown() {
    let app = TestApp::start().await;
    let id = app.api.flow(&manual("alone")).await;
    let path = format!("/api/v1/flows/{id}");
    let alone = app.api.get(&path).await;
    let again = app.api.with_header("if-none-match", alone.header("etag"));
    assert_eq!(again.get(&path).await.status, 304);
    // The instance that it names comes to be: a warning less, with nothing changed in the flow
    // itself.
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    assert_eq!(
        again.get(&path).await.expect(200)["warnings"],
        serde_json::json!([])
    );
    let body = serde_json::json!({"description": "still the same revision"});
    app.api
        .with_header("if-match", alone.header("etag"))
        .put(&path, &body)
        .await
        .expect(200);
}

#[tokio::test]
async fn an_unknown_flow_is_404() {
    let app = TestApp::start().await;
    app.api
        .get("/api/v1/flows/flw_nobody")
        .await
        .expect_error(404, "NOT_FOUND");
}

#[tokio::test]
async fn a_viewer_does_not_see_where_messages_are_sent() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (id, url) = app.api.deployed(&passthrough("called")).await;
    let token = url.rsplit('/').next().unwrap();
    let viewer = app
        .api
        .post("/api/v1/api-keys", &json!({"name": "v", "role": "viewer"}))
        .await
        .expect(201);
    let viewer = app.api.with_key(viewer["key"].as_str().unwrap());
    let message = app.api.webhook(&url, &json!({"n": 1})).await;
    app.api.message_becomes(&message, "delivered").await;
    let flow = format!("/api/v1/flows/{id}");
    for path in [
        flow.clone(),
        "/api/v1/flows".to_owned(),
        format!("{flow}/versions"),
        format!("{flow}/versions/1"),
        format!("{flow}/plan"),
        format!("/api/v1/messages?flowId={id}"),
        format!("/api/v1/messages/{message}"),
    ] {
        let shown = viewer.get(&path).await;
        assert_eq!(shown.status, 200, "{path}");
        assert!(!shown.text.contains(token), "{path}: {}", shown.text);
    }
    assert_eq!(viewer.get(&flow).await.expect(200).get("webhookUrl"), None);
    assert_eq!(app.api.get(&flow).await.expect(200)["webhookUrl"], url);
}
