//! What a service with many flows uses when nothing comes in.

use anyhow::Result;

use crate::figures::{median, plain};
use crate::fill::Fill;
use crate::finding::{Finding, Goal};
use crate::kanat::Start;
use crate::plan::Plan;
use crate::target::Target;

pub async fn measure(plan: &Plan) -> Result<Vec<Finding>> {
    let (flows, length) = plan.sizes.idle;
    eprintln!("an idle service");
    let folder = plan.scratch()?;
    let target = Target::start().await?;
    let start = Start {
        binary: &plan.kanat,
        folder: folder.path(),
        database: None,
    };
    let kanat = start.run().await?;
    let deployed = kanat.set_up(target.address.port()).await?;
    kanat.server.stop().await?;
    let mut fill = Fill::begin(&start.data())?;
    fill.flows(flows.saturating_sub(1))?;
    fill.finish()?;
    let kanat = start.run().await?;
    kanat.takes(&deployed.path).await?;
    // What the start left to do is not idleness.
    tokio::time::sleep(length).await;
    let mut usage = kanat.server.usage()?;
    let mut shares = Vec::new();
    for _ in 0..plan.rounds {
        tokio::time::sleep(length).await;
        let before = std::mem::replace(&mut usage, kanat.server.usage()?);
        shares.push(
            usage.cpu.saturating_sub(before.cpu).as_secs_f64() * 100.0 / length.as_secs_f64(),
        );
    }
    kanat.server.stop().await?;
    Ok(vec![
        Finding::new(
            "P6",
            format!("idle CPU of a core, {flows} flows deployed"),
            Goal::AtMost(0.25),
            median(shares),
            format!(
                "over {} times {} s; {} MiB of memory",
                plan.rounds,
                length.as_secs(),
                plain(usage.memory_kib as f64 / 1024.0)
            ),
        )
        .in_units("%"),
    ])
}
