//! A PostgreSQL that goes away, stands still, or is not there yet, under processes that stay.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use kanat_testing_postgres::{Cluster, Durability, Programs, Stop};
use kanat_tests::split::{Split, TestProcess};
use kanat_tests::{FakeTarget, Rest, memory, until};
use serde_json::{Value, json};

use super::kept::{self, FLOW, Kill};
use super::senders::{Load, SENDERS, Senders};

/// A control plane and a node on a server of their own.
pub struct Deployment {
    pub cluster: Cluster,
    pub control: TestProcess,
    pub node: TestProcess,
    target: FakeTarget,
    flow: String,
    pub url: String,
    _split: Split,
}

impl Deployment {
    async fn start(environment: &[(&str, &str)]) -> Self {
        let cluster =
            Cluster::start(Programs::find_or_install().unwrap(), Durability::OnDisk).unwrap();
        cluster.create_database("kanat").unwrap();
        let database = cluster.url("kanat");
        Self::start_at(cluster, &database, environment).await
    }

    /// Starts the processes with this address, or list of addresses, of their database.
    pub async fn start_at(cluster: Cluster, database: &str, environment: &[(&str, &str)]) -> Self {
        let mut all = vec![("KANAT_DATABASE_URL", database)];
        all.extend(environment);
        let split = Split::new();
        let control = split.control_plane_with("control", &all).await;
        let node = split.node_with("a", &[&control], &all).await;
        let target = kept::target().await;
        control.api.http_instance("erp", &target.url()).await;
        let (flow, webhook) = control.api.deployed(FLOW).await;
        node.becomes_ready().await;
        let url = format!("{}{webhook}", node.base);
        Self {
            cluster,
            control,
            node,
            target,
            flow,
            url,
            _split: split,
        }
    }

    pub fn senders(&self) -> Senders {
        Senders::start_endless(&self.control.api, std::slice::from_ref(&self.url))
    }

