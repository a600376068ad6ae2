//! `overload LIST SECONDS`: offers ten times what a target takes to a service on each log of a
//! list, and prints the table. `cargo xtask soak --overload` builds and runs it.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kanat_tests::overload::{self, Extent, Log, Report};

const PER_SECOND: u32 = 8_000;
const BACKLOG_BYTES: u64 = 64 << 20;

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [list, seconds] = arguments.as_slice() else {
        bail!("usage: overload LIST SECONDS")
    };
    let time = Duration::from_secs(seconds.parse().context("SECONDS is a number")?);
    let mut table = Report::HEAD.to_owned();
    let mut code = ExitCode::SUCCESS;
    for log in Log::parse_list(list)? {
        let extent = Extent {
            time,
            per_second: PER_SECOND,
            backlog_bytes: BACKLOG_BYTES,
        };
        let report = overload::run(log, extent).await?;
        table += &report.row();
        if let Err(error) = report.judge_rate() {
            eprintln!("{}: {error}", log.name());
            code = ExitCode::FAILURE;
        }
    }
    print!("\n{table}");
    Ok(code)
}
