//! Which steps' outputs the parts of a program read.

use kanat_mapping::{Expression, References, Template};
use kanat_model::message::Failure;

use crate::{Program, Step};

impl Program {
    /// Returns the names of the steps whose outputs the mapping reads.
    pub fn mapping_reads(&self) -> Vec<String> {
        self.parts()
            .mapping
            .iter()
            .flat_map(|mapping| names(mapping.references()))
            .collect()
    }

    /// Returns the names of the steps whose outputs the target's endpoint and headers read.
    pub fn target_reads(&self) -> Vec<String> {
        let templates = self.parts().target.iter().flat_map(|target| {
            let headers = target.headers.iter().map(|(_, template)| template);
            headers.chain([&target.endpoint])
        });
        templates
            .flat_map(|template| names(template.references()))
            .collect()
    }
}

impl Step {
    /// Returns the names of the steps whose outputs its condition and its params read.
    pub fn reads(&self) -> Vec<String> {
        let when = self.when.iter().flat_map(|when| names(when.references()));
        when.chain(names(self.params.references())).collect()
    }

    /// Returns the names of the steps whose outputs its `success_when` reads.
    pub fn success_reads(&self) -> Vec<String> {
        self.success_when
            .iter()
            .flat_map(|success_when| names(success_when.references()))
            .collect()
    }
}

/// Returns the names of the steps whose outputs the expression of a failure reads.
pub fn failure_reads(failure: &Failure) -> Vec<String> {
    let Some(text) = &failure.expression else {
        return Vec::new();
    };
    if let Ok(expression) = Expression::parse(text) {
        return names(expression.references()).collect();
    }
    Template::parse(text)
        .map(|template| names(template.references()).collect())
        .unwrap_or_default()
}

fn names(references: &References) -> impl Iterator<Item = String> + '_ {
    references.steps.iter().map(|step| step.name.clone())
}
