//! What a measurement found, beside what was to be reached.

use crate::figures::plain;

/// What is to be reached.
#[derive(Clone, Copy)]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

/// What a measurement found.
#[derive(Default)]
pub struct Found {
    pub findings: Vec<Finding>,
    /// What the figures were made of, where more is worth telling.
    pub runs: Vec<Row>,
}

impl From<Vec<Finding>> for Found {
    fn from(findings: Vec<Finding>) -> Self {
        Self {
            findings,
            runs: Vec::new(),
        }
    }
}

/// What a server did under a load: medians of all rounds.
pub struct Row {
    pub server: &'static str,
    pub load: String,
    pub acked_per_second: f64,
    pub delivered_per_second: f64,
    /// 50 and 99 %, in milliseconds: from sending, or from when it was due, to the answer.
    pub ack_ms: [f64; 2],
    /// The same, to the target.
    pub delivery_ms: [f64; 2],
    /// Of the server, its database not counted.
    pub cpu_seconds_per_10_000: f64,
    pub peak_memory_mib: f64,
    pub messages_per_commit: f64,
}

/// One figure with its goal.
pub struct Finding {
    /// As in `P1`.
    pub measure: &'static str,
    pub what: String,
    pub goal: Goal,
    pub figure: f64,
    /// What the figure counts; empty for a ratio.
    pub unit: &'static str,
    /// The figures that it was made of.
    pub of: String,
    /// Another goal of the same measure was reached, which is enough.
    pub otherwise: bool,
}

impl Finding {
    pub fn new(
        measure: &'static str,
        what: impl Into<String>,
        goal: Goal,
        figure: f64,
        of: String,
    ) -> Self {
        Self {
            measure,
            what: what.into(),
            goal,
            figure,
            unit: "",
            of,
            otherwise: false,
        }
    }

    /// Of a figure that is no ratio.
    pub fn in_units(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    pub fn or(self, otherwise: bool) -> Self {
        Self { otherwise, ..self }
    }

    pub fn reached(&self) -> bool {
        self.otherwise || self.share() >= 1.0
    }

    /// Of the goal: 1 where it is just reached, more where it is exceeded. Nothing is no share of
    /// anything.
    pub fn share(&self) -> f64 {
        match self.goal {
            Goal::AtLeast(goal) => self.figure / goal,
            Goal::AtMost(goal) if self.figure <= goal => {
                (goal / self.figure.max(goal / 10.0)).max(1.0)
            }
            Goal::AtMost(goal) => goal / self.figure,
        }
    }

    pub fn goal_text(&self) -> String {
        match self.goal {
            Goal::AtLeast(goal) => self.text("at least", goal),
            Goal::AtMost(goal) => self.text("at most", goal),
        }
    }

    pub fn figure_text(&self) -> String {
        self.text("", self.figure)
    }

    fn text(&self, before: &str, figure: f64) -> String {
        format!("{before} {} {}", plain(figure), self.unit)
            .trim()
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(goal: Goal, figure: f64) -> Finding {
        Finding::new("P1", "rate", goal, figure, String::new())
    }

    #[test]
    fn a_goal_is_reached_from_its_own_side() {
        assert!(
            finding(Goal::AtLeast(0.5), 0.5).reached()
                && !finding(Goal::AtLeast(0.5), 0.49).reached()
        );
        assert!(
            finding(Goal::AtMost(2.0), 2.0).reached() && !finding(Goal::AtMost(2.0), 2.1).reached()
        );
        assert!(
            finding(Goal::AtMost(0.0), 0.0).reached() && !finding(Goal::AtMost(0.0), 1.0).reached()
        );
        assert!(
            !finding(Goal::AtLeast(1.0), f64::NAN).reached()
                && !finding(Goal::AtMost(1.0), f64::NAN).reached()
        );
    }

    #[test]
    fn figures_carry_their_unit() {
        let finding = finding(Goal::AtMost(60.0), 61.5).in_units("MiB");
        assert_eq!(finding.goal_text().as_str(), "at most 60.0 MiB");
        assert_eq!(finding.figure_text().as_str(), "61.5 MiB");
    }
}
