//! A node that dies in the midst of a poll: another, or the node itself, goes on from the page that
//! was not done.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kanat_tests::split::Split;
use kanat_tests::target::Reply;
use kanat_tests::wait::DEADLINE;
use kanat_tests::{FakeTarget, Rest, TestApp, until};

use super::strategies::STRATEGIES;
use super::{Provider, all, delivered, messages, polled, polling};

const RECORDS: u64 = 400;

#[tokio::test]
async fn another_node_goes_on_where_a_dead_one_stopped() {
    let split = Split::new();
    let control = split.control_plane("control").await;
    let target = FakeTarget::start().await;
    // The fourth pages are long in coming, for a while.
    let busy = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&busy);
    let provider = Provider::scripted(RECORDS, move |received, _| {
        let later = told.load(Ordering::SeqCst) && is_fourth(&received.path);
        later.then(|| {
            Reply::Answer(
                429,
                vec![("retry-after".to_owned(), "200".to_owned())],
                "{}".to_owned(),
            )
        })
    })
    .await;
    control.api.http_instance("erp", &target.url()).await;
    control.api.http_instance("shop", &provider.url()).await;
    // Dies after the records of its fourth page are stored, before it can say so.
    let environment = [
        ("KANAT_FAILPOINT", "poll.page:4"),
        ("KANAT_LEASE_SECONDS", "1"),
    ];
    let mut dying = split.node_with("dying", &[&control], &environment).await;
    let poll = "    interval: 1h\n    records_path: data.items\n    pagination: { strategy: \
                cursor, cursor_path: meta.next, cursor_param: cursor }\n";
    let (flow, _) = control
        .api
        .deployed(&polling("taken-over", "/cursor", poll))
        .await;
    let ended = tokio::time::timeout(DEADLINE, dying.ended()).await;
    assert_eq!(ended, Ok(None), "a signal ended it: {}", dying.log());
    let before = provider.asked().len();
    assert_eq!(before, 4);
    let mut other = split
        .node_with("other", &[&control], &[("KANAT_LEASE_SECONDS", "1")])
        .await;
    // All records were stored, so they may be delivered before the poll goes on; its cycle ends
    // once it has.
    polled(&control.api, &flow).await;
    // What the dead node was delivering may come once more, under the same key.
    until("every record is delivered", || async {
        let mut ids = delivered(&target, "taken-over", RECORDS as usize).await;
        ids.dedup();
        (ids == all(RECORDS)).then_some(())
    })
    .await;
    assert_eq!(
        messages(&control.api, &flow).await,
        RECORDS,
        "no record is two messages"
    );
    assert_eq!(
        provider.asked()[before],
        "/cursor?cursor=at-300",
        "the page that was not done, and none before"
    );
    assert_eq!(provider.asked().len(), 5);

    // By each strategy, with the node killed while it waits for the fourth page.
    busy.store(true, Ordering::SeqCst);
    let before = provider.asked().len();
    let mut flows = Vec::new();
    for (name, poll) in STRATEGIES {
        flows.push((
            name,
            control
                .api
                .deployed(&polling(name, &format!("/{name}"), poll))
                .await
                .0,
        ));
    }
    until("all wait for their fourth page", || async {
        let asked = provider.asked();
        (asked[before..]
            .iter()
            .filter(|path| is_fourth(path))
            .count()
            == flows.len())
        .then_some(())
    })
    .await;
    other.kill().await;
    busy.store(false, Ordering::SeqCst);
    let before = provider.asked().len();
    let _third = split
        .node_with("third", &[&control], &[("KANAT_LEASE_SECONDS", "1")])
        .await;
    for (name, flow) in &flows {
        until("every record is delivered", || async {
            let mut ids = delivered(&target, name, RECORDS as usize).await;
            ids.dedup();
            (ids == all(RECORDS)).then_some(())
        })
        .await;
        assert_eq!(messages(&control.api, flow).await, RECORDS, "{name}");
        let asked = provider.asked()[before..].to_vec();
        let first = asked
            .iter()
            .find(|path| path.starts_with(&format!("/{name}")))
            .unwrap();
        assert!(is_fourth(first), "{name} went on at {first}");
    }
}

/// Longer than a test waits for anything.
const LONG_LEASE: (&str, &str) = ("KANAT_LEASE_SECONDS", "600");

/// Dies after the records of its second page are stored, before it can say so.
const DYING: [(&str, &str); 2] = [("KANAT_FAILPOINT", "poll.page:2"), LONG_LEASE];

/// Deploys a flow that polls four pages.
async fn four_pages(api: &Rest, target: &FakeTarget, provider: &Provider) -> String {
    api.http_instance("erp", &target.url()).await;
    api.http_instance("shop", &provider.url()).await;
    let poll = "    interval: 1h\n    records_path: data.items\n    pagination: { strategy: \
                cursor, cursor_path: meta.next, cursor_param: cursor }\n";
    api.deployed(&polling("gone-on", "/cursor", poll)).await.0
}

/// Waits until a cycle has ended that a node which died at its second page has gone on with.
async fn went_on(api: &Rest, flow: &str, provider: &Provider) {
    polled(api, flow).await;
    assert_eq!(messages(api, flow).await, RECORDS);
    assert_eq!(
        provider.asked()[1..],
        [
            "/cursor?cursor=at-100",
            "/cursor?cursor=at-100",
            "/cursor?cursor=at-200",
            "/cursor?cursor=at-300"
        ]
    );
}

#[tokio::test]
async fn a_service_that_is_started_again_goes_on_at_once_where_it_stopped() {
    let mut app = TestApp::start_with(&DYING).await;
    let target = FakeTarget::start().await;
    let provider = Provider::start(RECORDS).await;
    let flow = four_pages(&app.api, &target, &provider).await;
    let ended = tokio::time::timeout(DEADLINE, app.ended()).await;
    assert_eq!(ended, Ok(None), "a signal ended it: {}", app.log());
    app.restart_with(&[LONG_LEASE]).await;
    went_on(&app.api, &flow, &provider).await;
}

#[tokio::test]
async fn a_node_that_is_started_again_goes_on_at_once_where_it_stopped() {
    let split = Split::new();
    let control = split.control_plane("control").await;
    let target = FakeTarget::start().await;
    let provider = Provider::start(RECORDS).await;
    let mut node = split.node_with("dying", &[&control], &DYING).await;
    let flow = four_pages(&control.api, &target, &provider).await;
    let ended = tokio::time::timeout(DEADLINE, node.ended()).await;
    assert_eq!(ended, Ok(None), "a signal ended it: {}", node.log());
    node.restart_with(&[("KANAT_FAILPOINT", "")]).await;
    went_on(&control.api, &flow, &provider).await;
}

/// Returns whether a request asks for the fourth page, by its first record or by its number.
fn is_fourth(path: &str) -> bool {
    path.ends_with("300") || path.ends_with("page=4")
}
