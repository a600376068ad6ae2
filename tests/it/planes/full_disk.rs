//! A full disk is told to senders, and takes nothing from what was acked.

use kanat_tests::{FakeTarget, TestApp, until};
use serde_json::json;

use crate::webhook::passthrough;

/// Room for the schema and a few dozen messages in each file.
const FILE_LIMIT_KIB: u32 = 3 * 1024;
/// More than fits, whatever the log's files are.
const ATTEMPTS: usize = 2_000;

#[tokio::test]
async fn a_full_disk_answers_503_loses_nothing_that_was_acked_and_needs_no_restart_afterwards() {
    let app = TestApp::start_on_a_small_disk(FILE_LIMIT_KIB).await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("filling")).await;
    let (mut acked, mut refused) = (Vec::new(), None);
    for n in 0..ATTEMPTS {
        let payload = json!({ "n": n, "filling": "x".repeat(50_000) });
        let answer = app.api.without_key().post(&url, &payload).await;
        if answer.status != 202 {
            refused = Some(answer);
            break;
        }
        acked.push(answer.json()["messageId"].as_str().unwrap().to_owned());
    }
    let refused = refused.expect("the disk is full at some time");
    assert!(!refused.header("retry-after").is_empty(), "{:?}", refused.headers);
    refused.expect_error(503, "UNAVAILABLE");
    assert!(!acked.is_empty());
    app.api.without_key().get("/health").await.expect(200);

    app.free_the_disk().await;
    let id = until("there is room again", || async {
        let answer = app.api.without_key().post(&url, &json!({"n": "after"})).await;
        (answer.status == 202).then(|| answer.json()["messageId"].as_str().unwrap().to_owned())
    })
    .await;
    app.api.message_becomes(&id, "delivered").await;
    for id in &acked {
        app.api.message_becomes(id, "delivered").await;
        assert!(target.received().iter().any(|r| r.header("idempotency-key") == id), "{id}");
    }
    println!("disk full after {} messages: 503 for the next, 0 acked lost, 202 once there is room", acked.len());
}
