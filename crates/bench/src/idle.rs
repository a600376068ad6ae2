//! The idle CPU of P6: a service with many flows when nothing comes in.

use anyhow::Result;

use crate::figures::{median, plain};
use crate::fill::Fill;
use crate::load::Call;
use crate::plan::Plan;
use crate::report::{Finding, Goal, Measure, Report};
use crate::target::Target;

pub async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    eprintln!("an idle service");
    let flows = plan.sizes.idle_flows;
    let length = plan.sizes.idle_length;
    let folder = plan.scratch()?;
    let target = Target::start().await?;
    let start = plan.start(folder.path());
    let kanat = start.run().await?;
    let deployment = kanat.set_up(target.address.port()).await?;
    kanat.server.stop().await?;
    let mut fill = Fill::begin(&start.data())?;
    fill.flows(flows.saturating_sub(1))?;
    fill.finish()?;
    let kanat = start.run().await?;
    kanat.wait_for(&Call::webhook(&deployment.path)).await?;
    // The work that the start left is not counted.
    tokio::time::sleep(length).await;
    let mut usage = kanat.server.usage()?;
    let mut shares = Vec::new();
    for _ in 0..plan.rounds {
        tokio::time::sleep(length).await;
        let before = std::mem::replace(&mut usage, kanat.server.usage()?);
        let used = usage.cpu.saturating_sub(before.cpu);
        shares.push(used.as_secs_f64() * 100.0 / length.as_secs_f64());
    }
    kanat.server.stop().await?;
    let memory = plain(usage.memory_kib as f64 / 1024.0);
    let rounds = plan.rounds;
    report.add(Finding::new(
        Measure::P6,
        format!("idle CPU of a core, {flows} flows deployed"),
        Goal::AtMost(0.25),
        median(shares),
        "%",
        format!(
            "over {rounds} times {} s; {memory} MiB of memory",
            length.as_secs()
        ),
    ));
    Ok(())
}
