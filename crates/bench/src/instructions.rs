//! Instructions of the hot paths, counted by valgrind's callgrind, beside committed figures: they
//! repeat where times do not, so that a slowdown shows in the commit that brings it.
//!
//! Each work is done a number of times in a process of its own, after a warm-up. The thread that
//! serves and the writer thread of the message log are counted separately. A debug build, which
//! exists after every test, shows where our code does more; only an optimised build shows the cost
//! for users.

pub mod work;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tokio::process::Command;

use crate::api;
use crate::figures::plain;
use crate::fill::copy;
use crate::plan::Plan;
use work::Work;

/// For each build: instructions of one mapping, webhook and call, and those of the log's writer
/// thread for it.
type Figures = BTreeMap<String, BTreeMap<String, u64>>;

/// Share above the committed figure that is a slowdown.
const TOLERANCE: f64 = 0.05;

/// Share above the committed figure that is a slowdown of the writer thread. Its groups depend on
/// when it turns to its queue.
const WRITER_TOLERANCE: f64 = 0.15;

/// End of the names of the writer's figures.
const WRITER_SUFFIX: &str = ", log writer";

/// Number of times that a figure is counted at most.
const MAX_COUNTS: usize = 4;

/// Instructions of a process.
#[derive(Clone, Copy, Default)]
struct Counts {
    /// Instructions of the thread that serves, within the counted function.
    serving: u64,
    /// Instructions of the log's writer thread, from its start to its end.
    writer: u64,
}

/// Data that the works are done on.
struct Seed {
    folder: tempfile::TempDir,
    webhook: String,
    key: String,
}

/// Checks against the figures in `file`, or writes them there.
pub async fn check(plan: &Plan, file: &Path, write: bool) -> Result<()> {
    let mut committed = read(file)?;
    let build = if cfg!(debug_assertions) {
        "debug"
    } else {
        "dist"
    };
    let known = committed.get(build).cloned().unwrap_or_default();
    let seed = Seed::make(plan).await?;
    let mut counted = BTreeMap::new();
    for work in Work::ALL {
        let figures = seed.least_figures(plan, work, &known).await?;
        for (name, count) in &figures {
            let change = change(&known, name, *count);
            let change = change.map_or("without a committed figure".to_owned(), |change| {
                format!("{:+.2} %", change * 100.0)
            });
            let count = plain(*count as f64);
            println!("{name:<18} {count:>12} instructions, {change}");
        }
        counted.extend(figures);
    }
    if write {
        committed.insert(build.to_owned(), counted);
        let text = serde_json::to_string_pretty(&committed)?;
        return std::fs::write(file, text + "\n")
            .with_context(|| format!("cannot write {}", file.display()));
    }
    let slower: Vec<&str> = counted
        .iter()
        .filter(|(name, count)| {
            change(&known, name, **count).is_none_or(|change| change > tolerance(name))
        })
        .map(|(name, _)| name.as_str())
        .collect();
    ensure!(
        slower.is_empty(),
        "{}: more than {} % ({} % for the writer) above {}, or not in it: make it faster or, if \
         it has to be, write the new figures with --write",
        slower.join(", "),
        TOLERANCE * 100.0,
        WRITER_TOLERANCE * 100.0,
        file.display(),
    );
    Ok(())
}

/// Returns a count's distance from the committed figure, as a share of it.
fn change(known: &BTreeMap<String, u64>, name: &str, count: u64) -> Option<f64> {
    let known = known.get(name)?;
    Some(count as f64 / *known as f64 - 1.0)
}

fn tolerance(name: &str) -> f64 {
    if name.ends_with(WRITER_SUFFIX) {
        WRITER_TOLERANCE
    } else {
        TOLERANCE
    }
}

fn read(file: &Path) -> Result<Figures> {
    match std::fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text)
            .with_context(|| format!("{} is not readable", file.display())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Figures::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", file.display())),
    }
}

