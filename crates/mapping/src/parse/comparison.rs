//! Types that values have for every message, as far as an expression shows them, and comparisons
//! whose answer they decide.

use crate::node::{Literal, Node, Operator};
use crate::path::{Path, Segment};
use crate::references::Root;
use crate::transform::{Elementwise, Transform};

/// Type of a value that is neither null nor undefined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Text,
    Number,
    Boolean,
}

/// Returns the warning about a comparison of a text with a number, which has one answer for every
/// message.
pub(super) fn constant_comparison(left: &Node, operator: Operator, right: &Node) -> Option<String> {
    let (sign, answer) = match operator {
        Operator::Equal => ("==", "false"),
        Operator::Unequal => ("!=", "true"),
        Operator::Less => ("<", "false"),
        Operator::LessOrEqual => ("<=", "false"),
        Operator::Greater => (">", "false"),
        Operator::GreaterOrEqual => (">=", "false"),
        Operator::In => return None,
    };
    let sides = match (type_of(left)?, type_of(right)?) {
        (Type::Text, Type::Number) => "a text with a number",
        (Type::Number, Type::Text) => "a number with a text",
        (Type::Text | Type::Number | Type::Boolean, _) => return None,
    };
    Some(format!(
        "found a comparison (`{sign}`) of {sides}, which is {answer} for every message; \
         `| number` makes a number of a text"
    ))
}

fn type_of(node: &Node) -> Option<Type> {
    match node {
        Node::Literal(literal) => type_of_literal(literal),
        Node::Path(path) => is_text_of_trigger(path).then_some(Type::Text),
        Node::Now | Node::Uuid => Some(Type::Text),
        Node::Pipe(input, calls) => calls.iter().fold(type_of(input), |input, call| {
            type_after(&call.transform, input)
        }),
        Node::Negative(_) | Node::Arithmetic(..) => Some(Type::Number),
        Node::Not(_) | Node::And(_) | Node::Or(_) | Node::Comparison(..) => Some(Type::Boolean),
        Node::Member(..) | Node::List(_) | Node::If(_) | Node::Coalesce(_) => None,
    }
}

fn type_of_literal(literal: &Literal) -> Option<Type> {
    match literal {
        Literal::Null => None,
        Literal::Bool(_) => Some(Type::Boolean),
        Literal::Number(_) => Some(Type::Number),
        Literal::String(_) => Some(Type::Text),
    }
}

/// Returns whether a path leads to one header, one parameter or one fact of the request: a text, or
/// a list of texts.
fn is_text_of_trigger(path: &Path) -> bool {
    let names: Vec<&str> = path.names().collect();
    let is_named = path
        .segments
        .iter()
        .all(|segment| matches!(segment, Segment::Name(_)));
    path.root == Root::Trigger
        && is_named
        && matches!(
            names.as_slice(),
            ["headers" | "query" | "path_params", _] | ["method" | "received_at"]
        )
}

/// Returns the type that a transform gives for an input of a type.
fn type_after(transform: &Transform, input: Option<Type>) -> Option<Type> {
    match transform {
        Transform::Decimal(_)
        | Transform::Uppercase
        | Transform::Lowercase
        | Transform::Trim
        | Transform::Now
        | Transform::Date(_)
        | Transform::String
        | Transform::Json
        | Transform::Join(_)
        | Transform::Replace(..)
        | Transform::Substring { .. }
        | Transform::Concat
        | Transform::Sha256
        | Transform::Base64
        | Transform::Base64Decode
        | Transform::UrlEncode
        | Transform::Mask(_)
        | Transform::Title
        | Transform::Slug
        | Transform::PadLeft(..)
        | Transform::Base64Url
        | Transform::Hmac(..)
        | Transform::Extract(_)
        | Transform::DateAdd(_)
        | Transform::ToCsv(_)
        | Transform::ToXml(_) => Some(Type::Text),
        Transform::Number
        | Transform::Integer
        | Transform::Length
        | Transform::Sum
        | Transform::Round(_)
        | Transform::Abs
        | Transform::DateDiff(_) => Some(Type::Number),
        Transform::Each(Elementwise::Sum) => Some(Type::Number),
        Transform::Boolean
        | Transform::Contains
        | Transform::Matches(_)
        | Transform::Each(Elementwise::Any | Elementwise::All) => Some(Type::Boolean),
        Transform::Required => input,
        Transform::Default
        | Transform::Lookup(_)
        | Transform::ParseJson
        | Transform::Split(_)
        | Transform::First
        | Transform::Last
        | Transform::Unique
        | Transform::Sort
        | Transform::Keys
        | Transform::Values
        | Transform::Each(
            Elementwise::Map | Elementwise::Where | Elementwise::SortBy | Elementwise::GroupBy,
        )
        | Transform::Min
        | Transform::Max
        | Transform::Flatten
        | Transform::Reverse
        | Transform::Slice
        | Transform::ParseCsv(_)
        | Transform::ParseXml
        | Transform::Adapter(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::parse::expression;

    fn warnings(text: &str) -> Vec<(usize, String)> {
        let references = expression(text).unwrap().1;
        let warnings = references.warnings.into_iter();
        warnings
            .map(|warning| (warning.offset, warning.message))
            .collect()
    }

    #[test]
    fn a_text_that_is_compared_with_a_number_is_reported() {
        let found = warnings("source.a and \"5\" > 3");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, 17);
        assert_eq!(
            found[0].1,
            "found a comparison (`>`) of a text with a number, which is false for every message; \
             `| number` makes a number of a text"
        );
        for text in [
            "source.total | decimal(2) >= 100",
            "trigger.query.limit > 10",
            "100 == (source.code | trim)",
            "(source.items | length) != '3'",
            "trigger.headers[\"X-Count\"] | required < 3",
        ] {
            assert_eq!(warnings(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn comparisons_of_one_type_or_of_unknown_ones_are_left_alone() {
        for text in [
            "source.total > 3",
            "source.total | decimal(2) | number > 3",
            "'a' == 'b'",
            "trigger.query.limit | number > 10",
            "trigger.headers['x'] == null",
            "source.a | default(0) > '3'",
            "trigger.query[0] == 1",
            "3 in source.list",
        ] {
            assert_eq!(warnings(text), [], "{text}");
        }
    }
}
