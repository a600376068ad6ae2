//! Comparisons that are false for a message because of the types of their sides: `<` and its kin
//! are false between a text and a number, without an error. They are looked for only when a
//! condition is false already, and in tests of a flow.

use crate::environment::Environment;
use crate::evaluate::CompiledExpression;
use crate::json::Decimal;
use crate::node::{Call, Node, Operator};
use crate::transform::{Elementwise, Transform};
use crate::value::Value;

/// Returns a sentence on the comparison that makes a condition false.
pub(crate) fn of<'s>(
    condition: &'s CompiledExpression,
    environment: &Environment<'s>,
) -> Option<String> {
    let search = Search {
        subject: "condition",
        shows_values: !condition.is_secret(),
    };
    search.in_false(&condition.node, environment)
}

/// Returns a sentence on the first comparison of a text with a number within an expression.
pub(crate) fn within<'s>(
    expression: &'s CompiledExpression,
    environment: &Environment<'s>,
) -> Option<String> {
    let search = Search {
        subject: "expression",
        shows_values: !expression.is_secret(),
    };
    search.within(&expression.node, environment)
}

struct Search {
    /// Subject of the sentence: `condition` or `expression`.
    subject: &'static str,
    /// False for an expression that reads the configuration of a connector.
    shows_values: bool,
}

/// Returns whether a node holds; one that cannot be evaluated does not.
fn holds<'s>(node: &'s Node, environment: &Environment<'s>) -> bool {
    let value = node.evaluate(environment);
    value.is_ok_and(|value| environment.holds(&value))
}

fn is_order(operator: Operator) -> bool {
    match operator {
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            true
        }
        Operator::Equal | Operator::Unequal | Operator::In => false,
    }
}

