//! Use of a service with many flows when nothing comes in.

use anyhow::Result;

use crate::figures::{median, plain};
use crate::fill::Fill;
use crate::finding::{Finding, Goal};
use crate::plan::Plan;
use crate::target::Target;

pub async fn measure(plan: &Plan) -> Result<Vec<Finding>> {
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
    kanat.wait_for_webhook(&deployment.path).await?;
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
    let details = format!(
        "over {} times {} s; {} MiB of memory",
        plan.rounds,
        length.as_secs(),
        plain(usage.memory_kib as f64 / 1024.0)
    );
    let what = format!("idle CPU of a core, {flows} flows deployed");
    let finding = Finding::new("P6", what, Goal::AtMost(0.25), median(shares), details);
    Ok(vec![finding.in_units("%")])
}
