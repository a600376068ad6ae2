//! Figures of all rounds, their medians, and the ratios to the bare servers.

use std::fmt;
use std::time::Instant;

use anyhow::{Result, bail};

use crate::load::Outcome;
use crate::process::Usage;
use crate::target::Seen;

/// One server under one load.
pub struct Row {
    pub server: &'static str,
    pub connections: usize,
    pub acked_per_second: f64,
    pub ack_p50_ms: f64,
    pub ack_p99_ms: f64,
    pub cpu_seconds_per_10k: f64,
    pub peak_memory_mib: f64,
    pub delivery: Option<Delivery>,
    pub grouping: Option<Grouping>,
}

/// How much one transaction of the message log carries.
#[derive(Clone, Copy)]
pub struct Grouping {
    pub messages_per_commit: f64,
    /// Appends, settles and all else that is written.
    pub writes_per_commit: f64,
}

/// From the sender to the target.
pub struct Delivery {
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

impl Row {
    pub fn new(server: &'static str, connections: usize, outcome: &Outcome, before: Usage, after: Usage) -> Self {
        let cpu = after.cpu.saturating_sub(before.cpu).as_secs_f64();
        Self {
            server,
            connections,
            acked_per_second: outcome.acked as f64 / outcome.elapsed.as_secs_f64(),
            ack_p50_ms: percentile(&outcome.latencies, 50),
            ack_p99_ms: percentile(&outcome.latencies, 99),
            cpu_seconds_per_10k: cpu * 10_000.0 / (outcome.acked.max(1) as f64),
            peak_memory_mib: after.peak_memory_kib as f64 / 1024.0,
            delivery: None,
            grouping: None,
        }
    }
}

impl Delivery {
    /// Of a load that began at `begun`.
    ///
    /// # Errors
    /// An order that was acked did not arrive.
    pub fn of(seen: Seen, load: &Outcome, begun: Instant) -> Result<Self> {
        let mut latencies = seen.latencies;
        if (latencies.len() as u64) < load.acked {
            bail!("{} orders were acked, {} arrived", load.acked, latencies.len());
        }
        latencies.sort_unstable();
        let elapsed = seen.last.map_or(load.elapsed, |last| last - begun);
        Ok(Self {
            per_second: latencies.len() as f64 / elapsed.as_secs_f64(),
            p50_ms: percentile(&latencies, 50),
            p99_ms: percentile(&latencies, 99),
        })
    }
}

/// In milliseconds, of sorted nanoseconds.
fn percentile(sorted: &[u64], percent: usize) -> f64 {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).map_or(0.0, |&nanos| nanos as f64 / 1e6)
}

/// All rows of all rounds.
#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
}

impl Report {
    pub fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    fn median(&self, server: &str, connections: usize, figure: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
        let of = self.rows.iter().filter(|row| row.server == server && row.connections == connections);
        let mut figures: Vec<f64> = of.filter_map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied()
    }

    /// Each pair of server and connections once, in order of their first round.
    fn subjects(&self) -> Vec<(&'static str, usize)> {
        let mut subjects = Vec::new();
        for row in &self.rows {
            if !subjects.contains(&(row.server, row.connections)) {
                subjects.push((row.server, row.connections));
            }
        }
        subjects
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<28} {:>5} {:>9} {:>8} {:>8} {:>11} {:>8} {:>8} {:>9} {:>8} {:>11} {:>10}",
            "medians",
            "conns",
            "acked/s",
            "ack p50",
            "ack p99",
            "delivered/s",
            "del p50",
            "del p99",
            "cpu s/10k",
            "peak MiB",
            "msgs/commit",
            "ops/commit"
        )?;
        for (server, connections) in self.subjects() {
            let figure = |get: &dyn Fn(&Row) -> Option<f64>| self.median(server, connections, get);
            let delivery = |get: &dyn Fn(&Delivery) -> f64| figure(&|row| row.delivery.as_ref().map(get));
            writeln!(
                f,
                "{server:<28} {connections:>5} {:>9} {:>8} {:>8} {:>11} {:>8} {:>8} {:>9} {:>8} {:>11} {:>10}",
                cell(figure(&|row| Some(row.acked_per_second)), 0),
                cell(figure(&|row| Some(row.ack_p50_ms)), 2),
                cell(figure(&|row| Some(row.ack_p99_ms)), 2),
                cell(delivery(&|delivery| delivery.per_second), 0),
                cell(delivery(&|delivery| delivery.p50_ms), 2),
                cell(delivery(&|delivery| delivery.p99_ms), 2),
                cell(figure(&|row| Some(row.cpu_seconds_per_10k)), 2),
                cell(figure(&|row| Some(row.peak_memory_mib)), 0),
                cell(figure(&|row| Some(row.grouping?.messages_per_commit)), 1),
                cell(figure(&|row| Some(row.grouping?.writes_per_commit)), 1),
            )?;
        }
        self.ratios(f)
    }
}

impl Report {
    fn ratios(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (server, connections) in self.subjects() {
            if server != "kanat" {
                continue;
            }
            for yardstick in ["bare hyper", "bare hyper, fsync per group", "bare hyper, full loop"] {
                let ratio = |get: &dyn Fn(&Row) -> Option<f64>| {
                    let (ours, theirs) =
                        (self.median(server, connections, get)?, self.median(yardstick, connections, get)?);
                    (theirs > 0.0).then(|| ours / theirs)
                };
                writeln!(
                    f,
                    "kanat / {yardstick}, {connections} connections: acked/s {}, ack p50 {}, delivered/s {}, CPU a message {}",
                    cell(ratio(&|row| Some(row.acked_per_second)), 2),
                    cell(ratio(&|row| Some(row.ack_p50_ms)), 2),
                    cell(ratio(&|row| Some(row.delivery.as_ref()?.per_second)), 2),
                    cell(ratio(&|row| Some(row.cpu_seconds_per_10k)), 2),
                )?;
            }
        }
        Ok(())
    }
}

fn cell(figure: Option<f64>, decimals: usize) -> String {
    figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.decimals$}"))
}
