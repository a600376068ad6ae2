//! A server under measurement, with the target that it delivers to, and its figures under one load.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kanat_testing_postgres::Cluster;

use crate::api;
use crate::bare::{self, Mode};
use crate::figures::{median, percentile};
use crate::kanat::{Kanat, Start};
use crate::load::{self, Ack, Call, Outcome, Pace, Until};
use crate::process::{self, Server};
use crate::target::{Deliveries, Target};

/// A running server with the call that it takes.
pub struct Subject {
    server: Running,
    pub call: Call,
    /// Target of its deliveries; none when it delivers nothing.
    pub target: Option<Arc<Target>>,
    /// The database that works for it.
    postgres: Option<Arc<Cluster>>,
}

enum Running {
    Bare(Server),
    Kanat(Kanat),
}

/// Figures of a server under one load.
pub struct Run {
    pub acked_per_second: f64,
    /// Milliseconds from sending, or from when the call was due, to the answer: median and 99 %.
    pub ack_ms: [f64; 2],
    pub delivered_per_second: f64,
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

impl Run {
    /// Returns the deliveries a second, or the answers where nothing is delivered.
    pub fn per_second(&self) -> f64 {
        if self.delivered_per_second.is_finite() {
            self.delivered_per_second
        } else {
            self.acked_per_second
        }
    }
}

/// Runs of one server under one load, one a round.
pub struct Series {
    pub server: &'static str,
    pub load: String,
    pub runs: Vec<Run>,
}

impl Series {
    pub fn new(server: &'static str, load: impl Into<String>) -> Self {
        Self {
            server,
            load: load.into(),
            runs: Vec::new(),
        }
    }

    /// Returns the median of a figure over all rounds.
    pub fn median(&self, figure: impl Fn(&Run) -> f64) -> f64 {
        median(self.runs.iter().map(figure))
    }
}

/// Counters before a load.
struct Counters {
    at: Instant,
    cpu: Duration,
    postgres_cpu: Duration,
    commits: f64,
}

impl Subject {
    /// Starts a bare server.
    pub async fn bare(mode: Mode, folder: &Path) -> Result<Self> {
        let target = match mode {
            Mode::Loop => Some(Arc::new(Target::start().await?)),
            Mode::Answer | Mode::Append | Mode::Rows | Mode::Published => None,
        };
        let address = target.as_ref().map(|target| target.address);
        let call = match mode {
            Mode::Published => api::call(bare::KEY),
            Mode::Answer | Mode::Append | Mode::Loop | Mode::Rows => Call::webhook("/"),
        };
        Ok(Self {
            server: Running::Bare(bare::start(mode, folder, address, None).await?),
            call,
            target,
            postgres: None,
        })
    }

    /// Starts a bare server that writes each message to PostgreSQL by itself.
    pub async fn rows(cluster: &Arc<Cluster>, url: &str, folder: &Path) -> Result<Self> {
        let target = Arc::new(Target::start().await?);
        let address = Some(target.address);
        let server = bare::start(Mode::Rows, folder, address, Some(url)).await?;
        Ok(Self {
            server: Running::Bare(server),
            call: Call::webhook("/"),
            target: Some(target),
            postgres: Some(Arc::clone(cluster)),
        })
    }

    /// Starts Kanat with one flow.
    pub async fn kanat(start: &Start<'_>, postgres: Option<Arc<Cluster>>) -> Result<Self> {
        let target = Arc::new(Target::start().await?);
        let kanat = start.run().await?;
        let path = kanat.set_up(target.address.port()).await?.path;
        Ok(Self {
            postgres,
            ..Self::of(kanat, &path, target)
        })
    }

    /// Starts Kanat with a published API.
    pub async fn published(start: &Start<'_>) -> Result<Self> {
        let kanat = start.run().await?;
        let key = api::set_up(&kanat).await?;
        Ok(Self {
            server: Running::Kanat(kanat),
            call: api::call(&key),
            target: None,
            postgres: None,
        })
    }

    /// Measures a Kanat that is running, by its webhook at `path`.
    pub fn of(kanat: Kanat, path: &str, target: Arc<Target>) -> Self {
        Self {
            server: Running::Kanat(kanat),
            call: Call::webhook(path),
            target: Some(target),
            postgres: None,
        }
    }

