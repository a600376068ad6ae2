//! `GET /connectors/instances/{id}/health`: how an instance does, and every change of it.

use kanat_tests::target::status;
use kanat_tests::{FakeTarget, TestApp, until};
use serde_json::json;

#[tokio::test]
async fn connection_tests_lead_from_state_to_state() {
    let app = TestApp::start().await;
    let target =
        FakeTarget::scripted(|_, earlier| status(if earlier == 2 { 401 } else { 200 })).await;
    let id = app.api.http_instance("erp", &target.url()).await;
    let path = format!("/api/v1/connectors/instances/{id}");
    let fresh = app.api.get(&format!("{path}/health")).await.expect(200);
    assert_eq!(&fresh["status"], &json!("unknown"));
    assert_eq!(&fresh["data"], &json!([]));
    for _ in 0..3 {
        app.api
            .post(&format!("{path}/test"), &json!({}))
            .await
            .expect(200);
    }
    let health = app.api.get(&format!("{path}/health")).await.expect(200);
    assert_eq!(health["status"], "failing");
    let reason = health["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("connection test: GET ")
            && reason.ends_with("answered 401: the credentials were refused")
    );
    let changes = health["data"].as_array().unwrap();
    let states: Vec<_> = changes
        .iter()
        .map(|change| (&change["previous"], &change["status"]))
        .collect();
    assert_eq!(
        states,
        [
            (&json!("healthy"), &json!("failing")),
            (&json!("unknown"), &json!("healthy"))
        ]
    );
    assert_eq!(health["since"], changes[0]["at"]);
    assert_eq!(
        app.api.get(&path).await.expect(200)["health"]["status"],
        "failing"
    );
}

#[tokio::test]
async fn calls_of_flows_show_the_health_of_an_instance() {
    let app = TestApp::start().await;
    let target =
        FakeTarget::scripted(|_, earlier| status(if earlier < 5 { 503 } else { 200 })).await;
    let id = app.api.http_instance("erp", &target.url()).await;
    let yaml = crate::webhook::passthrough("failing") + "on_error: { retry: 0x fixed(1s) }\n";
    let (_, url) = app.api.deployed(&yaml).await;
    for _ in 0..5 {
        let message = app.api.webhook(&url, &json!({})).await;
        app.api.message_becomes(&message, "dead_letter").await;
    }
    let path = format!("/api/v1/connectors/instances/{id}/health");
    let health = until("the instance fails", || async {
        let health = app.api.get(&path).await.expect(200);
        (health["status"] == "failing").then_some(health)
    })
    .await;
    let expected = format!(
        "5 of 5 calls of flows failed since the report before, the last: POST {}/in answered 503",
        target.url()
    );
    let reason = health["reason"].as_str().unwrap();
    assert!(reason.starts_with(&expected), "{reason}");

    let message = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&message, "delivered").await;
    until("one call that went well heals it", || async {
        (app.api.get(&path).await.expect(200)["status"] == "healthy").then_some(())
    })
    .await;
}

#[tokio::test]
async fn one_good_call_is_a_first_judgement() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    let id = app.api.http_instance("erp", &target.url()).await;
    let yaml = crate::webhook::passthrough("working");
    let (_, url) = app.api.deployed(&yaml).await;
    let message = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&message, "delivered").await;
    let path = format!("/api/v1/connectors/instances/{id}");
    let check = format!("{path}/schemas/check");
    app.api.post(&check, &json!({})).await.expect(200);
    let health = app.api.get(&format!("{path}/health")).await.expect(200);
    assert_eq!(health["status"], "healthy", "{health}");
}

#[tokio::test]
async fn calls_before_a_change_of_the_config_do_not_count() {
    let app = TestApp::start().await;
    let target =
        FakeTarget::scripted(|_, earlier| status(if earlier < 3 { 401 } else { 200 })).await;
    let id = app.api.http_instance("erp", &target.url()).await;
    let yaml = crate::webhook::passthrough("mended") + "on_error: { retry: 0x fixed(1s) }\n";
    let (_, url) = app.api.deployed(&yaml).await;
    for _ in 0..3 {
        let message = app.api.webhook(&url, &json!({})).await;
        app.api.message_becomes(&message, "dead_letter").await;
    }
    let path = format!("/api/v1/connectors/instances/{id}");
    let config = json!({ "config": { "auth": "bearer", "token": "right" } });
    app.api.patch(&path, &config).await.expect(200);
    let message = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&message, "delivered").await;
    // Nodes report what they have seen when a check asks for it.
    let check = format!("{path}/schemas/check");
    app.api.post(&check, &json!({})).await.expect(200);
    let health = app.api.get(&format!("{path}/health")).await.expect(200);
    assert_eq!(health["status"], "healthy", "{health}");
}

#[tokio::test]
async fn a_connector_whose_calls_pause_says_until_when() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, _| status(503)).await;
    let id = app.api.http_instance("erp", &target.url()).await;
    let config = json!({ "config": { "breaker_failures": 2, "breaker_seconds": 600 } });
    app.api
        .patch(&format!("/api/v1/connectors/instances/{id}"), &config)
        .await
        .expect(200);
    let yaml = crate::webhook::passthrough("pausing") + "on_error: { retry: 1x fixed(10ms) }\n";
    let (_, url) = app.api.deployed(&yaml).await;
    app.api.webhook(&url, &json!({})).await;
    let path = format!("/api/v1/connectors/instances/{id}/health");
    let health = until("two failures in a row are reported", || async {
        let health = app.api.get(&path).await.expect(200);
        (health["status"] == "failing").then_some(health)
    })
    .await;
    let reason = health["reason"].as_str().unwrap();
    assert!(reason.contains("calls pause until 20"), "{reason}");
}
