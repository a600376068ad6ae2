//! P7: webhooks on PostgreSQL.

use std::sync::Arc;

use anyhow::Result;
use kanat_testing_postgres::{Cluster, Durability, Programs};

use crate::figures::{median, plain};
use crate::kanat::Start;
use crate::plan::Plan;
use crate::report::{Finding, Goal, Measure, Report};
use crate::subject::{Run, Subject};

pub async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let cluster = tokio::task::block_in_place(|| {
        let programs = Programs::find_or_install()?;
        Cluster::start(programs, Durability::OnDisk)
    });
    let cluster = Arc::new(cluster?);
    let connections = plan.sizes.connections;
    let mut runs: Vec<Run> = Vec::new();
    for round in 1..=plan.rounds {
        eprintln!("PostgreSQL, round {round} of {}", plan.rounds);
        let folder = plan.scratch()?;
        let name = format!("kanat_{round}");
        cluster.create_database(&name)?;
        let url = cluster.url(&name);
        let start = Start {
            database: Some(&url),
            ..plan.start(folder.path())
        };
        let mut subject = Subject::kanat(&start).await?;
        subject.postgres = Some(Arc::clone(&cluster));
        runs.push(subject.closed(connections, plan.length).await?);
        subject.server.stop().await?;
        // Without this the server cleans up during the next measurement.
        cluster.drop_database(&name)?;
    }
    let figure = |figure: fn(&Run) -> f64| median(runs.iter().map(figure));
    report.add(Finding::new(
        Measure::P7,
        format!("orders delivered a second on PostgreSQL, {connections} connections"),
        Goal::AtLeast(8_000.0),
        figure(|run| run.per_second),
        "/s",
        format!(
            "end to end, 99 %: {} ms",
            plain(figure(|run| run.delivery_ms[1]))
        ),
    ));
    report.add(Finding::new(
        Measure::P7,
        "CPU of PostgreSQL an order",
        Goal::AtMost(30.0),
        figure(|run| run.postgres_cpu_us),
        "us",
        format!("kanat's own {} us", plain(figure(|run| run.cpu_us))),
    ));
    Ok(())
}
