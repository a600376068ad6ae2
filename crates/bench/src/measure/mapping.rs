//! The mapping alone, beside other crates that do the same work: a divan program of its own, whose
//! table is read here.

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use crate::figures::plain;
use crate::finding::{Finding, Goal};
use crate::plan::Plan;

/// Name of our line in the table.
const OURS: &str = "kanat";

/// Options of divan: samples that take a tenth of a second or more in all, each of a hundred
/// mappings in a row, as at a node that is at work.
const OPTIONS: &str = "--bench --color never --sample-count 1000 --sample-size 100";

/// One line of the table.
struct Peer {
    name: String,
    median_us: f64,
    /// Allocations of one mapping.
    allocations: f64,
}

pub async fn measure(plan: &Plan) -> Result<Vec<Finding>> {
    let Some(program) = &plan.peers else {
        eprintln!("the mapping beside other crates: left out, no --peers was given");
        return Ok(Vec::new());
    };
    eprintln!("the mapping beside other crates");
    let mut command = Command::new(program);
    let output = command.args(OPTIONS.split(' ')).output().await?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {errors}", program.display());
    let peers = read(&String::from_utf8_lossy(&output.stdout));
    let ours = peers.iter().find(|peer| peer.name == OURS);
    let ours = ours.context("the table of divan has no line of ours")?;
    let others = peers.iter().filter(|peer| peer.name != OURS);
    let others: Vec<String> = others.map(Peer::describe).collect();
    let what = "the mapping of eleven fields of an order";
    let details = format!("{}; {}", ours.describe(), others.join(", "));
    let finding = Finding::new("P9", what, Goal::AtMost(3.0), ours.median_us, details);
    Ok(vec![finding.in_units("us")])
}

impl Peer {
    fn describe(&self) -> String {
        let median = plain(self.median_us);
        let allocations = plain(self.allocations);
        format!("{} {median} us and {allocations} allocations", self.name)
    }
}

/// Reads each name with its median, and the median of the line that follows `alloc:`.
fn read(table: &str) -> Vec<Peer> {
    let mut peers: Vec<Peer> = Vec::new();
    let mut lines = table.lines();
    while let Some(line) = lines.next() {
        let text = line.trim_start_matches(['├', '╰', '─', '│', ' ']);
        if text.starts_with("alloc:") {
            let counts = lines.next().unwrap_or_default();
            if let (Some(peer), Some(count)) = (peers.last_mut(), median(counts)) {
                peer.allocations = count.parse().unwrap_or(f64::NAN);
            }
        } else if let (true, Some(median_us)) =
            (text.len() < line.len(), median(line).and_then(micros))
        {
            peers.push(Peer {
                name: text.split(' ').next().unwrap_or_default().to_owned(),
                median_us,
                allocations: f64::NAN,
            });
        }
    }
    peers
}

/// Third column of a line: fastest, slowest and median.
fn median(line: &str) -> Option<&str> {
    let columns = line.split('│').map(str::trim);
    columns.filter(|column| !column.is_empty()).nth(2)
}

/// Microseconds of a time as in `1.234 µs`.
fn micros(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    let factor = match unit {
        "ns" => 1e-3,
        "µs" => 1.0,
        "ms" => 1e3,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
Timer precision: 19 ns
order          fastest       │ slowest       │ median        │ mean          │ samples │ iters
├─ kanat       899.9 ns      │ 65.25 µs      │ 1.234 µs      │ 1.6 µs        │ 100     │ 100
│              alloc:        │               │               │               │         │
│                3           │ 3             │ 3             │ 3             │         │
│                512 B       │ 512 B         │ 512 B         │ 512 B         │         │
╰─ vrl         10.4 µs       │ 95.1 µs       │ 12.5 µs       │ 12.5 µs       │ 100     │ 100
               alloc:        │               │               │               │         │
                 80          │ 80            │ 81            │ 80            │         │
";

    #[test]
    fn reads_the_medians_of_a_table() {
        let peers: Vec<String> = read(TABLE).iter().map(Peer::describe).collect();
        assert_eq!(
            peers,
            [
                "kanat 1.23 us and 3.00 allocations",
                "vrl 12.5 us and 81.0 allocations"
            ]
        );
    }
}
