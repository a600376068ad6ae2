//! `PUT` and `PATCH /connectors/instances/{id}`: partial, live, and a masked secret stays.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

#[tokio::test]
async fn a_new_address_is_live_at_once_and_a_masked_secret_stays() {
    let app = TestApp::start().await;
    let (first, second) = (FakeTarget::start().await, FakeTarget::start().await);
    let config = json!({"base_url": first.url(), "auth": "bearer", "token": "keep-me"});
    let made = app
        .api
        .post("/api/v1/connectors/instances", &json!({"catalogId": "http", "name": "erp", "config": config}))
        .await
        .expect(201);
    let path = format!("/api/v1/connectors/instances/{}", made["id"].as_str().unwrap());
    let (_, url) = app.api.deployed(&crate::webhook::passthrough("moved")).await;
    let update = json!({"config": {"base_url": second.url(), "token": "********"}});
    let updated = app.api.patch(&path, &update).await.expect(200);
    assert_eq!(updated["config"]["auth"], "bearer");
    app.api.webhook(&url, &json!({})).await;
    let received = second.arrivals(1).await;
    assert_eq!(received[0].header("authorization"), "Bearer keep-me");
    assert!(first.received().is_empty());
    let wrong = app.api.patch(&path, &json!({"config": {"base_url": "nowhere"}})).await;
    assert_eq!(wrong.expect_error(400, "INVALID_ARGUMENT")[0]["field"], "config.base_url");
}
