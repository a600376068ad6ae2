//! The evaluator: runs a syntax tree on the documents of a message.

use std::cmp::Ordering;

use kanat_model::{Mask, Timestamp};

use crate::effort::{CALL, Effort, NODE, reading};
use crate::node::{Call, Node, Operand, Operator};
use crate::path::{self, Path};
use crate::references::{References, Root};
use crate::scope::{Adapters, Scope, Tables};
use crate::value::{Value, equal, order};
use crate::{EvaluationError, json, parse};

/// Expression with its text, its syntax tree and its references.
#[derive(Debug, Clone)]
pub(crate) struct CompiledExpression {
    pub text: String,
    pub node: Node,
    pub references: References,
}

/// Documents of the roots, as text, and the services that an expression may use.
#[derive(Clone)]
pub(crate) struct Environment<'s> {
    pub source: &'s str,
    trigger: &'s str,
    steps: &'s str,
    target: &'s str,
    instance: &'s str,
    state: &'s str,
    /// The item of the innermost `each`; empty outside.
    item: &'s str,
    /// Values that a mapping's plans found in `source` and in `item`, by slot.
    pub source_slots: &'s [Option<&'s str>],
    item_slots: &'s [Option<&'s str>],
    pub now: Timestamp,
    pub tables: &'s dyn Tables,
    pub adapters: &'s dyn Adapters,
    mask: &'s Mask,
    pub effort: &'s Effort,
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
            environment.show(value, &mut error);
        }
        error
    }

    /// Returns whether the expression reads the configuration of a connector, which may be secret.
    fn is_secret(&self) -> bool {
        self.references.roots.contains(&Root::Instance)
    }

    pub fn parse(text: &str) -> Result<Self, Vec<crate::ParseError>> {
        let (node, references) = parse::expression(text)?;
        Ok(Self {
            text: text.to_owned(),
            node,
            references,
        })
    }
}

impl<'s> Environment<'s> {
    pub fn new(scope: &Scope<'s>) -> Self {
        // A document that is not UTF-8 has not been checked, and counts as absent.
        let text = |bytes: &'s [u8]| std::str::from_utf8(bytes).unwrap_or_default();
        Self {
            source: text(scope.source),
            trigger: text(scope.trigger),
            steps: text(scope.steps),
            target: text(scope.target),
            instance: text(scope.instance),
            state: text(scope.state),
            item: "",
            source_slots: &[],
            item_slots: &[],
            now: scope.now,
            tables: scope.tables,
            adapters: scope.adapters,
            mask: scope.mask,
            effort: scope.effort,
        }
    }

    /// Returns the environment for an item of a list, with the values that a plan found in it.
    pub fn of_item<'i>(&self, item: &'i str, item_slots: &'i [Option<&'i str>]) -> Environment<'i>
    where
        's: 'i,
    {
        Environment {
            item,
            item_slots,
            ..self.clone()
        }
    }

    /// Returns the environment without the configuration of a connector.
    pub fn without_instance(&self) -> Self {
        Self {
            instance: "",
            ..self.clone()
        }
    }

    /// Puts a value into an error. A secret is hidden before the value is cut, because its
    /// beginning alone would not be recognised.
    fn show(&self, value: &Value, error: &mut EvaluationError) {
        error.show(&self.mask.apply(&value.to_json()));
    }

    pub fn operand(&self, operand: &'s Operand) -> Result<Value<'s>, EvaluationError> {
        match operand {
            Operand::Literal(literal) => Ok(literal.value()),
            Operand::Path(path) => self.resolve(path),
        }
    }

    /// Charges steps. Fails when none are left.
    pub fn spend(&self, steps: u64) -> Result<(), EvaluationError> {
        if self.effort.spend(steps) {
            Ok(())
        } else {
            Err(Effort::error())
        }
    }

    /// Returns whether a condition takes the value for true.
    fn holds(&self, value: &Value) -> bool {
        if let Value::Number(digits) = value {
            self.effort.read(digits.len());
        }
        value.truthy()
    }

    fn resolve(&self, path: &Path) -> Result<Value<'s>, EvaluationError> {
        let (document, slots) = match path.root {
            Root::Source => (self.source, self.source_slots),
            Root::Trigger => (self.trigger, &[][..]),
            Root::Steps => (self.steps, &[][..]),
            Root::Target => (self.target, &[][..]),
            Root::Instance => (self.instance, &[][..]),
            Root::Item => (self.item, self.item_slots),
            Root::State => (self.state, &[][..]),
        };
        let (json, segments) = match path.slot.and_then(|slot| slots.get(slot)) {
            Some(Some(found)) => (*found, path.split().1),
            Some(None) => return Ok(Value::Undefined),
            None => {
                let json = document.trim_matches([' ', '\n', '\r', '\t']);
                self.effort.pass(document.len() - json.len());
                (json, path.segments.as_slice())
            }
        };
        if segments.is_empty() {
            return Ok(Value::from_json(json));
        }
        let found = path::follow(json, segments, self.effort);
        self.effort.check()?;
        Ok(found)
    }
}

/// Steps of an identifier, which takes random bytes of the system.
const UUID: u64 = 1000;

impl Call {
    /// Applies the transform, and charges it by its input and its output.
    fn apply<'s>(
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
        let result = self.transform.apply(value, environment)?;
        environment.spend(steps + result.size() as u64)?;
        Ok(result)
    }
}

impl Node {
    fn evaluate<'s>(&'s self, environment: &Environment<'s>) -> Result<Value<'s>, EvaluationError> {
        // A pipe is charged by the values that pass through it.
        if !matches!(self, Self::Pipe(..)) {
            environment.spend(NODE)?;
        }
        match self {
            Self::Literal(literal) => Ok(literal.value()),
            Self::Path(path) => environment.resolve(path),
            Self::Now => Ok(Value::plain(environment.now.to_string())),
            Self::Uuid => {
                environment.spend(UUID)?;
                Ok(Value::plain(uuid::Uuid::now_v7().to_string()))
            }
            Self::Pipe(input, calls) => {
                let mut value = input.evaluate(environment)?;
                for call in calls {
                    value = call.apply(&value, environment).map_err(|mut error| {
                        error.transform = Some(call.name);
                        environment.show(&value, &mut error);
                        error
                    })?;
                }
                Ok(value)
            }
            Self::Not(inner) => {
                let value = inner.evaluate(environment)?;
                Ok(Value::Bool(!environment.holds(&value)))
            }
            Self::And(nodes) => all(nodes, environment).map(Value::Bool),
            Self::Or(nodes) => any(nodes, environment).map(Value::Bool),
            Self::Comparison(left, operator, right) => {
                let left = left.evaluate(environment)?;
                let right = right.evaluate(environment)?;
                let holds = operator.holds(&left, &right, environment.effort);
                environment.effort.check()?;
                Ok(Value::Bool(holds))
            }
        }
    }
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
fn contains(whole: &Value, part: &Value, effort: &Effort) -> bool {
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
