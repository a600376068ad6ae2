//! `POST /connectors/instances/{id}/test`: a call with the instance's credentials.

use kanat_tests::target::status;
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

#[tokio::test]
async fn says_what_came_back() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, earlier| status(if earlier == 0 { 200 } else { 401 })).await;
    let id = app.api.http_instance("erp", &target.url()).await;
    let path = format!("/api/v1/connectors/instances/{id}/test");
    let good = app.api.post(&path, &json!({})).await.expect(200);
    assert_eq!((&good["ok"], &good["status"]), (&json!(true), &json!(200)));
    let bad = app.api.post(&path, &json!({})).await.expect(200);
    assert_eq!((&bad["ok"], &bad["status"]), (&json!(false), &json!(401)));
    let metadata = app.api.http_instance("metadata", "http://169.254.169.254").await;
    let refused = app.api.post(&format!("/api/v1/connectors/instances/{metadata}/test"), &json!({})).await.expect(200);
    assert_eq!(refused["ok"], false);
    assert!(refused["message"].as_str().unwrap().contains("egress"), "{refused}");
}
