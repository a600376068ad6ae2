//! The syntax tree of an expression.

use crate::Value;
use crate::path::{Path, Segment, Visit};
use crate::references::ValueForm;
use crate::transform::Transform;

#[derive(Debug, Clone)]
pub(crate) enum Node {
    Literal(Literal),
    Path(Path),
    /// Segments that are followed from the value of another node.
    Member(Box<Node>, Vec<Segment>),
    /// `now()`
    Now,
    /// `uuid()`
    Uuid,
    /// `[a, b]`
    List(Vec<Node>),
    If(Box<Branches>),
    Coalesce(Vec<Node>),
    /// Minus before a term that is no literal.
    Negative(Box<Node>),
    /// First operand, and the others with the operators before them, from left to right. Operators
    /// of one node bind alike.
    Arithmetic(Box<Node>, Vec<(Arithmetic, Node)>),
    Pipe(Box<Node>, Vec<Call>),
    Not(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Comparison(Box<Node>, Operator, Box<Node>),
}

/// Parts of an `if`.
#[derive(Debug, Clone)]
pub(crate) struct Branches {
    pub condition: Node,
    pub then: Node,
    pub otherwise: Node,
}

/// A transform in a pipe, by the name that it was written with.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub name: &'static str,
    pub transform: Transform,
    /// Arguments that are expressions, in their order.
    pub arguments: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    /// The digits, as JSON writes a number.
    Number(String),
    String(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
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

impl Arithmetic {
    pub fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }
}

impl Call {
    /// Returns whether its result has its input and its arguments whole.
    fn keeps_values_whole(&self) -> bool {
        self.transform.keeps_values_whole() && self.arguments.iter().all(Node::is_whole)
    }
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
            Self::Pipe(input, calls) if calls.iter().all(Call::keeps_values_whole) => {
                input.value_form()
            }
            Self::Coalesce(nodes) if nodes.iter().all(Self::is_whole) => ValueForm::Whole,
            Self::Pipe(..)
            | Self::Coalesce(_)
            | Self::Member(..)
            | Self::List(_)
            | Self::If(_)
            | Self::Negative(_)
            | Self::Arithmetic(..)
            | Self::Not(_)
            | Self::And(_)
            | Self::Or(_)
            | Self::Comparison(..) => ValueForm::Computed,
        }
    }

    fn is_whole(&self) -> bool {
        self.value_form() == ValueForm::Whole
    }

    /// Visits every path in it.
    pub fn paths(&mut self, visit: &mut Visit) {
        match self {
            Self::Literal(_) | Self::Now | Self::Uuid => {}
            Self::Path(path) => visit(path),
            Self::Pipe(input, calls) => {
                input.paths(visit);
                for argument in calls.iter_mut().flat_map(|call| &mut call.arguments) {
                    argument.paths(visit);
                }
            }
            Self::Member(inner, _) | Self::Negative(inner) | Self::Not(inner) => inner.paths(visit),
            Self::List(nodes) | Self::Coalesce(nodes) | Self::And(nodes) | Self::Or(nodes) => {
                nodes.iter_mut().for_each(|node| node.paths(visit))
            }
            Self::If(branches) => {
                branches.condition.paths(visit);
                branches.then.paths(visit);
                branches.otherwise.paths(visit);
            }
            Self::Arithmetic(first, others) => {
                first.paths(visit);
                others.iter_mut().for_each(|(_, node)| node.paths(visit));
            }
            Self::Comparison(left, _, right) => {
                left.paths(visit);
                right.paths(visit);
            }
        }
    }
}
