//! `POST /connectors/instances/{id}/test`: a call with the instance's credentials.

use kanat_tests::cli::Cli;
use kanat_tests::target::status;
use kanat_tests::{FakeTarget, TestApp};
use serde_json::{Value, json};

#[tokio::test]
async fn says_what_came_back() {
    let app = TestApp::start().await;
    let target =
        FakeTarget::scripted(|_, earlier| status(if earlier == 0 { 200 } else { 401 })).await;
    let id = app.api.http_instance("erp", &target.url()).await;
    let path = format!("/api/v1/connectors/instances/{id}/test");
    let good = app.api.post(&path, &json!({})).await.expect(200);
    assert_eq!(&good["ok"], &json!(true));
    assert_eq!(&good["status"], &json!(200));
    let healthy = app
        .api
        .get("/api/v1/connectors/instances")
        .await
        .expect(200);
    assert_eq!(healthy["data"][0].get("lastError"), Some(&Value::Null));
    let request = &good["request"];
    assert_eq!(&request["method"], &json!("GET"));
    assert_eq!(&request["url"], &json!(format!("{}/", target.url())));
    let bad = app.api.post(&path, &json!({})).await.expect(200);
    assert_eq!(&bad["ok"], &json!(false));
    assert_eq!(&bad["status"], &json!(401));
    let failing = app
        .api
        .get("/api/v1/connectors/instances")
        .await
        .expect(200)["data"][0]["lastError"]
        .clone();
    assert!(
        failing["message"]
            .as_str()
            .unwrap()
            .contains("answered 401")
            && failing["at"].is_string(),
        "{failing}"
    );
    let listed = Cli::of(&app).run(&["connector", "list"]).await.expect();
    assert!(
        listed.contains("failing") && listed.contains("answered 401"),
        "{listed}"
    );
    let metadata = app
        .api
        .http_instance("metadata", "http://169.254.169.254")
        .await;
    let refused = app
        .api
        .post(
            &format!("/api/v1/connectors/instances/{metadata}/test"),
            &json!({}),
        )
        .await
        .expect(200);
    assert_eq!(refused["ok"], false);
    assert!(
        refused["message"].as_str().unwrap().contains("egress"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_token_alone_is_sent_and_shown_masked() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, _| status(501)).await;
    let cli = Cli::of(&app);
    let base = format!("base_url={}", target.url());
    cli.run(&[
        "connector",
        "create",
        "http",
        "shop",
        "--set",
        &base,
        "--set",
        "token=tok-s3cret",
    ])
    .await
    .expect();
    let told = cli.run(&["connector", "test", "shop"]).await.expect();
    assert_eq!(
        target.received()[0].header("authorization"),
        "Bearer tok-s3cret"
    );
    assert!(
        told.contains("sent authorization: Bearer ********") && !told.contains("s3cret"),
        "{told}"
    );
    assert!(
        told.contains("answered 501: the base URL itself takes no GET"),
        "{told}"
    );
    let none = json!({"base_url": target.url(), "auth": "none", "token": "t"});
    let body = json!({"catalogId": "http", "name": "none", "config": none});
    let refused = app.api.post("/api/v1/connectors/instances", &body).await;
    assert_eq!(
        refused.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
        "config.token"
    );
}
