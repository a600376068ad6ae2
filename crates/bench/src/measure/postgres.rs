//! Webhooks on PostgreSQL, beside a service that writes each message by itself, on the same server
//! in the same run.

use std::sync::Arc;

use anyhow::Result;
use kanat_testing_postgres::{Cluster, Durability, Programs};

use crate::figures::plain;
use crate::finding::{Finding, Goal};
use crate::kanat::Start;
use crate::plan::Plan;
use crate::subject::{Run, Series, Subject};

pub async fn measure(plan: &Plan) -> Result<Vec<Finding>> {
    let cluster = tokio::task::spawn_blocking(|| {
        let programs = Programs::find_or_install()?;
        anyhow::Ok(Arc::new(Cluster::start(programs, Durability::OnDisk)?))
    });
    let cluster = cluster.await??;
    let connections = plan.sizes.connections;
    let mut rows = Series::new("a row at a time", "");
    let mut kanat = Series::new("kanat", "");
    for round in 1..=plan.rounds {
        eprintln!("PostgreSQL, round {round} of {}", plan.rounds);
        let folder = plan.scratch()?;
        let name = format!("rows_{round}");
        cluster.create_database(&name)?;
        let subject = Subject::rows(&cluster, &cluster.url(&name), folder.path()).await?;
        rows.runs
            .push(subject.closed(connections, plan.length).await?);
        subject.stop().await?;
        // Without this the server cleans up during the next measurement.
        cluster.drop_database(&name)?;
        let name = format!("kanat_{round}");
        cluster.create_database(&name)?;
        let url = cluster.url(&name);
        let start = Start {
            database: Some(&url),
            ..plan.start(folder.path())
        };
        let subject = Subject::kanat(&start, Some(Arc::clone(&cluster))).await?;
        kanat
            .runs
            .push(subject.closed(connections, plan.length).await?);
        subject.stop().await?;
        cluster.drop_database(&name)?;
    }
    Ok(findings(connections, &kanat, &rows))
}

fn findings(connections: usize, kanat: &Series, rows: &Series) -> Vec<Finding> {
    let rate = |run: &Run| run.delivered_per_second;
    let database = |run: &Run| run.postgres_cpu_us;
    let times = kanat.median(rate) / rows.median(rate);
    vec![
        Finding::new(
            "P7",
            format!("orders delivered a second on PostgreSQL, {connections} connections"),
            Goal::AtLeast(8_000.0),
            kanat.median(rate),
            format!(
                "a row at a time: {} /s; {} times that (10 times suffice)",
                plain(rows.median(rate)),
                plain(times)
            ),
        )
        .in_units("/s")
        .or(times >= 10.0),
        Finding::new(
            "P7",
            "CPU of PostgreSQL an order",
            Goal::AtMost(30.0),
            kanat.median(database),
            format!(
                "a row at a time: {} us; kanat's own {} us",
                plain(rows.median(database)),
                plain(kanat.median(|run| run.cpu_us))
            ),
        )
        .in_units("us"),
    ]
}