impl Search {
    /// Searches a node that is false for what makes it so.
    fn in_false<'s>(&self, node: &'s Node, environment: &Environment<'s>) -> Option<String> {
        match node {
            Node::Comparison(left, operator, right) => self
                .within(node, environment)
                .or_else(|| self.of_missing(left, *operator, right, environment)),
            Node::And(nodes) => {
                let is_false = |node: &&Node| !holds(node, environment);
                self.in_false(nodes.iter().find(is_false)?, environment)
            }
            Node::Or(nodes) => nodes
                .iter()
                .find_map(|node| self.in_false(node, environment)),
            Node::Not(inner) => self.in_false(inner, environment),
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
            | Node::Pipe(..) => self.within(node, environment),
        }
    }

    /// Searches what an evaluation of a node meets: the sides of `and`, `or` and `if` that it
    /// evaluates, and the arguments of transforms, for each element of their lists.
    fn within<'s>(&self, node: &'s Node, environment: &Environment<'s>) -> Option<String> {
        let mut nodes = match node {
            Node::Literal(_) | Node::Path(_) | Node::Now | Node::Uuid => return None,
            Node::Member(inner, _) | Node::Negative(inner) | Node::Not(inner) => {
                return self.within(inner, environment);
            }
            Node::List(nodes) | Node::Coalesce(nodes) => nodes.iter().collect(),
            Node::Arithmetic(first, others) => {
                let others = others.iter().map(|(_, node)| node);
                std::iter::once(&**first).chain(others).collect()
            }
            Node::And(nodes) => evaluated(nodes, |node| holds(node, environment)),
            Node::Or(nodes) => evaluated(nodes, |node| !holds(node, environment)),
            Node::If(branches) if holds(&branches.condition, environment) => {
                vec![&branches.condition, &branches.then]
            }
            Node::If(branches) => vec![&branches.condition, &branches.otherwise],
            Node::Pipe(input, calls) => return self.in_pipe(input, calls, environment),
            Node::Comparison(left, operator, right) => {
                let own = self.of_types(left, *operator, right, environment);
                if own.is_some() {
                    return own;
                }
                vec![&**left, &**right]
            }
        }
        .into_iter();
        nodes.find_map(|node| self.within(node, environment))
    }

    fn in_pipe<'s>(
        &self,
        input: &'s Node,
        calls: &'s [Call],
        environment: &Environment<'s>,
    ) -> Option<String> {
        let found = self.within(input, environment);
        if found.is_some() {
            return found;
        }
        let mut value = input.evaluate(environment).ok()?;
        for call in calls {
            let mut arguments = call.arguments.iter();
            let found = match (&call.transform, &value) {
                (Transform::Each(_), Value::List(list)) => {
                    let node = arguments.next()?;
                    let mut items = environment.effort.items(list).enumerate();
                    items.find_map(|(index, item)| {
                        let element = environment.element(index, item, &[]);
                        self.within(node, &environment.of_element(&element))
                    })
                }
                _ => arguments.find_map(|node| self.within(node, environment)),
            };
            let found = found.or_else(|| self.of_order(call, &value, environment));
            if found.is_some() {
                return found;
            }
            value = call.apply(&value, environment).ok()?;
        }
        None
    }

    /// Returns the sentence on a list of numeric texts, or of numbers and such texts, that a
    /// transform puts in order.
    fn of_order<'s>(
        &self,
        call: &'s Call,
        value: &Value<'s>,
        environment: &Environment<'s>,
    ) -> Option<String> {
        let key = match &call.transform {
            Transform::Min | Transform::Max | Transform::Sort => None,
            Transform::Each(Elementwise::SortBy) => Some(call.arguments.first()?),
            _ => return None,
        };
        let Value::List(list) = value else {
            return None;
        };
        // `min` and `max` refuse numbers beside texts.
        let sorts = !matches!(call.transform, Transform::Min | Transform::Max);
        let mut shown = None;
        let mut count = 0;
        for (index, item) in environment.effort.items(list).enumerate() {
            let element = environment.element(index, item, &[]);
            let value = match key {
                Some(node) => node.evaluate(&environment.of_element(&element)).ok()?,
                None => Value::from_json(item),
            };
            if value.is_missing() || value.text().is_some_and(|text| text.is_empty()) {
                continue;
            }
            count += 1;
            if sorts && matches!(value, Value::Number(_)) {
                continue;
            }
            if !matches!(value, Value::String(_)) || !is_numeric(&value) || is_code(&value) {
                return None;
            }
            shown.get_or_insert_with(|| environment.shown(&value));
        }
        let shown = shown.filter(|_| count > 1)?;
        let shown = match self.shows_values {
            true => format!(" ({shown})"),
            false => String::new(),
        };
        Some(format!(
            "the {} orders numeric texts{shown} as texts in {}; `number` makes numbers of them",
            self.subject, call.name
        ))
    }

    /// Returns the sentence on a comparison of a text with a number.
    fn of_types<'s>(
        &self,
        left: &'s Node,
        operator: Operator,
        right: &'s Node,
        environment: &Environment<'s>,
    ) -> Option<String> {
        if operator == Operator::In {
            return None;
        }
        let is_order = is_order(operator);
        let one = left.evaluate(environment).ok()?;
        let other = right.evaluate(environment).ok()?;
        match (&one, &other) {
            // A text that is no number may well be unequal to one.
            (Value::String(_), Value::Number(_)) if is_order || is_numeric(&one) => {
                Some(self.of_text(left, &one, environment))
            }
            (Value::Number(_), Value::String(_)) if is_order || is_numeric(&other) => {
                Some(self.of_text(right, &other, environment))
            }
            _ => None,
        }
    }

    /// Returns the sentence on a text that is compared with a number.
    fn of_text(&self, node: &Node, text: &Value<'_>, environment: &Environment<'_>) -> String {
        let mut sentence = format!("the {} compares a text", self.subject);
        if self.shows_values {
            sentence.push_str(&format!(" ({})", environment.shown(text)));
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
    fn of_missing<'s>(
        &self,
        left: &'s Node,
        operator: Operator,
        right: &'s Node,
        environment: &Environment<'s>,
    ) -> Option<String> {
        if !is_order(operator) {
            return None;
        }
        let one = left.evaluate(environment).ok()?;
        let other = right.evaluate(environment).ok()?;
        let (node, other) = match (one.is_missing(), other.is_missing()) {
            (true, false) => (left, other),
            (false, true) => (right, one),
            (true, true) | (false, false) => return None,
        };
        let Node::Path(path) = node else {
            return None;
        };
        let part = environment.missing_part(path)?;
        let missing = environment.resolve(&part).ok()?.type_name();
        let other = other.type_name();
        Some(format!(
            "the condition compares {path} with {other}, but {part} is {missing}"
        ))
    }
}

/// Returns the operands up to the first one after which the evaluation does not go on.
fn evaluated(nodes: &[Node], goes_on: impl Fn(&Node) -> bool) -> Vec<&Node> {
    let decides = nodes.iter().position(|node| !goes_on(node));
    let count = decides.map_or(nodes.len(), |index| index + 1);
    nodes.iter().take(count).collect()
}

/// Returns whether digits are a code, which is no number: it begins with a zero.
fn is_code(text: &Value<'_>) -> bool {
    text.text().is_some_and(|digits| {
        digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.")
    })
}

fn is_numeric(text: &Value<'_>) -> bool {
    text.text()
        .is_some_and(|digits| Decimal::parse(&digits).is_some())
}

#[cfg(test)]
mod tests;
