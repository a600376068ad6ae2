//! The names that an expression uses from outside itself, with their places, so that a checker can
//! report the ones that do not exist.

use crate::ParseError;

/// Names that an expression, template or mapping uses, each as often as it occurs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    pub tables: Vec<Reference>,
    pub adapters: Vec<Reference>,
    /// Each root once, in order of first use. `trigger.body` and `trigger.payload` count as
    /// `source`.
    pub roots: Vec<Root>,
    pub steps: Vec<Reference>,
    /// The values of the connector instance that paths from `instance` lead to.
    pub instance_values: Vec<InstanceValue>,
    /// The names that paths from `trigger` begin with, up to the first index; none for the trigger
    /// as a whole.
    pub trigger_values: Vec<Vec<String>>,
    /// Faults that a run takes and a check of a definition refuses: members that a root does not
    /// have, such as `trigger.headrs`, which are undefined in a run, and letters in the format of a
    /// date that are no token.
    pub definition_faults: Vec<ParseError>,
    /// Comparisons with one answer for every message, because the types of their sides differ.
    pub constant_comparisons: Vec<ParseError>,
}

/// Value of the connector instance, with its offset in bytes from the start of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceValue {
    /// The names that lead to it, up to the first index; none for the instance as a whole.
    pub names: Vec<String>,
    pub offset: usize,
    pub form: ValueForm,
}

/// Form that a value has in the result of its expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueForm {
    /// The result has it whole, as it is, encoded or hashed.
    Whole,
    /// The result depends on it: on a part of it, a comparison with it, or a calculation.
    Computed,
}

/// Name, with its offset in bytes from the start of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub name: String,
    pub offset: usize,
}

/// Document in which a path begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Root {
    Source,
    Trigger,
    Steps,
    Target,
    Instance,
    Item,
    State,
}

impl Root {
    pub const ALL: [Self; 7] = [
        Self::Source,
        Self::Trigger,
        Self::Steps,
        Self::Target,
        Self::Instance,
        Self::Item,
        Self::State,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Trigger => "trigger",
            Self::Steps => "steps",
            Self::Target => "target",
            Self::Instance => "instance",
            Self::Item => "item",
            Self::State => "state",
        }
    }

    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|root| root.as_str() == word)
    }
}

impl References {
    pub(crate) fn root(&mut self, root: Root) {
        if !self.roots.contains(&root) {
            self.roots.push(root);
        }
    }

    /// Sets the form of all values of the instance. These are the references of one expression.
    pub(crate) fn note_form(&mut self, form: ValueForm) {
        self.instance_values
            .iter_mut()
            .for_each(|value| value.form = form);
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        self.tables.extend_from_slice(&other.tables);
        self.adapters.extend_from_slice(&other.adapters);
        self.steps.extend_from_slice(&other.steps);
        self.instance_values
            .extend_from_slice(&other.instance_values);
        self.trigger_values.extend_from_slice(&other.trigger_values);
        self.definition_faults
            .extend_from_slice(&other.definition_faults);
        self.constant_comparisons
            .extend_from_slice(&other.constant_comparisons);
        for root in &other.roots {
            self.root(*root);
        }
    }
}
