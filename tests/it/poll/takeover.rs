//! A node that dies in the midst of a poll: another goes on from the page that was not done.

use kanat_tests::split::Split;
use kanat_tests::wait::DEADLINE;
use kanat_tests::{FakeTarget, until};

use super::{Provider, all, delivered, messages, polling};

const RECORDS: u64 = 1_000;

#[tokio::test]
async fn another_node_goes_on_where_a_dead_one_stopped() {
    let split = Split::new();
    let control = split.control_plane("control").await;
    let (target, provider) = (FakeTarget::start().await, Provider::start(RECORDS).await);
    control.api.http_instance("erp", &target.url()).await;
    control.api.http_instance("shop", &provider.url()).await;
    // Dies after the records of its fourth page are stored, before it can say so.
    let environment = [("KANAT_FAILPOINT", "poll.page:4"), ("KANAT_LEASE_SECONDS", "1")];
    let mut dying = split.node_with("dying", &[&control], &environment).await;
    let poll = "    interval: 1h\n    records_path: data.items\n    pagination: { strategy: cursor, cursor_path: meta.next, cursor_param: cursor }\n";
    let (flow, _) = control.api.deployed(&polling("taken-over", "/cursor", poll)).await;
    let ended = tokio::time::timeout(DEADLINE, dying.ended()).await;
    assert_eq!(ended, Ok(None), "a signal ended it: {}", dying.log());
    let before = provider.asked().len();
    assert_eq!(before, 4);
    let _other = split.node_with("other", &[&control], &[("KANAT_LEASE_SECONDS", "1")]).await;
    // What the dead node was delivering may come once more, under the same key.
    until("every record is delivered", || async {
        let mut ids = delivered(&target, "taken-over", RECORDS as usize).await;
        ids.dedup();
        (ids == all(RECORDS)).then_some(())
    })
    .await;
    assert_eq!(messages(&control.api, &flow).await, RECORDS, "no record is two messages");
    assert_eq!(provider.asked()[before], "/cursor?cursor=at-300", "the page that was not done, and none before");
    assert_eq!(provider.asked().len(), 11);
}
