//! The syntax tree of an expression.

use crate::Value;
use crate::path::{Path, Visit};
use crate::references::ValueForm;
use crate::transform::Transform;

#[derive(Debug, Clone)]
pub(crate) enum Node {
    Literal(Literal),
    Path(Path),
    /// `now()`
    Now,
    /// `uuid()`
    Uuid,
    Pipe(Box<Node>, Vec<Call>),
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Comparison(Box<Node>, Operator, Box<Node>),
}

/// A transform in a pipe, by the name that it was written with.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub name: &'static str,
    pub transform: Transform,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    /// The digits, as JSON writes a number.
    Number(String),
    String(String),
}

/// Value among the arguments of a transform: a literal, or a path that is followed when the
/// transform is applied.
#[derive(Debug, Clone)]
pub(crate) enum Operand {
    Literal(Literal),
    Path(Path),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

impl Literal {
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(digits) => Value::number(digits.as_str()),
            Self::String(text) => Value::plain(text.as_str()),
        }
    }
}

impl Node {
    /// Returns the form that the values of its paths have in its result.
    pub fn value_form(&self) -> ValueForm {
        match self {
            Self::Literal(_) | Self::Path(_) | Self::Now | Self::Uuid => ValueForm::Whole,
            // The identifier is another one each time, so that the result cannot be computed again.
            Self::Pipe(input, _) if matches!(**input, Self::Uuid) => ValueForm::Computed,
            Self::Pipe(input, calls)
                if calls.iter().all(|call| call.transform.keeps_values_whole()) =>
            {
                input.value_form()
            }
            Self::Pipe(..) | Self::Not(_) | Self::And(_) | Self::Or(_) | Self::Comparison(..) => {
                ValueForm::Computed
            }
        }
    }

    /// Visits every path in it.
    pub fn paths(&mut self, visit: &mut Visit) {
        match self {
            Self::Literal(_) | Self::Now | Self::Uuid => {}
            Self::Path(path) => visit(path),
            Self::Pipe(input, calls) => {
                input.paths(visit);
                for operand in calls.iter_mut().flat_map(|call| call.transform.operands()) {
                    if let Operand::Path(path) = operand {
                        visit(path);
                    }
                }
            }
            Self::Not(inner) => inner.paths(visit),
            Self::And(nodes) | Self::Or(nodes) => {
                nodes.iter_mut().for_each(|node| node.paths(visit))
            }
            Self::Comparison(left, _, right) => {
                left.paths(visit);
                right.paths(visit);
            }
        }
    }
}
