//! A full disk is reported to senders, and loses no acked message.

use kanat_model::id::MessageId;
use kanat_testing_postgres::{Cluster, Durability, Programs};
use kanat_tests::target::Reply;
use kanat_tests::{FakeTarget, TestApp, soak, until};
use serde_json::json;

use crate::webhook::passthrough;

/// Room for the schema and a few dozen messages in each file.
const FILE_LIMIT_KIB: u32 = 3 * 1024;
/// Room for the schemas and some hundred messages.
const SMALL_DISK_MIB: u32 = 40;
/// More than fits, whatever the log's files are.
const ATTEMPTS: usize = 2_000;

#[tokio::test]
async fn a_full_disk_answers_503_loses_nothing_that_was_acked_and_needs_no_restart_afterwards() {
    let app = TestApp::start_on_a_small_disk(FILE_LIMIT_KIB).await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("filling")).await;
    let mut acked = Vec::new();
    let mut refused = None;
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
    assert!(
        !refused.header("retry-after").is_empty(),
        "{:?}",
        refused.headers
    );
    refused.expect_error(503, "UNAVAILABLE");
    assert!(!acked.is_empty());
    app.api.without_key().get("/health").await.expect(200);
    let large = json!({ "filling": "x".repeat(50_000) });
    let not_ready = until("the service is not ready", || async {
        app.api.without_key().post(&url, &large).await;
        let answer = app.api.without_key().get("/ready").await;
        (answer.status == 503).then(|| answer.json())
    })
    .await;
    let reason = not_ready["status"].as_str().unwrap();
    assert!(
        reason.contains("the disk of ") && reason.contains(app.data_dir().to_str().unwrap()),
        "{reason}"
    );
    for _ in 0..50 {
        app.api.without_key().post(&url, &large).await;
    }
    for line in [
        r#""message":"messages were not accepted: "#,
        r#""message":"the message log cannot write: "#,
    ] {
        assert_eq!(app.log().matches(line).count(), 1, "{line}: {}", app.log());
    }

    app.free_the_disk().await;
    until("the service is ready again, without a message", || async {
        (app.api.without_key().get("/ready").await.status == 200).then_some(())
    })
    .await;
    let id = until("there is room again", || async {
        let answer = app
            .api
            .without_key()
            .post(&url, &json!({"n": "after"}))
            .await;
        (answer.status == 202).then(|| answer.json()["messageId"].as_str().unwrap().to_owned())
    })
    .await;
    app.api.message_becomes(&id, "delivered").await;
    for id in &acked {
        app.api.message_becomes(id, "delivered").await;
        assert!(
            target
                .received()
                .iter()
                .any(|r| r.header("idempotency-key") == id),
            "{id}"
        );
    }
    println!(
        "disk full after {} messages: 503 for the next, 0 acked lost, 202 once there is room",
        acked.len()
    );
}

/// Only root may mount the disk, so that it is a test of the soak.
#[tokio::test]
async fn a_full_disk_of_postgresql_answers_503_and_loses_nothing_acked_and_needs_no_restart() {
    if !soak::is_on() {
        return;
    }
    let cluster = Cluster::start(Programs::find_or_install().unwrap(), Durability::OnDisk).unwrap();
    cluster.restart_with_small_disk(SMALL_DISK_MIB).unwrap();
    cluster.create_database_on_small_disk("kanat").unwrap();
    let app = TestApp::start_with(&[("KANAT_DATABASE_URL", &cluster.url("kanat"))]).await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("filling")).await;
    // The database makes small what repeats itself.
    let filling = || {
        (0..2_000)
            .map(|_| MessageId::generate().into_string())
            .collect::<String>()
    };
    let mut acked = Vec::new();
    let refused = loop {
        let answer = app
            .api
            .without_key()
            .post(&url, &json!({ "filling": filling() }))
            .await;
        if answer.status != 202 {
            break answer;
        }
        acked.push(answer.json()["messageId"].as_str().unwrap().to_owned());
    };
    assert!(
        !refused.header("retry-after").is_empty(),
        "{:?}",
        refused.headers
    );
    refused.expect_error(503, "UNAVAILABLE");
    assert!(!acked.is_empty());
    let not_ready = until("the service is not ready", || async {
        app.api
            .without_key()
            .post(&url, &json!({ "filling": filling() }))
            .await;
        let answer = app.api.without_key().get("/ready").await;
        (answer.status == 503).then(|| answer.json())
    })
    .await;
    let reason = not_ready["status"].as_str().unwrap();
    assert!(
        reason.contains("the disk of PostgreSQL is full"),
        "{reason}"
    );

    cluster.resize_small_disk(10 * SMALL_DISK_MIB).unwrap();
    until("the service is ready again, without a message", || async {
        (app.api.without_key().get("/ready").await.status == 200).then_some(())
    })
    .await;
    for id in &acked {
        app.api.message_becomes(id, "delivered").await;
    }
    println!(
        "disk of PostgreSQL full after {} messages, 0 acked lost",
        acked.len()
    );
}

