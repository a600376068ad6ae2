//! The evaluator: runs a syntax tree on the documents of a message.

use std::cmp::Ordering;

use kanat_model::Timestamp;

use crate::effort::{CALL, Effort, reading};
use crate::environment::Environment;
use crate::node::{Arithmetic, Branches, Call, Node, Operator};
use crate::path;
use crate::references::{References, Root};
use crate::scope::Scope;
use crate::transform::{BoundedList, Operand, Transform, arithmetic, negative};
use crate::value::{Value, equal, order};
use crate::{EvaluationError, Lists, NoAdapters, json, parse};

/// Expression with its text, its syntax tree and its references.
#[derive(Debug, Clone)]
pub(crate) struct CompiledExpression {
    pub text: String,
    pub node: Node,
    pub references: References,
}

impl CompiledExpression {
    pub fn evaluate<'s>(
        &'s self,
        environment: &Environment<'s>,
    ) -> Result<Value<'s>, EvaluationError> {
        self.node.evaluate(environment).map_err(|mut error| {
            error.expression.clone_from(&self.text);
            if self.is_secret() {
                error.value = None;
            }
            error
        })
    }

    /// Returns the text that it gives for every message and at any time.
    pub fn constant_text(&self) -> Option<String> {
        if self.references != References::default() {
            return None;
        }
        let text = |now| {
            let effort = Effort::default();
            let scope = Scope::new(b"", Timestamp::from_millis(now), &effort);
            match self.evaluate(&Environment::new(&scope)) {
                Ok(Value::String(text)) => Some(text.decode().into_owned()),
                Ok(_) | Err(_) => None,
            }
        };
        let first = text(0)?;
        (text(1_234_567_890_123)? == first).then_some(first)
    }

    /// Adds the expression and the value at fault to an error.
    pub fn shown(
        &self,
        mut error: EvaluationError,
        value: &Value,
        environment: &Environment<'_>,
    ) -> EvaluationError {
        error.expression.clone_from(&self.text);
        if !self.is_secret() {
            error.value = Some(environment.shown(value));
        }
        error
    }

    /// Returns whether the expression reads the configuration of a connector, which may be secret.
    pub fn is_secret(&self) -> bool {
        self.references.roots.contains(&Root::Instance)
    }

    pub fn parse(text: &str, lists: &Lists) -> Result<Self, Vec<crate::ParseError>> {
        let (node, references) = parse::expression(text, lists)?;
        Ok(Self {
            text: text.to_owned(),
            node,
            references,
        })
    }
}

/// Steps of an identifier, which takes random bytes of the system.
const UUID: u64 = 1000;

impl Call {
    /// Applies the transform, and charges it by its input and its output.
    pub fn apply<'s>(
        &'s self,
        value: &Value<'s>,
        environment: &Environment<'s>,
    ) -> Result<Value<'s>, EvaluationError> {
        let steps = match value {
            Value::Number(_) | Value::String(_) => reading(value.size()),
            // Lists and objects are charged as they are walked.
            Value::Undefined | Value::Null | Value::Bool(_) | Value::List(_) | Value::Object(_) => {
                CALL
            }
        };
        let result = self.transform.apply(value, &self.arguments, environment)?;
        environment.spend(steps + result.size() as u64)?;
        Ok(result)
    }
}

impl Node {
    pub fn evaluate<'s>(
        &'s self,
        environment: &Environment<'s>,
    ) -> Result<Value<'s>, EvaluationError> {
        // A pipe is charged by the values that pass through it.
        if !matches!(self, Self::Pipe(..)) {
            environment.effort.node()?;
        }
        match self {
            Self::Literal(literal) => Ok(literal.value()),
            Self::Path(path) => environment.resolve(path),
            Self::Now => Ok(Value::plain(environment.now().to_string())),
            Self::Uuid => {
                environment.spend(UUID)?;
                Ok(Value::plain(uuid::Uuid::now_v7().to_string()))
            }
            Self::Pipe(input, calls) => {
                let mut value = input.evaluate(environment)?;
                for call in calls {
                    // An error within an argument names the transform there.
                    value = call.apply(&value, environment).map_err(|error| {
                        let mut error = of_transform(error, call.name, &value, environment);
                        if call.transform.is_required() && value.is_missing() {
                            name_missing_part(&mut error, input, environment);
                            name_missing_key(&mut error, input, calls, environment);
                        }
                        error
                    })?;
                }
                Ok(value)
            }
            Self::Member(inner, segments) => {
                let found =
                    path::follow_value(inner.evaluate(environment)?, segments, environment.effort);
                environment.effort.check()?;
                Ok(found)
            }
            Self::List(nodes) => list(nodes, environment),
            Self::If(branches) => branches.evaluate(environment),
            Self::Coalesce(nodes) => coalesce(nodes, environment),
            Self::Negative(inner) => {
                let value = inner.evaluate(environment)?;
                negative(&value, environment.effort)
                    .map_err(|error| of_transform(error, "-", &value, environment))
            }
            Self::Arithmetic(first, others) => {
                Ok(calculate(first, others, environment)?.into_value())
            }
            Self::Not(inner) => {
                let value = inner.evaluate(environment)?;
                Ok(Value::Bool(!environment.holds(&value)))
            }
            Self::And(nodes) => all(nodes, environment).map(Value::Bool),
            Self::Or(nodes) => any(nodes, environment).map(Value::Bool),
            Self::Comparison(left, operator, right) => {
                let left = left.evaluate(environment)?;
                let held = environment.effort.hold(&left)?;
                let right = right.evaluate(environment)?;
                drop(held);
                let holds = operator.holds(&left, &right, environment.effort);
                environment.effort.check()?;
                Ok(Value::Bool(holds))
            }
        }
    }

    /// Evaluates an operand. The result of arithmetic stays a number in it.
    pub fn operand<'s>(
        &'s self,
        environment: &Environment<'s>,
    ) -> Result<Operand<'s>, EvaluationError> {
        if let Self::Arithmetic(first, others) = self {
            environment.effort.node()?;
            calculate(first, others, environment)
        } else {
            self.evaluate(environment).map(Operand::Value)
        }
    }
}

