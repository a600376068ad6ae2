//! Adapters alone: the cost of a call from the service's side, over the pipe and back, on a payload
//! of two kilobytes.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kanat_script::{Asker, Limits, Options, Pool, Script};

use crate::figures::percentile;

/// A common adapter: it picks, renames and adds up.
const CODE: &str = "function transform(order) {
  const lines = order.lines.map((line) => ({
    sku: line.sku.toUpperCase(),
    qty: line.qty,
    amount: (line.qty * line.price).toFixed(2),
  }));
  const total = order.lines.reduce((sum, line) => sum + line.qty * line.price, 0);
  const buyer = `${order.buyer.first} ${order.buyer.last}`;
  return { id: order.id, buyer, lines, total: total.toFixed(2) };
}";

const PAYLOAD_BYTES: usize = 2_000;

/// Measures a caller with one script, and one with a new script for each call, each for `length`.
/// Returns a table.
pub async fn measure(kanat: &Path, length: Duration) -> Result<String> {
    let options = Options {
        program: kanat.to_owned(),
        ..Options::new(Limits::default())
    };
    let pool = Pool::new(options);
    let payload = payload();
    let mut table = format!(
        "adapters, on a payload of {} bytes\n\n| what | calls/s | median | 99 % |\n| --- | --- | \
         --- | --- |\n",
        payload.len()
    );
    let known = Script::new(CODE);
    for (name, is_new) in [
        ("code that the process has run before", false),
        ("code that is new to a warm process", true),
    ] {
        let begun = Instant::now();
        let mut nanos = Vec::new();
        while begun.elapsed() < length {
            let mut script = known.clone();
            if is_new {
                // A process that has answered this call has finished the work of the call before.
                call(&pool, &known, &payload).await?;
                script = Script::new(format!("{CODE}\n// {}", nanos.len()));
            }
            let took = call(&pool, &script, &payload).await?;
            nanos.push(u64::try_from(took.as_nanos())?);
        }
        nanos.sort_unstable();
        let sum = nanos.iter().sum::<u64>() as f64;
        writeln!(
            table,
            "| {name} | {:.0} | {:.3} ms | {:.3} ms |",
            nanos.len() as f64 * 1e9 / sum,
            percentile(&nanos, 50),
            percentile(&nanos, 99)
        )?;
    }
    Ok(table)
}

/// Calls the adapter and returns the time that the call took.
async fn call(pool: &Pool, script: &Script, payload: &str) -> Result<Duration> {
    let asker = Asker {
        environment: "bench",
        key: "bench",
    };
    let mut session = pool.lease(asker).await;
    let begun = Instant::now();
    let output = session.call(script, payload, "{}").output;
    let took = begun.elapsed();
    output.context("the adapter failed")?;
    Ok(took)
}

/// An order of about two kilobytes.
fn payload() -> String {
    let mut lines = Vec::new();
    let mut bytes = 150;
    while bytes < PAYLOAD_BYTES {
        let number = lines.len();
        let line = format!(
            r#"{{"sku":"kb-87-de-{number}","qty":{},"price":{}.5,"note":"a note"}}"#,
            number % 7 + 1,
            10 + number
        );
        bytes += line.len() + 1;
        lines.push(line);
    }
    format!(
        concat!(
            r#"{{"id":"SO-10241","placed_at":"2026-10-05T08:15:00Z","#,
            r#""buyer":{{"first":"Anna","last":"Vogel"}},"lines":[{}]}}"#
        ),
        lines.join(",")
    )
}
