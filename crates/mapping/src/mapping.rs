//! The fields of an object, each from an expression, a template, or a list mapped item by item.

mod build;
mod remarks;
mod write;

use crate::evaluate::CompiledExpression;
use crate::plan::Plan;
use crate::template::Parts;
use crate::{EvaluationError, Expression, References, Scope, Template};

/// Compiled mapping. It finds all that it reads of the payload in one pass, and writes its output
/// as it goes.
#[derive(Debug, Clone)]
pub struct Mapping {
    object: Object,
    references: References,
    /// Paths of the whole mapping, inner mappings included, into the payload. Only the outermost
    /// mapping runs it.
    source: Plan,
    /// Paths of an inner mapping into its item.
    item: Plan,
    /// Depth to which its output nests, without the values.
    depth: usize,
}

/// Source of a field's value.
#[derive(Debug, Clone)]
pub enum FieldValue {
    Expression(Expression),
    Template(Template),
    /// A list is mapped item by item; `item` in the map's expressions is the item, and `index` its
    /// place in the list.
    Each {
        list: Expression,
        /// Items for which it is false are left out.
        filter: Option<Expression>,
        map: Box<Mapping>,
    },
}

/// Two fields that cannot both be in one object, or a name that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Conflict {
    pub field: String,
    pub message: String,
}

#[derive(Debug, Clone, Default)]
struct Object {
    members: Vec<Member>,
    /// Steps of writing its keys, and of removing those of missing members.
    effort: u64,
}

#[derive(Debug, Clone)]
struct Member {
    name: String,
    /// The name as JSON writes it, with the colon.
    key: Vec<u8>,
    value: MemberValue,
}

#[derive(Debug, Clone)]
enum MemberValue {
    /// An object, which is written only if one of its members is.
    Object(Object),
    Expression(CompiledExpression),
    Template(Parts),
    Each(Box<Each>),
}

/// List that is mapped item by item.
#[derive(Debug, Clone)]
struct Each {
    list: CompiledExpression,
    filter: Option<CompiledExpression>,
    map: Mapping,
}

impl Mapping {
    /// Creates a mapping. Names with dots nest; the order of the first mention is kept. Errors are
    /// all the fields that conflict.
    pub fn new(fields: Vec<(String, FieldValue)>) -> Result<Self, Vec<Conflict>> {
        build::build(fields)
    }

    /// Returns the names that its expressions use from outside themselves. Offsets are in the text
    /// of each.
    pub fn references(&self) -> &References {
        &self.references
    }

    /// Returns the fields that compare a text with a number for a message, and those whose template
    /// has a part that renders to nothing, each with a sentence on the first of these places. Calls
    /// no adapter.
    pub fn remarks(&self, scope: &Scope) -> Vec<(String, String)> {
        remarks::of(self, scope)
    }

    /// Appends the object as JSON. On an error, `out` keeps its former length.
    pub fn write(&self, scope: &Scope, out: &mut Vec<u8>) -> Result<(), EvaluationError> {
        let start = out.len();
        let result = write::write(self, scope, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }
}