impl Seed {
    /// Makes a published API, and a flow that is paused, so that nothing but the path into the log
    /// is counted.
    async fn make(plan: &Plan) -> Result<Self> {
        let folder = plan.scratch()?;
        let kanat = plan.start(folder.path()).run().await?;
        let flow = kanat.set_up(9).await?;
        kanat
            .post(&format!("/api/v1/flows/{}/pause", flow.id), json!({}))
            .await?;
        let key = api::set_up(&kanat).await?;
        kanat.server.stop().await?;
        Ok(Self {
            folder,
            webhook: flow.path,
            key,
        })
    }

    /// Counts the figures of a work again while one is above its tolerance, and returns the least:
    /// other load of the machine makes smaller groups, which cost more, and nothing makes a count
    /// too small.
    async fn least_figures(
        &self,
        plan: &Plan,
        work: Work,
        known: &BTreeMap<String, u64>,
    ) -> Result<BTreeMap<String, u64>> {
        let mut least = self.figures(plan, work).await?;
        for _ in 1..MAX_COUNTS {
            let is_slower = |(name, count): (&String, &u64)| {
                change(known, name, *count).is_some_and(|change| change > tolerance(name))
            };
            if !least.iter().any(is_slower) {
                break;
            }
            for (name, count) in self.figures(plan, work).await? {
                least
                    .entry(name)
                    .and_modify(|least| *least = count.min(*least));
            }
        }
        Ok(least)
    }

    /// Counts each figure of a work.
    async fn figures(&self, plan: &Plan, work: Work) -> Result<BTreeMap<String, u64>> {
        let times = work.times();
        let all = self.count(plan, work, times).await?;
        let counted = work::COUNTED;
        ensure!(all.serving > 0, "callgrind did not find {counted}");
        let mut figures = BTreeMap::from([(work.name().to_owned(), all.serving / times)]);
        if work.is_logged() {
            // Both counts contain the writer's start, its end and the warm-up.
            let none = self.count(plan, work, 0).await?;
            ensure!(none.writer > 0, "callgrind did not find {}", work::WRITER);
            let own = all.writer.saturating_sub(none.writer) / times;
            figures.insert(format!("{}{WRITER_SUFFIX}", work.name()), own);
        }
        Ok(figures)
    }

    async fn count(&self, plan: &Plan, work: Work, times: u64) -> Result<Counts> {
        let folder = plan.scratch()?;
        let data = folder.path().join("data");
        copy(&plan.start(self.folder.path()).data(), &data)?;
        let counts = folder.path().join("counts");
        std::fs::create_dir(&counts)?;
        let toggle = |function| format!("--toggle-collect={function}");
        let file = counts.join("out");
        let mut valgrind = Command::new("valgrind");
        valgrind
            .args(["--tool=callgrind", "--quiet", "--separate-threads=yes"])
            .args([toggle(work::COUNTED), toggle(work::WRITER)])
            .arg(format!("--callgrind-out-file={}", file.display()))
            .arg(std::env::current_exe()?)
            .args(["--kanat", "-", "work", "--work", work.name()])
            .args(["--times", &times.to_string()])
            .args(["--webhook", &self.webhook, "--key", &self.key])
            .arg("--data")
            .arg(data);
        let output = valgrind
            .output()
            .await
            .context("cannot run valgrind: apt-get install valgrind")?;
        if !output.status.success() {
            bail!(
                "{} failed: {}",
                work.name(),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Counts::of(&counts)
    }
}

impl Counts {
    /// Reads the file of each thread in `folder`.
    fn of(folder: &Path) -> Result<Self> {
        let mut counts = Self::default();
        for file in std::fs::read_dir(folder)? {
            let text = std::fs::read_to_string(file?.path())
                .context("cannot read what callgrind counted")?;
            if text.contains(work::COUNTED) {
                counts.serving += total(&text)?;
            } else if text.contains(work::WRITER) {
                counts.writer += total(&text)?;
            }
        }
        Ok(counts)
    }
}

fn total(text: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| {
        line.strip_prefix("totals: ")
            .or_else(|| line.strip_prefix("summary: "))
    });
    line.context("callgrind counted nothing")?
        .trim()
        .parse()
        .context("callgrind counted no number")
}
