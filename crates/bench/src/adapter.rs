//! Adapters alone: the cost of a call from the service's side, over the pipe and back, on a payload
//! of two kilobytes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kanat_script::{Asker, Limits, Options, Pool, Script};

use crate::figures::percentile;
use crate::load::nanos;
use crate::plan::Plan;

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

/// Lines of the order: they make about two kilobytes.
const LINES: usize = 32;

/// Measures a caller with one script, and one with a new script for each call, and prints a table.
pub async fn measure(plan: &Plan) -> Result<()> {
    let options = Options {
        program: plan.kanat.clone(),
        ..Options::new(Limits::default())
    };
    let pool = Pool::new(options);
    let payload = payload();
    println!("adapters, on a payload of {} bytes\n", payload.len());
    println!("| what | calls/s | median | 99 % |\n| --- | --- | --- | --- |");
    let known = Script::new(CODE);
    let mut known_nanos = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < plan.length {
        known_nanos.push(nanos(call(&pool, &known, &payload).await?));
    }
    print("code that the process has run before", known_nanos);
    let mut new_nanos = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < plan.length {
        // A process that has answered this call has finished the work of the call before.
        call(&pool, &known, &payload).await?;
        let script = Script::new(format!("{CODE}\n// {}", new_nanos.len()));
        new_nanos.push(nanos(call(&pool, &script, &payload).await?));
    }
    print("code that is new to a warm process", new_nanos);
    Ok(())
}

fn print(name: &str, mut nanos: Vec<u64>) {
    nanos.sort_unstable();
    let per_second = nanos.len() as f64 * 1e9 / nanos.iter().sum::<u64>() as f64;
    let [half, most] = [50, 99].map(|percent| percentile(&nanos, percent));
    println!("| {name} | {per_second:.0} | {half:.3} ms | {most:.3} ms |");
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
    let lines = (0..LINES).map(|number| {
        let qty = number % 7 + 1;
        let price = 10 + number;
        format!(r#"{{"sku":"kb-87-de-{number}","qty":{qty},"price":{price}.5,"note":"a note"}}"#)
    });
    let lines = lines.collect::<Vec<_>>().join(",");
    format!(
        concat!(
            r#"{{"id":"SO-10241","placed_at":"2026-10-05T08:15:00Z","#,
            r#""buyer":{{"first":"Anna","last":"Vogel"}},"lines":[{}]}}"#
        ),
        lines
    )
}
