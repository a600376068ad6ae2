//! Measures a release build of Kanat on this machine's loopback, beside servers that do less on the same disk in the same
//! run. Absolute figures belong to the machine; the ratios are what to compare.

mod adapter;
mod api;
mod bare;
mod kanat;
mod load;
mod order;
mod process;
mod report;
mod target;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use crate::bare::Work;
use crate::report::{Report, Row};

/// Webhook in, eleven fields mapped, delivered: how fast, at what price, beside bare servers.
#[derive(Parser)]
#[command(name = "cargo xtask bench")]
struct Arguments {
    /// The release binary to measure.
    #[arg(long)]
    kanat: PathBuf,
    /// How long each load lasts, in seconds.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Numbers of connections to try, one after another.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 64])]
    connections: Vec<usize>,
    /// Rounds; the report shows medians.
    #[arg(long, default_value_t = 3)]
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
    /// Measures published APIs: a call with a key, limits, a schema and a mapping, beside servers that do less.
    Api {
        /// One short round with few connections, to see that it runs.
        #[arg(long)]
        quick: bool,
    },
    /// Serves as a bare server of an API.
    #[command(hide = true)]
    BareApi {
        #[arg(long)]
        whole: bool,
    },
    /// Serves as a bare server; the measurement starts these itself.
    #[command(hide = true)]
    Bare {
        #[arg(long)]
        file: Option<PathBuf>,
        #[arg(long)]
        target: Option<SocketAddr>,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match arguments.role {
        Some(Role::Bare { file, target }) => return bare::serve(file, target).await,
        Some(Role::Adapter) => {
            print!("{}", adapter::measure(&arguments.kanat, Duration::from_secs(arguments.seconds)).await?);
            return Ok(());
        }
        Some(Role::Api { quick }) => {
            let plan = if quick { api::Plan::quick(&arguments) } else { api::Plan::of(&arguments) };
            print!("{}", api::measure(&plan).await?);
            return Ok(());
        }
        Some(Role::BareApi { whole }) => return api::serve(whole).await,
        None => {}
    }
    let mut report = Report::default();
    for round in 1..=arguments.rounds {
        for &connections in &arguments.connections {
            eprintln!("round {round} of {}: {connections} connections", arguments.rounds);
            for row in measure(&arguments, connections).await? {
                report.add(row);
            }
        }
    }
    print!("{report}");
    Ok(())
}

async fn measure(arguments: &Arguments, connections: usize) -> Result<Vec<Row>> {
    let length = Duration::from_secs(arguments.seconds);
    let folder = match &arguments.folder {
        Some(parent) => tempfile::tempdir_in(parent),
        None => tempfile::tempdir(),
    }
    .context("cannot make a folder for the data")?;
    Ok(vec![
        bare::measure(Work::Read, folder.path(), connections, length).await?,
        bare::measure(Work::Append, folder.path(), connections, length).await?,
        bare::measure(Work::Loop, folder.path(), connections, length).await?,
        kanat::measure(&arguments.kanat, folder.path(), connections, length).await?,
    ])
}
