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

/// Instructions of one mapping, webhook and call, and those of the log's writer thread for it.
type Figures = BTreeMap<String, u64>;

/// Share above the committed figure that is a slowdown.
const TOLERANCE: f64 = 0.05;

/// Share above the committed figure that is a slowdown of the writer thread. Its groups depend on
/// when it turns to its queue.
const WRITER_TOLERANCE: f64 = 0.15;

/// End of the names of the writer's figures.
const WRITER_SUFFIX: &str = ", log writer";

/// Number of times that a figure is counted at most.
const MAX_COUNTS: usize = 4;

/// Data that the works are done on.
struct Seed {
    folder: tempfile::TempDir,
    webhook: String,
    key: String,
}

/// Prints the figures, and checks them against those of the build in `file`.
///
/// # Errors
/// A count is more than the tolerance above its committed figure, or has none.
pub async fn check(plan: &Plan, file: &Path) -> Result<()> {
    let build = if cfg!(debug_assertions) {
        "debug"
    } else {
        "dist"
    };
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read {}", file.display()))?;
    let mut committed: BTreeMap<String, Figures> = serde_json::from_str(&text)?;
    let known = committed.remove(build).unwrap_or_default();
    let seed = Seed::make(plan).await?;
    let mut counted = Figures::new();
    for work in Work::ALL {
        let figures = seed.least_figures(plan, work, &known).await?;
        for (name, count) in &figures {
            let change = known.get(name).map_or("not committed".to_owned(), |known| {
                format!("{:+.2} %", (*count as f64 / *known as f64 - 1.0) * 100.0)
            });
            let count = plain(*count as f64);
            println!("{name:<18} {count:>12} instructions, {change}");
        }
        counted.extend(figures);
    }
    let slower = slower(&counted, &known);
    if slower.is_empty() {
        return Ok(());
    }
    println!("{build}: {}", serde_json::to_string_pretty(&counted)?);
    bail!(
        "{}: more than {} % ({} % for the writer) above {}, or not in it: make it faster or, if \
         it has to be, commit the new figures",
        slower.join(", "),
        TOLERANCE * 100.0,
        WRITER_TOLERANCE * 100.0,
        file.display(),
    )
}

/// Returns the names of the counts that are above their tolerance, or unknown.
fn slower<'a>(counted: &'a Figures, known: &Figures) -> Vec<&'a str> {
    let counted = counted.iter();
    let slower = counted.filter(|(name, count)| {
        let tolerance = if name.ends_with(WRITER_SUFFIX) {
            WRITER_TOLERANCE
        } else {
            TOLERANCE
        };
        let bound = known
            .get(*name)
            .map(|known| *known as f64 * (1.0 + tolerance));
        bound.is_none_or(|bound| **count as f64 > bound)
    });
    slower.map(|(name, _)| name.as_str()).collect()
}

impl Seed {
    /// Makes a published API, and a flow that is paused, so that nothing but the path into the log
    /// is counted.
    async fn make(plan: &Plan) -> Result<Self> {
        let folder = plan.scratch()?;
        let kanat = plan.start(folder.path()).run().await?;
        let flow = kanat.set_up(9).await?;
        let pause = format!("/api/v1/flows/{}/pause", flow.id);
        kanat.post(&pause, json!({})).await?;
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
    async fn least_figures(&self, plan: &Plan, work: Work, known: &Figures) -> Result<Figures> {
        let mut least = self.figures(plan, work).await?;
        for _ in 1..MAX_COUNTS {
            if slower(&least, known).is_empty() {
                break;
            }
            for (name, count) in self.figures(plan, work).await? {
                let least = least.entry(name).or_insert(count);
                *least = count.min(*least);
            }
        }
        Ok(least)
    }

    /// Counts each figure of a work.
    async fn figures(&self, plan: &Plan, work: Work) -> Result<Figures> {
        let times = work.times();
        let (serving, writer) = self.count(plan, work, times).await?;
        ensure!(serving > 0, "callgrind did not find {}", work::COUNTED);
        let mut figures = Figures::from([(work.name().to_owned(), serving / times)]);
        if work.is_logged() {
            // Both counts contain the writer's start, its end and the warm-up.
            let (_, idle_writer) = self.count(plan, work, 0).await?;
            ensure!(idle_writer > 0, "callgrind did not find {}", work::WRITER);
            let name = format!("{}{WRITER_SUFFIX}", work.name());
            figures.insert(name, writer.saturating_sub(idle_writer) / times);
        }
        Ok(figures)
    }

    /// Counts the instructions of the thread that serves, within the counted function, and those
    /// of the log's writer thread, from its start to its end.
    async fn count(&self, plan: &Plan, work: Work, times: u64) -> Result<(u64, u64)> {
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
        let output = valgrind.output().await;
        let output = output.context("cannot run valgrind: apt-get install valgrind")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{} failed: {errors}", work.name());
        let mut serving = 0;
        let mut writer = 0;
        for thread in std::fs::read_dir(&counts)? {
            let text = std::fs::read_to_string(thread?.path())?;
            if text.contains(work::COUNTED) {
                serving += total(&text)?;
            } else if text.contains(work::WRITER) {
                writer += total(&text)?;
            }
        }
        Ok((serving, writer))
    }
}

/// Reads the total of one thread.
fn total(text: &str) -> Result<u64> {
    let count = |line: &str| {
        let count = line.strip_prefix("totals: ");
        count
            .or_else(|| line.strip_prefix("summary: "))?
            .trim()
            .parse()
            .ok()
    };
    text.lines()
        .find_map(count)
        .context("callgrind counted nothing")
}
