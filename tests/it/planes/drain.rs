//! SIGTERM, Ctrl-C and a terminal that closes finish what is in flight and exit 0; who says it
//! twice does not wait for that.

use kanat_tests::target::{Reply, ok};
use kanat_tests::{FakeTarget, TestApp, until};
use serde_json::json;

use crate::webhook::passthrough;

#[tokio::test]
async fn a_terminated_service_finishes_what_is_in_flight_and_exits_0() {
    for signal in ["TERM", "INT", "HUP"]
        .into_iter()
        .filter(|signal| *signal != "HUP" || !ignores_hang_up())
    {
        let mut app = TestApp::start().await;
        let target = FakeTarget::scripted(|_, _| Reply::Hang).await;
        app.api.http_instance("erp", &target.url()).await;
        let (_, url) = app.api.deployed(&passthrough("in-flight")).await;
        let id = app.api.webhook(&url, &json!({"n": 1})).await;
        target.arrivals(1).await;
        app.signal(signal).await;
        // Some senders signal the process and then its group: that is the same signal.
        app.signal(signal).await;
        target.release();
        assert_eq!(app.ended().await, Some(0), "{signal}: {}", app.log());
        app.restart().await;
        assert_eq!(
            app.api.message(&id).await["status"],
            "delivered",
            "{signal}"
        );
        assert_eq!(target.received().len(), 1, "{signal}");
    }
}

/// Returns whether this process ignores SIGHUP; then its children ignore it, too.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .map(str::trim);
    mask.and_then(|mask| u64::from_str_radix(mask, 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

#[tokio::test]
async fn what_does_not_finish_by_the_deadline_is_handed_back_and_delivered_later() {
    let mut app = TestApp::start_with(&[("KANAT_DRAIN_SECONDS", "1")]).await;
    let target =
        FakeTarget::scripted(|_, earlier| if earlier == 0 { Reply::Hang } else { ok() }).await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("handed-back")).await;
    let id = app.api.webhook(&url, &json!({"n": 1})).await;
    target.arrivals(1).await;
    assert_eq!(app.terminate().await, Some(0), "{}", app.log());
    app.restart().await;
    app.api.message_becomes(&id, "delivered").await;
    let keys: Vec<_> = target
        .received()
        .iter()
        .map(|r| r.header("idempotency-key").to_owned())
        .collect();
    assert_eq!(keys, [id.clone(), id], "the same key for both attempts");
}

#[tokio::test]
async fn a_second_signal_ends_at_once_and_what_was_in_flight_is_delivered_later() {
    let mut app = TestApp::start().await;
    let target =
        FakeTarget::scripted(|_, earlier| if earlier == 0 { Reply::Hang } else { ok() }).await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("twice")).await;
    let id = app.api.webhook(&url, &json!({"n": 1})).await;
    target.arrivals(1).await;
    app.signal("TERM").await;
    until("a signal counts as the second one", || async {
        app.signal("INT").await;
        app.log()
            .contains("a second signal: ending at once")
            .then_some(())
    })
    .await;
    assert_eq!(app.ended().await, Some(1), "{}", app.log());
    app.restart().await;
    app.api.message_becomes(&id, "delivered").await;
    assert_eq!(target.received().len(), 2);
}
