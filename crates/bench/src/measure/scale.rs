//! A node that holds very much: flows, entries of lookup tables, keys of consumers.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::figures::{median, plain};
use crate::fill::Fill;
use crate::finding::{Finding, Goal};
use crate::kanat::{self, Deployed, Kanat, Start};
use crate::plan::Plan;
use crate::subject::Subject;
use crate::target::Target;
use crate::{api, order};

/// What one size of a node came to.
struct Sized {
    rate: f64,
    memory_kib: u64,
    start: Duration,
    changes: Vec<Duration>,
}

/// The service as it is before it is made large; the target stays for all.
struct Seed {
    folder: tempfile::TempDir,
    flow: Deployed,
}

pub async fn measure(plan: &Plan) -> Result<Vec<Finding>> {
    let (mut target, sizes) = (Target::start().await?, &plan.sizes);
    let seed = Seed::make(plan, &target).await?;
    let mut plan_bytes = 0;
    let (small, returned) = seed.sized("one flow", plan, target, |_| Ok(())).await?;
    target = returned;
    let (flows, returned) = seed
        .sized("many flows", plan, target, |fill| {
            plan_bytes = fill.flows(sizes.flows)?;
            Ok(())
        })
        .await?;
    target = returned;
    let (all, _) = seed
        .sized("many of all", plan, target, |fill| {
            fill.flows(sizes.flows)?;
            fill.entries(sizes.entries)?;
            fill.keys(sizes.keys)
        })
        .await?;
    Ok(findings(plan, plan_bytes, &small, &flows, &all))
}

fn findings(plan: &Plan, plan_bytes: usize, small: &Sized, flows: &Sized, all: &Sized) -> Vec<Finding> {
    let sizes = &plan.sizes;
    let count = plain(sizes.flows as f64);
    let slowest = flows.changes.iter().max().copied().unwrap_or_default();
    let usual = median(flows.changes.iter().map(|took| millis(*took)));
    let grown = flows.memory_kib.saturating_sub(small.memory_kib) as f64 / sizes.flows as f64;
    let text = order::FLOW.len() as f64 / 1024.0;
    let mib = |kib: u64| plain(kib as f64 / 1024.0);
    let held = format!("{count} flows, {} entries, {} keys", plain(sizes.entries as f64), plain(sizes.keys as f64));
    vec![
        Finding::new(
            "P10",
            format!("orders delivered a second with {count} flows, of those with one"),
            Goal::AtLeast(0.9),
            flows.rate / small.rate,
            format!("delivered: {} /s and {} /s", plain(flows.rate), plain(small.rate)),
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
            format!("one changed flow of {count} live, the slowest of {}", flows.changes.len()),
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
                "with one flow {} s, with {held} {} s",
                plain(small.start.as_secs_f64()),
                plain(all.start.as_secs_f64())
            ),
        )
        .in_units("s"),
    ]
}

impl Seed {
    async fn make(plan: &Plan, target: &Target) -> Result<Self> {
        let folder = plan.scratch()?;
        let kanat = Start { binary: &plan.kanat, folder: folder.path(), database: None }.run().await?;
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
        grow: impl FnOnce(&mut Fill) -> Result<()>,
    ) -> Result<(Sized, Target)> {
        eprintln!("scale: {what}");
        let folder = plan.scratch()?;
        let start = Start { binary: &plan.kanat, folder: folder.path(), database: None };
        copy(&self.data(plan), &start.data())?;
        let mut fill = Fill::begin(&start.data())?;
        grow(&mut fill)?;
        fill.finish()?;
        let kanat = start.run().await?;
        kanat.takes(&self.flow.path).await?;
        self.is_live(&kanat).await?;
        kanat.server.stop().await?;

        let begun = Instant::now();
        let kanat = start.run().await?;
        kanat.takes(&self.flow.path).await?;
        let took = begun.elapsed();
        // What the start left to do, and to give back.
        tokio::time::sleep(plan.length).await;
        let memory_kib = kanat.server.usage()?.memory_kib;
        let changes = self.change(&kanat, plan).await?;

        let subject = Subject::of_kanat(kanat, target, self.flow.path.clone(), None);
        let mut rates = Vec::new();
        for _ in 0..plan.rounds {
            rates.push(subject.closed(plan.sizes.connections, plan.length).await?.delivered_per_second);
        }
        let target = subject.stop().await?;
        Ok((Sized { rate: median(rates), memory_kib, start: took, changes }, target))
    }

    fn data(&self, plan: &Plan) -> PathBuf {
        Start { binary: &plan.kanat, folder: self.folder.path(), database: None }.data()
    }

    /// A deploy answers when the node runs all that was published before it.
    async fn is_live(&self, kanat: &Kanat) -> Result<()> {
        for _ in 0..100 {
            if !deploy(kanat, &self.flow.id, 0).await?.pending {
                return Ok(());
            }
        }
        anyhow::bail!("the node does not come to run what was published")
    }

    /// How long each of some changes of one flow takes to be live.
    async fn change(&self, kanat: &Kanat, plan: &Plan) -> Result<Vec<Duration>> {
        let mut took = Vec::new();
        for n in 1..=plan.sizes.changes {
            let change = deploy(kanat, &self.flow.id, n).await?;
            ensure!(!change.pending, "a deploy was not live when it answered");
            took.push(change.took);
            let url = format!("{}{}", kanat.base, self.flow.path);
            let accepted: serde_json::Value = serde_json::from_str(&kanat::post_text(&url, order::order(0, 0)).await?)?;
            let id = accepted["messageId"].as_str().context("the webhook gives no id")?;
            let message: serde_json::Value =
                serde_json::from_str(&kanat::get(&format!("{}/api/v1/messages/{id}", kanat.base)).await?)?;
            ensure!(message["flowVersion"] == change.version, "the next order ran {}", message["flowVersion"]);
        }
        Ok(took)
    }
}

struct Change {
    took: Duration,
    version: u64,
    pending: bool,
}

/// Changes a flow and deploys it; the time is that of the deploy.
async fn deploy(kanat: &Kanat, flow: &str, change: usize) -> Result<Change> {
    let yaml = order::FLOW.replace("  order_id:", &format!("  revision: \"{change}\"\n  order_id:"));
    kanat::put(&kanat.base, &format!("/api/v1/flows/{flow}"), &json!({ "yamlConfig": yaml })).await?;
    let begun = Instant::now();
    let (deployed, pending) = kanat.deploy_and_tell(flow).await?;
    Ok(Change { took: begun.elapsed(), version: deployed.version, pending })
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let (source, copied) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&source, &copied)?;
        } else {
            std::fs::copy(&source, &copied)?;
        }
    }
    Ok(())
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
