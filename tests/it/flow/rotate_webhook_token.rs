//! `POST /flows/{id}/rotate-webhook-token`: a new token, the old one for a grace period or not at
//! all.

use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::manual;
use crate::webhook::passthrough;

#[tokio::test]
async fn the_old_token_is_refused_unless_a_grace_period_keeps_it() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (id, first) = app.api.deployed(&passthrough("rotated")).await;
    let path = format!("/api/v1/flows/{id}/rotate-webhook-token");
    let second = app
        .api
        .post(&path, &json!({"gracePeriod": "24h"}))
        .await
        .expect(200)["webhookUrl"]
        .clone();
    let second = second.as_str().unwrap();
    assert_ne!(first, second);
    let post = async |url: &str| app.api.without_key().post(url, &json!({})).await.status;
    assert_eq!(post(&first).await, 202);
    assert_eq!(post(second).await, 202);
    let third = app.api.post(&path, &json!({})).await.expect(200)["webhookUrl"].clone();
    assert_eq!(post(second).await, 404);
    assert_eq!(post(third.as_str().unwrap()).await, 202);
    assert_eq!(
        post(&first).await,
        404,
        "without a grace period, earlier ones end too"
    );
    let refused = app.api.post(&path, &json!({"gracePeriod": "soon"})).await;
    assert_eq!(
        refused.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
        "gracePeriod"
    );
    let manual = app.api.flow(&manual("by-hand")).await;
    app.api
        .post(
            &format!("/api/v1/flows/{manual}/rotate-webhook-token"),
            &json!({}),
        )
        .await
        .expect_error(400, "FAILED_PRECONDITION");
}
