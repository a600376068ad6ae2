//! A message goes on at the step that failed: what has succeeded is not called again.

use kanat_tests::target::{Reply, ok, status};
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::{FLOW, instances, made};

#[tokio::test]
async fn retries_go_on_at_the_step_that_failed_also_across_a_kill() {
    let mut app = TestApp::start().await;
    let mail = FakeTarget::scripted(|_, _| made(r#"{"job_id":"j-1"}"#)).await;
    let desk = FakeTarget::scripted(|_, earlier| {
        if earlier < 2 {
            status(502)
        } else {
            made(r#"{"ticket":{"id":1}}"#)
        }
    })
    .await;
    let erp = FakeTarget::scripted(|_, earlier| if earlier < 1 { status(500) } else { ok() }).await;
    instances(&app.api, &desk, &mail, &erp).await;
    let (_, url) = app
        .api
        .deployed(&FLOW.replace("fixed(20ms)", "fixed(300ms)"))
        .await;
    let id = app
        .api
        .webhook(&url, &json!({"name": "Ann", "email": "a@b.example"}))
        .await;
    desk.arrivals(1).await;
    app.api.message_becomes(&id, "retrying").await;
    app.kill().await;
    app.restart().await;
    let message = app.api.message_becomes(&id, "delivered").await;
    // Two attempts ended at the desk, one at the target.
    assert_eq!(message["attempts"], 4);
    assert_eq!(mail.received().len(), 1);
    assert_eq!(desk.received().len(), 3);
    assert_eq!(erp.received().len(), 2);
    assert_eq!(
        erp.received()[1].json(),
        json!({"email": "a@b.example", "ticket": 1, "answered": 201})
    );
    let keys: Vec<_> = desk
        .received()
        .iter()
        .map(|call| call.header("idempotency-key").to_owned())
        .collect();
    assert_eq!(keys, vec![format!("{id}.ticket"); 3]);
}

#[tokio::test]
async fn a_step_from_before_a_kill_is_in_the_trace_with_its_answer() {
    let mut app = TestApp::start().await;
    let mail = FakeTarget::scripted(|_, _| made(r#"{"job_id":"j-1"}"#)).await;
    let desk = FakeTarget::scripted(|_, earlier| {
        if earlier == 0 {
            Reply::Hang
        } else {
            made(r#"{"ticket":{"id":1}}"#)
        }
    })
    .await;
    let erp = FakeTarget::start().await;
    instances(&app.api, &desk, &mail, &erp).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let id = app
        .api
        .webhook(&url, &json!({"name": "Ann", "email": "a@b.example"}))
        .await;
    desk.arrivals(1).await;
    app.kill().await;
    app.restart().await;
    let message = app.api.message_becomes(&id, "delivered").await;
    assert_eq!(mail.received().len(), 1);
    let trace = message["trace"].as_array().unwrap();
    let steps: Vec<_> = trace
        .iter()
        .filter(|record| record["stage"] == "step")
        .map(|record| [&record["name"], &record["status"]])
        .collect();
    assert_eq!(
        steps,
        [
            [&json!("contact"), &json!("kept")],
            [&json!("ticket"), &json!("ok")]
        ]
    );
    let kept = trace.iter().find(|record| record["status"] == "kept");
    let answer = &kept.unwrap()["response"];
    assert_eq!(answer["status"], 201);
    assert_eq!(answer["body"], r#"{"job_id":"j-1"}"#);
}

#[tokio::test]
async fn a_dead_letter_that_is_retried_goes_on_where_it_failed_and_a_replay_begins_anew() {
    let app = TestApp::start().await;
    let mail = FakeTarget::start().await;
    let erp = FakeTarget::start().await;
    let desk =
        FakeTarget::scripted(|_, earlier| if earlier < 1 { status(422) } else { ok() }).await;
    instances(&app.api, &desk, &mail, &erp).await;
    let (_, url) = app
        .api
        .deployed(&FLOW.replace("5x fixed(20ms)", "0x fixed(20ms)"))
        .await;
    let id = app
        .api
        .webhook(&url, &json!({"name": "Ann", "email": "a@b.example"}))
        .await;
    app.api.message_becomes(&id, "dead_letter").await;
    app.api
        .post(&format!("/api/v1/messages/{id}/retry"), &json!({}))
        .await
        .expect(202);
    app.api.message_becomes(&id, "delivered").await;
    assert_eq!(mail.received().len(), 1);
    assert_eq!(desk.received().len(), 2);
    assert_eq!(erp.received().len(), 1);

    let replay = app
        .api
        .post(&format!("/api/v1/messages/{id}/replay"), &json!({}))
        .await
        .expect(202);
    app.api
        .message_becomes(replay["messageId"].as_str().unwrap(), "delivered")
        .await;
    assert_eq!(mail.received().len(), 2);
    assert_eq!(desk.received().len(), 3);
    assert_eq!(erp.received().len(), 2);
}
