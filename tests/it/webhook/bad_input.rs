//! Wrong requests get the right status, and nothing of them is stored.

use kanat_tests::{FakeTarget, Rest, TestApp};
use serde_json::json;

use super::passthrough;

async fn count(api: &Rest, flow: &str) -> u64 {
    let list = api
        .get(&format!("/api/v1/messages?flowId={flow}"))
        .await
        .expect(200);
    list["pagination"]["total"].as_u64().unwrap()
}

#[tokio::test]
async fn malformed_json_is_400_and_stores_nothing() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(&passthrough("bad-json")).await;
    for body in [
        "{",
        "{\"a\":1,}",
        "{\"a\":01}",
        "nul",
        "{\"a\":\"\u{1}\"}",
        "[1 2]",
    ] {
        let answer = app
            .api
            .without_key()
            .raw("POST", &url, "application/json", body)
            .await;
        answer.expect_error(400, "INVALID_ARGUMENT");
    }
    assert_eq!(count(&app.api, &flow).await, 0);
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_and_stores_nothing_chunked_too() {
    let app = TestApp::start_with(&[("KANAT_BODY_LIMIT", "1000")]).await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(&passthrough("too-large")).await;
    let body = format!("\"{}\"", "x".repeat(2_000));

    let declared = app
        .api
        .without_key()
        .raw("POST", &url, "application/json", body.clone())
        .await;
    assert_eq!(declared.status, 413, "{}", declared.text);

    let chunks = futures::stream::iter(
        body.into_bytes()
            .chunks(100)
            .map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec()))
            .collect::<Vec<_>>(),
    );
    let chunked = reqwest::Body::wrap_stream(chunks);
    let answer = app
        .api
        .without_key()
        .raw("POST", &url, "application/json", chunked)
        .await;
    assert_eq!(answer.status, 413, "{}", answer.text);
    assert_eq!(count(&app.api, &flow).await, 0);

    let fits = app
        .api
        .without_key()
        .raw("POST", &url, "application/json", "1")
        .await;
    assert_eq!(fits.status, 202, "{}", fits.text);
}

#[tokio::test]
async fn an_unknown_token_is_404_and_another_method_405() {
    let app = TestApp::start().await;
    let unknown = app
        .api
        .without_key()
        .post("/webhooks/receive/nobody-knows-this-token", &json!({}))
        .await;
    unknown.expect_error(404, "NOT_FOUND");
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("methods")).await;
    let put = app.api.without_key().put(&url, &json!({})).await;
    assert_eq!(put.status, 405, "{}", put.text);
    assert!(put.header("allow").contains("POST"));
}

#[tokio::test]
async fn a_path_that_nobody_serves_is_404() {
    let app = TestApp::start().await;
    app.api
        .without_key()
        .get("/nothing/here")
        .await
        .expect_error(404, "NOT_FOUND");
}
