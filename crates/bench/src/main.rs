//! Measures a `dist` build of Kanat on this machine's loopback, beside servers that do less on the
//! same disk in the same run. Absolute figures belong to the machine; the ratios are comparable.

mod adapter;
mod api;
mod backlog;
mod bare;
mod burst;
mod figures;
mod fill;
mod gateway;
mod idle;
mod instructions;
mod kanat;
mod load;
mod mapping;
mod order;
mod pair;
mod plan;
mod postgres;
mod process;
mod published;
mod report;
mod scale;
mod subject;
mod target;
mod webhook;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::plan::Plan;
use crate::report::{Measure, Report};

/// How fast Kanat is, at what price, beside bare servers: P1 to P12 of docs/benchmarks.md.
#[derive(Parser)]
#[command(name = "cargo xtask bench")]
struct Arguments {
    /// The binary to measure; a `dist` build, where figures matter.
    #[arg(long)]
    kanat: PathBuf,
    /// Only these measures, as in p1,p7; those that run together come together.
    #[arg(long, value_delimiter = ',', ignore_case = true)]
    only: Vec<Measure>,
    /// Tiny loads, to see that all of it runs; the figures mean nothing.
    #[arg(long)]
    quick: bool,
    /// How long each load lasts, in seconds.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Connections, where many are meant [default: 64].
    #[arg(long)]
    connections: Option<usize>,
    /// Messages in a log that is not empty [default: 10000000].
    #[arg(long)]
    messages: Option<usize>,
    /// Rounds; the results are medians.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Folder for data, on the disk to be measured; the system's temporary one when left out.
    #[arg(long)]
    folder: Option<PathBuf>,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Subcommand)]
enum Role {
    /// Measures adapters alone: calls a second and the time of one.
    Adapter,
    /// Measures a former build and the present one in turn, and fails when the present one takes
    /// more CPU time.
    Pair(pair::Task),
    /// Counts the instructions of the hot paths, and fails when they are more than those that were
    /// committed.
    Instructions {
        /// The committed figures.
        #[arg(long)]
        figures: PathBuf,
    },
    /// Does one work a number of times, under a program that counts its instructions.
    #[command(hide = true)]
    Work(instructions::work::Task),
    /// Serves as a bare server.
    #[command(hide = true)]
    Bare(bare::Task),
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    tokio::runtime::Runtime::new()?.block_on(run(&arguments))
}

async fn run(arguments: &Arguments) -> Result<()> {
    let plan = arguments.plan();
    match &arguments.role {
        Some(Role::Work(task)) => tokio::task::block_in_place(|| instructions::work::run(task)),
        Some(Role::Bare(task)) => bare::serve(task).await,
        Some(Role::Instructions { figures }) => instructions::check(&plan, figures).await,
        Some(Role::Pair(task)) => pair::measure(&plan, task).await,
        Some(Role::Adapter) => adapter::measure(&plan).await,
        None => arguments.measure(&plan).await,
    }
}

impl Arguments {
    fn plan(&self) -> Plan {
        let mut sizes = if self.quick { plan::QUICK } else { plan::FULL };
        sizes.connections = self.connections.unwrap_or(sizes.connections);
        sizes.messages = self.messages.unwrap_or(sizes.messages);
        Plan {
            kanat: self.kanat.clone(),
            folder: self.folder.clone(),
            rounds: if self.quick { 1 } else { self.rounds.max(1) },
            length: if self.quick {
                Duration::from_millis(200)
            } else {
                Duration::from_secs(self.seconds)
            },
            sizes,
        }
    }

    /// Returns whether one of these measures is to be taken: all are when none is named.
    fn asks_for(&self, measures: &[Measure]) -> bool {
        self.only.is_empty() || measures.iter().any(|measure| self.only.contains(measure))
    }

    async fn measure(&self, plan: &Plan) -> Result<()> {
        use Measure::{P1, P2, P3, P4, P5, P6, P7, P8, P9, P10, P11, P12};
        let begun = Instant::now();
        let mut report = Report::default();
        if self.asks_for(&[P1, P2, P3, P6, P8]) {
            webhook::measure(plan, &mut report).await?;
        }
        if self.asks_for(&[P4]) {
            burst::measure(plan, &mut report).await?;
        }
        if self.asks_for(&[P5]) {
            published::measure(plan, &mut report).await?;
        }
        if self.asks_for(&[P6]) {
            idle::measure(plan, &mut report).await?;
        }
        if self.asks_for(&[P7]) {
            postgres::measure(plan, &mut report).await?;
        }
        if self.asks_for(&[P9]) {
            mapping::measure(plan, &mut report)?;
        }
        if self.asks_for(&[P10]) {
            scale::measure(plan, &mut report).await?;
        }
        if self.asks_for(&[P11]) {
            backlog::measure(plan, &mut report).await?;
        }
        if self.asks_for(&[P12]) {
            gateway::measure(plan, &mut report).await?;
        }
        println!("\n{}", report.text());
        eprintln!("in {} s", begun.elapsed().as_secs());
        Ok(())
    }
}
