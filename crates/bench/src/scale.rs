//! P10: a node with very many flows, entries of lookup tables and keys of consumers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::figures::{median, plain};
use crate::fill::{self, Fill};
use crate::kanat::{Deployment, Kanat};
use crate::load::Call;
use crate::plan::{Plan, Sizes};
use crate::report::{Finding, Goal, Measure, Report};
use crate::subject::Subject;
use crate::target::Target;
use crate::{api, order};

/// Time within which a deploy has to be live.
const DEPLOY_TIMEOUT: Duration = Duration::from_secs(120);

/// Figures of a node of one size.
struct Figures {
    rate: f64,
    memory_mib: f64,
    /// Time until a node runs plans that it did not have on its disk.
    first_start: Duration,
    /// Time until a node runs plans that it has on its disk.
    restart: Duration,
    /// Milliseconds that each changed flow took until it was live.
    changes_ms: Vec<f64>,
    /// Size of one plan that was filled in.
    plan_bytes: usize,
}

/// The service before it is made large.
struct Seed {
    folder: tempfile::TempDir,
    flow: Deployment,
    target: Arc<Target>,
}

pub async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let sizes = &plan.sizes;
    let seed = Seed::make(plan).await?;
    let small = seed.measure("one flow", plan, |_| Ok(0)).await?;
    let fill_flows = |fill: &mut Fill| fill.flows(sizes.flows);
    let flows = seed.measure("many flows", plan, fill_flows).await?;
    let fill_all = |fill: &mut Fill| {
        fill.entries(sizes.entries)?;
        fill.keys(sizes.keys)?;
        fill.flows(sizes.flows)
    };
    let all = seed.measure("many of all", plan, fill_all).await?;
    for finding in findings(sizes, &small, &flows, &all) {
        report.add(finding);
    }
    Ok(())
}

fn findings(sizes: &Sizes, small: &Figures, flows: &Figures, all: &Figures) -> [Finding; 5] {
    let count = plain(sizes.flows as f64);
    let entries = plain(sizes.entries as f64);
    let keys = plain(sizes.keys as f64);
    let size = format!("{count} flows, {entries} entries, {keys} keys");
    let slowest = flows.changes_ms.iter().copied().fold(0.0, f64::max);
    let text_kib = order::FLOW.len() as f64 / 1024.0;
    let grown_kib = (flows.memory_mib - small.memory_mib) * 1024.0 / sizes.flows as f64;
    let rates = [small, flows, all].map(|figures| plain(figures.rate));
    let memory = [small, flows, all].map(|figures| plain(figures.memory_mib));
    let starts = [flows, all].map(|figures| plain(figures.first_start.as_secs_f64()));
    let restarts = [small, all].map(|figures| plain(figures.restart.as_secs_f64()));
    [
        Finding::new(
            Measure::P10,
            format!("orders delivered a second with {count} flows, of those with one"),
            Goal::AtLeast(0.9),
            flows.rate / small.rate,
            "",
            format!("delivered: {} /s and {} /s", rates[1], rates[0]),
        ),
        Finding::new(
            Measure::P10,
            format!("the same with {size}"),
            Goal::AtLeast(0.9),
            all.rate / small.rate,
            "",
            format!(
                "delivered: {} /s; {} MiB, with one flow {} MiB",
                rates[2], memory[2], memory[0]
            ),
        ),
        Finding::new(
            Measure::P10,
            "memory a flow, beyond its text, of both planes in one process",
            Goal::AtMost(4.0),
            grown_kib.max(0.0) - text_kib,
            "KiB",
            format!(
                "{} MiB with {count} flows, {} MiB with one; a text has {} KiB, its plan {} KiB",
                memory[1],
                memory[0],
                plain(text_kib),
                plain(flows.plan_bytes as f64 / 1024.0)
            ),
        ),
        Finding::new(
            Measure::P10,
            format!(
                "one changed flow of {count} live, the slowest of {}",
                sizes.changes
            ),
            Goal::AtMost(250.0),
            slowest,
            "ms",
            format!(
                "median {} ms",
                plain(median(flows.changes_ms.iter().copied()))
            ),
        ),
        Finding::new(
            Measure::P10,
            format!("start from disk with {count} flows, until a webhook takes an order"),
            Goal::AtMost(5.0),
            flows.restart.as_secs_f64(),
            "s",
            format!(
                "with one flow {} s, with {size} {} s; when the node does not have them yet: {} s \
                 and {} s",
                restarts[0], restarts[1], starts[0], starts[1]
            ),
        ),
    ]
}

