//! The process dies after a step, twice, while 200 messages come in: what a step has done is not
//! done again.

use std::collections::HashMap;

use kanat_testing_postgres::Database;
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::kept::{self, LANE};
use super::points::died;
use super::senders::Senders;
use crate::steps;

const MESSAGES: usize = 200;

/// The target fails each third message once, so that many go through their steps a second time.
fn flow(ordering_key: &str) -> String {
    let step = r#"steps:
  - name: ticket
    action: support-ticketing.create-ticket
    params: { ticket: { comment: { body: "{{ source.n | string }}" } } }
target:"#;
    format!("{}{ordering_key}", kept::FLOW.replace("target:", step))
}

/// On SQLite, and beside it on PostgreSQL.
async fn dies_on_both(point: &str, hits: [usize; 2], flow: &str) -> [Vec<usize>; 2] {
    let database = Database::fresh();
    let postgres = [("KANAT_DATABASE_URL", database.url())];
    futures::future::join(
        dies_at(point, hits, flow, &[]),
        dies_at(point, hits, flow, &postgres),
    )
    .await
    .into()
}

/// Dies where `point` is reached for the n-th time; gives how many calls each message's step made
/// beyond the first.
async fn dies_at(point: &str, hits: [usize; 2], flow: &str, log: &[(&str, &str)]) -> Vec<usize> {
    let armed = hits.map(|n| format!("{point}:{n}"));
    let armed = armed
        .each_ref()
        .map(|armed| [log, &[("KANAT_FAILPOINT", armed)]].concat());
    let mut app = TestApp::start_with(&armed[0]).await;
    let target = kept::target().await;
    let desk = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let config = json!({
        "subdomain": "acme",
        "email": "a@acme.example",
        "api_token": "token",
        "base_url": desk.url(),
    });
    steps::instance(&app.api, "support-ticketing", "desk", &config).await;
    let (flow, url) = app.api.deployed(flow).await;
    let mut senders = Senders::start(&app.api, &[url], MESSAGES);
    let first = died(&mut app, point).await;
    app.restart_with(&armed[1]).await;
    let second = died(&mut app, point).await;
    app.restart_with(log).await;
    senders.finished().await;
    kept::nothing_is_lost(point, &senders, &app.api, &flow, &target, &[first, second]).await;
    let mut calls: HashMap<String, usize> = HashMap::new();
    for call in desk.received() {
        *calls
            .entry(call.header("idempotency-key").to_owned())
            .or_default() += 1;
    }
    assert!(
        calls.len() >= MESSAGES,
        "{} of {MESSAGES} messages made their step",
        calls.len()
    );
    let again: Vec<usize> = calls
        .values()
        .map(|calls| calls - 1)
        .filter(|again| *again > 0)
        .collect();
    let log = if log.is_empty() {
        "SQLite"
    } else {
        "PostgreSQL"
    };
    println!(
        "{point} on {log}: {} steps, {} done again",
        calls.len(),
        again.iter().sum::<usize>()
    );
    again
}

#[tokio::test]
async fn dying_after_a_step_is_kept_does_no_step_again() {
    // One message at a time: the one that is in flight when the process dies has its step behind
    // it.
    let again = dies_on_both("step.kept", [50, 70], &flow("ordering_key: \"'all'\"\n")).await;
    assert_eq!(again, [[0; 0]; 2], "steps that were done are done again");
}

#[tokio::test]
async fn dying_before_a_step_is_kept_does_again_what_was_in_flight_alone() {
    let again = dies_on_both(
        "step.answered",
        [50, 70],
        &flow("ordering_key: \"'all'\"\n"),
    )
    .await;
    assert_eq!(
        again,
        [[1, 1]; 2],
        "one message in flight at each of two deaths"
    );
}

#[tokio::test]
async fn dying_among_many_steps_loses_nothing_and_does_again_what_was_in_flight_alone() {
    for again in dies_on_both("step.kept", [50, 70], &flow("")).await {
        assert!(again.iter().sum::<usize>() <= 2 * LANE, "{again:?}");
    }
}
