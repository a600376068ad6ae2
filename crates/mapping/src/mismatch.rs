//! Comparisons that are false for a message because of the types of their sides: `<` and its kin
//! are false between a text and a number, without an error. They are looked for only when a
//! condition is false already.

use crate::environment::Environment;
use crate::evaluate::CompiledExpression;
use crate::json::Decimal;
use crate::node::{Node, Operator};
use crate::value::Value;

/// Returns a sentence on the comparison that makes a condition false.
pub(crate) fn of<'s>(
    condition: &'s CompiledExpression,
    environment: &Environment<'s>,
) -> Option<String> {
    let search = Search {
        environment,
        shows_values: !condition.is_secret(),
    };
    search.in_node(&condition.node)
}

struct Search<'e, 's> {
    environment: &'e Environment<'s>,
    /// False for a condition that reads the configuration of a connector.
    shows_values: bool,
}

impl<'s> Search<'_, 's> {
    fn in_node(&self, node: &'s Node) -> Option<String> {
        match node {
            Node::Comparison(left, operator, right) => self.in_comparison(left, *operator, right),
            Node::And(nodes) => self.in_node(nodes.iter().find(|node| !self.holds(node))?),
            Node::Or(nodes) => nodes.iter().find_map(|node| self.in_node(node)),
            Node::Not(inner) => self.in_node(inner),
            Node::Literal(_)
            | Node::Path(_)
            | Node::Member(..)
            | Node::Now
            | Node::Uuid
            | Node::List(_)
            | Node::If(_)
            | Node::Coalesce(_)
            | Node::Negative(_)
            | Node::Arithmetic(..)
            | Node::Pipe(..) => None,
        }
    }

    fn holds(&self, node: &'s Node) -> bool {
        let value = node.evaluate(self.environment);
        value.is_ok_and(|value| self.environment.holds(&value))
    }

    fn in_comparison(&self, left: &'s Node, operator: Operator, right: &'s Node) -> Option<String> {
        let is_order = match operator {
            Operator::Less
            | Operator::LessOrEqual
            | Operator::Greater
            | Operator::GreaterOrEqual => true,
            Operator::Equal | Operator::Unequal => false,
            Operator::In => return None,
        };
        let one = left.evaluate(self.environment).ok()?;
        let other = right.evaluate(self.environment).ok()?;
        match (&one, &other) {
            // A text that is no number may well be unequal to one.
            (Value::String(_), Value::Number(_)) if is_order || is_numeric(&one) => {
                Some(self.of_text(left, &one))
            }
            (Value::Number(_), Value::String(_)) if is_order || is_numeric(&other) => {
                Some(self.of_text(right, &other))
            }
            (Value::Undefined | Value::Null, _) if is_order => self.of_missing(left, &other),
            (_, Value::Undefined | Value::Null) if is_order => self.of_missing(right, &one),
            _ => None,
        }
    }

    /// Returns the sentence on a text that is compared with a number.
    fn of_text(&self, node: &Node, text: &Value<'_>) -> String {
        let mut sentence = "the condition compares a text".to_owned();
        if self.shows_values {
            sentence.push_str(&format!(" ({})", self.environment.shown(text)));
        }
        sentence.push_str(" with a number");
        if is_numeric(text) {
            sentence.push_str(&if let Node::Path(path) = node {
                format!("; use {path} | number")
            } else if let Node::Literal(_) = node {
                format!("; write {} without quotes", text.rendered())
            } else {
                "; `number` makes one of a text".to_owned()
            });
        }
        sentence
    }

    /// Returns the sentence on a value that is missing where the other side has one.
    fn of_missing(&self, node: &Node, other: &Value<'_>) -> Option<String> {
        let Node::Path(path) = node else {
            return None;
        };
        if other.is_missing() {
            return None;
        }
        let part = self.environment.missing_part(path)?;
        let missing = self.environment.resolve(&part).ok()?.type_name();
        let other = other.type_name();
        Some(format!(
            "the condition compares {path} with {other}, but {part} is {missing}"
        ))
    }
}

fn is_numeric(text: &Value<'_>) -> bool {
    text.text()
        .is_some_and(|digits| Decimal::parse(&digits).is_some())
}

#[cfg(test)]
mod tests {
    use kanat_model::Timestamp;

    use crate::{Effort, Expression, Scope};

    #[track_caller]
    fn check(condition: &str, source: &str, expected: Option<&str>) {
        let effort = Effort::default();
        let scope = Scope {
            instance: br#"{"limit": "7"}"#,
            ..Scope::new(source.as_bytes(), Timestamp::from_millis(0), &effort)
        };
        let condition = Expression::parse(condition).unwrap();
        assert!(!condition.evaluate(&scope).unwrap().truthy());
        assert_eq!(condition.mismatch(&scope).as_deref(), expected);
    }

    #[test]
    fn names_a_text_that_is_compared_with_a_number() {
        let advised =
            r#"the condition compares a text ("5") with a number; use source.qty | number"#;
        let source = r#"{"qty": "5", "unit": "kg", "limit": 3, "paid": true}"#;
        for condition in [
            "source.qty > 3",
            "3 < source.qty",
            "source.qty == 5",
            "source.paid and source.qty > 3",
            "source.limit > 9 or source.qty > 3",
            "not (source.qty != 5)",
        ] {
            check(condition, source, Some(advised));
        }
        check(
            "(source.qty | trim) > 3",
            source,
            Some(concat!(
                r#"the condition compares a text ("5") with a number; "#,
                "`number` makes one of a text"
            )),
        );
        check(
            "source.limit > '2'",
            source,
            Some(r#"the condition compares a text ("2") with a number; write 2 without quotes"#),
        );
        check(
            "source.unit > 3",
            source,
            Some(r#"the condition compares a text ("kg") with a number"#),
        );
        check("source.unit == 3", source, None);
        check("source.limit > 3", source, None);
        // The other side of `and` is not at fault.
        check("source.limit > 3 and source.qty > 3", source, None);
    }

    #[test]
    fn names_what_is_missing() {
        check(
            "source.order.qty > 3",
            "{}",
            Some(
                "the condition compares source.order.qty with a number, but source.order is \
                 undefined",
            ),
        );
        check(
            "source.qty > 3",
            r#"{"qty": null}"#,
            Some("the condition compares source.qty with a number, but source.qty is null"),
        );
        check("source.qty > source.limit", "{}", None);
        check("source.qty", "{}", None);
    }

    #[test]
    fn shows_nothing_of_an_instance() {
        check(
            "instance.limit > 3",
            "{}",
            Some("the condition compares a text with a number; use instance.limit | number"),
        );
    }
}