    pub fn server(&self) -> &Server {
        match &self.server {
            Running::Bare(server) => server,
            Running::Kanat(kanat) => &kanat.server,
        }
    }

    /// Measures a closed loop, after a tenth of it that is not counted.
    pub async fn closed(&self, connections: usize, length: Duration) -> Result<Run> {
        let address = self.server().address;
        let warm_up = Until::Time(length / 10);
        let outcome = load::closed(address, &self.call, connections, warm_up).await?;
        self.collect(&outcome.acked).await?;
        let before = self.counters().await?;
        let until = Until::Time(length);
        let outcome = load::closed(address, &self.call, connections, until).await?;
        self.run(before, &outcome).await
    }

    /// Measures an open loop.
    pub async fn open(&self, pace: Pace) -> Result<Run> {
        let before = self.counters().await?;
        let outcome = load::open(self.server().address, &self.call, pace).await?;
        self.run(before, &outcome).await
    }

    /// Measures median deliveries a second of several closed loops.
    pub async fn delivery_rate(
        &self,
        rounds: usize,
        connections: usize,
        length: Duration,
    ) -> Result<f64> {
        let mut rates = Vec::new();
        for _ in 0..rounds {
            rates.push(self.closed(connections, length).await?.delivered_per_second);
        }
        Ok(median(rates))
    }

    pub async fn stop(self) -> Result<()> {
        match self.server {
            Running::Bare(server) => server.stop().await,
            Running::Kanat(kanat) => kanat.server.stop().await,
        }
    }

    /// Kills the server at once, as a crash would.
    pub async fn kill(&mut self) -> Result<()> {
        match &mut self.server {
            Running::Bare(server) => server.kill().await,
            Running::Kanat(kanat) => kanat.server.kill().await,
        }
    }

    async fn counters(&self) -> Result<Counters> {
        let commits = match &self.server {
            Running::Bare(_) => f64::NAN,
            Running::Kanat(kanat) => kanat.commits().await?,
        };
        Ok(Counters {
            cpu: self.server().usage()?.cpu,
            postgres_cpu: self.postgres_cpu()?,
            commits,
            at: Instant::now(),
        })
    }

    async fn run(&self, before: Counters, load: &Outcome) -> Result<Run> {
        let deliveries = self.collect(&load.acked).await?;
        let after = self.counters().await?;
        let messages = load.acked.len().max(1) as f64;
        let mut run = Run {
            acked_per_second: load.per_second(),
            ack_ms: [50, 99].map(|percent| percentile(&load.latencies, percent)),
            delivered_per_second: f64::NAN,
            delivery_ms: [f64::NAN; 2],
            cpu_us: micros(after.cpu, before.cpu) / messages,
            postgres_cpu_us: micros(after.postgres_cpu, before.postgres_cpu) / messages,
            peak_memory_mib: self.server().usage()?.peak_memory_kib as f64 / 1024.0,
            commits_per_message: (after.commits - before.commits) / messages,
            doubles: 0,
        };
        if let Some(found) = deliveries {
            let elapsed = found.last.map_or(load.elapsed, |last| last - before.at);
            run.delivered_per_second = found.latencies.len() as f64 / elapsed.as_secs_f64();
            run.delivery_ms = [50, 99].map(|percent| percentile(&found.latencies, percent));
            run.doubles = found.doubles;
        }
        Ok(run)
    }

    /// Waits until every acked order has arrived.
    async fn collect(&self, acked: &[Ack]) -> Result<Option<Deliveries>> {
        let Some(target) = &self.target else {
            return Ok(None);
        };
        let deliveries = target.collect(acked).await;
        ensure!(
            deliveries.lost == 0,
            "{} orders were acked, {} of them did not arrive",
            acked.len(),
            deliveries.lost
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
            let Ok(cpu) = process::cpu(pid) else { continue };
            sum += cpu.own;
            if index == 0 {
                sum += cpu.ended_children;
            }
        }
        Ok(sum)
    }
}

fn micros(after: Duration, before: Duration) -> f64 {
    after.saturating_sub(before).as_secs_f64() * 1e6
}
