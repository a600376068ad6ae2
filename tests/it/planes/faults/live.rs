//! A write at one control plane is live on the nodes of all within a second.

use std::time::{Duration, Instant};

use kanat_tests::soak;
use kanat_tests::split::Split;

use super::versions::{ProbeFlow, at, flow};

const CHANGES: u64 = 50;

#[tokio::test]
async fn a_write_at_one_control_plane_is_live_on_the_nodes_of_all_within_a_second() {
    let split = Split::new();
    let controls = [
        split.control_plane("one").await,
        split.control_plane("other").await,
    ];
    let nodes = [
        split.node("a", &[&controls[0]]).await,
        split.node("b", &[&controls[1]]).await,
    ];
    let (witness, table) = ProbeFlow::start(&controls[0].api).await;
    let (_, webhook) = controls[0].api.deployed(&flow("orders", 1)).await;
    let urls = [at(&nodes[0], &webhook), at(&nodes[1], &webhook)];
    let mut took = Vec::new();
    for version in 2..2 + CHANGES {
        let control = &controls[usize::from(version % 2 == 0)];
        let begun = Instant::now();
        // Both are asked all the while, from before the commit on: what counts is when the later
        // one runs it.
        let live = async |node: usize| {
            while witness.ask(&nodes[node].api, &urls[node]).await.table < version {}
            begun.elapsed()
        };
        let write = async { control.api.put(&table.path, &table.entries(version)).await };
        let (written, a, b) = tokio::join!(write, live(0), live(1));
        assert_eq!(written.header("x-config-applied"), "", "{}", written.text);
        written.expect(200);
        took.push(a.max(b));
    }
    took.sort_unstable();
    let median = took[took.len() / 2];
    let longest = took[took.len() - 1];
    println!(
        "{CHANGES} changes are live on the nodes of both control planes {} ms after the request \
         (median), {} ms at most",
        median.as_millis(),
        longest.as_millis()
    );
    assert!(median < Duration::from_secs(1), "{took:?}");
    let most = Duration::from_secs(if soak::is_on() { 1 } else { 5 });
    assert!(longest < most, "{took:?}");
}
