//! Types that values have for every message, as far as an expression shows them, and comparisons
//! whose answer they decide.

use crate::Expression;
use crate::node::{Call, Literal, Node, Operator};
use crate::path::{Path, Segment};
use crate::references::Root;
use crate::transform::{Elementwise, Transform};

/// Type of a value that is neither null nor undefined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Number,
    Boolean,
    /// A record of CSV: an object of texts.
    Record,
    /// A list of texts.
    Texts,
    /// A list of records.
    Records,
    /// A list of lists of texts.
    Lists,
}

impl Type {
    /// Returns the type of an element of a list.
    pub fn of_element(self) -> Option<Self> {
        match self {
            Self::Texts => Some(Self::Text),
            Self::Records => Some(Self::Record),
            Self::Lists => Some(Self::Texts),
            Self::Text | Self::Number | Self::Boolean | Self::Record => None,
        }
    }

    /// Returns the type of a list of such values.
    fn listed(self) -> Option<Self> {
        match self {
            Self::Text => Some(Self::Texts),
            Self::Record => Some(Self::Records),
            Self::Texts => Some(Self::Lists),
            Self::Number | Self::Boolean | Self::Records | Self::Lists => None,
        }
    }

    /// Returns the type of the value that segments lead to.
    fn follow(self, segments: &[Segment]) -> Option<Self> {
        let mut segments = segments.iter();
        segments.try_fold(self, |kind, segment| match segment {
            Segment::Name(_) => (kind == Self::Record).then_some(Self::Text),
            Segment::Index(_) => kind.of_element(),
            Segment::Each => None,
        })
    }
}

/// Types of the elements of the lists around an expression, the outermost first.
pub(super) type Elements = [Option<Type>];

/// The lists of a mapping around an expression, whose elements it names by `item`.
#[derive(Debug, Clone, Default)]
pub struct Lists(pub(super) Vec<Option<Type>>);

impl Lists {
    /// Goes into a list that an expression gives, or into one that is not known.
    pub fn push(&mut self, list: Option<&Expression>) {
        let list = list.and_then(|list| type_of(list.node(), &self.0));
        self.0.push(list.and_then(Type::of_element));
    }

    /// Comes out of the innermost list.
    pub fn pop(&mut self) {
        self.0.pop();
    }

    /// Returns how many lists are around.
    pub fn depth(&self) -> usize {
        self.0.len()
    }
}

/// Returns the warning about a comparison of a text with a number, which has one answer for every
/// message.
pub(super) fn constant_comparison(
    left: &Node,
    operator: Operator,
    right: &Node,
    elements: &Elements,
) -> Option<String> {
    let (sign, answer) = match operator {
        Operator::Equal => ("==", "false"),
        Operator::Unequal => ("!=", "true"),
        Operator::Less => ("<", "false"),
        Operator::LessOrEqual => ("<=", "false"),
        Operator::Greater => (">", "false"),
        Operator::GreaterOrEqual => (">=", "false"),
        Operator::In => return None,
    };
    let sides = match (type_of(left, elements)?, type_of(right, elements)?) {
        (Type::Text, Type::Number) => "a text with a number",
        (Type::Number, Type::Text) => "a number with a text",
        _ => return None,
    };
    Some(format!(
        "found a comparison (`{sign}`) of {sides}, which is {answer} for every message; \
         `| number` makes a number of a text"
    ))
}