impl Branches {
    fn evaluate<'s>(&'s self, environment: &Environment<'s>) -> Result<Value<'s>, EvaluationError> {
        let condition = self.condition.evaluate(environment)?;
        if environment.holds(&condition) {
            self.then.evaluate(environment)
        } else {
            self.otherwise.evaluate(environment)
        }
    }
}

/// Applies operators from left to right.
fn calculate<'s>(
    first: &'s Node,
    others: &'s [(Arithmetic, Node)],
    environment: &Environment<'s>,
) -> Result<Operand<'s>, EvaluationError> {
    let mut left = first.operand(environment)?;
    for (operator, node) in others {
        let mut held = environment.effort.hold_nothing();
        held.add(left.owned_size())?;
        let right = node.operand(environment)?;
        drop(held);
        let result = arithmetic(*operator, &left, &right, environment.effort);
        let number = result.map_err(|(side, error)| {
            let fault = side.of(&left, &right).to_value();
            of_transform(*error, operator.sign(), &fault, environment)
        })?;
        left = Operand::Number(number);
    }
    Ok(left)
}

/// Names the transform or operator of an error and the value at fault, unless a transform within
/// has done so.
fn of_transform(
    mut error: EvaluationError,
    name: &'static str,
    value: &Value,
    environment: &Environment<'_>,
) -> EvaluationError {
    if error.transform.is_none() {
        error.transform = Some(name);
        error.value = Some(environment.shown(value));
    }
    error
}

/// Says where a required value is missing, if the path of the pipe leads to none.
fn name_missing_part(error: &mut EvaluationError, input: &Node, environment: &Environment<'_>) {
    if let Node::Path(path) = input
        && let Some(part) = environment.missing_part(path)
    {
        error.message = format!("{} at {part}", error.message);
    }
}

/// Says which table lacks which key, if the value is missing because of that. Evaluates the pipe
/// again, up to the transform that fails.
fn name_missing_key<'s>(
    error: &mut EvaluationError,
    input: &'s Node,
    calls: &'s [Call],
    environment: &Environment<'s>,
) {
    let scope = Scope {
        adapters: &NoAdapters,
        ..*environment.scope
    };
    let environment = &environment.in_scope(&scope);
    let Ok(mut value) = input.evaluate(environment) else {
        return;
    };
    let mut missed = None;
    for call in calls {
        let Ok(result) = call.apply(&value, environment) else {
            break;
        };
        match &call.transform {
            Transform::Lookup(table) if result.is_missing() && !value.is_missing() => {
                missed = Some((table, environment.shown(&value)));
            }
            _ if result.is_missing() => {}
            _ => missed = None,
        }
        value = result;
    }
    if let Some((table, key)) = missed {
        error.value = Some(key);
        let message = &mut error.message;
        message.push_str(&format!(": the lookup table {table:?} has no such key"));
    }
}

/// Makes a list of what nodes give; undefined is left out.
fn list<'s>(
    nodes: &'s [Node],
    environment: &Environment<'s>,
) -> Result<Value<'s>, EvaluationError> {
    let mut list = BoundedList::new(environment.effort);
    for node in nodes {
        list.push(&node.evaluate(environment)?)?;
    }
    Ok(list.into_value())
}

/// Returns the first value that is there, else the last one.
fn coalesce<'s>(
    nodes: &'s [Node],
    environment: &Environment<'s>,
) -> Result<Value<'s>, EvaluationError> {
    let mut value = Value::Undefined;
    for node in nodes {
        value = node.evaluate(environment)?;
        if !value.is_missing() {
            break;
        }
    }
    Ok(value)
}

fn all<'s>(nodes: &'s [Node], environment: &Environment<'s>) -> Result<bool, EvaluationError> {
    for node in nodes {
        if !environment.holds(&node.evaluate(environment)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn any<'s>(nodes: &'s [Node], environment: &Environment<'s>) -> Result<bool, EvaluationError> {
    for node in nodes {
        if environment.holds(&node.evaluate(environment)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Operator {
    fn holds(self, left: &Value, right: &Value, effort: &Effort) -> bool {
        let order = || order(left, right, effort);
        match self {
            Self::Equal => equal(left, right, effort),
            Self::Unequal => !equal(left, right, effort),
            Self::Less => order() == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order(), Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order() == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order(), Some(Ordering::Greater | Ordering::Equal)),
            Self::In => contains(right, left, effort),
        }
    }
}

/// Returns whether `part` is an item of a list, a key of an object, or a part of a string.
pub(crate) fn contains(whole: &Value, part: &Value, effort: &Effort) -> bool {
    match (whole, part) {
        (Value::List(list), _) => effort
            .items(list)
            .any(|item| equal(&Value::from_json(item), part, effort)),
        (Value::Object(object), Value::String(key)) => {
            effort.read(object.len() + part.size());
            json::has_key(object, &key.decode())
        }
        (Value::String(text), Value::String(inner)) => {
            effort.read(whole.size() + part.size());
            text.decode().contains(&*inner.decode())
        }
        _ => false,
    }
}
