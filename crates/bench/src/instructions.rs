//! Instructions of the hot paths, counted by valgrind's callgrind, beside committed figures: they repeat where times do not, so
//! that a slowdown shows in the commit that brings it.
//!
//! Each work is done N times and 2N times in a process of its own; the difference is what one costs. Counted is the one
//! thread that serves, not those of the database.

pub mod work;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
        let change = known.map_or(0.0, |known| count as f64 / known as f64 - 1.0);
        println!("{:<8} {:>12} instructions, {:+.2} %", work.name(), plain(count as f64), change * 100.0);
        if known.is_none() || change > TOLERANCE {
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
        "{} cost more than {} % above {}: make it faster or, if it has to be, write the new figures with --write",
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

    async fn count(&self, plan: &Plan, work: Work) -> Result<u64> {
        let times = work.times();
        let once = self.run(plan, work, times).await?;
        let twice = self.run(plan, work, 2 * times).await?;
        Ok(twice.saturating_sub(once) / times)
    }

    /// Of the first thread, start and end included.
    async fn run(&self, plan: &Plan, work: Work, times: u64) -> Result<u64> {
        let folder = plan.scratch()?;
        let data = folder.path().join("data");
        copy(&Start { binary: &plan.kanat, folder: self.folder.path(), database: None }.data(), &data)?;
        let counts = folder.path().join("counts");
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--separate-threads=yes", "--quiet"]);
        valgrind.arg(format!("--callgrind-out-file={}", counts.display()));
        valgrind.arg(std::env::current_exe()?).args(["--kanat", "-", "work", "--work", work.name()]);
        valgrind
            .args(["--times", &times.to_string(), "--webhook", &self.webhook, "--key", &self.key, "--data"])
            .arg(data);
        let output = valgrind.output().await.context("cannot run valgrind: apt-get install valgrind")?;
        if !output.status.success() {
            bail!("{} failed: {}", work.name(), String::from_utf8_lossy(&output.stderr));
        }
        total(&folder.path().join("counts-01")).or_else(|_| total(&counts))
    }
}

fn total(file: &PathBuf) -> Result<u64> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")));
    line.context("callgrind counted nothing")?.trim().parse().context("callgrind counted no number")
}
