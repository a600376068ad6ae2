//! Messages with one ordering key are delivered one at a time, in order of arrival; others do not
//! wait for them.

use kanat_tests::target::{Reply, ok, status};
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

const FLOW: &str = r"flow: ordered
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
ordering_key: source.customer
on_error:
  retry: 5x fixed(50ms)
";

#[tokio::test]
async fn a_failing_message_holds_back_only_its_own_key() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|received, earlier| {
        let body = received.json();
        // The first message of customer a fails as long as fewer than four requests came before.
        if body["customer"] == "a" && body["n"] == 1 && earlier < 4 {
            status(500)
        } else {
            ok()
        }
    })
    .await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let mut ids = Vec::new();
    for n in 1..=5 {
        ids.push(
            app.api
                .webhook(&url, &json!({"customer": "a", "n": n}))
                .await,
        );
        ids.push(
            app.api
                .webhook(&url, &json!({"customer": "b", "n": n}))
                .await,
        );
    }
    for id in &ids {
        app.api.message_becomes(id, "delivered").await;
    }
    let received = target.received();
    for customer in ["a", "b"] {
        let mut order: Vec<_> = received
            .iter()
            .map(kanat_tests::target::ReceivedRequest::json)
            .filter(|body| body["customer"] == customer)
            .map(|body| body["n"].as_u64().unwrap())
            .collect();
        order.dedup();
        assert_eq!(order, [1, 2, 3, 4, 5], "customer {customer}");
    }
}

#[tokio::test]
async fn a_given_up_message_lets_the_next_one_go() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|received, _| {
        if received.json()["n"] == 1 {
            status(400)
        } else {
            ok()
        }
    })
    .await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = FLOW.replace("5x fixed(50ms)", "0x fixed(50ms)");
    let (_, url) = app.api.deployed(&yaml).await;
    let first = app
        .api
        .webhook(&url, &json!({"customer": "a", "n": 1}))
        .await;
    let second = app
        .api
        .webhook(&url, &json!({"customer": "a", "n": 2}))
        .await;
    app.api.message_becomes(&first, "dead_letter").await;
    app.api.message_becomes(&second, "delivered").await;
}

#[tokio::test]
async fn order_survives_a_kill() {
    let mut app = TestApp::start().await;
    let target =
        FakeTarget::scripted(|_, earlier| if earlier == 0 { Reply::Hang } else { ok() }).await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let mut ids = Vec::new();
    for n in 1..=3 {
        ids.push(
            app.api
                .webhook(&url, &json!({"customer": "a", "n": n}))
                .await,
        );
    }
    target.arrivals(1).await;
    app.kill().await;
    app.restart().await;
    for id in &ids {
        app.api.message_becomes(id, "delivered").await;
    }
    let order: Vec<_> = target
        .received()
        .iter()
        .map(|r| r.json()["n"].as_u64().unwrap())
        .collect();
    assert_eq!(
        order,
        [1, 1, 2, 3],
        "the one in flight at the kill is sent again, before its successors"
    );
}

#[tokio::test]
async fn a_message_that_waits_says_for_what() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, _| status(503)).await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = FLOW.replace("5x fixed(50ms)", "5x fixed(1h)");
    let (flow, url) = app.api.deployed(&yaml).await;
    let first = app.api.webhook(&url, &json!({"customer": "a"})).await;
    let first_one = app.api.message_becomes(&first, "retrying").await;
    assert_eq!(first_one.get("waitsFor"), None);
    let second = app.api.webhook(&url, &json!({"customer": "a"})).await;
    let waits = app.api.message(&second).await["waitsFor"].clone();
    let expected = format!("{first} comes first, by the same ordering key");
    assert_eq!(waits, json!(expected));
    app.api
        .post(&format!("/api/v1/flows/{flow}/pause"), &json!({}))
        .await
        .expect(200);
    let paused = app.api.message(&second).await;
    assert_eq!(&paused["waitsFor"], &json!("its flow is paused"));
}
