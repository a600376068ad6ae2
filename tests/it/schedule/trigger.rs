//! `POST /schedules/{id}/trigger`: a run beside the cycle.

use kanat_tests::{FakeTarget, TestApp, until};
use serde_json::json;

use super::{path_of, scheduled};

#[tokio::test]
async fn a_run_by_hand_is_delivered_and_shown() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app
        .api
        .deployed(&scheduled("yearly", "30 12 29 2 *", "UTC"))
        .await;
    let path = path_of(&app.api, &flow).await;
    let before = app.api.get(&path).await.expect(200);
    // Also while the clock does not start it.
    app.api
        .put(&path, &json!({"enabled": false}))
        .await
        .expect(200);
    let answer = app
        .api
        .post(&format!("{path}/trigger"), &json!({}))
        .await
        .expect(202);
    let message = app
        .api
        .message_becomes(answer["messageId"].as_str().unwrap(), "delivered")
        .await;
    assert_eq!(message["trigger"], "schedule");
    let sent = target.received()[0].json();
    assert_eq!(&sent["due"], &message["receivedAt"]);
    assert_eq!(&sent["by_hand"], &json!(true));

    let after = app
        .api
        .put(&path, &json!({"enabled": true}))
        .await
        .expect(200);
    assert_eq!(after["nextRunAt"], before["nextRunAt"]);
    assert_eq!(after["lastRunAt"], message["receivedAt"]);
    assert_eq!(&after["lastRunStatus"], &json!("success"));
    assert_eq!(&after["lastMessageId"], &message["id"]);
}

#[tokio::test]
async fn a_run_is_running_until_its_message_is_given_up_and_then_failed() {
    let app = TestApp::start().await;
    let target = FakeTarget::failing(usize::MAX).await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = format!(
        "{}on_error:\n  retry: 0x fixed(1s)\n",
        scheduled("yearly", "30 12 29 2 *", "UTC")
    );
    let (flow, _) = app.api.deployed(&yaml).await;
    let path = path_of(&app.api, &flow).await;

    app.api
        .post(&format!("/api/v1/flows/{flow}/pause"), &json!({}))
        .await
        .expect(200);
    let answer = app
        .api
        .post(&format!("{path}/trigger"), &json!({}))
        .await
        .expect(202);
    let message = answer["messageId"].as_str().unwrap();
    app.api.message_becomes(message, "held").await;
    assert_eq!(
        app.api.get(&path).await.expect(200)["lastRunStatus"],
        "running"
    );
    app.api
        .post(&format!("/api/v1/flows/{flow}/resume"), &json!({}))
        .await
        .expect(200);
    app.api.message_becomes(message, "dead_letter").await;
    until("the run has failed", || async {
        (app.api.get(&path).await.expect(200)["lastRunStatus"] == "failed").then_some(())
    })
    .await;
}
