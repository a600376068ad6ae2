//! `DELETE /flows/{id}`: out of service; messages stay readable.

use kanat_tests::split::Split;
use kanat_tests::target::{Reply, status};
use kanat_tests::{FakeTarget, Rest, TestApp, until};
use serde_json::json;

use crate::webhook::passthrough;

#[tokio::test]
async fn a_deleted_flow_takes_no_messages_and_frees_its_name() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (id, url) = app.api.deployed(&passthrough("gone")).await;
    let message = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&message, "delivered").await;
    let deleted = app.api.delete(&format!("/api/v1/flows/{id}")).await;
    assert_eq!(deleted.status, 204);
    assert_eq!(deleted.text.as_str(), "");
    app.api
        .without_key()
        .post(&url, &json!({}))
        .await
        .expect_error(404, "NOT_FOUND");
    app.api
        .get(&format!("/api/v1/flows/{id}"))
        .await
        .expect_error(404, "NOT_FOUND");
    app.api
        .delete(&format!("/api/v1/flows/{id}"))
        .await
        .expect_error(404, "NOT_FOUND");
    assert_eq!(app.api.message(&message).await["status"], "delivered");
    app.api.flow(&passthrough("gone")).await;
}

#[tokio::test]
async fn what_a_deleted_flow_held_is_discarded_and_never_sent() {
    let mut app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let messages = deleted_with_messages_waiting(&app.api, &app.base, &target).await;
    app.kill().await;
    app.restart().await;
    nothing_is_sent(&app.api, &app.base, &target).await;
    for message in &messages {
        assert_eq!(app.api.message(message).await["status"], "discarded");
    }
}

#[tokio::test]
async fn what_a_deleted_flow_held_is_discarded_by_several_nodes_on_postgres() {
    let split = Split::new();
    let target = FakeTarget::start().await;
    let control = split.control_plane("control").await;
    let nodes = [
        split.node("a", &[&control]).await,
        split.node("b", &[&control]).await,
    ];
    control.api.http_instance("erp", &target.url()).await;
    deleted_with_messages_waiting(&control.api, &nodes[0].base, &target).await;
    nothing_is_sent(&control.api, &nodes[1].base, &target).await;
}

/// A node that never heard of a flow must not take a deletion for done that was not.
#[tokio::test]
async fn a_deletion_that_is_not_committed_ends_no_message() {
    let split = Split::new();
    let target = FakeTarget::start().await;
    let dies = split
        .control_plane_with("dies", &[("KANAT_FAILPOINT", "flow.marked:1")])
        .await;
    let mut other = split.control_plane("other").await;
    let knows = split.node("knows", &[&dies]).await;
    let lacks = split.node("lacks", &[&other]).await;
    other.terminate().await;
    dies.api.http_instance("erp", &target.url()).await;
    let (flow, url) = dies.api.deployed(&passthrough("stays")).await;
    let path = format!("/api/v1/flows/{flow}");
    dies.api
        .post(&format!("{path}/pause"), &json!({}))
        .await
        .expect(200);
    let deleted = Rest::try_send(dies.api.request("DELETE", &path)).await;
    assert!(
        deleted.is_err(),
        "it dies with the deletion marked and not committed"
    );

    let message = knows.api.webhook(&on(&knows.base, &url), &json!({})).await;
    until("the node without the flow looks at its message", || async {
        (lacks.metric("kanat_log_claimed_total").await > 0.0).then_some(())
    })
    .await;
    other.restart().await;
    assert_eq!(other.api.get(&path).await.expect(200)["status"], "paused");
    assert_ne!(other.api.message(&message).await["status"], "discarded");
    other
        .api
        .post(&format!("{path}/resume"), &json!({}))
        .await
        .expect(200);
    other.api.message_becomes(&message, "delivered").await;
}

/// Deletes a flow that has three messages held and one that waits for its retry; they have ended
/// when it is answered.
async fn deleted_with_messages_waiting(api: &Rest, node: &str, target: &FakeTarget) -> Vec<String> {
    let failing = FakeTarget::scripted(|_, _| status(503)).await;
    api.http_instance("failing", &failing.url()).await;
    let retrying = passthrough("retrying").replace("connector: erp", "connector: failing");
    let retrying = format!("{retrying}on_error:\n  retry: 3x fixed(1h)\n");
    let (waits, waits_url) = api.deployed(&retrying).await;
    let waiting = api.webhook(&on(node, &waits_url), &json!({})).await;
    api.message_becomes(&waiting, "retrying").await;
    let (flow, url) = api.deployed(&passthrough("held")).await;
    api.post(&format!("/api/v1/flows/{flow}/pause"), &json!({}))
        .await
        .expect(200);
    let mut messages = Vec::new();
    for n in 0..3 {
        messages.push(api.webhook(&on(node, &url), &json!({ "n": n })).await);
    }
    messages.push(waiting);
    for flow in [flow, waits] {
        let deleted = api.delete(&format!("/api/v1/flows/{flow}")).await;
        assert_eq!(deleted.status, 204, "{}", deleted.text);
        assert_eq!(deleted.header("x-config-applied"), "", "{}", deleted.text);
    }
    for message in &messages {
        let found = api.message(message).await;
        assert_eq!(&found["status"], &json!("discarded"));
        assert_eq!(&found["error"]["kind"], &json!("flow_deleted"));
        assert_eq!(
            found["trace"].as_array().unwrap().last().unwrap()["stage"],
            "discarded"
        );
    }
    assert_eq!(failing.received().len(), 1);
    assert_eq!(target.received().len(), 0);
    messages
}

/// A later message of another flow to the same target is all that comes there.
async fn nothing_is_sent(api: &Rest, node: &str, target: &FakeTarget) {
    let (_, url) = api.deployed(&passthrough("later")).await;
    let later = api
        .webhook(&on(node, &url), &json!({ "later": true }))
        .await;
    api.message_becomes(&later, "delivered").await;
    assert_eq!(target.received().len(), 1);
}

/// The webhook's address on this node.
fn on(node: &str, url: &str) -> String {
    format!(
        "{node}/webhooks/receive/{}",
        url.rsplit('/').next().unwrap()
    )
}

#[tokio::test]
async fn a_running_attempt_ends_with_its_flow() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, _| Reply::Hang).await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(&passthrough("under-way")).await;
    let message = app.api.webhook(&url, &json!({})).await;
    target.arrivals(1).await;
    app.api
        .delete(&format!("/api/v1/flows/{flow}"))
        .await
        .expect(204);
    let found = app.api.message(&message).await;
    assert_eq!(&found["status"], &json!("discarded"));
    assert_eq!(&found["error"]["kind"], &json!("flow_deleted"));
    let stages: Vec<_> = found["trace"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["stage"].clone())
        .collect();
    assert!(
        stages.ends_with(&[json!("delivery"), json!("discarded")]),
        "{stages:?}"
    );
    assert_eq!(target.received().len(), 1);
}
