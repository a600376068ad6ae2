//! More webhooks than a target takes, for some time: what is accepted, what is refused, and what is
//! delivered in the end.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use kanat_testing_postgres::Database;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::load::{Load, Outcome, Pace};
use crate::target::Reply;
use crate::{FakeTarget, TestApp, memory};

/// Calls of the target at a time, and the time that it takes for one: 800 a second at most.
const CONCURRENCY: usize = 4;
const ANSWERED_AFTER: Duration = Duration::from_millis(5);
/// Connections of the senders.
const CONNECTIONS: usize = 64;
/// Time between two scrapes of the metrics.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(250);
/// Time without a message after which no more are expected.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// Most memory of the service, in KiB.
const MEMORY_KIB: u64 = 256 << 10;
/// Least share of the sustainable rate that is delivered under overload.
const LEAST_SHARE: f64 = 0.8;

/// Message log of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    Sqlite,
    Postgres,
}

/// The load of a run.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    pub time: Duration,
    pub per_second: u32,
    pub backlog_bytes: u64,
}

/// Results of a run.
#[derive(Debug)]
pub struct Report {
    pub log: Log,
    extent: Extent,
    load: Outcome,
    delivered: usize,
    /// Messages that were accepted and did not reach the target.
    lost: Vec<String>,
    /// Deliveries of one message beyond the first.
    twice: usize,
    /// Deliveries a second while the load lasted.
    under_load: f64,
    /// Deliveries a second after it, out of the backlog alone.
    sustainable: f64,
    peak_backlog_bytes: f64,
    peak_memory_kib: u64,
}

impl Log {
    pub const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    pub fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }

    /// Reads a list with commas, or `all`.
    ///
    /// # Errors
    /// There is no such log.
    pub fn parse_list(text: &str) -> Result<Vec<Self>> {
        if text == "all" {
            return Ok(Self::ALL.to_vec());
        }
        let find = |name: &str| match Self::ALL.into_iter().find(|log| log.name() == name) {
            Some(log) => Ok(log),
            None => bail!(
                "there is no log {name:?}: there are all, {}",
                Self::ALL.map(Self::name).join(", ")
            ),
        };
        text.split(',').map(find).collect()
    }
}

/// Offers the load to a fresh service, and waits until what was accepted is delivered.
///
/// # Errors
/// The service did not do what it promises; the report is in the error's text.
pub async fn run(log: Log, extent: Extent) -> Result<Report> {
    let database = (log == Log::Postgres).then(Database::fresh);
    let bytes = extent.backlog_bytes.to_string();
    let mut environment = vec![
        ("KANAT_BACKLOG_BYTES", bytes.as_str()),
        ("KANAT_METRICS_LISTEN", "127.0.0.1:0"),
    ];
    environment.extend(
        database
            .as_ref()
            .map(|database| ("KANAT_DATABASE_URL", database.url())),
    );
    let app = TestApp::start_with(&environment).await;
    // Senders that use up their threads hold up no answer of the target.
    let apart = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .context("no runtime")?;
    let target = FakeTarget::scripted(|_, _| Reply::After(ANSWERED_AFTER, 200));
    let target = apart.spawn(target).await.context("no target")?;
    let config = json!({ "base_url": target.url(), "auth": "none", "concurrency": CONCURRENCY });
    let instance = json!({ "catalogId": "http", "name": "erp", "config": config });
    app.api
        .post("/api/v1/connectors/instances", &instance)
        .await
        .expect(201);
    let yaml = r"flow: orders
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
";
    let (_, url) = app.api.deployed(yaml).await;
    let path = url
        .strip_prefix(&app.base)
        .context("the webhook is at the service's own address")?;

    let pace = Pace {
        per_second: extent.per_second,
        waiting: CONNECTIONS,
    };
    let load = Load::start(&app.base, path, None, pace);
    let begun = Instant::now();
    let mut peak_backlog_bytes = 0.0_f64;
    while begun.elapsed() < extent.time {
        tokio::time::sleep(SAMPLE_INTERVAL).await;
        peak_backlog_bytes = peak_backlog_bytes.max(backlog_bytes(&app).await);
    }
    let load = load.stop().await;
    let stopped = Instant::now();
    let arrived = target.count();
    let under_load = arrived as f64 / begun.elapsed().as_secs_f64();
    let last = delivered(&target, load.accepted.len()).await;
    let after = target.count() - arrived;
    let mut missing: HashSet<String> = load.accepted.iter().map(|body| message_id(body)).collect();
    let received = target.received();
    received.iter().for_each(|request| {
        missing.remove(request.header("idempotency-key"));
    });
    let report = Report {
        log,
        extent,
        delivered: load.accepted.len() - missing.len(),
        twice: received.len().saturating_sub(load.accepted.len()),
        lost: missing.into_iter().collect(),
        under_load,
        sustainable: after as f64 / last.saturating_duration_since(stopped).as_secs_f64(),
        peak_backlog_bytes,
        peak_memory_kib: memory::peak_kib(app.pid()),
        load,
    };
    apart.shutdown_background();
    report.judge().with_context(|| report.row())?;
    Ok(report)
}