    pub async fn nothing_is_lost(
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

#[tokio::test]
async fn a_database_restarted_under_load_loses_nothing_and_nobody_is_restarted() {
    let deployment = Deployment::start(&[("KANAT_LEASE_SECONDS", "2")]).await;
    let mut senders = deployment.senders();
    let mut stops = Vec::new();
    for stop in [Stop::Fast, Stop::Immediate] {
        senders.ack(60).await;
        deployment.cluster.stop(stop).unwrap();
        stops.push(Kill::unseen());
        let answer = Rest::send(
            deployment
                .control
                .api
                .http()
                .post(&deployment.url)
                .json(&json!({ "n": 1 })),
        )
        .await;
        assert_eq!(answer.status, 503, "{}", answer.text);
        assert!(
            !(answer.header("retry-after").is_empty()),
            "{}",
            answer.text
        );
        let both = [&deployment.control, &deployment.node];
        for process in both {
            until("it says that it is not ready", || async {
                (process.readiness().await == 503).then_some(())
            })
            .await;
            assert_eq!(process.api.get("/health").await.status, 200);
        }
        deployment.cluster.start_again().unwrap();
        let begun = Instant::now();
        senders.ack(SENDERS + 1).await;
        println!(
            "{stop:?} restart: messages are taken {} ms after its return",
            begun.elapsed().as_millis()
        );
        assert!(begun.elapsed() < Duration::from_secs(10));
        for process in both {
            process.becomes_ready().await;
        }
    }
    senders.stop();
    senders.finished().await;
    deployment
        .nothing_is_lost("PostgreSQL restarted", &senders, &stops)
        .await;
}

#[tokio::test]
async fn a_database_that_stands_still_under_load_fills_no_memory_and_loses_nothing() {
    const STILL: Duration = Duration::from_secs(5);
    const MESSAGES: usize = 100;
    const BODY: usize = 900_000;
    /// Memory of the messages that wait for the log, of those that are read, and of the copies on
    /// their path to the database.
    const MAX_MIB: u64 = 256;
    // The lease runs out meanwhile: nobody else is there to take over what the node holds.
    let deployment = Deployment::start(&[("KANAT_LEASE_SECONDS", "2")]).await;
    let node = &deployment.node;
    let mut small = deployment.senders();
    small.ack(60).await;
    let before = memory::resident_kib(node.pid()) / 1024;

    deployment.cluster.pause().unwrap();
    let paused = Instant::now();
    // They come back when they are told to, so that far more is offered than there is room for.
    let load = Load {
        senders: MESSAGES,
        body: BODY,
        patience: Duration::from_secs(1),
    };
    let mut large = Senders::start_with(
        &deployment.control.api,
        std::slice::from_ref(&deployment.url),
        MESSAGES,
        load,
    );
    until("what finds no room is refused", || async {
        (large.refused() > 0).then_some(())
    })
    .await;
    until("it says that it is not ready", || async {
        (node.readiness().await == 503).then_some(())
    })
    .await;
    until("it has stood still for so long", || async {
        (paused.elapsed() >= STILL).then_some(())
    })
    .await;
    assert_eq!(node.api.get("/health").await.status, 200);
    // Counted by the node before it answers, so that it never tells of fewer than were answered.
    let refused = large.refused();
    let told = node.metric("kanat_ingress_refused_total").await;
    let full = node.metric("kanat_log_append_failures_total").await;
    assert!(
        told >= refused as f64 && full > 0.0,
        "{refused} refused, {told} told, {full} by a full log"
    );
    let still = paused.elapsed();
    deployment.cluster.resume().unwrap();

    // More would come in while the large ones do than a busy machine delivers.
    small.stop();
    large.finished().await;
    small.finished().await;
    let most = memory::peak_kib(node.pid()) / 1024;
    let messages = deployment
        .nothing_is_lost("PostgreSQL stood still", &large, &[])
        .await;
    assert!(
        small.acked_ids().iter().all(|id| messages.contains_key(id)),
        "acked messages are not in the log"
    );
    println!(
        "still for {} ms: {refused} of {} requests with {BODY} bytes refused, {before} MiB \
         before, {most} MiB at most",
        still.as_millis(),
        refused + MESSAGES,
    );
    assert!(
        most - before < MAX_MIB,
        "{} MiB more than before",
        most - before
    );
}

#[tokio::test]
async fn processes_that_start_without_their_database_wait_for_it() {
    let mut deployment = Deployment::start(&[]).await;
    let api = deployment.control.api.clone();
    let url = deployment.url.clone();
    deployment.node.kill().await;
    deployment.control.kill().await;
    deployment.cluster.stop(Stop::Fast).unwrap();
    for process in [&mut deployment.control, &mut deployment.node] {
        process.spawn_again();
        let alive = async |base: String| {
            Rest::try_send(api.http().get(format!("{base}/health")))
                .await
                .ok()
        };
        // Its metrics take another port at each start, which is in the log some time after it.
        for base in [
            |process: &TestProcess| process.base.clone(),
            TestProcess::metrics,
        ] {
            until("it is alive", || async {
                alive(base(process))
                    .await
                    .filter(|answer| answer.status == 200)
            })
            .await;
            let ready = api.get(&format!("{}/ready", base(process))).await;
            assert_eq!(ready.status, 503, "{}", ready.text);
            assert_eq!(ready.header("retry-after"), "1", "{}", ready.text);
        }
        assert!(
            process
                .log()
                .contains("the database is out of reach: waiting for it"),
            "{}",
            process.log()
        );
    }
    let refused = Rest::send(api.http().post(&url).json(&json!({ "n": 1 }))).await;
    assert_eq!(refused.status, 503, "{}", refused.text);
    assert_eq!(refused.header("retry-after"), "1", "{}", refused.text);
    assert_eq!(api.get("/api/v1/flows").await.status, 503);
    // One that is told to stop meanwhile does.
    assert_eq!(deployment.control.terminate().await, Some(0));
    deployment.control.spawn_again();

    deployment.cluster.start_again().unwrap();
    deployment.control.listens().await;
    deployment.node.listens().await;
    deployment.node.becomes_ready().await;
    assert_eq!(api.get("/ready").await.status, 200);
    api.message_becomes(&api.webhook(&url, &json!({ "n": 1 })).await, "delivered")
        .await;
}

#[tokio::test]
async fn one_connection_for_each_purpose_suffices() {
    let pools = [
        "KANAT_STORE_CONNECTIONS",
        "KANAT_LOG_WRITERS",
        "KANAT_LOG_READERS",
        "KANAT_LOG_WORKERS",
    ];
    let deployment = Deployment::start(&pools.map(|name| (name, "1"))).await;
    let mut senders = deployment.senders();
    senders.ack(60).await;
    let (_, other) = deployment
        .control
        .api
        .deployed(&FLOW.replace("survivors", "others"))
        .await;
    deployment
        .control
        .api
        .webhook(
            &format!("{}{other}", deployment.node.base),
            &json!({ "n": 1 }),
        )
        .await;
    senders.stop();
    senders.finished().await;
    deployment
        .nothing_is_lost("one connection for each purpose", &senders, &[])
        .await;
}
