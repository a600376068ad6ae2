//! Webhooks on PostgreSQL, beside a service that writes each message by itself, on the same server
//! in the same run.

use std::sync::Arc;

use anyhow::Result;
use kanat_testing_postgres::{Cluster, Durability, Programs};

use crate::figures::{median, plain};
use crate::finding::{Finding, Goal};
use crate::kanat::Start;
use crate::plan::Plan;
use crate::subject::{Run, Subject};

pub async fn measure(plan: &Plan) -> Result<Vec<Finding>> {
    let cluster = tokio::task::spawn_blocking(|| {
        anyhow::Ok(Arc::new(Cluster::start(
            Programs::find_or_install()?,
            Durability::OnDisk,
        )?))
    });
    let cluster = cluster.await??;
    let mut rows = Vec::new();
    let mut ours = Vec::new();
    for round in 1..=plan.rounds {
        eprintln!("PostgreSQL, round {round} of {}", plan.rounds);
        let folder = plan.scratch()?;
        let name = format!("rows_{round}");
        cluster.create_database(&name)?;
        let bare = Subject::rows(&cluster, &cluster.url(&name), folder.path()).await?;
        rows.push(bare.closed(plan.sizes.connections, plan.length).await?);
        bare.stop().await?;
        // Else the server tidies it up in another's time.
        cluster.drop_database(&name)?;
        let name = format!("kanat_{round}");
        cluster.create_database(&name)?;
        let url = cluster.url(&name);
        let start = Start {
            binary: &plan.kanat,
            folder: folder.path(),
            database: Some(&url),
        };
        let kanat = Subject::kanat(&start, Some(Arc::clone(&cluster))).await?;
        ours.push(kanat.closed(plan.sizes.connections, plan.length).await?);
        kanat.stop().await?;
        cluster.drop_database(&name)?;
    }
    Ok(findings(plan, &ours, &rows))
}

fn findings(plan: &Plan, ours: &[Run], rows: &[Run]) -> Vec<Finding> {
    let of = |runs: &[Run], figure: fn(&Run) -> f64| median(runs.iter().map(figure));
    let rate = |runs| of(runs, |run| run.delivered_per_second);
    let database = |runs| of(runs, |run| run.postgres_cpu_us);
    let times = rate(ours) / rate(rows);
    vec![
        Finding::new(
            "P7",
            format!(
                "orders delivered a second on PostgreSQL, {} connections",
                plan.sizes.connections
            ),
            Goal::AtLeast(8_000.0),
            rate(ours),
            format!(
                "a row at a time: {} /s; {} times that (10 times are enough)",
                plain(rate(rows)),
                plain(times)
            ),
        )
        .in_units("/s")
        .or(times >= 10.0),
        Finding::new(
            "P7",
            "CPU of PostgreSQL an order",
            Goal::AtMost(30.0),
            database(ours),
            format!(
                "a row at a time: {} us; kanat's own {} us",
                plain(database(rows)),
                plain(of(ours, |run| run.cpu_us))
            ),
        )
        .in_units("us"),
    ]
}
