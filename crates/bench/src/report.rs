//! Figures of the measurements beside their goals, as a table in Markdown.

use crate::figures::{median, plain};
use crate::subject::Run;

/// Goals of `docs/benchmarks.md`, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Measure {
    P1,
    P2,
    P3,
    P4,
    P5,
    P6,
    P7,
    P8,
    P9,
    P10,
    P11,
    P12,
}

/// Bound that a figure is held to.
#[derive(Clone, Copy)]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

/// One figure with its goal.
pub struct Finding {
    measure: Measure,
    what: String,
    goal: Goal,
    figure: f64,
    /// Unit of goal and figure; empty for a ratio.
    unit: &'static str,
    /// Figures that it was made of.
    details: String,
    is_reached: bool,
}

/// A figure of Kanat and of a bare server, both medians of all rounds.
pub struct Ratio {
    pub kanat: f64,
    pub bare: f64,
}

/// Results of all measures.
#[derive(Default)]
pub struct Report(Vec<Finding>);

impl Finding {
    pub fn new(
        measure: Measure,
        what: impl Into<String>,
        goal: Goal,
        figure: f64,
        unit: &'static str,
        details: String,
    ) -> Self {
        let is_reached = match goal {
            Goal::AtLeast(bound) => figure >= bound,
            Goal::AtMost(bound) => figure <= bound,
        };
        Self {
            measure,
            what: what.into(),
            goal,
            figure,
            unit,
            details,
            is_reached,
        }
    }

    /// Writes its line of the table.
    fn line(&self) -> String {
        let text = |figure| format!("{} {}", plain(figure), self.unit).trim().to_owned();
        let goal = match self.goal {
            Goal::AtLeast(bound) => format!("at least {}", text(bound)),
            Goal::AtMost(bound) => format!("at most {}", text(bound)),
        };
        let reached = if self.is_reached { "yes" } else { "**no**" };
        format!(
            "| {:?} | {} | {goal} | {} | {reached} | {} |",
            self.measure,
            self.what,
            text(self.figure),
            self.details
        )
    }
}

impl Ratio {
    pub fn of(kanat: &[Run], bare: &[Run], figure: fn(&Run) -> f64) -> Self {
        Self {
            kanat: median(kanat.iter().map(figure)),
            bare: median(bare.iter().map(figure)),
        }
    }

    pub fn value(&self) -> f64 {
        self.kanat / self.bare
    }

    /// Writes both figures with their unit.
    pub fn describe(&self, unit: &str) -> String {
        let kanat = plain(self.kanat);
        let bare = plain(self.bare);
        format!("kanat {kanat} {unit}, bare {bare} {unit}")
    }
}

impl Report {
    /// Adds a figure, and shows it at once.
    pub fn add(&mut self, finding: Finding) {
        eprintln!("{}", finding.line());
        self.0.push(finding);
    }

    /// Writes the table in the order of the goals.
    pub fn text(mut self) -> String {
        self.0.sort_by_key(|finding| finding.measure);
        let lines = self.0.iter().map(Finding::line);
        let table = "| | measure | goal | measured | reached | figures |\n\
                     | --- | --- | --- | --- | --- | --- |";
        std::iter::once(table.to_owned())
            .chain(lines)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(goal: Goal, figure: f64) -> Finding {
        let details = "bare 10 MiB".to_owned();
        Finding::new(Measure::P6, "memory", goal, figure, "MiB", details)
    }

    #[test]
    fn a_goal_is_reached_from_its_own_side() {
        assert!(finding(Goal::AtLeast(0.5), 0.5).is_reached);
        assert!(!finding(Goal::AtLeast(0.5), 0.49).is_reached);
        assert!(finding(Goal::AtMost(0.0), 0.0).is_reached);
        assert!(!finding(Goal::AtMost(0.0), 1.0).is_reached);
        assert!(!finding(Goal::AtMost(1.0), f64::NAN).is_reached);
    }

    #[test]
    fn a_missed_goal_stands_out() {
        assert_eq!(
            finding(Goal::AtMost(60.0), 70.0).line(),
            "| P6 | memory | at most 60.0 MiB | 70.0 MiB | **no** | bare 10 MiB |"
        );
    }
}
