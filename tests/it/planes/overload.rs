//! More comes in than goes out: what is beyond the bound of the backlog is refused before it is
//! accepted, the flow with the largest backlog first.

use std::time::Duration;

use kanat_testing_postgres::Database;
use kanat_tests::overload::{self, Extent, Log};
use kanat_tests::target::Reply;
use kanat_tests::{Answer, FakeTarget, Rest, TestApp, until};
use serde_json::json;

use crate::webhook::passthrough;

/// Bound of the backlog in bytes: some 80 small messages, which all have room in memory.
const BOUND: &str = "131072";
/// Bytes of the backlog that a message takes, beside what came in.
const ROW_BYTES: usize = 1_024;

/// Posts until the flow refuses; gives the ids of what it accepted, and the refusal.
async fn fill(api: &Rest, url: &str) -> (Vec<String>, Answer) {
    let mut accepted = Vec::new();
    loop {
        let answer = api
            .without_key()
            .post(url, &json!({ "n": accepted.len() }))
            .await;
        if answer.status != 202 {
            return (accepted, answer);
        }
        accepted.push(
            answer.json()["messageId"]
                .as_str()
                .expect("a 202 has it")
                .to_owned(),
        );
        assert!(accepted.len() * ROW_BYTES < 131_072, "nothing is refused");
    }
}

fn refuses(answer: Answer, reason: &str) {
    assert!(
        answer
            .header("retry-after")
            .parse::<u32>()
            .is_ok_and(|seconds| seconds > 0),
        "{:?}",
        answer.headers
    );
    assert_eq!(answer.json()["error"], reason);
    answer.expect_error(503, "UNAVAILABLE");
}

async fn bounds_the_backlog_of(app: &TestApp) {
    let hanging = FakeTarget::scripted(|_, _| Reply::Hang).await;
    let working = FakeTarget::start().await;
    app.api.http_instance("erp", &hanging.url()).await;
    let (_, busy) = app.api.deployed(&passthrough("busy")).await;
    app.api.http_instance("shop", &working.url()).await;
    let (_, quiet) = app
        .api
        .deployed(&passthrough("quiet").replace("erp", "shop"))
        .await;

    let (accepted, refusal) = fill(&app.api, &busy).await;
    refuses(
        refusal,
        "too many messages of this flow wait for their delivery",
    );
    assert!(accepted.len() > 40, "only {} were accepted", accepted.len());
    // The flow that makes the backlog is refused; others are not.
    let id = app.api.webhook(&quiet, &json!({ "n": 1 })).await;
    app.api.message_becomes(&id, "delivered").await;

    hanging.release();
    for id in &accepted {
        app.api.message_becomes(id, "delivered").await;
    }
    assert_eq!(hanging.count(), accepted.len());
    let id = app.api.webhook(&busy, &json!({ "n": "again" })).await;
    app.api.message_becomes(&id, "delivered").await;
}

#[tokio::test]
async fn beyond_its_bound_the_backlog_refuses_the_flow_that_makes_it_and_delivers_all_it_accepted()
{
    let app = TestApp::start_with(&[("KANAT_BACKLOG_BYTES", BOUND)]).await;
    bounds_the_backlog_of(&app).await;
}

#[tokio::test]
async fn the_backlog_is_bounded_on_postgresql_too() {
    let database = Database::fresh();
    let app = TestApp::start_with(&[
        ("KANAT_BACKLOG_BYTES", BOUND),
        ("KANAT_DATABASE_URL", database.url()),
    ])
    .await;
    bounds_the_backlog_of(&app).await;
}

#[tokio::test]
async fn a_service_that_starts_anew_knows_the_backlog_that_it_has() {
    let mut app = TestApp::start_with(&[("KANAT_BACKLOG_BYTES", BOUND)]).await;
    let target = FakeTarget::scripted(|_, _| Reply::Hang).await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("busy")).await;
    let (accepted, _) = fill(&app.api, &url).await;
    app.kill().await;
    app.restart().await;
    let refusal = until("the backlog is known", || async {
        let answer = app
            .api
            .without_key()
            .post(&url, &json!({ "n": "late" }))
            .await;
        (answer.status != 202).then_some(answer)
    })
    .await;
    refuses(
        refusal,
        "too many messages of this flow wait for their delivery",
    );
    target.release();
    for id in &accepted {
        app.api.message_becomes(id, "delivered").await;
    }
}

#[tokio::test]
async fn a_flow_is_refused_while_its_oldest_message_is_too_old_but_not_for_what_is_held_or_retried()
{
    let app = TestApp::start_with(&[("KANAT_BACKLOG_AGE", "1s")]).await;
    let hanging = FakeTarget::scripted(|_, _| Reply::Hang).await;
    app.api.http_instance("erp", &hanging.url()).await;
    let failing = FakeTarget::failing(usize::MAX).await;
    app.api.http_instance("shop", &failing.url()).await;
    let (held, held_url) = app.api.deployed(&passthrough("held")).await;
    app.api
        .post(&format!("/api/v1/flows/{held}/pause"), &json!({}))
        .await
        .expect(200);
    let (_, patient) = app
        .api
        .deployed(&format!("{}backlog_age: 1h\n", passthrough("patient")))
        .await;
    let retried =
        passthrough("retried").replace("erp", "shop") + "on_error: { retry: 3x fixed(1h) }\n";
    let (_, retried) = app.api.deployed(&retried).await;
    let (_, url) = app.api.deployed(&passthrough("hung")).await;
    for url in [&held_url, &patient, &url] {
        app.api.webhook(url, &json!({ "n": 1 })).await;
    }
    let id = app.api.webhook(&retried, &json!({ "n": 1 })).await;
    app.api.message_becomes(&id, "retrying").await;

    let refusal = until("the oldest message is too old", || async {
        let answer = app.api.without_key().post(&url, &json!({ "n": 2 })).await;
        (answer.status != 202).then_some(answer)
    })
    .await;
    refuses(
        refusal,
        "messages of this flow wait for too long for their delivery",
    );
    for url in [&held_url, &patient, &retried] {
        app.api.webhook(url, &json!({ "n": 2 })).await;
    }
    hanging.release();
    until("the flow takes messages again", || async {
        let answer = app.api.without_key().post(&url, &json!({ "n": 3 })).await;
        (answer.status == 202).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_times_what_a_target_takes_is_refused_but_for_what_is_delivered_in_the_end() {
    let extent = Extent {
        time: Duration::from_secs(3),
        per_second: 2_000,
        backlog_bytes: 1 << 20,
    };
    let report = overload::run(Log::Sqlite, extent)
        .await
        .unwrap_or_else(|error| panic!("{error:#}"));
    println!("{}", report.row());
}
