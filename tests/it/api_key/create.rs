//! `POST /api-keys`: the key shows once, and may do what its role may.

use kanat_tests::{Rest, TestApp, rest::text};
use serde_json::{Value, json};

async fn key(api: &Rest, body: Value) -> Rest {
    let made = api.post("/api/v1/api-keys", &body).await.expect(201);
    let key = text(&made["key"]);
    assert!(key.starts_with("kanat_ak_"));
    api.with_key(&key)
}

#[tokio::test]
async fn a_key_does_what_its_role_may() {
    let app = TestApp::start().await;
    let viewer = key(&app.api, json!({"name": "looks", "role": "viewer"})).await;
    let editor = key(&app.api, json!({"name": "builds", "role": "editor"})).await;
    viewer.get("/api/v1/flows").await.expect(200);
    let table = json!({"name": "t"});
    viewer
        .post("/api/v1/lookup-tables", &table)
        .await
        .expect_error(403, "PERMISSION_DENIED");
    editor
        .post("/api/v1/lookup-tables", &table)
        .await
        .expect(201);
    editor
        .post("/api/v1/api-keys", &json!({"name": "more"}))
        .await
        .expect_error(403, "PERMISSION_DENIED");
    let admin = key(&app.api, json!({"name": "runs", "role": "admin"})).await;
    let raised = admin
        .post("/api/v1/api-keys", &json!({"name": "up", "role": "owner"}))
        .await;
    raised.expect_error(403, "PERMISSION_DENIED");
    let wrong = app
        .api
        .post("/api/v1/api-keys", &json!({"name": "x", "role": "king"}))
        .await;
    assert_eq!(
        wrong.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
        "role"
    );
}

#[tokio::test]
async fn a_key_bound_to_an_environment_stays_there() {
    let app = TestApp::start().await;
    let environments = app.api.get("/api/v1/environments").await.expect(200);
    let staging = environments["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|e| e["name"] == "staging")
        .unwrap();
    let bound = key(
        &app.api,
        json!({"name": "bound", "environmentId": staging["id"]}),
    )
    .await;
    let made = bound
        .post("/api/v1/lookup-tables", &json!({"name": "here"}))
        .await
        .expect(201);
    let path = format!("/api/v1/lookup-tables/{}", made["id"].as_str().unwrap());
    app.api.get(&path).await.expect_error(404, "NOT_FOUND");
    app.api
        .with_header("x-environment", "staging")
        .get(&path)
        .await
        .expect(200);
    let elsewhere = bound
        .with_header("x-environment", "production")
        .get("/api/v1/flows")
        .await;
    elsewhere.expect_error(403, "PERMISSION_DENIED");
}

#[tokio::test]
async fn an_expired_key_and_a_wrong_one_are_401() {
    let app = TestApp::start().await;
    let past = app
        .api
        .post(
            "/api/v1/api-keys",
            &json!({"name": "x", "expiresAt": "2020-01-01T00:00:00Z"}),
        )
        .await;
    assert_eq!(
        past.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
        "expiresAt"
    );
    for wrong in [
        app.api.without_key(),
        app.api.with_key("kanat_ak_wrong"),
        app.api.with_key(""),
    ] {
        let answer = wrong.get("/api/v1/flows").await;
        assert!(!answer.header("www-authenticate").is_empty());
        answer.expect_error(401, "UNAUTHENTICATED");
    }
}