/// Returns the type that a node has for every message, if it shows one.
pub(super) fn type_of(node: &Node, elements: &Elements) -> Option<Type> {
    match node {
        Node::Literal(literal) => type_of_literal(literal),
        Node::Path(path) if path.root == Root::Item => {
            let place = elements.len().checked_sub(path.outward + 1)?;
            (*elements.get(place)?)?.follow(&path.segments)
        }
        Node::Path(path) => is_text_of_trigger(path).then_some(Type::Text),
        Node::Now | Node::Uuid => Some(Type::Text),
        Node::Pipe(input, calls) => {
            let input = type_of(input, elements);
            calls
                .iter()
                .fold(input, |input, call| type_after(call, input, elements))
        }
        Node::Member(inner, segments) => type_of(inner, elements)?.follow(segments),
        Node::Negative(_) | Node::Arithmetic(..) => Some(Type::Number),
        Node::Not(_) | Node::And(_) | Node::Or(_) | Node::Comparison(..) => Some(Type::Boolean),
        Node::List(_) | Node::If(_) | Node::Coalesce(_) => None,
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
pub(super) fn type_after(call: &Call, input: Option<Type>, elements: &Elements) -> Option<Type> {
    match &call.transform {
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
        Transform::Required
        | Transform::Unique
        | Transform::Sort
        | Transform::Reverse
        | Transform::Slice
        | Transform::Each(Elementwise::Where | Elementwise::SortBy) => input,
        Transform::First | Transform::Last | Transform::Min | Transform::Max => input?.of_element(),
        Transform::Split(_) => Some(Type::Texts),
        Transform::ParseCsv(dialect) if dialect.has_header => Some(Type::Records),
        Transform::ParseCsv(_) => Some(Type::Lists),
        Transform::Each(Elementwise::Map) => {
            let inner = [elements, &[input.and_then(Type::of_element)]].concat();
            type_of(call.arguments.first()?, &inner)?.listed()
        }
        Transform::Default
        | Transform::Lookup(_)
        | Transform::ParseJson
        | Transform::Keys
        | Transform::Values
        | Transform::Each(Elementwise::GroupBy)
        | Transform::Flatten
        | Transform::ParseXml
        | Transform::Adapter(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Template;
    use crate::parse::expression;

    fn warnings(text: &str) -> Vec<(usize, String)> {
        let references = expression(text, &Lists::default()).unwrap().1;
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
            "source.csv | parse_csv | where(item.qty > 5)",
            "source.csv | parse_csv(';') | map(item.qty) | any(item == 5)",
            "(source.csv | parse_csv | map(item.qty) | max) > 5",
            "(source.csv | parse_csv | first).qty > 5",
            "source.csv | parse_csv(',', false) | map(item[1] < 3)",
            "source.csv | parse_csv | where(source.list | any(outer.item.qty > 5))",
            "(source.a | split('-'))[1] == 7",
        ] {
            assert_eq!(warnings(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn an_item_has_the_type_of_the_elements_of_the_lists_around() {
        let mut lists = Lists::default();
        lists.push(Expression::parse("source.csv | parse_csv").ok().as_ref());
        let number_of_warnings = |text: &str, lists: &Lists| {
            let expression = Expression::parse_within(text, lists).unwrap();
            expression.references().warnings.len()
        };
        assert_eq!(number_of_warnings("item.qty > 5", &lists), 1);
        assert_eq!(number_of_warnings("(item.qty | number) > 5", &lists), 0);
        lists.push(Expression::parse("item.tags | split(',')").ok().as_ref());
        assert_eq!(number_of_warnings("item > 5", &lists), 1);
        assert_eq!(number_of_warnings("outer.item.qty > 5", &lists), 1);
        let template = Template::parse_within("{{ item > 5 }}{{ item < 5 }}", &lists).unwrap();
        assert_eq!(template.references().warnings.len(), 2);
        lists.push(None);
        assert_eq!(number_of_warnings("item.qty > 5", &lists), 0);
        lists.pop();
        lists.pop();
        assert_eq!(lists.depth(), 1);
        assert_eq!(number_of_warnings("item.qty > 5", &lists), 1);
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
            "source.csv | parse_csv | where((item.qty | number) > 5)",
            "source.csv | parse_csv | map(item.qty | number) | any(item > 5)",
            "source.csv | parse_csv | any(item.name == 'x')",
            "source.csv | parse_csv | where(source.list | any(item.qty > 5))",
            "source.list | where(item.qty > 5)",
        ] {
            assert_eq!(warnings(text), [], "{text}");
        }
    }
}
