//! Two hundred nodes lose their control plane, and come back all at once.

use std::time::{Duration, Instant};

use kanat_tests::fleet::Fleet;
use kanat_tests::memory::{peak_kib, resident_kib};
use kanat_tests::split::Split;

use super::flows;

const NODES: usize = 200;
const FLOWS: usize = 1_000;
const SYNC_TIMEOUT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_nodes_that_come_back_at_once_are_synced_in_bounded_time_and_memory() {
    let split = Split::new();
    let mut control = split.control_plane("control").await;
    control.api.http_instance("erp", "http://127.0.0.1:9").await;
    let flows = flows::deploy(&control.api, FLOWS).await;
    let mut fleet = Fleet::new(&control.base);
    // One after another, so that what is taken for idle is no burst's leftover.
    for _ in 0..NODES {
        fleet.join();
        fleet.runs(1).await;
    }
    let generation = fleet.reports()[0].generation.unwrap();
    let idle = resident_kib(control.pid());
    println!("{NODES} nodes at rest, {FLOWS} flows: {} MiB", idle / 1024);

    // They hold what they had. A change is made meanwhile: who runs it is in step again.
    control.kill().await;
    control.restart().await;
    let begun = Instant::now();
    flows[0].deploy(&control.api).await.expect(200);
    fleet.runs(generation + 1).await;
    report(
        "a control plane killed and restarted",
        begun,
        control.pid(),
        idle,
    );
    assert!(
        fleet.reports().iter().all(|node| node.snapshots == 1),
        "a delta was enough: {:?}",
        fleet.reports()
    );

    // They hold nothing: each needs all of it.
    let begun = Instant::now();
    fleet.cut_off_and_forget();
    flows[1].deploy(&control.api).await.expect(200);
    fleet.runs(generation + 2).await;
    report(
        "every connection cut, and nothing kept",
        begun,
        control.pid(),
        idle,
    );
    assert!(
        fleet.reports().iter().all(|node| node.snapshots == 2),
        "{:?}",
        fleet.reports()
    );
}

/// The peak is that since the start of the process, which both storms have in common.
fn report(what: &str, begun: Instant, control_plane: u32, idle: u64) {
    let took = begun.elapsed();
    let peak = peak_kib(control_plane);
    println!(
        "{what}: all {NODES} synced after {} ms, at most {} MiB, {:.2} times the idle figure",
        took.as_millis(),
        peak / 1024,
        peak as f64 / idle as f64
    );
    assert!(took < SYNC_TIMEOUT, "{took:?}");
    assert!(peak < 2 * idle, "{peak} KiB, and {idle} KiB at rest");
}
