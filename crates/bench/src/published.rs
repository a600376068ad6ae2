//! P5: calls of a published API, beside a bare server that does the same by libraries.

use anyhow::Result;

use crate::bare::Mode;
use crate::plan::Plan;
use crate::report::{Finding, Goal, Measure, Ratio, Report};
use crate::subject::Subject;

pub async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let connections = plan.sizes.connections;
    let mut bare = Vec::new();
    let mut kanat = Vec::new();
    for round in 1..=plan.rounds {
        eprintln!("published APIs, round {round} of {}", plan.rounds);
        let folder = plan.scratch()?;
        let subject = Subject::bare(Mode::Published, folder.path()).await?;
        bare.push(subject.closed(connections, plan.length).await?);
        subject.server.stop().await?;
        let subject = Subject::published(&plan.start(folder.path())).await?;
        kanat.push(subject.closed(connections, plan.length).await?);
        subject.server.stop().await?;
    }
    let rate = Ratio::of(&kanat, &bare, |run| run.per_second);
    report.add(Finding::new(
        Measure::P5,
        format!("calls of a published API a second, {connections} connections, of the bare loop's"),
        Goal::AtLeast(0.7),
        rate.value(),
        "",
        format!("answered: {}", rate.describe("/s")),
    ));
    let cpu = Ratio::of(&kanat, &bare, |run| run.cpu_us);
    report.add(Finding::new(
        Measure::P5,
        "CPU a call, of the bare loop's",
        Goal::AtMost(1.0 / 0.7),
        cpu.value(),
        "",
        format!("CPU: {}", cpu.describe("us")),
    ));
    Ok(())
}
