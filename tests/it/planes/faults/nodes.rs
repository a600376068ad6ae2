//! Nodes of a split deployment that die or stand still while messages come in.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use kanat_model::Timestamp;
use kanat_tests::random::Random;
use kanat_tests::split::{Split, TestProcess};
use kanat_tests::target::Reply;
use kanat_tests::{FakeTarget, Rest, until};
use serde_json::Value;

use super::kept::{self, FLOW, Kill};
use super::senders::{SENDERS, Senders};

/// How long the random kills go on, and which: `cargo xtask soak` says.
struct Extent {
    kills: usize,
    pause: Duration,
    seed: u64,
}

impl Extent {
    fn from_environment() -> Self {
        let number = |name: &str| {
            std::env::var(name)
                .ok()
                .and_then(|text| text.parse::<u64>().ok())
        };
        let seed = number("KANAT_SOAK_SEED").unwrap_or(1);
        match number("KANAT_SOAK_KILLS") {
            Some(kills) => Self {
                kills: usize::try_from(kills).unwrap(),
                pause: Duration::from_secs(2),
                seed,
            },
            None => Self {
                kills: 3,
                pause: Duration::ZERO,
                seed,
            },
        }
    }
}

struct Deployment {
    control: TestProcess,
    nodes: Vec<TestProcess>,
    lease: Duration,
    target: FakeTarget,
    flow: String,
    urls: Vec<String>,
}

impl Deployment {
    async fn start(split: &Split, names: &[&str], lease: Duration, target: FakeTarget) -> Self {
        let control = split.control_plane("control").await;
        let mut nodes = Vec::new();
        let seconds = lease.as_secs().to_string();
        for name in names {
            nodes.push(
                split
                    .node_with(name, &[&control], &[("KANAT_LEASE_SECONDS", &seconds)])
                    .await,
            );
        }
        control.api.http_instance("erp", &target.url()).await;
        let (flow, webhook) = control.api.deployed(FLOW).await;
        let urls = nodes
            .iter()
            .map(|node| format!("{}{webhook}", node.base))
            .collect();
        for node in &nodes {
            node.becomes_ready().await;
        }
        Self {
            control,
            nodes,
            lease,
            target,
            flow,
            urls,
        }
    }

    async fn kill(&mut self, node: usize) -> Kill {
        self.nodes[node].kill().await;
        Kill::seen(&self.control.api, &self.flow, self.lease).await
    }

    async fn nothing_is_lost(
        &self,
        what: &str,
        senders: &Senders,
        kills: &[Kill],
    ) -> HashMap<String, Value> {
        kept::nothing_is_lost(
            what,
            senders,
            &self.control.api,
            &self.flow,
            &self.target,
            kills,
        )
        .await
    }
}

/// When something was done next about a message, by its trace.
async fn next_sign_of_life(api: &Rest, message: &Value, after: Timestamp) -> Timestamp {
    let message = api.message(message["id"].as_str().unwrap()).await;
    let records = message["trace"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| kept::time(&record["at"]));
    records
        .filter(|at| *at > after)
        .min()
        .unwrap_or_else(|| kept::time(&message["completedAt"]))
}

/// Every one was taken over within two lease periods. Gives the longest wait.
fn taken_over(lease: Duration, waits: &[Duration]) -> Duration {
    let longest = waits
        .iter()
        .copied()
        .max()
        .expect("messages were open when nodes died");
    assert!(longest <= lease * 2, "nobody took them up: {waits:?}");
    longest
}

#[tokio::test]
async fn random_nodes_killed_under_load_lose_nothing_and_their_work_is_taken_over() {
    const LEASE: Duration = Duration::from_secs(5);
    let Extent {
        kills: many,
        pause,
        seed,
    } = Extent::from_environment();
    let split = Split::new();
    let mut deployment =
        Deployment::start(&split, &["a", "b", "c"], LEASE, kept::target().await).await;
    let mut senders = Senders::start_endless(&deployment.control.api, &deployment.urls);
    let mut random = Random::new(seed);
    let mut kills = Vec::new();
    for _ in 0..many {
        let begun = Instant::now();
        senders.ack(60).await;
        until("it is time for the next kill", || async {
            (begun.elapsed() >= pause).then_some(())
        })
        .await;
        let victim = random.below(deployment.nodes.len());
        kills.push(deployment.kill(victim).await);
        deployment.nodes[victim].restart().await;
    }
    // The last one stays dead: others have to take over what it held.
    senders.ack(60).await;
    let victim = random.below(deployment.nodes.len());
    kills.push(deployment.kill(victim).await);
    senders.stop();
    senders.finished().await;
    let messages = deployment
        .nothing_is_lost(&format!("random kills, seed {seed}"), &senders, &kills)
        .await;

    let mut waits = Vec::new();
    for kill in &kills {
        for message in messages
            .values()
            .filter(|message| kept::open_at(message, kill.at))
        {
            waits.push(
                next_sign_of_life(&deployment.control.api, message, kill.at)
                    .await
                    .since(kill.at),
            );
        }
    }
    let longest = taken_over(LEASE, &waits);
    println!(
        "of {} messages that were open at a kill, the last was taken up after {} ms",
        waits.len(),
        longest.as_millis()
    );
}

