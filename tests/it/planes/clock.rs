//! A wall clock that is set while the service runs: what waits keeps its distance, and what is due
//! at a time of day goes by the new time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kanat_tests::clock::WallClock;
use kanat_tests::target::{Reply, status};
use kanat_tests::{FakeTarget, TestApp, until};
use serde_json::{Value, json};

const HOUR: i64 = 3_600;

async fn start(clock: &WallClock) -> TestApp {
    let environment = clock.environment();
    let environment: Vec<(&str, &str)> = environment
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    TestApp::start_with(&environment).await
}

/// Waits until the service has noticed one more jump.
async fn noticed(app: &TestApp, jumps: usize) {
    let told = || {
        app.log()
            .matches("the clock of this machine was set")
            .count()
    };
    until("the jump is told of", || async {
        (told() == jumps).then_some(())
    })
    .await;
}

/// The second of the day at which a message is tried next.
fn second_of_day(message: &Value) -> i64 {
    let (_, time) = message["nextAttemptAt"]
        .as_str()
        .unwrap()
        .split_once('T')
        .unwrap();
    let parts: Vec<i64> = time[..8]
        .split(':')
        .map(|part| part.parse().unwrap())
        .collect();
    parts[0] * HOUR + parts[1] * 60 + parts[2]
}

fn retried(name: &str, retry: &str) -> String {
    crate::webhook::passthrough(name) + &format!("on_error: {{ retry: {retry} }}\n")
}

#[tokio::test]
async fn what_waits_goes_on_when_the_clock_is_set_back() {
    let clock = WallClock::new();
    let app = start(&clock).await;
    let target =
        FakeTarget::scripted(|_, earlier| status(if earlier == 0 { 503 } else { 200 })).await;
    app.api.http_instance("erp", &target.url()).await;
    let polls = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&polls);
    let shop = FakeTarget::scripted(move |_, _| {
        let number = counter.fetch_add(1, Ordering::SeqCst);
        Reply::Answer(200, Vec::new(), format!("[{{\"id\": {number}}}]"))
    })
    .await;
    app.api.http_instance("shop", &shop.url()).await;
    let poll = crate::poll::polling("polled", "/orders", "    interval: 1s\n    record_id: id\n");
    let (_, url) = app.api.deployed(&retried("retried", "3x fixed(2s)")).await;
    let message = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&message, "retrying").await;
    app.api.deployed(&poll).await;
    until("a page is asked for", || async {
        (polls.load(Ordering::SeqCst) > 0).then_some(())
    })
    .await;

    clock.set_seconds(-2 * HOUR);
    let before = polls.load(Ordering::SeqCst);
    app.api.message_becomes(&message, "delivered").await;
    until("the poll goes on", || async {
        (polls.load(Ordering::SeqCst) > before + 2).then_some(())
    })
    .await;
    let later = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&later, "delivered").await;
    noticed(&app, 1).await;
}

#[tokio::test]
async fn a_clock_that_is_set_forward_hurries_no_retry_and_fires_each_due_time_once() {
    let clock = WallClock::new();
    let app = start(&clock).await;
    let target =
        FakeTarget::scripted(|request, _| status(if request.path == "/slow" { 503 } else { 200 }))
            .await;
    app.api.http_instance("erp", &target.url()).await;
    let slow = retried("slow", "1x fixed(1h)").replace("/in", "/slow");
    let (_, url) = app.api.deployed(&slow).await;
    let (_, quick) = app.api.deployed(&retried("quick", "1x fixed(1h)")).await;
    let (hourly, _) = app
        .api
        .deployed(&crate::schedule::scheduled("hourly", "0 * * * *", "UTC"))
        .await;
    let waiting = app.api.webhook(&url, &json!({})).await;
    let before = second_of_day(&app.api.message_becomes(&waiting, "retrying").await);

    clock.set_seconds(2 * HOUR);
    noticed(&app, 1).await;
    let runs = format!("/api/v1/messages?flowId={hourly}&limit=100");
    let fired = || async {
        let found = app.api.get(&runs).await.expect(200);
        let times = found["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["payload"]["scheduled_at"].to_string());
        let times: Vec<String> = times.collect();
        assert_eq!(
            times.iter().collect::<BTreeSet<_>>().len(),
            times.len(),
            "{times:?}"
        );
        times
    };
    let first = until("a due time is fired", || async {
        Some(fired().await).filter(|times| !times.is_empty())
    })
    .await;
    let message = app.api.webhook(&quick, &json!({})).await;
    app.api.message_becomes(&message, "delivered").await;
    let still = app
        .api
        .get(&format!("/api/v1/messages/{waiting}"))
        .await
        .expect(200);
    assert_eq!(&still["status"], &json!("retrying"));
    assert_eq!(&still["attempts"], &json!(1));
    let moved = (second_of_day(&still) - before).rem_euclid(24 * HOUR);
    assert!(
        (2 * HOUR - 60..=2 * HOUR + 60).contains(&moved),
        "{moved} s"
    );

    clock.set_seconds(0);
    noticed(&app, 2).await;
    clock.set_seconds(2 * HOUR);
    noticed(&app, 3).await;
    let message = app.api.webhook(&quick, &json!({})).await;
    app.api.message_becomes(&message, "delivered").await;
    assert!(fired().await.len() >= first.len());
}
