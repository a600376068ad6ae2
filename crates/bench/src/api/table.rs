//! Medians of all rounds, each beside the bare servers of the same run.

use std::fmt;

use crate::figures::{median, percentile};
use crate::load::Outcome;
use crate::process::Usage;

/// One server under one load.
pub struct Row {
    server: &'static str,
    connections: usize,
    pub per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// Microseconds a call.
    pub cpu_us: f64,
    peak_memory_mib: f64,
}

impl Row {
    pub fn new(
        server: &'static str,
        connections: usize,
        outcome: &Outcome,
        before: Usage,
        after: Usage,
    ) -> Self {
        let cpu = after.cpu.saturating_sub(before.cpu).as_secs_f64();
        Self {
            server,
            connections,
            per_second: outcome.per_second(),
            p50_ms: percentile(&outcome.latencies, 50),
            p99_ms: percentile(&outcome.latencies, 99),
            cpu_us: cpu * 1e6 / (outcome.acked.len().max(1) as f64),
            peak_memory_mib: after.peak_memory_kib as f64 / 1024.0,
        }
    }
}

/// All rows of all rounds.
#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    pub const NGINX: &str = "nginx, fixed answer";
    pub const HYPER: &str = "bare hyper, fixed answer";
    pub const WHOLE: &str = "bare hyper, whole loop";
    pub const OURS: &str = "kanat";

    pub fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    pub fn median(&self, server: &str, connections: usize, figure: impl Fn(&Row) -> f64) -> f64 {
        median(
            self.rows
                .iter()
                .filter(|row| row.server == server && row.connections == connections)
                .map(figure),
        )
    }

    fn connections(&self) -> Vec<usize> {
        let mut connections: Vec<usize> = self.rows.iter().map(|row| row.connections).collect();
        connections.sort_unstable();
        connections.dedup();
        connections
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<26} {:>5} {:>10} {:>8} {:>8} {:>9} {:>8}   {:>12} {:>12}   {:>12} {:>12}",
            "medians",
            "conns",
            "requests/s",
            "p50 ms",
            "p99 ms",
            "cpu us",
            "peak MiB",
            "rate/fixed",
            "cpu/fixed",
            "rate/whole",
            "cpu/whole",
        )?;
        for connections in self.connections() {
            for server in [Self::NGINX, Self::HYPER, Self::WHOLE, Self::OURS] {
                let rate = |of: &str| self.median(of, connections, |row| row.per_second);
                let cpu = |of: &str| self.median(of, connections, |row| row.cpu_us);
                writeln!(
                    f,
                    "{server:<26} {connections:>5} {:>10.0} {:>8.2} {:>8.2} {:>9.1} {:>8.0}   \
                     {:>12.2} {:>12.2}   {:>12.2} {:>12.2}",
                    rate(server),
                    self.median(server, connections, |row| row.p50_ms),
                    self.median(server, connections, |row| row.p99_ms),
                    cpu(server),
                    self.median(server, connections, |row| row.peak_memory_mib),
                    rate(server) / rate(Self::HYPER),
                    cpu(server) / cpu(Self::HYPER),
                    rate(server) / rate(Self::WHOLE),
                    cpu(server) / cpu(Self::WHOLE),
                )?;
            }
        }
        Ok(())
    }
}
