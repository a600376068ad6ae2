//! Instructions of the hot paths, counted by valgrind's callgrind, beside committed figures: they repeat where times do not, so
//! that a slowdown shows in the commit that brings it.
//!
//! Each work is done so many times in a process of its own, when that has started and done it some times before. Counted is
//! the one thread that serves, not those of the database. A debug build, which is at hand after every test, shows what our code
//! does more of; what the optimizer makes less of, only a release build shows.

pub mod work;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tokio::process::Command;

use crate::api;
use crate::figures::plain;
use crate::folder::copy;
use crate::kanat::{Start, post};
use crate::plan::Plan;
use work::Work;

/// Of each build: what one mapping, webhook, call costs.
type Figures = BTreeMap<String, BTreeMap<String, u64>>;

/// More than so much above the committed figure is a slowdown.
const TOLERANCE: f64 = 0.05;

/// What the works are done on.
struct Seed {
    folder: tempfile::TempDir,
    webhook: String,
    key: String,
}

/// Checks against the figures in `file`, or writes them there.
pub async fn check(plan: &Plan, file: &Path, write: bool) -> Result<()> {
    let mut committed = read(file)?;
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let seed = Seed::make(plan).await?;
    let (mut counted, mut slower) = (BTreeMap::new(), Vec::new());
    for work in Work::ALL {
        let count = seed.count(plan, work).await?;
        let known = committed.get(build).and_then(|figures| figures.get(work.name())).copied();
        let change = known.map(|known| count as f64 / known as f64 - 1.0);
        let told =
            change.map_or("of which no figure is committed".to_owned(), |change| format!("{:+.2} %", change * 100.0));
        println!("{:<8} {:>12} instructions, {told}", work.name(), plain(count as f64));
        if change.is_none_or(|change| change > TOLERANCE) {
            slower.push(work.name());
        }
        counted.insert(work.name().to_owned(), count);
    }
    if write {
        committed.insert(build.to_owned(), counted);
        let text = serde_json::to_string_pretty(&committed)?;
        return std::fs::write(file, text + "\n").with_context(|| format!("cannot write {}", file.display()));
    }
    ensure!(
        slower.is_empty(),
        "{}: more than {} % above {}, or not in it: make it faster or, if it has to be, write the new figures with --write",
        slower.join(", "),
        TOLERANCE * 100.0,
        file.display()
    );
    Ok(())
}

fn read(file: &Path) -> Result<Figures> {
    match std::fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text).with_context(|| format!("{} is not readable", file.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Figures::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

impl Seed {
    /// A flow that holds what its webhook takes, so that nothing but the way into the log is counted, and a published API.
    async fn make(plan: &Plan) -> Result<Self> {
        let folder = plan.scratch()?;
        let kanat = Start { binary: &plan.kanat, folder: folder.path(), database: None }.run().await?;
        let flow = kanat.set_up(9).await?;
        post(&kanat.base, &format!("/api/v1/flows/{}/pause", flow.id), &json!({})).await?;
        let key = api::set_up(&kanat).await?;
        kanat.server.stop().await?;
        Ok(Self { folder, webhook: flow.path, key })
    }

    /// Of one of so many times.
    async fn count(&self, plan: &Plan, work: Work) -> Result<u64> {
        let folder = plan.scratch()?;
        let data = folder.path().join("data");
        copy(&Start { binary: &plan.kanat, folder: self.folder.path(), database: None }.data(), &data)?;
        let counts = folder.path().join("counts");
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--quiet"]).arg(format!("--toggle-collect={}", work::COUNTED));
        valgrind.arg(format!("--callgrind-out-file={}", counts.display()));
        valgrind.arg(std::env::current_exe()?).args(["--kanat", "-", "work", "--work", work.name()]);
        let times = work.times();
        valgrind
            .args(["--times", &times.to_string(), "--webhook", &self.webhook, "--key", &self.key, "--data"])
            .arg(data);
        let output = valgrind.output().await.context("cannot run valgrind: apt-get install valgrind")?;
        if !output.status.success() {
            bail!("{} failed: {}", work.name(), String::from_utf8_lossy(&output.stderr));
        }
        let total = total(&counts)?;
        ensure!(total > 0, "callgrind did not find what to count: {}", work::COUNTED);
        Ok(total / times)
    }
}

fn total(file: &Path) -> Result<u64> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")));
    line.context("callgrind counted nothing")?.trim().parse().context("callgrind counted no number")
}
