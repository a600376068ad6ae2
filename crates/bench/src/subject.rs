//! A server under measurement with the target that it delivers to, and what it did under one load.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use kanat_testing_postgres::Cluster;

use crate::bare::{self, Work};
use crate::figures::percentile;
use crate::kanat::{Kanat, Start};
use crate::load::{self, Call, Outcome, Pace};
use crate::process::{self, Server};
use crate::target::{Arrived, Target};

/// A running server with one webhook.
pub struct Subject {
    server: Running,
    pub target: Target,
    pub path: String,
    /// Whether what it acks arrives at the target.
    delivers: bool,
    /// The database that works for it.
    postgres: Option<Arc<Cluster>>,
}

enum Running {
    Bare(Box<Server>),
    Kanat(Box<Kanat>),
}

impl Running {
    fn into_server(self) -> Server {
        match self {
            Self::Bare(server) => *server,
            Self::Kanat(kanat) => kanat.server,
        }
    }
}

/// What a server did under one load.
pub struct Run {
    pub acked_per_second: f64,
    pub ack_p50_ms: f64,
    pub ack_p99_ms: f64,
    pub delivered_per_second: f64,
    /// From sending, or from when it was due, to the target; not a number where nothing is
    /// delivered.
    pub end_to_end_p50_ms: f64,
    pub end_to_end_p99_ms: f64,
    /// Microseconds a message, of the server alone.
    pub cpu_us: f64,
    /// Microseconds a message, of the processes of its database.
    pub postgres_cpu_us: f64,
    pub peak_memory_mib: f64,
    /// Of the message log.
    pub commits_per_message: f64,
    pub doubles: u64,
}

/// What was used up before a load.
struct Before {
    at: Instant,
    cpu: Duration,
    postgres_cpu: Duration,
    commits: f64,
}

impl Subject {
    pub async fn bare(work: Work, folder: &Path) -> Result<Self> {
        let target = Target::start().await?;
        let server = bare::start(work, folder, target.address).await?;
        Ok(Self::of_bare(server, target, work == Work::Loop, None))
    }

    /// A server of ours that writes each message to PostgreSQL by itself.
    pub async fn rows(cluster: &Arc<Cluster>, url: &str, folder: &Path) -> Result<Self> {
        let target = Target::start().await?;
        let server = bare::rows::start(folder, url, target.address).await?;
        Ok(Self::of_bare(
            server,
            target,
            true,
            Some(Arc::clone(cluster)),
        ))
    }

    fn of_bare(
        server: Server,
        target: Target,
        delivers: bool,
        postgres: Option<Arc<Cluster>>,
    ) -> Self {
        Self {
            server: Running::Bare(Box::new(server)),
            target,
            path: "/".to_owned(),
            delivers,
            postgres,
        }
    }

    /// Kanat with one flow.
    pub async fn kanat(start: &Start<'_>, postgres: Option<Arc<Cluster>>) -> Result<Self> {
        let target = Target::start().await?;
        let kanat = start.run().await?;
        let path = kanat.set_up(target.address.port()).await?.path;
        Ok(Self::of_kanat(kanat, target, path, postgres))
    }

