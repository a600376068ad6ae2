//! A former build beside the present one: short runs of both in turn, so that whatever else the
//! machine does falls on both.
//!
//! W1 is a webhook that is stored, mapped and delivered; W2 is a call of a published API that calls
//! nobody.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::api;
use crate::figures::median;
use crate::kanat::Start;
use crate::plan::Plan;
use crate::subject::Subject;

/// What is compared, and the bound that decides.
#[derive(Clone, clap::Args)]
pub struct Task {
    /// Binary of the former build.
    former: std::path::PathBuf,
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

/// Figures of one run.
#[derive(Clone, Copy)]
struct Figures {
    per_second: f64,
    /// CPU time a message or a call, in microseconds.
    cpu_us: f64,
}

/// Ratios of the present build over the former one, a pair each.
#[derive(Default)]
struct Ratios {
    rate: Vec<f64>,
    cpu: Vec<f64>,
}

/// Runs the pairs and prints the ratios of each work.
///
/// # Errors
///
/// A run fails, or a median ratio of CPU time is above the bound.
pub async fn measure(plan: &Plan, task: &Task) -> Result<()> {
    let mut slower = Vec::new();
    for work in [Work::Webhook, Work::Call] {
        let mut ratios = Ratios::default();
        for pair in 1..=task.pairs.max(1) {
            // Each build goes first as often as the other.
            let (former, present) = if pair % 2 == 1 {
                let former = run(plan, &task.former, work).await?;
                (former, run(plan, &plan.kanat, work).await?)
            } else {
                let present = run(plan, &plan.kanat, work).await?;
                (run(plan, &task.former, work).await?, present)
            };
            ratios.add(former, present);
            eprintln!(
                "{}, pair {pair} of {}: rate {:.0} and {:.0} a second, CPU {:.1} and {:.1} us",
                work.name(),
                task.pairs,
                former.per_second,
                present.per_second,
                former.cpu_us,
                present.cpu_us
            );
        }
        println!(
            "{}: rate {}, CPU {}",
            work.name(),
            spread(&ratios.rate),
            spread(&ratios.cpu)
        );
        if median(ratios.cpu.iter().copied()) > task.at_most {
            slower.push(work.name());
        }
    }
    ensure!(
        slower.is_empty(),
        "{}: the median ratio of CPU time is above {}",
        slower.join(", "),
        task.at_most
    );
    Ok(())
}

async fn run(plan: &Plan, binary: &Path, work: Work) -> Result<Figures> {
    let folder = plan.scratch()?;
    let connections = plan.sizes.connections;
    let length = plan.length;
    match work {
        Work::Webhook => {
            let subject = Subject::kanat(
                &Start {
                    binary,
                    folder: folder.path(),
                    database: None,
                },
                None,
            )
            .await?;
            let run = subject.closed(connections, length).await?;
            subject.stop().await?;
            Ok(Figures {
                per_second: run.delivered_per_second,
                cpu_us: run.cpu_us,
            })
        }
        Work::Call => {
            let row = api::ours(binary, folder.path(), connections, length).await?;
            Ok(Figures {
                per_second: row.per_second,
                cpu_us: row.cpu_us,
            })
        }
    }
}

impl Work {
    fn name(self) -> &'static str {
        match self {
            Self::Webhook => "W1",
            Self::Call => "W2",
        }
    }
}

impl Ratios {
    fn add(&mut self, former: Figures, present: Figures) {
        self.rate.push(present.per_second / former.per_second);
        self.cpu.push(present.cpu_us / former.cpu_us);
    }
}

/// The median, with the least and the greatest.
fn spread(ratios: &[f64]) -> String {
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!(
        "{:.3} ({least:.3} to {greatest:.3})",
        median(ratios.iter().copied())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_present_build_over_the_former_one() {
        let mut ratios = Ratios::default();
        let figures = |per_second, cpu_us| Figures { per_second, cpu_us };
        ratios.add(figures(100.0, 50.0), figures(110.0, 40.0));
        ratios.add(figures(100.0, 50.0), figures(90.0, 60.0));
        ratios.add(figures(100.0, 50.0), figures(100.0, 50.0));
        assert_eq!(spread(&ratios.rate), "1.000 (0.900 to 1.100)");
        assert_eq!(spread(&ratios.cpu), "1.000 (0.800 to 1.200)");
    }
}
