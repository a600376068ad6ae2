//! The documents and services that an evaluation sees, and how its paths are followed in them.

use kanat_model::Timestamp;

use crate::EvaluationError;
use crate::effort::Effort;
use crate::error::shortened;
use crate::node::{Literal, Node};
use crate::path::{self, Path};
use crate::references::Root;
use crate::scope::Scope;
use crate::value::Value;

/// Documents of the roots, as text, and the services that an expression may use.
#[derive(Clone)]
pub(crate) struct Environment<'s> {
    pub scope: &'s Scope<'s>,
    pub source: &'s str,
    trigger: &'s str,
    steps: &'s str,
    target: &'s str,
    response: &'s str,
    instance: &'s str,
    state: &'s str,
    /// Element of the innermost list; none outside of lists.
    element: Option<&'s Element<'s>>,
    /// Values that a mapping's plan found in `source`, by slot.
    pub source_slots: &'s [Option<&'s str>],
    pub effort: &'s Effort,
}

/// Element of a list that an expression is evaluated for.
pub(crate) struct Element<'s> {
    pub item: &'s str,
    pub index: usize,
    /// Values that a mapping's plan found in the item, by slot.
    pub slots: &'s [Option<&'s str>],
    /// Element of the list around.
    pub outer: Option<&'s Element<'s>>,
}

/// Returns a document as text. One that is not UTF-8 has not been checked, and counts as absent.
fn text(document: &[u8]) -> &str {
    std::str::from_utf8(document).unwrap_or_default()
}

impl<'s> Environment<'s> {
    /// Creates the environment of an evaluation, which begins with it.
    pub fn new(scope: &'s Scope<'s>) -> Self {
        scope.effort.begin();
        Self {
            scope,
            source: text(scope.source),
            trigger: text(scope.trigger),
            steps: text(scope.steps),
            target: text(scope.target),
            response: text(scope.response),
            instance: text(scope.instance),
            state: text(scope.state),
            element: None,
            source_slots: &[],
            effort: scope.effort,
        }
    }

    pub fn now(&self) -> Timestamp {
        self.scope.now
    }

    /// Returns an element of a list that is evaluated in this environment.
    pub fn element(
        &self,
        index: usize,
        item: &'s str,
        slots: &'s [Option<&'s str>],
    ) -> Element<'s> {
        Element {
            item,
            index,
            slots,
            outer: self.element,
        }
    }

    /// Returns the environment for an element of a list.
    pub fn of_element<'i>(&self, element: &'i Element<'i>) -> Environment<'i>
    where
        's: 'i,
    {
        Environment {
            element: Some(element),
            ..self.clone()
        }
    }

    /// Returns the environment with the services of another scope.
    pub fn in_scope<'i>(&self, scope: &'i Scope<'i>) -> Environment<'i>
    where
        's: 'i,
    {
        Environment {
            scope,
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

    /// Returns a value as errors show it. A secret is hidden before the value is cut, because its
    /// beginning alone would not be recognised.
    pub fn shown(&self, value: &Value) -> String {
        shortened(&self.scope.mask.apply(&value.to_json()))
    }

    /// Returns the first part of a path that is null or undefined.
    pub fn missing_part(&self, path: &Path) -> Option<Path> {
        (0..=path.segments.len()).find_map(|count| {
            let part = Path {
                segments: path.segments[..count].to_vec(),
                slot: None,
                ..path.clone()
            };
            let is_missing = self.resolve(&part).ok()?.is_missing();
            is_missing.then_some(part)
        })
    }

    /// Returns the value of an argument of a transform; undefined when there is none.
    pub fn argument(&self, argument: Option<&'s Node>) -> Result<Value<'s>, EvaluationError> {
        match argument {
            None => Ok(Value::Undefined),
            // What most arguments are is not charged by itself.
            Some(Node::Literal(literal)) => Ok(Literal::value(literal)),
            Some(Node::Path(path)) => self.resolve(path),
            Some(node) => node.evaluate(self),
        }
    }

    /// Charges steps. Fails when none are left.
    pub fn spend(&self, steps: u64) -> Result<(), EvaluationError> {
        if self.effort.spend(steps) {
            Ok(())
        } else {
            Err(self.effort.error())
        }
    }

    /// Returns whether a condition takes the value for true.
    pub fn holds(&self, value: &Value) -> bool {
        if let Value::Number(digits) = value {
            self.effort.read(digits.len());
        }
        value.truthy()
    }

    pub fn resolve(&self, path: &Path) -> Result<Value<'s>, EvaluationError> {
        let (document, slots) = match path.root {
            Root::Source => (self.source, self.source_slots),
            Root::Trigger => (self.trigger, &[][..]),
            Root::Steps => (self.steps, &[][..]),
            Root::Target => (self.target, &[][..]),
            Root::Response => (self.response, &[][..]),
            Root::Instance => (self.instance, &[][..]),
            Root::State => (self.state, &[][..]),
            Root::Item => match self.element_at(path.outward) {
                Some(element) => (element.item, element.slots),
                None => (text(self.scope.item), &[][..]),
            },
            Root::Index => return Ok(self.index(path)),
            Root::Env => (text(self.scope.variables), &[][..]),
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

    /// Returns the element of the list that is so many lists outward.
    fn element_at(&self, outward: usize) -> Option<&'s Element<'s>> {
        let mut element = self.element?;
        for _ in 0..outward {
            element = element.outer?;
        }
        Some(element)
    }

    /// Returns the place of an element; it has no members.
    fn index(&self, path: &Path) -> Value<'s> {
        let index = match self.element_at(path.outward) {
            Some(element) => Some(element.index),
            None => self.scope.index,
        };
        match index {
            Some(index) if path.segments.is_empty() => Value::number(index.to_string()),
            Some(_) | None => Value::Undefined,
        }
    }
}
