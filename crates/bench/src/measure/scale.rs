//! A node that holds very much: flows, entries of lookup tables, keys of consumers.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::figures::{median, plain};
use crate::fill::{self, Fill};
use crate::finding::{Finding, Goal};
use crate::folder::copy;
use crate::kanat::{self, Deployed, Kanat, Start};
use crate::plan::Plan;
use crate::subject::Subject;
use crate::target::Target;
use crate::{api, order};

/// A node that has very much to take over is given so long.
const PATIENCE: Duration = Duration::from_secs(120);

/// What one size of a node came to.
struct Sized {
    rate: f64,
    memory_kib: u64,
    /// Until a node runs what it did not have.
    taken_over: Duration,
    start: Duration,
    changes: Vec<Duration>,
}

/// The service as it is before it is made large; the target stays for all.
struct Seed {
    folder: tempfile::TempDir,
    flow: Deployed,
}

pub async fn measure(plan: &Plan) -> Result<Vec<Finding>> {
    let mut target = Target::start().await?;
    let sizes = &plan.sizes;
    let seed = Seed::make(plan, &target).await?;
    let mut plan_bytes = 0;
    let (small, returned) = seed.sized("one flow", plan, target, |_| Ok(false)).await?;
    target = returned;
    let (flows, returned) = seed
        .sized("many flows", plan, target, |fill| {
            plan_bytes = fill.flows(sizes.flows)?;
            Ok(true)
        })
        .await?;
    target = returned;
    let (all, _) = seed
        .sized("many of all", plan, target, |fill| {
            fill.flows(sizes.flows)?;
            fill.entries(sizes.entries)?;
            fill.keys(sizes.keys)?;
            Ok(true)
        })
        .await?;
    Ok(findings(plan, plan_bytes, &small, &flows, &all))
}

fn findings(
    plan: &Plan,
    plan_bytes: usize,
    small: &Sized,
    flows: &Sized,
    all: &Sized,
) -> Vec<Finding> {
    let sizes = &plan.sizes;
    let count = plain(sizes.flows as f64);
    let slowest = flows.changes.iter().max().copied().unwrap_or_default();
    let usual = median(flows.changes.iter().map(|took| millis(*took)));
    let grown = flows.memory_kib.saturating_sub(small.memory_kib) as f64 / sizes.flows as f64;
    let text = order::FLOW.len() as f64 / 1024.0;
    let mib = |kib: u64| plain(kib as f64 / 1024.0);
    let held = format!(
        "{count} flows, {} entries, {} keys",
        plain(sizes.entries as f64),
        plain(sizes.keys as f64)
    );
    vec![
        Finding::new(
            "P10",
            format!("orders delivered a second with {count} flows, of those with one"),
            Goal::AtLeast(0.9),
            flows.rate / small.rate,
            format!(
                "delivered: {} /s and {} /s",
                plain(flows.rate),
                plain(small.rate)
            ),
        ),
        Finding::new(
            "P10",
            format!("the same with {held}"),
            Goal::AtLeast(0.9),
            all.rate / small.rate,
            format!(
                "delivered: {} /s; {} MiB, with one flow {} MiB",
                plain(all.rate),
                mib(all.memory_kib),
                mib(small.memory_kib)
            ),
        ),
        Finding::new(
            "P10",
            "memory a flow, beyond its text, of both planes in one process",
            Goal::AtMost(4.0),
            grown - text,
            format!(
                "{} MiB with {count} flows, {} MiB with one; a text has {} KiB, its plan {} KiB",
                mib(flows.memory_kib),
                mib(small.memory_kib),
                plain(text),
                plain(plan_bytes as f64 / 1024.0)
            ),
        )
        .in_units("KiB"),
        Finding::new(
            "P10",
            format!(
                "one changed flow of {count} live, the slowest of {}",
                flows.changes.len()
            ),
            Goal::AtMost(250.0),
            millis(slowest),
            format!("median {} ms", plain(usual)),
        )
        .in_units("ms"),
        Finding::new(
            "P10",
            format!("start from disk with {count} flows, until a webhook takes an order"),
            Goal::AtMost(5.0),
            flows.start.as_secs_f64(),
            format!(
                "with one flow {} s, with {held} {} s; when the node does not have them yet: {} s \
                 and {} s",
                plain(small.start.as_secs_f64()),
                plain(all.start.as_secs_f64()),
                plain(flows.taken_over.as_secs_f64()),
                plain(all.taken_over.as_secs_f64())
            ),
        )
        .in_units("s"),
    ]
}

