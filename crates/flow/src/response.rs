//! Response mapping of a published API: a body, a status, headers. It comes as JSON, stands beside
//! the flow and sees what it has run: the payload, its steps, the target's answer.

use kanat_proto::plan::v1 as plan;

use crate::definition::{Definition, LocatedName, ReferenceKind};
use crate::diagnostic::Diagnostic;
use crate::names::{self, Names};

/// The JSON texts of an answer; what is left out is as the flow gives it.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResponseTexts<'t> {
    /// An object from fields to expressions, or a text: an expression or a template.
    pub mapping: Option<&'t str>,
    /// A number, or a text: an expression that gives one.
    pub status: Option<&'t str>,
    /// An object from header names to texts that may be templates.
    pub headers: Option<&'t str>,
}

/// Parts of a flow that a response can read.
#[derive(Debug, Clone, Default)]
pub struct ResponseScope {
    /// Names of the flow's steps.
    pub steps: Vec<String>,
    /// True if the flow has a target.
    pub has_target: bool,
}

impl From<&Definition> for ResponseScope {
    fn from(definition: &Definition) -> Self {
        Self {
            steps: definition
                .steps
                .iter()
                .map(|step| step.name.clone())
                .collect(),
            has_target: definition.target.is_some(),
        }
    }
}

/// An answer that is right in itself.
#[derive(Debug, Clone)]
pub struct Response {
    pub(crate) plan: plan::ResponseMapping,
    pub(crate) references: Vec<(ReferenceKind, LocatedName)>,
    pub(crate) body_is_always_string: bool,
}

impl Response {
    /// As nodes get it; none when the flow's own output is the answer.
    pub fn to_plan(&self) -> Option<plan::ResponseMapping> {
        let plan::ResponseMapping {
            body,
            status,
            headers,
            variables: _,
        } = &self.plan;
        let says_something = body.is_some() || !status.is_empty() || !headers.is_empty();
        says_something.then(|| self.plan.clone())
    }

    /// Returns whether its body is a string for every call: a constant text, or a template of more
    /// than one part.
    pub fn body_is_always_string(&self) -> bool {
        self.body_is_always_string
    }

    /// The names of the lookup tables that it reads.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.named(ReferenceKind::Table)
    }

    /// The names of the adapters that it calls.
    pub fn adapters(&self) -> impl Iterator<Item = &str> {
        self.named(ReferenceKind::Adapter)
    }

    /// The names of the variables of the environment that it reads.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.named(ReferenceKind::Variable)
    }

    /// Returns the names that the environment lacks.
    pub fn check_names(&self, names: &dyn Names) -> Vec<Diagnostic> {
        self.references
            .iter()
            .filter_map(|(kind, named)| names::reference(*kind, named, names))
            .collect()
    }

    fn named(&self, wanted: ReferenceKind) -> impl Iterator<Item = &str> {
        self.references
            .iter()
            .filter(move |(kind, _)| *kind == wanted)
            .map(|(_, named)| named.name.as_str())
    }
}
