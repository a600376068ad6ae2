//! One of very many flows changes: what goes over the wire is that flow, and three nodes run it at
//! once. A debug build makes a few dozen flows a second, so `cargo xtask test` has a thousand;
//! `cargo xtask soak` has ten thousand.

use std::time::{Duration, Instant};

use kanat_tests::fleet::Fleet;
use kanat_tests::relay::Relay;
use kanat_tests::split::Split;
use kanat_tests::{FakeTarget, until};

use super::flows;

const FLOWS: usize = 1_000;
const CHANGES: usize = 100;
const DEPLOY_TIMEOUT: Duration = Duration::from_secs(1);

/// Number that `cargo xtask soak` asks for, or a small one.
fn how_many() -> usize {
    std::env::var("KANAT_SOAK_FLOWS").map_or(FLOWS, |flows| flows.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_change_of_very_many_flows_costs_one_flow_and_is_live_on_three_nodes() {
    let split = Split::new();
    let control = split.control_plane("control").await;
    let target = FakeTarget::start().await;
    let api = &control.api;
    api.http_instance("erp", &target.url()).await;
    let count = how_many();
    let begun = Instant::now();
    let flows = flows::deploy(api, count).await;
    println!(
        "{count} flows made and deployed in {} ms",
        begun.elapsed().as_millis()
    );

    // What one node is sent is counted on its way; a node of our own tells how large the changed
    // plan is.
    let relay = Relay::start(control.base.strip_prefix("http://").unwrap()).await;
    let begun = Instant::now();
    let nodes = [
        split
            .node_with("a", &[], &[("KANAT_CONTROL_PLANE", &relay.url())])
            .await,
        split.node("b", &[&control]).await,
        split.node("c", &[&control]).await,
    ];
    let mut fleet = Fleet::new(&control.base);
    fleet.join();
    fleet.runs(1).await;
    for node in &nodes {
        node.becomes_ready().await;
    }
    println!(
        "three new nodes run all of them after {} ms, {} KiB each",
        begun.elapsed().as_millis(),
        relay.sent() >> 10
    );

    let mut generation = fleet.reports()[0].generation.unwrap();
    let mut took = Vec::new();
    let mut sent = Vec::new();
    let mut plans = Vec::new();
    for n in 1..=CHANGES {
        let flow = &flows[n * 97 % count];
        flow.change(api, n).await;
        let before = relay.sent();
        let begun = Instant::now();
        let answer = flow.deploy(api).await;
        // From before the commit to after the last node's ack: live is earlier.
        took.push(begun.elapsed());
        sent.push(relay.sent() - before);
        assert_eq!(
            answer.header("x-config-applied"),
            "",
            "every node has it: {}",
            answer.text
        );
        generation += 1;
        fleet.runs(generation).await;
        plans.push(fleet.reports()[0].delta_bytes as u64);
        let version = flows::version(&answer.expect(200));
        for node in &nodes {
            let message = api
                .webhook(&format!("{}{}", node.base, flow.webhook), &flows::order())
                .await;
            assert_eq!(
                flows::version_of(api, &message).await,
                version,
                "the very next request runs it"
            );
        }
    }
    until("all was delivered", || async {
        (target.received().len() == CHANGES * nodes.len()).then_some(())
    })
    .await;

    for (sent, plan) in sent.iter().zip(&plans) {
        assert!(*sent < 2 * plan, "{sent} bytes for a plan of {plan}");
    }
    took.sort_unstable();
    let median = took[CHANGES / 2];
    let p99 = took[CHANGES * 99 / 100 - 1];
    println!(
        "{CHANGES} changes of one flow: live on {} nodes after {} ms (median), {} ms (p99), {} ms \
         (at most); {} bytes to a node for a plan of {} (means)",
        nodes.len(),
        median.as_millis(),
        p99.as_millis(),
        took[CHANGES - 1].as_millis(),
        sent.iter().sum::<u64>() / CHANGES as u64,
        plans.iter().sum::<u64>() / CHANGES as u64,
    );
    assert!(p99 < DEPLOY_TIMEOUT, "{p99:?}");
}
