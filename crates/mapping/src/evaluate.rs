//! The evaluator: a syntax tree on a message.

use std::cell::Cell;
use std::cmp::Ordering;

use kanat_model::{Mask, Timestamp};

use crate::node::{Node, Operand, Operator};
use crate::path::{self, Path};
use crate::references::{References, Root};
use crate::scope::{Adapters, Scope, Tables};
use crate::value::{Value, equal, order};
use crate::{EvaluationError, json, parse};

/// An expression's text, tree and references.
#[derive(Debug, Clone)]
pub(crate) struct Compiled {
    pub text: String,
    pub node: Node,
    pub references: References,
}

/// The most bytes that one mapping or expression reads: a list within a list may not take for ever.
const MAX_READ: usize = 512 * 1024 * 1024;

/// The documents behind the roots, as text.
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
    /// What a plan found in `source` and in `item`, by slot.
    pub source_slots: &'s [Option<&'s str>],
    item_slots: &'s [Option<&'s str>],
    pub now: Timestamp,
    pub tables: &'s dyn Tables,
    pub adapters: &'s dyn Adapters,
    mask: &'s Mask,
    /// Bytes read so far.
    pub read: Cell<usize>,
}

impl Compiled {
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

    /// The text that it gives whatever the message is, and whenever that comes.
    pub fn constant_text(&self) -> Option<String> {
        if self.references != References::default() {
            return None;
        }
        let text = |now| {
            let scope = Scope::new(b"", Timestamp::from_millis(now));
            match self.evaluate(&Environment::new(&scope)) {
                Ok(Value::String(text)) => Some(text.decode().into_owned()),
                Ok(_) | Err(_) => None,
            }
        };
        let first = text(0)?;
        (text(1_234_567_890_123)? == first).then_some(first)
    }

    /// An error of this expression that shows the value at fault.
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

    /// What a connector is configured with may be secret.
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
        // What is not UTF-8 has not been checked, and is as good as absent.
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
            read: Cell::new(0),
        }
    }

    /// The same for an item of a list, and for what a plan found in it.
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

    /// The same without what a connector is configured with.
    pub fn without_instance(&self) -> Self {
        Self {
            instance: "",
            ..self.clone()
        }
    }

    /// Puts a value into an error. A secret is hidden before the value is cut: its beginning would
    /// not be known any more.
    fn show(&self, value: &Value, error: &mut EvaluationError) {
        error.show(&self.mask.apply(&value.to_json()));
    }

    pub fn operand(&self, operand: &'s Operand) -> Result<Value<'s>, EvaluationError> {
        match operand {
            Operand::Literal(literal) => Ok(literal.value()),
            Operand::Path(path) => self.resolve(path),
        }
    }

    /// Counts bytes that are about to be read.
    fn reads(&self, bytes: usize) -> Result<(), EvaluationError> {
        self.read.set(self.read.get().saturating_add(bytes));
        if self.read.get() > MAX_READ {
            let message = format!(
                "more than {} MiB were read for one message",
                MAX_READ / 1024 / 1024
            );
            return Err(EvaluationError::mapping(message));
        }
        Ok(())
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
            None => (
                document.trim_matches([' ', '\n', '\r', '\t']),
                path.segments.as_slice(),
            ),
        };
        if segments.is_empty() {
            return Ok(Value::from_json(json));
        }
        self.reads(json.len())?;
        Ok(path::follow(json, segments))
    }
}

impl Node {
    fn evaluate<'s>(&'s self, environment: &Environment<'s>) -> Result<Value<'s>, EvaluationError> {
        match self {
            Self::Literal(literal) => Ok(literal.value()),
            Self::Path(path) => environment.resolve(path),
            Self::Now => Ok(Value::plain(environment.now.to_string())),
            Self::Uuid => Ok(Value::plain(uuid::Uuid::now_v7().to_string())),
            Self::Pipe(input, calls) => {
                let mut value = input.evaluate(environment)?;
                for call in calls {
                    environment.reads(value.size())?;
                    value = call
                        .transform
                        .apply(&value, environment)
                        .map_err(|mut error| {
                            error.transform = Some(call.name);
                            environment.show(&value, &mut error);
                            error
                        })?;
                }
                Ok(value)
            }
            Self::Not(inner) => Ok(Value::Bool(!inner.evaluate(environment)?.truthy())),
            Self::And(nodes) => all(nodes, environment).map(Value::Bool),
            Self::Or(nodes) => any(nodes, environment).map(Value::Bool),
            Self::Comparison(left, operator, right) => {
                let left = left.evaluate(environment)?;
                let right = right.evaluate(environment)?;
                environment.reads(left.size() + right.size())?;
                Ok(Value::Bool(operator.holds(&left, &right)))
            }
        }
    }
}

fn all<'s>(nodes: &'s [Node], environment: &Environment<'s>) -> Result<bool, EvaluationError> {
    for node in nodes {
        if !node.evaluate(environment)?.truthy() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn any<'s>(nodes: &'s [Node], environment: &Environment<'s>) -> Result<bool, EvaluationError> {
    for node in nodes {
        if node.evaluate(environment)?.truthy() {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Operator {
    fn holds(self, left: &Value, right: &Value) -> bool {
        match self {
            Self::Equal => equal(left, right),
            Self::Unequal => !equal(left, right),
            Self::Less => order(left, right) == Some(Ordering::Less),
            Self::LessOrEqual => {
                matches!(order(left, right), Some(Ordering::Less | Ordering::Equal))
            }
            Self::Greater => order(left, right) == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(
                order(left, right),
                Some(Ordering::Greater | Ordering::Equal)
            ),
            Self::In => contains(right, left),
        }
    }
}

/// An item of a list, a key of an object, a part of a string.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::List(list), _) => {
            json::items(list).any(|item| equal(&Value::from_json(item), part))
        }
        (Value::Object(object), Value::String(key)) => json::has_key(object, &key.decode()),
        (Value::String(text), Value::String(part)) => text.decode().contains(&*part.decode()),
        _ => false,
    }
}
