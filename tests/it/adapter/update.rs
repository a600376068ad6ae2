//! `PUT` and `PATCH /adapters/{id}`: what is changed runs at once.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::adapter;

const FLOW: &str = r"flow: updated
version: 1
source: {trigger: webhook}
adapter: tidy
target: {connector: erp, endpoint: /in}
";

#[tokio::test]
async fn what_is_left_out_stays_and_the_version_grows() {
    let app = TestApp::start().await;
    let path = adapter(&app.api, "tidy", "transform", "const transform = () => 1").await;
    let changed = app
        .api
        .patch(&path, &json!({"code": "const transform = () => 2"}))
        .await
        .expect(200);
    assert_eq!(&changed["version"], &json!(2));
    assert_eq!(&changed["name"], &json!("tidy"));
    let same = app
        .api
        .put(&path, &json!({"name": "tidy"}))
        .await
        .expect(200);
    assert_eq!(same["version"], 2, "nothing was changed");
    let wrong = app
        .api
        .put(&path, &json!({"code": "const transform ="}))
        .await;
    assert_eq!(
        wrong.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
        "code"
    );
    let stale = app
        .api
        .with_header("if-match", "\"1\"")
        .put(&path, &json!({"description": "late"}))
        .await;
    stale.expect_error(409, "ABORTED");
    assert_eq!(
        app.api.get(&path).await.expect(200)["code"],
        "const transform = () => 2"
    );
}

#[tokio::test]
async fn new_code_runs_in_deployed_flows_and_their_names_stay() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let path = adapter(
        &app.api,
        "tidy",
        "transform",
        "const transform = () => ({ by: 1 })",
    )
    .await;
    let (_, url) = app.api.deployed(FLOW).await;
    let first = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&first, "delivered").await;
    app.api
        .patch(
            &path,
            &json!({"code": "const transform = () => ({ by: 2 })"}),
        )
        .await
        .expect(200);
    let second = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&second, "delivered").await;
    let bodies: Vec<_> = target
        .received()
        .iter()
        .map(|received| received.json())
        .collect();
    assert_eq!(bodies, [json!({"by": 1}), json!({"by": 2})]);
    app.api
        .patch(&path, &json!({"name": "other"}))
        .await
        .expect_error(400, "FAILED_PRECONDITION");
    app.api
        .patch(&path, &json!({"type": "source"}))
        .await
        .expect_error(400, "FAILED_PRECONDITION");
}
