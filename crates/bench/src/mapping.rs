//! P9: the mapping alone. `benches/peers` times it beside other crates, and counts allocations.

use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use kanat_mapping::{Effort, Expression, FieldValue, Mapping, Scope, json};
use kanat_model::Timestamp;

use crate::figures::{median, plain};
use crate::order;
use crate::plan::Plan;
use crate::report::{Finding, Goal, Measure, Report};

/// Mappings in a row for each sample, as at a node that is at work.
const IN_A_ROW: u64 = 100;

/// The mapping of the flow under measurement.
pub struct OrderMapping(Mapping);

pub fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    eprintln!("the mapping");
    let mapping = OrderMapping::parse()?;
    let order = order::order(7, 0);
    let mut samples_us = Vec::new();
    let begun = Instant::now();
    while samples_us.is_empty() || begun.elapsed() < plan.length {
        let begun = Instant::now();
        for _ in 0..IN_A_ROW {
            std::hint::black_box(mapping.map(order.as_bytes())?);
        }
        samples_us.push(begun.elapsed().as_secs_f64() * 1e6 / IN_A_ROW as f64);
    }
    let count = plain(samples_us.len() as f64);
    report.add(Finding::new(
        Measure::P9,
        "the mapping of eleven fields of an order",
        Goal::AtMost(3.0),
        median(samples_us),
        "us",
        format!("{count} samples of {IN_A_ROW} in a row"),
    ));
    Ok(())
}

impl OrderMapping {
    pub fn parse() -> Result<Self> {
        let (_, fields) = order::FLOW
            .split_once("\nmapping:\n")
            .context("the flow maps nothing")?;
        let fields = fields
            .lines()
            .map_while(|line| line.strip_prefix("  ")?.split_once(": "));
        let fields = fields.map(|(name, text)| {
            let parsed = Expression::parse(text).map_err(|faults| anyhow!("{name}: {faults:?}"))?;
            Ok((name.to_owned(), FieldValue::Expression(parsed)))
        });
        let mapping = Mapping::new(fields.collect::<Result<_>>()?);
        Ok(Self(
            mapping.map_err(|_| anyhow!("the fields of the flow conflict"))?,
        ))
    }

    /// Checks an order and maps it, as the service does with each message.
    pub fn map(&self, order: &[u8]) -> Result<Vec<u8>> {
        json::check(order, json::MAX_DEPTH).context("the order")?;
        let mut out = Vec::with_capacity(512);
        let effort = Effort::default();
        let scope = Scope::new(order, Timestamp::from_millis(0), &effort);
        self.0.write(&scope, &mut out)?;
        Ok(out)
    }
}
