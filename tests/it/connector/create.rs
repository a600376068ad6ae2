//! `POST /connectors/instances`: the credentials of each kind reach the target, and nothing else.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::{Value, json};

#[tokio::test]
async fn each_kind_of_credentials_reaches_the_target_and_no_trace() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    let cases = [
        ("none", json!({}), "", String::new()),
        (
            "bearer",
            json!({"token": "tok-s3cret"}),
            "authorization",
            "Bearer tok-s3cret".to_owned(),
        ),
        (
            "basic",
            json!({"username": "ann", "password": "pw-s3cret"}),
            "authorization",
            "Basic YW5uOnB3LXMzY3JldA==".to_owned(),
        ),
        (
            "api_key",
            json!({"api_key": "key-s3cret"}),
            "x-api-key",
            "key-s3cret".to_owned(),
        ),
    ];
    for (at, (kind, fields, header, value)) in cases.into_iter().enumerate() {
        let name = format!("target-{}", kind.replace('_', "-"));
        let mut config =
            json!({"base_url": target.url(), "auth": kind, "headers": {"X-Fixed": "yes"}});
        for (key, field) in fields.as_object().unwrap() {
            config[key] = field.clone();
        }
        let body =
            json!({"catalogId": "http", "name": name, "displayName": "Target", "config": config});
        let made = app
            .api
            .post("/api/v1/connectors/instances", &body)
            .await
            .expect(201);
        assert!(made["id"].as_str().unwrap().starts_with("ci_"));
        assert!(!made.to_string().contains("s3cret"), "{made}");
        let yaml = format!(
            r"flow: {name}
version: 1
source:
  trigger: webhook
target:
  connector: {name}
  endpoint: /in
  method: POST
"
        );
        let (_, url) = app.api.deployed(&yaml).await;
        let id = app.api.webhook(&url, &json!({})).await;
        let message = app.api.message_becomes(&id, "delivered").await;
        let received = &target.received()[at];
        assert_eq!(received.header("x-fixed"), "yes");
        assert_eq!(
            received.header(if header.is_empty() {
                "authorization"
            } else {
                header
            }),
            value,
            "{kind}"
        );
        assert!(!message.to_string().contains("s3cret"), "{message}");
    }
    assert!(!app.log().contains("s3cret"));
    assert!(
        !folder_contains(&app.data_dir(), b"s3cret"),
        "secrets are encrypted at rest"
    );
}

#[tokio::test]
async fn a_key_in_the_query_is_sent_and_masked() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    let config = json!({
        "base_url": target.url(),
        "auth": "api_key",
        "api_key": "q-s3cret",
        "api_key_in": "query",
        "api_key_name": "token",
    });
    app.api
        .post(
            "/api/v1/connectors/instances",
            &json!({"catalogId": "http", "name": "erp", "config": config}),
        )
        .await
        .expect(201);
    let (_, url) = app
        .api
        .deployed(&crate::webhook::passthrough("query-key"))
        .await;
    let id = app.api.webhook(&url, &json!({})).await;
    let message = app.api.message_becomes(&id, "delivered").await;
    assert!(
        target.received()[0].path.ends_with("?token=q-s3cret"),
        "{}",
        target.received()[0].path
    );
    assert!(!message.to_string().contains("q-s3cret"), "{message}");
}

#[tokio::test]
async fn a_wrong_config_names_its_fields() {
    let app = TestApp::start().await;
    let post = async |config: Value| {
        let body = json!({"catalogId": "http", "name": "wrong", "config": config});
        app.api
            .post("/api/v1/connectors/instances", &body)
            .await
            .expect_error(400, "INVALID_ARGUMENT")
            .to_string()
    };
    assert!(post(json!([])).await.contains("config"));
    assert!(post(json!({})).await.contains("config.base_url"));
    assert!(
        post(json!({"base_url": "ftp://x", "auth": "none"}))
            .await
            .contains("config.base_url")
    );
    assert!(
        post(json!({"base_url": "http://x", "auth": "magic"}))
            .await
            .contains("config.auth")
    );
    assert!(
        post(json!({"base_url": "http://x", "auth": "bearer"}))
            .await
            .contains("config.token")
    );
    assert!(
        post(json!({"base_url": "http://x", "auth": "none", "colour": "red"}))
            .await
            .contains("config.colour")
    );
    let token = json!({"base_url": "http://x", "auth": "bearer", "token": "Bearer s3cret"});
    let refused = post(token).await;
    assert!(refused.contains("must not begin with"), "{refused}");
    assert!(!refused.contains("s3cret"), "{refused}");
    let unknown = json!({"catalogId": "nothing", "name": "x", "config": {}});
    let refused = app.api.post("/api/v1/connectors/instances", &unknown).await;
    assert_eq!(
        refused.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
        "catalogId"
    );
}

fn folder_contains(folder: &std::path::Path, needle: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return folder_contains(&path, needle);
        }
        std::fs::read(&path)
            .unwrap()
            .windows(needle.len())
            .any(|window| window == needle)
    })
}
