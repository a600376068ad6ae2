//! `DELETE /api-keys/{id}`: refused from then on.

use kanat_tests::{TestApp, rest::text};
use serde_json::json;

#[tokio::test]
async fn a_revoked_key_is_401_at_once() {
    let app = TestApp::start().await;
    let made = app
        .api
        .post("/api/v1/api-keys", &json!({"name": "short-lived"}))
        .await
        .expect(201);
    let holder = app.api.with_key(&text(&made["key"]));
    holder.get("/api/v1/flows").await.expect(200);
    let path = format!("/api/v1/api-keys/{}", text(&made["id"]));
    assert_eq!(app.api.delete(&path).await.status, 204);
    holder
        .get("/api/v1/flows")
        .await
        .expect_error(401, "UNAUTHENTICATED");
    app.api.delete(&path).await.expect_error(404, "NOT_FOUND");
}