/// Target on which requests of the first node hang until the test releases them, and later requests
/// of another node are answered with 201.
async fn target_with_two_answers() -> FakeTarget {
    FakeTarget::scripted(|_, earlier| {
        if earlier < SENDERS {
            Reply::Hang
        } else {
            kanat_tests::target::status(201)
        }
    })
    .await
}

#[tokio::test]
async fn orphans_are_taken_over_within_two_lease_periods() {
    const LEASE: Duration = Duration::from_secs(5);
    let split = Split::new();
    let mut deployment =
        Deployment::start(&split, &["a", "b"], LEASE, target_with_two_answers().await).await;
    let mut senders = Senders::start(&deployment.control.api, &deployment.urls[..1], SENDERS);
    senders.finished().await;
    deployment.target.arrivals(SENDERS).await;
    let kill = deployment.kill(0).await;
    let at = kill.at;
    let messages = deployment
        .nothing_is_lost("a node that stays dead", &senders, &[kill])
        .await;
    let mut waits = Vec::new();
    for message in messages.values() {
        waits.push(
            next_sign_of_life(&deployment.control.api, message, at)
                .await
                .since(at),
        );
    }
    let longest = taken_over(LEASE, &waits);
    println!(
        "{SENDERS} orphans, the last taken over after {} ms, with a lease of {LEASE:?}",
        longest.as_millis()
    );
    assert_eq!(deployment.target.received().len(), SENDERS * 2);
}

#[tokio::test]
async fn a_node_that_stood_still_past_its_lease_writes_no_outcome_any_more() {
    let split = Split::new();
    let lease = Duration::from_secs(2);
    let deployment =
        Deployment::start(&split, &["a", "b"], lease, target_with_two_answers().await).await;
    let mut senders = Senders::start(&deployment.control.api, &deployment.urls[..1], SENDERS);
    senders.finished().await;
    deployment.target.arrivals(SENDERS).await;
    let late = &deployment.nodes[0];
    late.signal("STOP").await;
    let stop = [Kill::seen(&deployment.control.api, &deployment.flow, lease).await];
    // The other node sends all of them, after the lease of the first.
    deployment.target.arrivals(SENDERS * 2).await;
    deployment
        .nothing_is_lost("a node that stands still, taken over", &senders, &stop)
        .await;
    // Now the first gets its answers, which are 200, and has to find that it is too late.
    deployment.target.release();
    late.signal("CONT").await;
    let refused = until("the late node has tried to write every outcome", || async {
        let refused = late.metric("kanat_log_settles_fenced_total").await;
        (refused >= SENDERS as f64).then_some(refused)
    })
    .await;
    assert_eq!(refused, SENDERS as f64);
    assert!(
        late.log().contains("an outcome came too late"),
        "{}",
        late.log()
    );
    until("the late node is ready again", || async {
        (late.readiness().await == 200).then_some(())
    })
    .await;
    let messages = deployment
        .nothing_is_lost("the same node, woken", &senders, &stop)
        .await;
    for id in messages.keys() {
        let message = deployment.control.api.message(id).await;
        let trace = message["trace"].as_array().unwrap();
        let deliveries: Vec<_> = trace
            .iter()
            .filter(|record| record["stage"] == "delivery")
            .collect();
        let [delivery] = deliveries.as_slice() else {
            panic!("one delivery, its successor's: {message}")
        };
        assert!(
            delivery["response"].to_string().contains("201"),
            "{message}"
        );
    }
    println!(
        "{refused} late outcomes refused, {} final states are the successor's",
        messages.len()
    );
    assert_eq!(deployment.target.received().len(), SENDERS * 2);
}