impl Seed {
    async fn make(plan: &Plan, target: &Target) -> Result<Self> {
        let folder = plan.scratch()?;
        let kanat = Start {
            binary: &plan.kanat,
            folder: folder.path(),
            database: None,
        }
        .run()
        .await?;
        let flow = kanat.set_up(target.address.port()).await?;
        api::set_up(&kanat).await?;
        kanat.server.stop().await?;
        Ok(Self { folder, flow })
    }

    /// A copy made as large as `grow` makes it, started, started again from its disk, and measured.
    async fn sized(
        &self,
        what: &str,
        plan: &Plan,
        target: Target,
        // Says whether it made flows.
        grow: impl FnOnce(&mut Fill) -> Result<bool>,
    ) -> Result<(Sized, Target)> {
        eprintln!("scale: {what}");
        let folder = plan.scratch()?;
        let start = Start {
            binary: &plan.kanat,
            folder: folder.path(),
            database: None,
        };
        copy(&self.data(plan), &start.data())?;
        let mut fill = Fill::begin(&start.data())?;
        let filled = grow(&mut fill)?;
        fill.finish()?;
        eprintln!("scale: {what}: it is filled, and starts");
        // Of the flows that were filled in, the last, where there is one.
        let last = fill::webhook_of(if filled {
            plan.sizes.flows.checked_sub(1)
        } else {
            None
        });
        let last = last.as_ref().unwrap_or(&self.flow.path);
        let begun = Instant::now();
        let kanat = start.run().await?;
        kanat.takes(last).await?;
        let taken_over = begun.elapsed();
        // Answered by every node, which then has it on its disk.
        while kanat.deploy(&self.flow.id).await?.pending {}
        kanat.server.stop().await?;

        eprintln!("scale: {what}: it starts from its disk");
        let begun = Instant::now();
        let kanat = start.run().await?;
        kanat.takes(last).await?;
        let took = begun.elapsed();
        // What the start left to do, and to give back.
        tokio::time::sleep(plan.length).await;
        let memory_kib = kanat.server.usage()?.memory_kib;
        let changes = self.change(&kanat, plan).await?;

        let subject = Subject::of_kanat(kanat, target, self.flow.path.clone(), None);
        let mut rates = Vec::new();
        for _ in 0..plan.rounds {
            rates.push(
                subject
                    .closed(plan.sizes.connections, plan.length)
                    .await?
                    .delivered_per_second,
            );
        }
        let target = subject.stop().await?;
        Ok((
            Sized {
                rate: median(rates),
                memory_kib,
                taken_over,
                start: took,
                changes,
            },
            target,
        ))
    }

    fn data(&self, plan: &Plan) -> PathBuf {
        Start {
            binary: &plan.kanat,
            folder: self.folder.path(),
            database: None,
        }
        .data()
    }

    /// How long each of some changes of one flow takes to be live.
    async fn change(&self, kanat: &Kanat, plan: &Plan) -> Result<Vec<Duration>> {
        // Nodes that are not connected yet keep nobody waiting.
        self.live(kanat, 0).await?;
        let mut took = Vec::new();
        for n in 1..=plan.sizes.changes {
            took.push(self.live(kanat, n).await?);
        }
        Ok(took)
    }

    /// Changes the flow and deploys it: how long until the deploy has answered and an order runs
    /// it.
    async fn live(&self, kanat: &Kanat, change: usize) -> Result<Duration> {
        let yaml = order::FLOW.replace(
            "  order_id:",
            &format!("  revision: \"{change}\"\n  order_id:"),
        );
        let path = format!("/api/v1/flows/{}", self.flow.id);
        kanat::put(&kanat.base, &path, &json!({ "yamlConfig": yaml })).await?;
        let begun = Instant::now();
        let version = kanat.deploy(&self.flow.id).await?.version;
        let mut took = begun.elapsed();
        while self.version(kanat).await? != version {
            took = begun.elapsed();
            ensure!(took < PATIENCE, "a deploy does not come to life");
        }
        Ok(took)
    }

    /// The version that an order runs under.
    async fn version(&self, kanat: &Kanat) -> Result<u64> {
        let url = format!("{}{}", kanat.base, self.flow.path);
        let accepted: Value =
            serde_json::from_str(&kanat::post_text(&url, order::order(0, 0)).await?)?;
        let id = accepted["messageId"]
            .as_str()
            .context("the webhook gives no id")?;
        let message = kanat::get(&format!("{}/api/v1/messages/{id}", kanat.base)).await?;
        let message: Value = serde_json::from_str(&message)?;
        message["flowVersion"]
            .as_u64()
            .context("the message has no version")
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
