//! A server under measurement, with the target that it delivers to, and its figures under one load.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kanat_testing_postgres::Cluster;

use crate::bare::{self, Mode};
use crate::figures::{median, percentile};
use crate::kanat::{self, Kanat, Start};
use crate::load::{self, Ack, Call, Outcome, Pace, Until};
use crate::process::{self, Server, Usage};
use crate::target::{Deliveries, Target};
use crate::{api, plan::Plan};

/// A running server with the call that it takes.
pub struct Subject {
    pub server: Server,
    pub call: Call,
    /// Target of its deliveries; none when it delivers nothing.
    pub target: Option<Arc<Target>>,
    /// Address of the metrics, which count commits; a bare server has none.
    metrics: Option<SocketAddr>,
    /// The database that works for it.
    pub postgres: Option<Arc<Cluster>>,
}

/// Figures of a server under one load.
pub struct Run {
    /// Deliveries a second, or answers where nothing is delivered.
    pub per_second: f64,
    /// Milliseconds from sending, or from when the call was due, to the answer: the median.
    pub ack_ms: f64,
    /// Milliseconds to the target: median and 99 %; not numbers where nothing is delivered.
    pub delivery_ms: [f64; 2],
    /// Microseconds a message, of the server alone.
    pub cpu_us: f64,
    /// Microseconds a message, of the processes of its database.
    pub postgres_cpu_us: f64,
    pub peak_memory_mib: f64,
    /// Commits of the message log.
    pub commits_per_message: f64,
    pub doubles: u64,
}

/// Counters before or after a load.
struct Counters {
    at: Instant,
    server: Usage,
    postgres_cpu: Duration,
    commits: f64,
}

impl Subject {
    /// Starts a bare server that has its data in a folder.
    pub async fn bare(mode: Mode, folder: &Path) -> Result<Self> {
        let target = match mode {
            Mode::Loop => Some(Arc::new(Target::start().await?)),
            Mode::Append | Mode::Published => None,
        };
        let address = target.as_ref().map(|target| target.address);
        let call = match mode {
            Mode::Published => api::call(bare::KEY),
            Mode::Append | Mode::Loop => Call::webhook("/"),
        };
        Ok(Self {
            server: bare::start(mode, folder, address).await?,
            call,
            target,
            metrics: None,
            postgres: None,
        })
    }

    /// Starts Kanat with one flow.
    pub async fn kanat(start: &Start<'_>) -> Result<Self> {
        let target = Arc::new(Target::start().await?);
        let kanat = start.run().await?;
        let path = kanat.set_up(target.address.port()).await?.path;
        Ok(Self::of(kanat, Call::webhook(&path), Some(target)))
    }

    /// Starts Kanat with a published API.
    pub async fn published(start: &Start<'_>) -> Result<Self> {
        let kanat = start.run().await?;
        let key = api::set_up(&kanat).await?;
        Ok(Self::of(kanat, api::call(&key), None))
    }

    /// Measures a Kanat that is running.
    pub fn of(kanat: Kanat, call: Call, target: Option<Arc<Target>>) -> Self {
        Self {
            server: kanat.server,
            call,
            target,
            metrics: Some(kanat.metrics),
            postgres: None,
        }
    }

    /// Measures a closed loop, after a tenth of it that is not counted.
    pub async fn closed(&self, connections: usize, length: Duration) -> Result<Run> {
        let load = |length| {
            let until = Until::Time(length);
            load::closed(self.server.address, &self.call, connections, until)
        };
        let warm_up = load(length / 10).await?;
        self.collect(&warm_up.acked).await?;
        self.measure(load(length)).await
    }

    /// Measures an open loop.
    pub async fn open(&self, pace: Pace) -> Result<Run> {
        self.measure(load::open(self.server.address, &self.call, pace))
            .await
    }

    /// Measures the median deliveries a second of several closed loops, and stops the server.
    pub async fn into_delivery_rate(self, plan: &Plan) -> Result<f64> {
        let mut rates = Vec::new();
        for _ in 0..plan.rounds {
            let run = self.closed(plan.sizes.connections, plan.length).await?;
            rates.push(run.per_second);
        }
        self.server.stop().await?;
        Ok(median(rates))
    }

    /// Measures a load, until every acked order has arrived.
    pub async fn measure(&self, load: impl Future<Output = Result<Outcome>>) -> Result<Run> {
        let before = self.counters().await?;
        let load = load.await?;
        let deliveries = self.collect(&load.acked).await?;
        let after = self.counters().await?;
        let messages = load.acked.len().max(1) as f64;
        let micros =
            |after: Duration, before| (after.saturating_sub(before)).as_secs_f64() * 1e6 / messages;
        let mut run = Run {
            per_second: load.per_second(),
            ack_ms: percentile(&load.latencies, 50),
            delivery_ms: [f64::NAN; 2],
            cpu_us: micros(after.server.cpu, before.server.cpu),
            postgres_cpu_us: micros(after.postgres_cpu, before.postgres_cpu),
            peak_memory_mib: after.server.peak_memory_kib as f64 / 1024.0,
            commits_per_message: (after.commits - before.commits) / messages,
            doubles: 0,
        };
        if let Some(found) = deliveries {
            let elapsed = found.last.map_or(load.elapsed, |last| last - before.at);
            run.per_second = found.latencies.len() as f64 / elapsed.as_secs_f64();
            run.delivery_ms = [50, 99].map(|percent| percentile(&found.latencies, percent));
            run.doubles = found.doubles;
        }
        Ok(run)
    }

    async fn counters(&self) -> Result<Counters> {
        let commits = match self.metrics {
            None => f64::NAN,
            Some(metrics) => kanat::commits(metrics).await?,
        };
        Ok(Counters {
            server: self.server.usage()?,
            postgres_cpu: self.postgres_cpu()?,
            commits,
            at: Instant::now(),
        })
    }

    /// Waits until every acked order has arrived.
    async fn collect(&self, acked: &[Ack]) -> Result<Option<Deliveries>> {
        let Some(target) = &self.target else {
            return Ok(None);
        };
        let deliveries = target.collect(acked).await;
        let lost = deliveries.lost;
        ensure!(
            lost == 0,
            "{} orders were acked, {lost} of them did not arrive",
            acked.len()
        );
        Ok(Some(deliveries))
    }

    fn postgres_cpu(&self) -> Result<Duration> {
        let mut sum = Duration::ZERO;
        let Some(cluster) = &self.postgres else {
            return Ok(sum);
        };
        for (index, pid) in cluster.processes()?.into_iter().enumerate() {
            // A process that ended meanwhile is counted with its parent, which is the first.
            let Ok(usage) = process::usage(pid) else {
                continue;
            };
            sum += usage.cpu;
            if index == 0 {
                sum += usage.ended_children_cpu;
            }
        }
        Ok(sum)
    }
}
