//! The names that an expression uses from outside itself, with their places, so that a checker can
//! report the ones that do not exist.

use crate::ParseError;
use crate::language::RootEntry;

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
    /// Names of the environment's variables.
    pub variables: Vec<Reference>,
    /// Uses of `item` and `index` that lists around the expression give.
    pub items: Vec<ItemReference>,
    /// Parts that are valid and hardly do what they seem to do: comparisons with one answer for
    /// every message, because the types of their sides differ, and texts among the arguments that
    /// would be expressions elsewhere.
    pub warnings: Vec<ParseError>,
}

/// Value of the connector instance, with its offset in bytes from the start of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceValue {
    /// The names that lead to it, up to the first index; none for the instance as a whole.
    pub names: Vec<String>,
    pub offset: usize,
    pub form: ValueForm,
}

/// Use of `item` or `index`, with its offset in bytes from the start of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemReference {
    /// `Item` or `Index`.
    pub root: Root,
    /// Number of lists that have to be around the expression, at least one.
    pub lists: usize,
    pub offset: usize,
}

/// Form that a value has in the result of its expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueForm {
    /// The result has it whole, as it is, encoded or hashed.
    Whole,
    /// The result depends on it: on a part of it, a comparison with it, or a calculation.
    Computed,
    /// The result is a signature that it makes, and does not show it.
    Signing,
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
    Index,
    State,
    Env,
    Response,
}

impl Root {
    pub const ALL: [Self; 10] = [
        Self::Source,
        Self::Trigger,
        Self::Steps,
        Self::Target,
        Self::Instance,
        Self::Item,
        Self::Index,
        Self::State,
        Self::Env,
        Self::Response,
    ];

    pub fn as_str(self) -> &'static str {
        self.entry().name
    }

    /// Returns its entry in the table of the language.
    pub(crate) fn entry(self) -> RootEntry {
        let [name, text, known_in] = match self {
            Self::Source => [
                "source",
                "Payload of the message",
                "wherever a message runs",
            ],
            Self::Trigger => [
                "trigger",
                "Headers, query, method and path parameters that came with the payload",
                "wherever a message runs",
            ],
            Self::Steps => [
                "steps",
                "Outputs and statuses of earlier steps, by their names",
                "after the first step",
            ],
            Self::Target => [
                "target",
                "The target's answer under `response`",
                "in response mappings",
            ],
            Self::Response => [
                "response",
                "Status, headers and body of an answer",
                "in success_when and in response mappings",
            ],
            Self::Instance => [
                "instance",
                "Fields of the connector instance in whose place the expression stands",
                "in templates of source, steps and target, and in the mapping",
            ],
            Self::Item => [
                "item",
                "Item of the innermost list; `outer.item` is that of the list around",
                "in each, and in arguments of list transforms",
            ],
            Self::Index => [
                "index",
                "Place of the item in its list, from 0",
                "in each, and in arguments of list transforms",
            ],
            Self::State => [
                "state",
                "Cursor and time of the last success of a poll",
                "in source.poll",
            ],
            Self::Env => [
                "env",
                "Variables of the environment, by their names",
                "wherever a message runs",
            ],
        };
        RootEntry {
            name,
            text,
            known_in,
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

    /// Sets the form of the values of the instance, but of those that sign. These are the
    /// references of one expression.
    pub(crate) fn note_form(&mut self, form: ValueForm) {
        let values = self.instance_values.iter_mut();
        values
            .filter(|value| value.form != ValueForm::Signing)
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
        self.variables.extend_from_slice(&other.variables);
        self.items.extend_from_slice(&other.items);
        self.warnings.extend_from_slice(&other.warnings);
        for root in &other.roots {
            self.root(*root);
        }
    }
}
