//! Calls of a published API, beside a bare server that does the same by libraries.

use anyhow::Result;

use crate::api::{self, Table};
use crate::figures::plain;
use crate::finding::{Finding, Goal};
use crate::plan::Plan;

pub async fn measure(plan: &Plan) -> Result<Vec<Finding>> {
    let many = plan.sizes.connections;
    let table = api::measure(&api::Plan::of(plan, vec![many])).await?;
    let rate = |server: &str| table.median(server, many, |row| row.per_second);
    let cpu = |server: &str| table.median(server, many, |row| row.cpu_us);
    let ours = Table::OURS;
    let whole = Table::WHOLE;
    Ok(vec![
        Finding::new(
            "P5",
            format!("calls of a published API a second, {many} connections, of the bare loop's"),
            Goal::AtLeast(0.7),
            rate(ours) / rate(whole),
            format!(
                "answered: kanat {} /s, bare {} /s",
                plain(rate(ours)),
                plain(rate(whole))
            ),
        ),
        Finding::new(
            "P5",
            "CPU a call, of the bare loop's",
            Goal::AtMost(1.0 / 0.7),
            cpu(ours) / cpu(whole),
            format!(
                "CPU: kanat {} us, bare {} us",
                plain(cpu(ours)),
                plain(cpu(whole))
            ),
        ),
    ])
}
