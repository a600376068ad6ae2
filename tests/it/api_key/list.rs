//! `GET /api-keys`: no secret among them.

use kanat_tests::{TestApp, rest::text};
use serde_json::json;

#[tokio::test]
async fn shows_prefixes_and_never_keys() {
    let app = TestApp::start().await;
    let made = app
        .api
        .post("/api/v1/api-keys", &json!({"name": "ci", "role": "viewer"}))
        .await
        .expect(201);
    let list = app.api.get("/api/v1/api-keys").await;
    assert!(!list.text.contains(&text(&made["key"])));
    let body = list.expect(200);
    assert_eq!(body["data"][0]["name"], "ci");
    assert_eq!(made["role"], "viewer");
    assert!(body["data"][1]["lastUsedAt"].is_string(), "{body}");
    assert!(text(&made["key"]).starts_with(&text(&body["data"][0]["prefix"])));
    assert_eq!(
        body["pagination"]["total"], 2,
        "with the owner's key of the first start"
    );
}
