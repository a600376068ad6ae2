//! Calls of a published API: with a key, limits, a strict schema of twenty members and an answer
//! mapped from the request, beside servers on the same machine in the same run that do less, and
//! one that does the same by libraries.

mod bare;
mod kanat;
mod nginx;
mod order;
mod table;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::load::{self, Call};
use crate::process::Server;
pub use bare::serve;
pub use kanat::set_up;
pub use order::call;
pub use table::{Row, Table};

/// What is measured, and how often.
pub struct Plan {
    kanat: PathBuf,
    folder: Option<PathBuf>,
    connections: Vec<usize>,
    rounds: usize,
    length: Duration,
}

impl Plan {
    /// With the lengths and places of a whole run.
    pub fn of(plan: &crate::plan::Plan, connections: Vec<usize>) -> Self {
        Self {
            kanat: plan.kanat.clone(),
            folder: plan.folder.clone(),
            connections,
            rounds: plan.rounds,
            length: plan.length,
        }
    }
}

pub async fn measure(plan: &Plan) -> Result<Table> {
    let mut table = Table::default();
    for round in 1..=plan.rounds {
        for &connections in &plan.connections {
            eprintln!(
                "published APIs, round {round} of {}: {connections} connections",
                plan.rounds
            );
            let folder = match &plan.folder {
                Some(parent) => tempfile::tempdir_in(parent),
                None => tempfile::tempdir(),
            };
            let folder = folder.context("cannot make a folder for the data")?;
            for row in compare(plan, folder.path(), connections).await? {
                table.add(row);
            }
        }
    }
    Ok(table)
}

async fn compare(plan: &Plan, folder: &Path, connections: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    if let Some(nginx) = nginx::start(folder).await? {
        rows.push(
            load(
                Table::NGINX,
                nginx,
                &order::call(None),
                connections,
                plan.length,
            )
            .await?,
        );
    }
    let hyper = bare::start(folder, bare::Work::Static).await?;
    rows.push(
        load(
            Table::HYPER,
            hyper,
            &order::call(None),
            connections,
            plan.length,
        )
        .await?,
    );
    let whole = bare::start(folder, bare::Work::Whole).await?;
    rows.push(
        load(
            Table::WHOLE,
            whole,
            &order::call(Some(bare::KEY.to_owned())),
            connections,
            plan.length,
        )
        .await?,
    );
    rows.push(ours(&plan.kanat, folder, connections, plan.length).await?);
    Ok(rows)
}

/// Figures of Kanat alone under the load, with its data in `folder`.
pub async fn ours(
    binary: &Path,
    folder: &Path,
    connections: usize,
    length: Duration,
) -> Result<Row> {
    let (kanat, key) = kanat::start(binary, folder).await?;
    load(
        Table::OURS,
        kanat,
        &order::call(Some(key)),
        connections,
        length,
    )
    .await
}

/// One server under the load, from the first call to the last; then it is stopped.
async fn load(
    name: &'static str,
    server: Server,
    call: &Call,
    connections: usize,
    length: Duration,
) -> Result<Row> {
    // What is set up with the first calls is not what is measured.
    load::closed(
        server.address,
        call,
        connections,
        length / 10,
        Instant::now(),
    )
    .await
    .context(name)?;
    let before = server.usage()?;
    let outcome = load::closed(server.address, call, connections, length, Instant::now())
        .await
        .context(name)?;
    let after = server.usage()?;
    server.stop().await?;
    Ok(Row::new(name, connections, &outcome, before, after))
}
