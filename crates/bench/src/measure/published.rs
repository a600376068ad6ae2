//! Calls of a published API, beside a bare server that does the same by libraries.

use anyhow::Result;

use crate::bare::Mode;
use crate::figures::plain;
use crate::finding::{Finding, Goal};
use crate::plan::Plan;
use crate::subject::{Series, Subject};

pub async fn measure(plan: &Plan) -> Result<Vec<Finding>> {
    let connections = plan.sizes.connections;
    let [bare, kanat] = compare(plan, connections).await?;
    let figures = |figure: fn(&Series) -> f64, unit: &str| {
        let kanat = plain(figure(&kanat));
        let bare = plain(figure(&bare));
        format!("kanat {kanat} {unit}, bare {bare} {unit}")
    };
    Ok(vec![
        Finding::new(
            "P5",
            format!(
                "calls of a published API a second, {connections} connections, of the bare loop's"
            ),
            Goal::AtLeast(0.7),
            rate(&kanat) / rate(&bare),
            format!("answered: {}", figures(rate, "/s")),
        ),
        Finding::new(
            "P5",
            "CPU a call, of the bare loop's",
            Goal::AtMost(1.0 / 0.7),
            cpu(&kanat) / cpu(&bare),
            format!("CPU: {}", figures(cpu, "us")),
        ),
    ])
}

/// Measures the bare server and Kanat, in this order.
pub async fn compare(plan: &Plan, connections: usize) -> Result<[Series; 2]> {
    let load = format!("calls, {connections} connections");
    let mut bare = Series::new("bare loop", load.clone());
    let mut kanat = Series::new("kanat", load);
    for round in 1..=plan.rounds {
        eprintln!(
            "published APIs, round {round} of {}: {connections} connections",
            plan.rounds
        );
        let folder = plan.scratch()?;
        let subject = Subject::bare(Mode::Published, folder.path()).await?;
        bare.runs
            .push(subject.closed(connections, plan.length).await?);
        subject.stop().await?;
        let subject = Subject::published(&plan.start(folder.path())).await?;
        kanat
            .runs
            .push(subject.closed(connections, plan.length).await?);
        subject.stop().await?;
    }
    Ok([bare, kanat])
}

fn rate(series: &Series) -> f64 {
    series.median(|run| run.acked_per_second)
}

fn cpu(series: &Series) -> f64 {
    series.median(|run| run.cpu_us)
}