/// Waits until so many requests have arrived, or none does any more. Returns when the last one
/// came.
async fn delivered(target: &FakeTarget, count: usize) -> Instant {
    let mut former = target.count();
    let mut since = Instant::now();
    while former < count && since.elapsed() < IDLE_TIMEOUT {
        tokio::time::sleep(Duration::from_millis(5)).await;
        let now = target.count();
        if now > former {
            former = now;
            since = Instant::now();
        }
    }
    since
}

async fn backlog_bytes(app: &TestApp) -> f64 {
    let log = app.log();
    let line = log
        .lines()
        .rfind(|line| line.contains("metrics are served"))
        .expect("the address is logged");
    let line: Value = serde_json::from_str(line).expect("a line of the log is JSON");
    let address = line["url"]
        .as_str()
        .expect("the address is a text")
        .to_owned();
    let scrape = app
        .api
        .without_key()
        .get(&format!("{address}/metrics"))
        .await
        .text;
    let sample = scrape
        .lines()
        .find_map(|line| line.strip_prefix("kanat_backlog_bytes "));
    sample
        .and_then(|value| value.parse().ok())
        .expect("a node tells its backlog")
}

fn message_id(accepted: &str) -> String {
    let answer: Value = serde_json::from_str(accepted).expect("a 202 is JSON");
    answer["messageId"]
        .as_str()
        .expect("it has the message's id")
        .to_owned()
}

impl Report {
    fn judge(&self) -> Result<()> {
        let Self { load, lost, .. } = self;
        ensure!(
            !load.accepted.is_empty() && !load.refused.is_empty(),
            "nothing was accepted, or nothing refused"
        );
        let unexplained = load.refused.iter().find(|text| !text.starts_with("503"));
        ensure!(
            load.asked_to_wait == load.refused.len(),
            "refused without 503 and Retry-After: {unexplained:?}"
        );
        ensure!(
            lost.is_empty(),
            "{} were accepted and not delivered: {}",
            lost.len(),
            lost.join(", ")
        );
        let bound = self.extent.backlog_bytes as f64;
        ensure!(
            self.peak_backlog_bytes <= bound,
            "the backlog came to {} bytes",
            self.peak_backlog_bytes
        );
        ensure!(
            self.peak_memory_kib <= MEMORY_KIB,
            "the service took {} KiB",
            self.peak_memory_kib
        );
        Ok(())
    }

    /// Checks the rate, which takes a machine that does nothing else.
    ///
    /// # Errors
    /// The overload cost too many deliveries.
    pub fn judge_rate(&self) -> Result<()> {
        let least = LEAST_SHARE * self.sustainable;
        ensure!(
            self.under_load >= least,
            "{:.0} were delivered a second, of {:.0}",
            self.under_load,
            self.sustainable
        );
        Ok(())
    }

    pub const HEAD: &str = "| log | offered/s | accepted | refused | delivered | lost | twice | \
                            delivered/s under load | sustainable/s | backlog at most, MiB | \
                            memory at most, MiB |\n| --- | --- | --- | --- | --- | --- | --- | \
                            --- | --- | --- | --- |\n";

    /// Returns the report as a row below [`Self::HEAD`].
    pub fn row(&self) -> String {
        format!(
            "| {} | {:.0} | {} | {} | {} | {} | {} | {:.0} | {:.0} | {:.1} | {:.1} |\n",
            self.log.name(),
            self.load.rate(),
            self.load.accepted.len(),
            self.load.refused.len(),
            self.delivered,
            self.lost.len(),
            self.twice,
            self.under_load,
            self.sustainable,
            self.peak_backlog_bytes / f64::from(1 << 20),
            self.peak_memory_kib as f64 / 1024.0,
        )
    }
}
