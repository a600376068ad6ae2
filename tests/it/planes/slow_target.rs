//! A target that hangs slows nobody else.

use kanat_tests::target::Reply;
use kanat_tests::{FakeTarget, TestApp, until};
use serde_json::json;

fn flow(name: &str, connector: &str) -> String {
    format!(
        r"flow: {name}
version: 1
source:
  trigger: webhook
target:
  connector: {connector}
  endpoint: /in
  method: POST
  timeout: 10m
"
    )
}

#[tokio::test]
async fn others_are_delivered_while_one_target_hangs_with_more_than_fits_in_memory() {
    let app = TestApp::start().await;
    let hanging = FakeTarget::scripted(|_, _| Reply::Hang).await;
    let working = FakeTarget::start().await;
    app.api.http_instance("hanging", &hanging.url()).await;
    app.api.http_instance("working", &working.url()).await;
    let (stuck, stuck_url) = app.api.deployed(&flow("stuck", "hanging")).await;
    let (_, free_url) = app.api.deployed(&flow("free", "working")).await;

    let payload = json!({"n": 1});
    for _ in 0..15 {
        let posts = (0..100).map(|_| app.api.without_key().post_owned(&stuck_url, &payload));
        for answer in futures::future::join_all(posts).await {
            answer.expect(202);
        }
    }
    for n in 0..20 {
        let id = app.api.webhook(&free_url, &json!({ "n": n })).await;
        app.api.message_becomes(&id, "delivered").await;
    }
    assert_eq!(working.received().len(), 20);
    let delivered = format!("/api/v1/messages?flowId={stuck}&status=delivered&limit=1");
    assert_eq!(
        app.api.get(&delivered).await.expect(200)["pagination"]["total"],
        0
    );

    hanging.release();
    until("the hung target's backlog is delivered", || async {
        (app.api.get(&delivered).await.expect(200)["pagination"]["total"] == 1_500).then_some(())
    })
    .await;
}
