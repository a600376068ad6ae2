//! The mapping alone, beside other crates that do the same work: a divan program of its own, whose
//! table is read here.

use anyhow::{Context, Result, bail};
use tokio::process::Command;

use crate::figures::plain;
use crate::finding::{Finding, Goal};
use crate::plan::Plan;

const OURS: &str = "kanat";

/// Of each crate: a tenth of a second or more, in which what else the machine does is the
/// exception.
const SAMPLES: &str = "1000";
/// Mappings of one sample, as one after the other comes to a node that is at work.
const IN_A_ROW: &str = "100";

/// One line of the table.
struct Peer {
    name: String,
    /// Microseconds.
    median: f64,
    /// Allocations of one mapping, when they were counted.
    allocations: Option<f64>,
}

pub async fn measure(plan: &Plan) -> Result<Vec<Finding>> {
    let Some(program) = &plan.peers else {
        eprintln!("the mapping beside other crates: left out, no --peers was given");
        return Ok(Vec::new());
    };
    eprintln!("the mapping beside other crates");
    let output = Command::new(program)
        .args([
            "--bench",
            "--color",
            "never",
            "--sample-count",
            SAMPLES,
            "--sample-size",
            IN_A_ROW,
        ])
        .output()
        .await;
    let output = output.with_context(|| format!("cannot run {}", program.display()))?;
    if !output.status.success() {
        bail!(
            "{} failed: {}",
            program.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let peers = read(&String::from_utf8_lossy(&output.stdout));
    let ours = peers
        .iter()
        .find(|peer| peer.name == OURS)
        .context("the table of divan has no line of ours")?;
    let others = peers
        .iter()
        .filter(|peer| peer.name != OURS)
        .map(tell)
        .collect::<Vec<_>>()
        .join(", ");
    Ok(vec![
        Finding::new(
            "P9",
            "the mapping of eleven fields of an order",
            Goal::AtMost(3.0),
            ours.median,
            format!("{}; {others}", tell(ours)),
        )
        .in_units("us"),
    ])
}

fn tell(peer: &Peer) -> String {
    let allocations = peer.allocations.map_or_else(String::new, |count| {
        format!(" and {} allocations", plain(count))
    });
    format!("{} {} us{allocations}", peer.name, plain(peer.median))
}

/// The names, their medians, and the medians of the line that follows `alloc:`.
fn read(table: &str) -> Vec<Peer> {
    let mut peers: Vec<Peer> = Vec::new();
    let mut allocates = false;
    for line in table.lines() {
        let columns: Vec<&str> = line.split('│').map(str::trim).collect();
        let text = line.trim_start_matches(['├', '╰', '─', '│', ' ']);
        let name = text.split_whitespace().next().unwrap_or_default();
        // A line of a benchmark: name and fastest, slowest, median, mean, ...
        let figures: Vec<&str> = columns
            .iter()
            .copied()
            .filter(|column| !column.is_empty())
            .collect();
        if (line.starts_with('├') || line.starts_with('╰'))
            && let Some(median) = figures.get(2).and_then(|text| micros(text))
        {
            peers.push(Peer {
                name: name.to_owned(),
                median,
                allocations: None,
            });
        }
        if allocates && let Some(peer) = peers.last_mut() {
            peer.allocations = figures.get(2).and_then(|text| text.parse().ok());
        }
        allocates = text.starts_with("alloc:");
    }
    peers
}

/// As in `1.234 µs`.
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
        let peers = read(TABLE);
        assert_eq!(
            peers.iter().map(tell).collect::<Vec<_>>(),
            [
                "kanat 1.23 us and 3.00 allocations",
                "vrl 12.5 us and 81.0 allocations"
            ]
        );
    }
}
