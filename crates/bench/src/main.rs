//! Measures a `dist` build of Kanat on this machine's loopback, beside servers that do less on the
//! same disk in the same run. Absolute figures belong to the machine; the ratios are comparable.

mod adapter;
mod api;
mod bare;
mod figures;
mod fill;
mod finding;
mod instructions;
mod kanat;
mod load;
mod machine;
mod measure;
mod order;
mod page;
mod pair;
mod plan;
mod process;
mod subject;
mod target;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};

use crate::measure::{Group, published};
use crate::plan::{Plan, Sizes};

/// How fast Kanat is, at what price, beside bare servers: P1 to P12 of docs/benchmarks.md.
#[derive(Parser)]
#[command(name = "cargo xtask bench")]
struct Arguments {
    /// The binary to measure; a `dist` build, where figures matter.
    #[arg(long)]
    kanat: PathBuf,
    /// Only these measures, as in p1,p7; those that run together come together.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
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
    /// The program of benches/peers, for P9.
    #[arg(long)]
    peers: Option<PathBuf>,
    /// File to write the page of results to.
    #[arg(long)]
    write: Option<PathBuf>,
    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Subcommand)]
enum Role {
    /// Measures adapters alone: calls a second and the time of one.
    Adapter,
    /// Measures published APIs alone, with one connection and with many, beside a bare server.
    Api,
    /// Measures a former build and the present one in turn, and fails when the present one takes
    /// more CPU time.
    Pair(pair::Task),
    /// Counts the instructions of the hot paths, and fails when they are more than those that were
    /// committed.
    Instructions {
        /// The committed figures.
        #[arg(long)]
        figures: PathBuf,
        /// Writes the figures instead.
        #[arg(long)]
        write: bool,
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
    tokio::runtime::Runtime::new()?.block_on(run(arguments))
}

async fn run(arguments: Arguments) -> Result<()> {
    let plan = arguments.plan();
    match &arguments.role {
        Some(Role::Bare(task)) => bare::serve(task).await,
        Some(Role::Work(task)) => {
            let task = task.clone();
            tokio::task::spawn_blocking(move || instructions::work::run(&task)).await?
        }
        Some(Role::Instructions { figures, write }) => {
            instructions::check(&plan, figures, *write).await
        }
        Some(Role::Pair(task)) => pair::measure(&plan, task).await,
        Some(Role::Adapter) => {
            print!("{}", adapter::measure(&arguments.kanat, plan.length).await?);
            Ok(())
        }
        Some(Role::Api) => {
            let connections = [1, plan.sizes.connections];
            for connections in connections {
                let series = published::compare(&plan, connections).await?;
                print!("{}", page::runs(&series));
            }
            Ok(())
        }
        None => arguments.measure(&plan).await,
    }
}

impl Arguments {
    fn plan(&self) -> Plan {
        let mut sizes = if self.quick {
            Sizes::quick()
        } else {
            Sizes::full()
        };
        sizes.connections = self.connections.unwrap_or(sizes.connections);
        sizes.messages = self.messages.unwrap_or(sizes.messages);
        Plan {
            kanat: self.kanat.clone(),
            peers: self.peers.clone(),
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

    /// Lists the groups of the measures that were asked for; all groups when none is named.
    fn groups(&self) -> Result<Vec<Group>> {
        let asked: Vec<String> = self.only.iter().map(|name| name.to_uppercase()).collect();
        let is_asked = |name: &&str| asked.iter().any(|asked| asked == name);
        for name in &asked {
            let known = Group::ALL
                .iter()
                .any(|group| group.names().contains(&name.as_str()));
            ensure!(known, "there is no measure {name}: they are P1 to P12");
        }
        let groups = Group::ALL.into_iter();
        Ok(groups
            .filter(|group| asked.is_empty() || group.names().iter().any(is_asked))
            .collect())
    }

    async fn measure(&self, plan: &Plan) -> Result<()> {
        let begun = Instant::now();
        let mut findings = Vec::new();
        let mut series = Vec::new();
        for group in self.groups()? {
            let names = || group.names().join(", ");
            let found = group.run(plan).await.with_context(names)?;
            eprint!("{}", page::table(&found.findings));
            findings.extend(found.findings);
            series.extend(found.series);
        }
        // A stable sort: those of one measure stay in the order that they were found in.
        findings.sort_by_key(|finding| finding.measure[1..].parse::<u32>().unwrap_or_default());
        println!("\n{}\n{}", page::table(&findings), page::runs(&series));
        eprintln!("in {} s", begun.elapsed().as_secs());
        let Some(file) = &self.write else {
            return Ok(());
        };
        let machine = machine::describe(&plan.kanat);
        let page = page::write(&findings, &series, &machine, plan.rounds);
        std::fs::write(file, page).with_context(|| format!("cannot write {}", file.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(only: &[&str]) -> Option<Vec<Group>> {
        let line = ["bench", "--kanat", "-"]
            .into_iter()
            .chain(only.iter().flat_map(|only| ["--only", *only]));
        Arguments::parse_from(line).groups().ok()
    }

    #[test]
    fn measures_are_chosen_by_their_names() {
        assert_eq!(groups(&[]).map(|all| all.len()), Some(9));
        assert!(groups(&["p6"]) == Some(vec![Group::Webhook, Group::Idle]));
        assert!(groups(&["P7,p12"]) == Some(vec![Group::Postgres, Group::Gateway]));
        assert!(groups(&["p13"]).is_none());
    }
}