impl Seed {
    async fn make(plan: &Plan) -> Result<Self> {
        let target = Arc::new(Target::start().await?);
        let folder = plan.scratch()?;
        let kanat = plan.start(folder.path()).run().await?;
        let flow = kanat.set_up(target.address.port()).await?;
        api::set_up(&kanat).await?;
        kanat.server.stop().await?;
        Ok(Self {
            folder,
            flow,
            target,
        })
    }

    /// Measures a copy that `grow` has filled, after a start and a restart. `grow` returns the
    /// size of a plan, or 0 when it made no flows.
    async fn measure(
        &self,
        what: &str,
        plan: &Plan,
        grow: impl FnOnce(&mut Fill) -> Result<usize>,
    ) -> Result<Figures> {
        eprintln!("scale: {what}");
        let folder = plan.scratch()?;
        let start = plan.start(folder.path());
        fill::copy(&plan.start(self.folder.path()).data(), &start.data())?;
        let mut fill = Fill::begin(&start.data())?;
        let plan_bytes = grow(&mut fill)?;
        fill.finish()?;
        let path = match plan.sizes.flows.checked_sub(1) {
            Some(last) if plan_bytes > 0 => fill::webhook_of(last),
            _ => self.flow.path.clone(),
        };
        let webhook = Call::webhook(&path);
        eprintln!("scale: {what}: it is filled, and starts");
        let begun = Instant::now();
        let kanat = start.run().await?;
        kanat.wait_for(&webhook).await?;
        let first_start = begun.elapsed();
        // A deploy that every node has answered is on their disks.
        while kanat.deploy(&self.flow.id).await?.pending {}
        kanat.server.stop().await?;

        eprintln!("scale: {what}: it starts from its disk");
        let begun = Instant::now();
        let kanat = start.run().await?;
        kanat.wait_for(&webhook).await?;
        let restart = begun.elapsed();
        // Work and memory that the start left are not counted.
        tokio::time::sleep(plan.length).await;
        let memory_mib = kanat.server.usage()?.memory_kib as f64 / 1024.0;
        let changes_ms = self.change(&kanat, plan.sizes.changes).await?;

        let call = Call::webhook(&self.flow.path);
        let subject = Subject::of(kanat, call, Some(Arc::clone(&self.target)));
        Ok(Figures {
            rate: subject.into_delivery_rate(plan).await?,
            memory_mib,
            first_start,
            restart,
            changes_ms,
            plan_bytes,
        })
    }

    /// Changes one flow several times, and returns how long each change took to be live.
    async fn change(&self, kanat: &Kanat, count: usize) -> Result<Vec<f64>> {
        // The first deploy does not wait for nodes that are not connected yet.
        self.change_once(kanat, 0).await?;
        let mut changes_ms = Vec::new();
        for number in 1..=count {
            let took = self.change_once(kanat, number).await?;
            changes_ms.push(took.as_secs_f64() * 1000.0);
        }
        Ok(changes_ms)
    }

    /// Deploys a change, and waits until the deploy has answered and an order runs it.
    async fn change_once(&self, kanat: &Kanat, number: usize) -> Result<Duration> {
        let revision = format!("  revision: \"{number}\"\n  order_id:");
        let yaml = order::FLOW.replace("  order_id:", &revision);
        let path = format!("/api/v1/flows/{}", self.flow.id);
        let draft = json!({ "yamlConfig": yaml });
        kanat.send(Method::PUT, &path, Some(draft)).await?;
        let begun = Instant::now();
        let version = kanat.deploy(&self.flow.id).await?.version;
        let mut took = begun.elapsed();
        while self.running_version(kanat).await? != version {
            took = begun.elapsed();
            ensure!(took < DEPLOY_TIMEOUT, "a deploy is not live");
        }
        Ok(took)
    }

    /// Posts an order and returns the version that it runs under.
    async fn running_version(&self, kanat: &Kanat) -> Result<u64> {
        let order: Value = serde_json::from_str(&order::order(0, 0))?;
        let accepted = kanat.post(&self.flow.path, order).await?;
        let id = accepted["messageId"].as_str();
        let path = format!(
            "/api/v1/messages/{}",
            id.context("the webhook gives no id")?
        );
        let (_, message) = kanat.send(Method::GET, &path, None).await?;
        let version = message["flowVersion"].as_u64();
        version.context("the message has no version")
    }
}
