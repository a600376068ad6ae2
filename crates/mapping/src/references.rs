//! What an expression names outside itself, with its place, so that a checker can say what is missing.

/// The names that an expression, template or mapping uses, each as often as it stands there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    pub tables: Vec<Reference>,
    pub adapters: Vec<Reference>,
    /// Each root once, in order of first use. `trigger.body` and `trigger.payload` count as `source`.
    pub roots: Vec<Root>,
    pub steps: Vec<Reference>,
    /// The fields of the connector instance that paths from `instance` begin with.
    pub instance_fields: Vec<Reference>,
}

/// A name and where it stands, in bytes from the start of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub name: String,
    pub offset: usize,
}

/// Where a path begins.
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
    pub const ALL: [Self; 7] =
        [Self::Source, Self::Trigger, Self::Steps, Self::Target, Self::Instance, Self::Item, Self::State];

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

    pub(crate) fn extend(&mut self, other: &Self) {
        self.tables.extend_from_slice(&other.tables);
        self.adapters.extend_from_slice(&other.adapters);
        self.steps.extend_from_slice(&other.steps);
        self.instance_fields.extend_from_slice(&other.instance_fields);
        for root in &other.roots {
            self.root(*root);
        }
    }
}
