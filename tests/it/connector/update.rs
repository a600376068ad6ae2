//! `PUT` and `PATCH /connectors/instances/{id}`: partial, live, and a masked secret stays.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

#[tokio::test]
async fn a_new_address_is_live_at_once_and_a_masked_secret_stays() {
    let app = TestApp::start().await;
    let first = FakeTarget::start().await;
    let second = FakeTarget::start().await;
    let config = json!({"base_url": first.url(), "auth": "bearer", "token": "keep-me"});
    let made = app
        .api
        .post(
            "/api/v1/connectors/instances",
            &json!({"catalogId": "http", "name": "erp", "config": config}),
        )
        .await
        .expect(201);
    let path = format!(
        "/api/v1/connectors/instances/{}",
        made["id"].as_str().unwrap()
    );
    let (_, url) = app
        .api
        .deployed(&crate::webhook::passthrough("moved"))
        .await;
    let update = json!({"config": {"base_url": format!("{}/", first.url()), "token": "********"}});
    app.api.patch(&path, &update).await.expect(200);
    let update = json!({"config": {"base_url": second.url(), "token": "keep-me"}});
    let updated = app.api.patch(&path, &update).await.expect(200);
    assert_eq!(updated["config"]["auth"], "bearer");
    app.api.webhook(&url, &json!({})).await;
    let received = second.arrivals(1).await;
    assert_eq!(received[0].header("authorization"), "Bearer keep-me");
    assert!(first.received().is_empty());
    for (config, field) in [
        (json!({"base_url": "nowhere"}), "config.base_url"),
        (json!({"token": null}), "config.token"),
        (json!({"token": "bearer s3cret"}), "config.token"),
        (json!({"token": " s3cret"}), "config.token"),
    ] {
        let refused = app.api.patch(&path, &json!({ "config": config })).await;
        assert_eq!(
            refused.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
            field
        );
    }
    let other = app.api.http_instance("shop", &first.url()).await;
    let renamed = app
        .api
        .patch(
            &format!("/api/v1/connectors/instances/{other}"),
            &json!({"name": "erp"}),
        )
        .await;
    renamed.expect_error(409, "ALREADY_EXISTS");
}

#[tokio::test]
async fn secrets_are_given_again_when_they_are_to_go_elsewhere() {
    let app = TestApp::start().await;
    let first = FakeTarget::start().await;
    let second = FakeTarget::start().await;
    let config = json!({
        "base_url": first.url(), "auth": "bearer", "token": "keep-me", "webhook_secret": "mine",
        "headers": {"X-Api-Key": "key", "X-Source": "kanat"},
    });
    let body = json!({"catalogId": "http", "name": "erp", "config": config});
    let made = app
        .api
        .post("/api/v1/connectors/instances", &body)
        .await
        .expect(201);
    let path = format!(
        "/api/v1/connectors/instances/{}",
        made["id"].as_str().unwrap()
    );
    for given in [
        json!({}),
        json!({"token": "********", "webhook_secret": "********"}),
        json!({"token": "keep-me", "webhook_secret": "mine", "headers": {"X-Api-Key": "********"}}),
        json!({"webhook_secret": null, "headers": {}}),
    ] {
        let mut config = given.clone();
        config["base_url"] = second.url().into();
        let refused = app
            .api
            .patch(&path, &json!({ "config": config }))
            .await
            .expect_error(400, "INVALID_ARGUMENT");
        assert!(
            refused[0]["message"]
                .as_str()
                .unwrap()
                .contains("required again"),
            "{given}: {refused}"
        );
    }
    app.api
        .post(&format!("{path}/test"), &json!({}))
        .await
        .expect(200);
    assert_eq!(first.received().len(), 1);
    assert!(second.received().is_empty());
    let mut config = config;
    config["base_url"] = second.url().into();
    app.api
        .patch(&path, &json!({ "config": config }))
        .await
        .expect(200);
    app.api
        .post(&format!("{path}/test"), &json!({}))
        .await
        .expect(200);
    assert_eq!(
        second.received()[0].header("authorization"),
        "Bearer keep-me"
    );
}
