//! The process dies at one step of a message's life, twice, while 200 messages come in.

use kanat_tests::wait::DEADLINE;
use kanat_tests::{TestApp, until};

use super::kept::{self, FLOW, Senders};

const MESSAGES: usize = 200;

/// Dies where `point` is reached for the n-th time, at each start for another n.
async fn dies_at(point: &str, hits: [usize; 2]) {
    let armed = |n: usize| format!("{point}:{n}");
    let mut app = TestApp::start_with(&[("KANAT_FAILPOINT", &armed(hits[0]))]).await;
    let target = kept::target().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(FLOW).await;
    let mut senders = Senders::start(&app.api, &[url], MESSAGES);
    died(&mut app, point).await;
    app.restart_with(&[("KANAT_FAILPOINT", &armed(hits[1]))]).await;
    died(&mut app, point).await;
    app.restart_with(&[]).await;
    senders.finished().await;
    senders.nothing_is_lost(point, &app.api, &flow, &target, 2).await;
}

async fn died(app: &mut TestApp, point: &str) {
    let ended = tokio::time::timeout(DEADLINE / 2, app.ended()).await;
    let code = ended.unwrap_or_else(|_| panic!("nothing died at {point}: is kanat built with --features failpoints?"));
    assert_eq!(code, None, "a signal ended it: {}", app.log());
}

#[tokio::test]
async fn dying_before_the_commit_of_what_came_in_loses_nothing() {
    dies_at("accept.before_commit", [50, 70]).await;
}

#[tokio::test]
async fn dying_after_the_commit_of_what_came_in_loses_nothing() {
    dies_at("accept.after_commit", [50, 70]).await;
}

#[tokio::test]
async fn dying_before_the_answer_to_the_sender_loses_nothing() {
    dies_at("accept.before_answer", [50, 70]).await;
}

#[tokio::test]
async fn dying_after_the_mapping_loses_nothing() {
    dies_at("run.mapped", [50, 70]).await;
}

#[tokio::test]
async fn dying_after_the_target_s_answer_loses_nothing() {
    dies_at("delivery.answered", [50, 70]).await;
}

#[tokio::test]
async fn dying_before_the_outcome_is_written_loses_nothing() {
    dies_at("settle.before_commit", [50, 70]).await;
}

#[tokio::test]
async fn dying_after_the_outcome_is_written_loses_nothing() {
    dies_at("settle.after_commit", [50, 70]).await;
}

#[tokio::test]
async fn dying_after_a_claim_loses_nothing() {
    dies_at("claim.taken", [15, 20]).await;
}

/// The one step that lies at the target: it has the request, and has not answered.
#[tokio::test]
async fn dying_before_the_target_s_answer_loses_nothing() {
    const HANGS: [usize; 2] = [50, 120];
    let mut app = TestApp::start().await;
    let target = kept::target_that_hangs(&HANGS).await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(FLOW).await;
    let mut senders = Senders::start(&app.api, &[url], MESSAGES);
    for at in HANGS {
        until("the target hangs", || async { (target.received().len() >= at).then_some(()) }).await;
        app.kill().await;
        app.restart().await;
    }
    senders.finished().await;
    senders.nothing_is_lost("delivery.before_answer", &app.api, &flow, &target, 2).await;
}
