//! Values that only a run knows, and the parts of a program that read them.

use kanat_mapping::{Expression, References, Template};
use kanat_model::message::Failure;

use crate::{Program, Step};

/// A value that a test knows only when it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// The output or the status of the step of this name.
    Step(String),
    /// `trigger.api`: the published API that was called, and by whom.
    Api,
}

impl Program {
    /// Returns what the mapping reads.
    pub fn mapping_reads(&self) -> Vec<Read> {
        self.parts()
            .mapping
            .iter()
            .flat_map(|mapping| reads(mapping.references()))
            .collect()
    }

    /// Returns what the condition of the flow reads.
    pub fn condition_reads(&self) -> Vec<Read> {
        let when = self.parts().when.iter();
        when.flat_map(|when| reads(when.references())).collect()
    }

    /// Returns what the target's endpoint and headers read.
    pub fn target_reads(&self) -> Vec<Read> {
        let templates = self.parts().target.iter().flat_map(|target| {
            let headers = target.headers.iter().map(|(_, template)| template);
            headers.chain([&target.endpoint])
        });
        templates
            .flat_map(|template| reads(template.references()))
            .collect()
    }
}

impl Step {
    /// Returns what its condition reads.
    pub fn condition_reads(&self) -> Vec<Read> {
        let when = self.when.iter();
        when.flat_map(|when| reads(when.references())).collect()
    }

    /// Returns what its condition and its params read.
    pub fn reads(&self) -> Vec<Read> {
        let mut found = self.condition_reads();
        found.extend(reads(self.params.references()));
        found
    }

    /// Returns what its `success_when` reads.
    pub fn success_reads(&self) -> Vec<Read> {
        self.success_when
            .iter()
            .flat_map(|success_when| reads(success_when.references()))
            .collect()
    }
}

/// Returns what the expression of a failure reads.
pub fn failure_reads(failure: &Failure) -> Vec<Read> {
    let text = failure.expression.as_deref();
    text.map(expression_reads).unwrap_or_default()
}

/// Returns what an expression or a template reads. A text that is neither reads nothing.
pub fn expression_reads(text: &str) -> Vec<Read> {
    if let Ok(expression) = Expression::parse(text) {
        return reads(expression.references()).collect();
    }
    Template::parse(text)
        .map(|template| reads(template.references()).collect())
        .unwrap_or_default()
}

fn reads(references: &References) -> impl Iterator<Item = Read> + '_ {
    let steps = references.steps.iter();
    let steps = steps.map(|step| Read::Step(step.name.clone()));
    let trigger = references.trigger_values.iter();
    let api = trigger.filter(|names| names.first().is_some_and(|name| name == "api"));
    steps.chain(api.map(|_| Read::Api))
}
