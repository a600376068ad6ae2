//! Faults of a split deployment: of its nodes, its control planes, and the PostgreSQL below them.

use std::time::{Duration, Instant};

use anyhow::Result;
use kanat_testing_postgres::{Cluster, Durability, Programs, Stop};

use super::live::{self, Service};
use super::workload::Workload;
use super::{Outcome, Run};
use crate::Rest;
use crate::random::Random;
use crate::split::{Split, TestProcess};

const DATABASE: &str = "kanat";
const LEASE: Duration = Duration::from_secs(3);
const LEASE_SECONDS: &str = "3";
/// How long something is away: others take over the messages of a node at times, and at times they
/// do not.
const MAX_ABSENCE: Duration = Duration::from_secs(5);

/// Kind of disturbance of a deployment.
#[derive(Debug, Clone, Copy)]
pub(super) enum Disturbance {
    NodeKill,
    ControlKill,
    NodeStop,
    DatabaseImmediate,
    DatabaseKill,
    Connections,
}

struct Deployment {
    disturbance: Disturbance,
    controls: Vec<TestProcess>,
    nodes: Vec<TestProcess>,
    cluster: Cluster,
    _split: Split,
}

pub(super) async fn run(mut run: Run, disturbance: Disturbance) -> Result<Outcome> {
    let mut workload = Workload::start().await;
    let mut deployment = Deployment::start(&run, disturbance).await?;
    let api = &deployment.controls[0].api;
    workload.deploy(api, &deployment.controls[0].base).await;
    for node in &deployment.nodes {
        node.becomes_ready().await;
    }
    live::run(&mut run, &mut deployment, &workload).await
}

impl Deployment {
    async fn start(run: &Run, disturbance: Disturbance) -> Result<Self> {
        let cluster = Cluster::start(Programs::find_or_install()?, Durability::OnDisk)?;
        cluster.create_database(DATABASE)?;
        let url = cluster.url(DATABASE);
        let split = Split::new_in(&run.folder);
        let environment = [
            ("KANAT_DATABASE_URL", url.as_str()),
            ("KANAT_LEASE_SECONDS", LEASE_SECONDS),
        ];
        let mut controls = Vec::new();
        for name in ["control-1", "control-2"] {
            controls.push(split.control_plane_with(name, &environment[..1]).await);
        }
        let mut nodes = Vec::new();
        for name in ["a", "b", "c"] {
            nodes.push(
                split
                    .node_with(name, &[&controls[0], &controls[1]], &environment)
                    .await,
            );
        }
        Ok(Self {
            disturbance,
            controls,
            nodes,
            cluster,
            _split: split,
        })
    }
}

impl Service for Deployment {
    fn api(&self) -> &Rest {
        &self.controls[0].api
    }

    fn addresses(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.base.clone()).collect()
    }

    async fn disturb(&mut self, random: &mut Random) -> Result<Instant> {
        let absence = random.pause(Duration::ZERO, MAX_ABSENCE);
        match self.disturbance {
            Disturbance::NodeKill => {
                let victim = random.below(self.nodes.len());
                Ok(kill(&mut self.nodes[victim], absence).await)
            }
            Disturbance::ControlKill => {
                let victim = random.below(self.controls.len());
                Ok(kill(&mut self.controls[victim], absence).await)
            }
            Disturbance::NodeStop => {
                let node = &self.nodes[random.below(self.nodes.len())];
                node.signal("STOP").await;
                tokio::time::sleep(LEASE + absence / 2).await;
                node.signal("CONT").await;
                Ok(Instant::now())
            }
            Disturbance::DatabaseImmediate => {
                self.cluster.stop(Stop::Immediate)?;
                tokio::time::sleep(absence).await;
                self.cluster.start_again()?;
                Ok(Instant::now())
            }
            Disturbance::DatabaseKill => {
                self.cluster.kill()?;
                tokio::time::sleep(absence).await;
                self.cluster.start_again()?;
                Ok(Instant::now())
            }
            Disturbance::Connections => {
                self.cluster.end_connections(DATABASE)?;
                Ok(Instant::now())
            }
        }
    }
}

/// Kills a process and starts it again after a time; returns when it was started.
async fn kill(process: &mut TestProcess, absence: Duration) -> Instant {
    process.kill().await;
    tokio::time::sleep(absence).await;
    let begun = Instant::now();
    process.restart().await;
    begun
}
