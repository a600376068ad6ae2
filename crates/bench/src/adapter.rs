//! Adapters alone: what a call costs from the service's side, over the pipe and back, on a payload
//! of two kilobytes.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kanat_script::{Asker, Limits, Options, Pool, Script};

/// What an adapter commonly does: pick, rename, add up.
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
/// The same, in a way that takes a world of its own for each message.
const TAMPERING: &str = "Array.prototype.total = function () { return this.length; };\n";
const BYTES: usize = 2_000;

/// Measures each way to call for `length`, and prints a table.
pub async fn measure(kanat: &Path, length: Duration) -> Result<String> {
    let options = Options {
        program: kanat.to_owned(),
        ..Options::new(Limits::default())
    };
    let payload = payload();
    let mut report = format!(
        "adapters, on a payload of {} bytes\n\n| what | calls/s | median | 99 % |\n| --- | --- | \
         --- | --- |\n",
        payload.len()
    );
    let cores = std::thread::available_parallelism()?.get();
    let plain = Script::new(CODE);
    let tampering = Script::new(format!("{TAMPERING}{CODE}"));
    for (name, script, callers) in [
        ("one caller", &plain, 1),
        ("as many callers as cores", &plain, cores),
        ("one caller, a fresh world for each message", &tampering, 1),
    ] {
        let row = row(
            &Pool::new(options.clone()),
            script,
            &payload,
            callers,
            length,
        )
        .await?;
        writeln!(report, "| {name} | {row}")?;
    }
    writeln!(
        report,
        "| a cold start: code that a warm process has not seen | {}",
        cold(&options, &payload, length).await?
    )?;
    writeln!(
        report,
        "| a process and its first call | {}",
        first(&options, &payload).await?
    )?;
    Ok(report)
}

fn asker(key: &str) -> Asker<'_> {
    Asker {
        environment: "bench",
        key,
    }
}

async fn row(
    pool: &Pool,
    script: &Script,
    payload: &str,
    callers: usize,
    length: Duration,
) -> Result<String> {
    let begun = Instant::now();
    let tasks = (0..callers).map(|caller| {
        let pool = pool.clone();
        let script = script.clone();
        let payload = payload.to_owned();
        tokio::task::spawn_blocking(move || {
            let runtime = tokio::runtime::Handle::current();
            let key = format!("caller {caller}");
            let mut took = Vec::new();
            while begun.elapsed() < length {
                let called = Instant::now();
                let mut session = runtime.block_on(pool.lease(asker(&key)));
                let output = session.call(&script, &payload, "{}").output;
                took.push(called.elapsed());
                output.context("the adapter failed")?;
            }
            anyhow::Ok(took)
        })
    });
    let mut took = Vec::new();
    for task in futures::future::join_all(tasks).await {
        took.extend(task??);
    }
    Ok(figures(took, begun.elapsed()))
}

/// Each call brings code that the process has not seen, and finds it waiting for work.
async fn cold(options: &Options, payload: &str, length: Duration) -> Result<String> {
    let pool = Pool::new(options.clone());
    let known = Script::new(CODE);
    let begun = Instant::now();
    let mut took = Vec::new();
    while begun.elapsed() < length {
        // It has done what the call before left it to do when it answers this one.
        let warm = pool.lease(asker("cold")).await.call(&known, payload, "{}");
        warm.output.context("the adapter failed")?;
        let script = Script::new(format!("{CODE}\n// {}", took.len()));
        let mut session = pool.lease(asker("cold")).await;
        let called = Instant::now();
        let output = session.call(&script, payload, "{}").output;
        took.push(called.elapsed());
        output.context("the adapter failed")?;
    }
    Ok(figures(took, begun.elapsed()))
}

async fn first(options: &Options, payload: &str) -> Result<String> {
    let begun = Instant::now();
    let mut took = Vec::new();
    for _ in 0..50 {
        let pool = Pool::new(options.clone());
        let called = Instant::now();
        let output = pool
            .lease(asker("first"))
            .await
            .call(&Script::new(CODE), payload, "{}")
            .output;
        took.push(called.elapsed());
        output.context("the adapter failed")?;
    }
    Ok(figures(took, begun.elapsed()))
}

fn figures(mut took: Vec<Duration>, elapsed: Duration) -> String {
    took.sort_unstable();
    let at = |share: usize| {
        took.get((took.len() * share / 100).min(took.len().saturating_sub(1)))
            .copied()
    };
    let micros = |time: Option<Duration>| time.unwrap_or_default().as_nanos() as f64 / 1000.0;
    let rate = took.len() as f64 / elapsed.as_secs_f64();
    format!(
        "{rate:.0} | {:.1} us | {:.1} us |",
        micros(at(50)),
        micros(at(99))
    )
}

/// An order of about two kilobytes.
fn payload() -> String {
    let mut lines = String::new();
    let mut number = 0;
    while lines.len() < BYTES - 150 {
        let comma = if number > 0 { "," } else { "" };
        let line = format!(
            r#"{comma}{{"sku":"kb-87-de-{number}","qty":{},"price":{}.5,"note":"a note"}}"#,
            number % 7 + 1,
            10 + number
        );
        lines.push_str(&line);
        number += 1;
    }
    format!(
        concat!(
            r#"{{"id":"SO-10241","placed_at":"2026-10-05T08:15:00Z","#,
            r#""buyer":{{"first":"Anna","last":"Vogel"}},"lines":[{}]}}"#
        ),
        lines
    )
}
