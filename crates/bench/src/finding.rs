//! Results of a measurement, beside their goals.

use crate::figures::plain;
use crate::subject::Series;

/// Bound that a figure is held to.
#[derive(Clone, Copy)]
pub enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

/// Results of one group of measures.
#[derive(Default)]
pub struct Report {
    pub findings: Vec<Finding>,
    /// Runs that the figures were made of, where the page shows them.
    pub series: Vec<Series>,
}

impl From<Vec<Finding>> for Report {
    fn from(findings: Vec<Finding>) -> Self {
        Self {
            findings,
            series: Vec::new(),
        }
    }
}

/// One figure with its goal.
pub struct Finding {
    /// Name of the measure, as in `P1`.
    pub measure: &'static str,
    pub what: String,
    pub goal: Goal,
    pub figure: f64,
    /// Unit of the figure; empty for a ratio.
    pub unit: &'static str,
    /// Figures that it was made of.
    pub details: String,
    /// True when an alternative goal of the same measure was reached.
    pub alternative: bool,
}

impl Finding {
    pub fn new(
        measure: &'static str,
        what: impl Into<String>,
        goal: Goal,
        figure: f64,
        details: String,
    ) -> Self {
        Self {
            measure,
            what: what.into(),
            goal,
            figure,
            unit: "",
            details,
            alternative: false,
        }
    }

    /// Gives the figure a unit.
    pub fn in_units(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// Counts the goal as reached when another one is.
    pub fn or(self, alternative: bool) -> Self {
        Self {
            alternative,
            ..self
        }
    }

    pub fn is_reached(&self) -> bool {
        self.alternative
            || match self.goal {
                Goal::AtLeast(goal) => self.figure >= goal,
                Goal::AtMost(goal) => self.figure <= goal,
            }
    }

    pub fn goal_text(&self) -> String {
        match self.goal {
            Goal::AtLeast(goal) => format!("at least {}", self.text(goal)),
            Goal::AtMost(goal) => format!("at most {}", self.text(goal)),
        }
    }

    pub fn figure_text(&self) -> String {
        self.text(self.figure)
    }

    fn text(&self, figure: f64) -> String {
        format!("{} {}", plain(figure), self.unit).trim().to_owned()
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
        assert!(finding(Goal::AtLeast(0.5), 0.5).is_reached());
        assert!(!finding(Goal::AtLeast(0.5), 0.49).is_reached());
        assert!(finding(Goal::AtMost(0.0), 0.0).is_reached());
        assert!(!finding(Goal::AtMost(0.0), 1.0).is_reached());
        assert!(!finding(Goal::AtLeast(1.0), f64::NAN).is_reached());
        assert!(!finding(Goal::AtMost(1.0), f64::NAN).is_reached());
    }

    #[test]
    fn figures_carry_their_unit() {
        let finding = finding(Goal::AtMost(60.0), 61.5).in_units("MiB");
        assert_eq!(finding.goal_text(), "at most 60.0 MiB");
        assert_eq!(finding.figure_text(), "61.5 MiB");
    }
}