#[tokio::test]
async fn a_service_starts_on_a_full_disk_reads_and_goes_on_once_there_is_room() {
    let mut app = TestApp::start_on_a_small_disk(FILE_LIMIT_KIB).await;
    // Nothing that is acked has ended when the disk is full.
    let target = FakeTarget::scripted(|_, _| Reply::Late(200)).await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(&passthrough("filling")).await;
    let mut acked = Vec::new();
    for n in 0..ATTEMPTS {
        let payload = json!({ "n": n, "filling": "x".repeat(50_000) });
        let answer = app.api.without_key().post(&url, &payload).await;
        if answer.status != 202 {
            break;
        }
        acked.push(answer.json()["messageId"].as_str().unwrap().to_owned());
    }
    assert!((1..ATTEMPTS).contains(&acked.len()));
    app.kill().await;
    app.restart_on_the_small_disk().await;
    app.api.get("/api/v1/flows").await.expect(200);
    let listed = app
        .api
        .get(&format!("/api/v1/messages?flowId={flow}"))
        .await;
    assert!([200, 503].contains(&listed.status), "{}", listed.text);
    target.release();
    app.free_the_disk().await;
    until("the service is ready", || async {
        (app.api.without_key().get("/ready").await.status == 200).then_some(())
    })
    .await;
    for id in &acked {
        app.api.message_becomes(id, "delivered").await;
    }
}

/// The service's own files and its reserve, and some MiB of messages.
const DISK_MIB: u32 = 32;

#[tokio::test]
async fn what_became_of_messages_is_written_on_a_full_disk_and_room_is_taken_up_without_restart() {
    let app = TestApp::start_on_a_disk_of(DISK_MIB).await;
    let target = FakeTarget::scripted(|_, _| Reply::Late(200)).await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = passthrough("filling") + "mapping: { n: source.n }\n";
    let (flow, url) = app.api.deployed(&yaml).await;
    let payload = |n: usize| json!({ "n": n, "filling": "x".repeat(20_000) });
    let mut acked = Vec::new();
    // One that is refused makes room at times: the write-ahead log is emptied.
    let mut refused = 0;
    while refused < 20 || !app.log().contains("the reserve is released") {
        let answer = app
            .api
            .without_key()
            .post(&url, &payload(acked.len()))
            .await;
        if answer.status == 202 {
            acked.push(answer.json()["messageId"].as_str().unwrap().to_owned());
            refused = 0;
        } else {
            answer.expect_error(503, "UNAVAILABLE");
            refused += 1;
        }
        assert!(acked.len() < 10 * ATTEMPTS, "the disk is never full");
    }
    target.release();
    until("all of them are delivered", || async {
        let found = app
            .api
            .get(&format!(
                "/api/v1/messages?flowId={flow}&status=delivered&limit=1"
            ))
            .await
            .json();
        (found["pagination"]["total"] == acked.len()).then_some(())
    })
    .await;
    assert_eq!(target.received().len(), acked.len(), "each once");

    app.resize_the_disk(2 * DISK_MIB).await;
    until("the service is ready again", || async {
        (app.api.without_key().get("/ready").await.status == 200).then_some(())
    })
    .await;
    let later = app.api.webhook(&url, &payload(0)).await;
    app.api.message_becomes(&later, "delivered").await;
    assert!(app.log().contains("the reserve is back"), "{}", app.log());
}
