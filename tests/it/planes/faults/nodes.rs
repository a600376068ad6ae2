//! Nodes of a split deployment that die, stand still, or lose their database, while messages come in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kanat_testing_postgres::{Cluster, Durability, Programs, Stop};
use kanat_tests::split::{Split, TestProcess};
use kanat_tests::{FakeTarget, until};

use super::kept::{self, FLOW, SENDERS, Senders};

/// Short, so that what a dead node held is taken over within the test.
const LEASE: (&str, &str) = ("KANAT_LEASE_SECONDS", "2");

/// How long the random kills go on, and which: `cargo xtask soak` says.
struct Extent {
    kills: usize,
    pause: Duration,
    seed: u64,
}

impl Extent {
    fn told() -> Self {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let seed = number("KANAT_SOAK_SEED").unwrap_or(1);
        match number("KANAT_SOAK_KILLS") {
            Some(kills) => Self { kills: usize::try_from(kills).unwrap(), pause: Duration::from_secs(2), seed },
            None => Self { kills: 3, pause: Duration::ZERO, seed },
        }
    }
}

/// Numbers that look random and are the same for one seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

struct Deployment {
    control: TestProcess,
    nodes: Vec<TestProcess>,
    target: FakeTarget,
    flow: String,
    urls: Vec<String>,
}

impl Deployment {
    async fn start(split: &Split, names: &[&str], target: FakeTarget) -> Self {
        let control = split.control_plane("control").await;
        let mut nodes = Vec::new();
        for name in names {
            nodes.push(split.node_with(name, &[&control], &[LEASE]).await);
        }
        control.api.http_instance("erp", &target.url()).await;
        let (flow, webhook) = control.api.deployed(FLOW).await;
        let urls = nodes.iter().map(|node| format!("{}{webhook}", node.base)).collect();
        for node in &nodes {
            node.becomes_ready().await;
        }
        Self { control, nodes, target, flow, urls }
    }

    async fn nothing_is_lost(&self, what: &str, senders: &Senders, kills: usize) {
        senders.nothing_is_lost(what, &self.control.api, &self.flow, &self.target, kills).await;
    }
}

#[tokio::test]
async fn random_nodes_killed_under_load_lose_nothing_and_their_work_is_taken_over() {
    let Extent { kills, pause, seed } = Extent::told();
    let split = Split::new();
    let mut deployment = Deployment::start(&split, &["a", "b", "c"], kept::target().await).await;
    let done = Arc::new(AtomicBool::new(false));
    let wanted = {
        let done = Arc::clone(&done);
        move |_| !done.load(Ordering::Acquire)
    };
    let mut senders = Senders::start_while(&deployment.control.api, &deployment.urls, wanted);
    let mut random = Random(seed);
    for _ in 0..kills {
        let (acked, begun) = (senders.acked(), Instant::now());
        until("messages are acked between two kills", || async {
            (senders.acked() >= acked + 60 && begun.elapsed() >= pause).then_some(())
        })
        .await;
        let victim = random.below(deployment.nodes.len());
        deployment.nodes[victim].kill().await;
        deployment.nodes[victim].restart().await;
    }
    // The last one stays dead: others have to take over what it held.
    let victim = random.below(deployment.nodes.len());
    deployment.nodes[victim].kill().await;
    let begun = Instant::now();
    done.store(true, Ordering::Release);
    senders.finished().await;
    deployment.nothing_is_lost(&format!("random kills, seed {seed}"), &senders, kills + 1).await;
    println!("all had ended {} ms after the last kill, with a lease of 2 s", begun.elapsed().as_millis());
}

#[tokio::test]
async fn a_node_that_stood_still_past_its_lease_writes_no_outcome_any_more() {
    let split = Split::new();
    let target = FakeTarget::scripted(|_, earlier| {
        if earlier < SENDERS { kanat_tests::target::Reply::Hang } else { kanat_tests::target::ok() }
    })
    .await;
    let deployment = Deployment::start(&split, &["a", "b"], target).await;
    let mut senders = Senders::start(&deployment.control.api, &deployment.urls[..1], SENDERS);
    senders.finished().await;
    deployment.target.arrivals(SENDERS).await;
    deployment.nodes[0].signal("STOP").await;
    // The other node sends all of them, after the lease of the first.
    deployment.target.arrivals(SENDERS * 2).await;
    deployment.nothing_is_lost("a node that stands still, taken over", &senders, 1).await;
    deployment.target.release();
    deployment.nodes[0].signal("CONT").await;
    until("the late node is ready again", || async { (deployment.nodes[0].readiness().await == 200).then_some(()) })
        .await;
    deployment.nothing_is_lost("the same node, woken", &senders, 1).await;
    assert_eq!(deployment.target.received().len(), SENDERS * 2);
}

#[tokio::test]
async fn a_database_restarted_under_load_loses_nothing_and_nobody_is_restarted() {
    let cluster = Cluster::start(Programs::find_or_install().unwrap(), Durability::OnDisk).unwrap();
    cluster.create_database("kanat").unwrap();
    let url = cluster.url("kanat");
    let split = Split::new();
    let control = split.control_plane_with("control", &[("KANAT_DATABASE_URL", &url)]).await;
    let node = split.node_with("a", &[&control], &[LEASE, ("KANAT_DATABASE_URL", &url)]).await;
    let target = kept::target().await;
    control.api.http_instance("erp", &target.url()).await;
    let (flow, webhook) = control.api.deployed(FLOW).await;
    node.becomes_ready().await;
    let done = Arc::new(AtomicBool::new(false));
    let wanted = {
        let done = Arc::clone(&done);
        move |_| !done.load(Ordering::Acquire)
    };
    let mut senders = Senders::start_while(&control.api, &[format!("{}{webhook}", node.base)], wanted);
    for stop in [Stop::Fast, Stop::Immediate] {
        let acked = senders.acked();
        until("messages are acked", || async { (senders.acked() >= acked + 60).then_some(()) }).await;
        cluster.stop(stop).unwrap();
        let probe = control.api.http().post(format!("{}{webhook}", node.base)).json(&serde_json::json!({"n": 1}));
        let answer = kanat_tests::Rest::send(probe).await;
        assert_eq!((answer.status, answer.header("retry-after").is_empty()), (503, false), "{}", answer.text);
        cluster.start_again().unwrap();
        let (acked, begun) = (senders.acked(), Instant::now());
        until("messages are acked again", || async { (senders.acked() > acked + SENDERS).then_some(()) }).await;
        println!("{stop:?} restart: messages are taken {} ms after its return", begun.elapsed().as_millis());
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
    done.store(true, Ordering::Release);
    senders.finished().await;
    senders.nothing_is_lost("PostgreSQL restarted", &control.api, &flow, &target, 2).await;
}
