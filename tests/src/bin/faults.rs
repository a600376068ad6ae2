//! `faults LIST SECONDS SEED`: causes each fault of a list for some time, and prints the table.
//! `cargo xtask soak --faults` builds and runs it.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kanat_tests::faults::{Extent, Fault, table};

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [list, seconds, seed] = arguments.as_slice() else {
        bail!("usage: faults LIST SECONDS SEED")
    };
    let faults = Fault::parse_list(list)?;
    let time = Duration::from_secs(seconds.parse().context("SECONDS is a number")?);
    let seed = seed.parse().context("SEED is a number")?;
    let mut rows = Vec::new();
    for fault in faults {
        eprintln!("{}: {} s with seed {seed}", fault.name(), time.as_secs());
        let row = fault.run(Extent { time, seed }).await;
        eprintln!("{}", table(std::slice::from_ref(&row)));
        rows.push(row);
    }
    print!("\n{}", table(&rows));
    let has_failed = rows.iter().any(|row| row.problem.is_some());
    Ok(if has_failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