    pub fn of_kanat(
        kanat: Kanat,
        target: Target,
        path: String,
        postgres: Option<Arc<Cluster>>,
    ) -> Self {
        Self {
            server: Running::Kanat(Box::new(kanat)),
            target,
            path,
            delivers: true,
            postgres,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.server().address
    }

    pub fn server(&self) -> &Server {
        match &self.server {
            Running::Bare(server) => server,
            Running::Kanat(kanat) => &kanat.server,
        }
    }

    /// Under a closed loop, after a tenth of it that is not counted.
    pub async fn closed(&self, connections: usize, length: Duration) -> Result<Run> {
        let call = Call::webhook(&self.path);
        let first = load::closed(
            self.address(),
            &call,
            connections,
            length / 10,
            self.target.start,
        )
        .await?;
        self.finish(&first).await?;
        let before = self.before().await?;
        let outcome = load::closed(
            self.address(),
            &call,
            connections,
            length,
            self.target.start,
        )
        .await?;
        self.run(before, &outcome).await
    }

    /// Under an open loop.
    pub async fn open(&self, pace: Pace) -> Result<Run> {
        let before = self.before().await?;
        let outcome = load::open(
            self.address(),
            &Call::webhook(&self.path),
            pace,
            self.target.start,
        )
        .await?;
        self.run(before, &outcome).await
    }

    /// The target stays.
    pub async fn stop(self) -> Result<Target> {
        self.server.into_server().stop().await?;
        Ok(self.target)
    }

    /// As a crash would.
    pub async fn kill(self) -> Result<Target> {
        self.server.into_server().kill().await?;
        Ok(self.target)
    }

    async fn before(&self) -> Result<Before> {
        let commits = match &self.server {
            Running::Bare(_) => f64::NAN,
            Running::Kanat(kanat) => kanat.commits().await?,
        };
        let cpu = self.server().usage()?.cpu;
        Ok(Before {
            at: Instant::now(),
            cpu,
            postgres_cpu: self.postgres_cpu()?,
            commits,
        })
    }

    async fn run(&self, before: Before, load: &Outcome) -> Result<Run> {
        let arrived = self.finish(load).await?;
        let after = self.server().usage()?;
        let messages = load.acked.len().max(1) as f64;
        let commits = match &self.server {
            Running::Bare(_) => f64::NAN,
            Running::Kanat(kanat) => kanat.commits().await?,
        };
        let mut delivered = f64::NAN;
        let mut end_to_end = [f64::NAN; 2];
        let mut doubles = 0;
        if let Some(arrived) = arrived {
            let elapsed = arrived.last.map_or(load.elapsed, |last| last - before.at);
            delivered = arrived.latencies.len() as f64 / elapsed.as_secs_f64();
            end_to_end = [50, 99].map(|percent| percentile(&arrived.latencies, percent));
            doubles = arrived.doubles;
        }
        let micros = |used: Duration| used.as_secs_f64() * 1e6 / messages;
        Ok(Run {
            acked_per_second: load.acked.len() as f64 / load.elapsed.as_secs_f64(),
            ack_p50_ms: percentile(&load.latencies, 50),
            ack_p99_ms: percentile(&load.latencies, 99),
            delivered_per_second: delivered,
            end_to_end_p50_ms: end_to_end[0],
            end_to_end_p99_ms: end_to_end[1],
            cpu_us: micros(after.cpu.saturating_sub(before.cpu)),
            postgres_cpu_us: micros(self.postgres_cpu()?.saturating_sub(before.postgres_cpu)),
            peak_memory_mib: after.peak_memory_kib as f64 / 1024.0,
            commits_per_message: (commits - before.commits) / messages,
            doubles,
        })
    }

    /// Waits until all that was acked has arrived.
    async fn finish(&self, load: &Outcome) -> Result<Option<Arrived>> {
        if !self.delivers {
            return Ok(None);
        }
        let arrived = self.target.collect(&load.acked).await;
        if arrived.lost > 0 {
            bail!(
                "{} orders were acked, {} of them did not arrive",
                load.acked.len(),
                arrived.lost
            );
        }
        Ok(Some(arrived))
    }

    fn postgres_cpu(&self) -> Result<Duration> {
        let mut sum = Duration::ZERO;
        let Some(cluster) = &self.postgres else {
            return Ok(sum);
        };
        let processes = cluster.processes()?;
        for (index, pid) in processes.into_iter().enumerate() {
            // One that ended between the two looks is counted with the first, which starts the
            // others.
            let Ok(cpu) = process::cpu(pid) else { continue };
            sum += cpu.own
                + if index == 0 {
                    cpu.ended_children
                } else {
                    Duration::ZERO
                };
        }
        Ok(sum)
    }
}
