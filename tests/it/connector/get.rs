//! `GET /connectors/instances/{id}`: secrets read `********`.

use kanat_tests::TestApp;
use serde_json::json;

#[tokio::test]
async fn secrets_are_masked() {
    let app = TestApp::start().await;
    let body = json!({
        "catalogId": "email-delivery",
        "name": "mail",
        "config": {"api_key": "SG.very-s3cret"},
    });
    let made = app
        .api
        .post("/api/v1/connectors/instances", &body)
        .await
        .expect(201);
    let read = app
        .api
        .get(&format!(
            "/api/v1/connectors/instances/{}",
            made["id"].as_str().unwrap()
        ))
        .await
        .expect(200);
    assert_eq!(read["config"]["api_key"], "********");
    assert_eq!(read["catalogId"], "email-delivery");
    app.api
        .get("/api/v1/connectors/instances/ci_nobody")
        .await
        .expect_error(404, "NOT_FOUND");
}
