//! A former build beside the present one: short runs of both in turn, so that the other load of the
//! machine falls on both.
//!
//! W1 is a webhook that is stored, mapped and delivered; W2 is a call of a published API that calls
//! nobody.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::figures::median;
use crate::kanat::Start;
use crate::plan::Plan;
use crate::subject::{Run, Subject};

/// Builds to compare, and the bound that decides.
#[derive(Clone, clap::Args)]
pub struct Task {
    /// Binary of the former build.
    former: PathBuf,
    /// Number of pairs of runs of each work.
    #[arg(long, default_value_t = 10)]
    pairs: usize,
    /// Highest median of the present build's CPU time over that of the former build.
    #[arg(long, default_value_t = 1.05)]
    at_most: f64,
}

#[derive(Clone, Copy)]
enum Work {
    Webhook,
    Call,
}

/// Runs the pairs and prints the ratios of each work.
///
/// # Errors
/// A run fails, or a median ratio of CPU time is above the bound.
pub async fn measure(plan: &Plan, task: &Task) -> Result<()> {
    let mut slower = Vec::new();
    for work in [Work::Webhook, Work::Call] {
        let name = work.name();
        let mut rates = Vec::new();
        let mut cpu = Vec::new();
        for pair in 1..=task.pairs.max(1) {
            // Each build goes first as often as the other.
            let (former, present) = if pair % 2 == 1 {
                let former = run(plan, &task.former, work).await?;
                (former, run(plan, &plan.kanat, work).await?)
            } else {
                let present = run(plan, &plan.kanat, work).await?;
                (run(plan, &task.former, work).await?, present)
            };
            rates.push(present.per_second / former.per_second);
            cpu.push(present.cpu_us / former.cpu_us);
            eprintln!(
                "{name}, pair {pair} of {}: rate {:.0} and {:.0} a second, CPU {:.1} and {:.1} us",
                task.pairs, former.per_second, present.per_second, former.cpu_us, present.cpu_us
            );
        }
        println!("{name}: rate {}, CPU {}", spread(&rates), spread(&cpu));
        if median(cpu) > task.at_most {
            slower.push(name);
        }
    }
    let bound = task.at_most;
    let names = slower.join(", ");
    ensure!(
        slower.is_empty(),
        "{names}: the median ratio of CPU time is above {bound}"
    );
    Ok(())
}

async fn run(plan: &Plan, binary: &Path, work: Work) -> Result<Run> {
    let folder = plan.scratch()?;
    let start = Start {
        binary,
        ..plan.start(folder.path())
    };
    let subject = match work {
        Work::Webhook => Subject::kanat(&start).await?,
        Work::Call => Subject::published(&start).await?,
    };
    let run = subject.closed(plan.sizes.connections, plan.length).await?;
    subject.server.stop().await?;
    Ok(run)
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Webhook => "W1",
            Self::Call => "W2",
        }
    }
}

/// Writes the median, with the least and the greatest.
fn spread(ratios: &[f64]) -> String {
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let median = median(ratios.iter().copied());
    format!("{median:.3} ({least:.3} to {greatest:.3})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_median_least_and_greatest() {
        assert_eq!(spread(&[1.1, 0.9, 1.0]), "1.000 (0.900 to 1.100)");
    }
}
