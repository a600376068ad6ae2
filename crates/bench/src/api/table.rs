//! Medians of all rounds, each beside the bare servers of the same run.

use std::fmt;

use crate::report::Row;

pub const NGINX: &str = "nginx, fixed answer";
pub const HYPER: &str = "bare hyper, fixed answer";
pub const WHOLE: &str = "bare hyper, whole loop";
pub const KANAT: &str = "kanat";

/// All rows of all rounds.
#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    pub fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    fn median(&self, server: &str, connections: usize, figure: impl Fn(&Row) -> f64) -> f64 {
        let of = self.rows.iter().filter(|row| row.server == server && row.connections == connections);
        let mut figures: Vec<f64> = of.map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
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
            "cpu s/10k",
            "peak MiB",
            "rate/fixed",
            "cpu/fixed",
            "rate/whole",
            "cpu/whole",
        )?;
        for connections in self.connections() {
            for server in [NGINX, HYPER, WHOLE, KANAT] {
                let rate = |of: &str| self.median(of, connections, |row| row.acked_per_second);
                let cpu = |of: &str| self.median(of, connections, |row| row.cpu_seconds_per_10k);
                writeln!(
                    f,
                    "{server:<26} {connections:>5} {:>10.0} {:>8.2} {:>8.2} {:>9.3} {:>8.0}   {:>12.2} {:>12.2}   {:>12.2} {:>12.2}",
                    rate(server),
                    self.median(server, connections, |row| row.ack_p50_ms),
                    self.median(server, connections, |row| row.ack_p99_ms),
                    cpu(server),
                    self.median(server, connections, |row| row.peak_memory_mib),
                    rate(server) / rate(HYPER),
                    cpu(server) / cpu(HYPER),
                    rate(server) / rate(WHOLE),
                    cpu(server) / cpu(WHOLE),
                )?;
            }
        }
        Ok(())
    }
}
