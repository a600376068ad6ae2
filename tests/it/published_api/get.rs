//! `GET /published-apis/{id}`: schemas and mappings as they came.

use kanat_tests::{TestApp, rest::text};

use super::{PATH, quote};

#[tokio::test]
async fn schemas_read_back_digit_by_digit() {
    let app = TestApp::start().await;
    app.api.flow(&quote("quotes")).await;
    let schema = r#"{"z":1.10,"maximum":12345678901234567890123,"minimum":0.10}"#;
    let body = format!(r#"{{"path": "orders", "flowName": "quotes", "requestSchema": {schema}}}"#);
    let made = app.api.raw("POST", PATH, "application/json", body).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let id = made.text.split('"').nth(3).unwrap().to_owned();
    let read = app.api.get(&format!("{PATH}/{id}")).await;
    assert!(
        read.text.contains(&format!("\"requestSchema\":{schema}")),
        "{}",
        read.text
    );
    assert!(!read.header("etag").is_empty());
    app.api
        .get(&format!("{PATH}/api_none"))
        .await
        .expect_error(404, "NOT_FOUND");
    let app = &app.api;
    let plain = app
        .post(
            PATH,
            &serde_json::json!({"path": "other", "flowName": "quotes"}),
        )
        .await
        .expect(201);
    assert_eq!(
        app.get(&format!("{PATH}/{}", text(&plain["id"])))
            .await
            .expect(200),
        plain
    );
}
