//! Runs a mapping: one pass over the payload finds its values, and the output is written in order.

use super::{Each, Mapping, MemberValue, Object};
use crate::environment::Environment;
use crate::transform::{MAX_BYTES, too_large};
use crate::{EvaluationError, Scope, Value};

/// Result of writing a value: false when it is undefined, so that nothing was written.
type WriteResult = Result<bool, EvaluationError>;

pub(super) fn write(
    mapping: &Mapping,
    scope: &Scope,
    out: &mut Vec<u8>,
) -> Result<(), EvaluationError> {
    let mut environment = Environment::new(scope);
    let mut slots = Vec::new();
    mapping
        .source
        .find(environment.source, &mut slots, scope.effort);
    environment.source_slots = &slots;
    Writer {
        end: out.len() + MAX_BYTES,
        out,
    }
    .object(&mapping.object, &environment)
    .map(|_| ())
}

struct Writer<'o> {
    out: &'o mut Vec<u8>,
    /// Greatest length of `out`.
    end: usize,
}

impl Writer<'_> {
    /// Writes an object. Returns whether any member was written.
    fn object<'s>(&mut self, object: &'s Object, environment: &Environment<'s>) -> WriteResult {
        environment.effort.spend(object.effort);
        self.out.push(b'{');
        let mut any = false;
        for member in &object.members {
            let before = self.out.len();
            if any {
                self.out.push(b',');
            }
            self.out.extend_from_slice(&member.key);
            let written = match &member.value {
                MemberValue::Object(object) => self.object(object, environment),
                MemberValue::Expression(expression) => expression
                    .evaluate(environment)
                    .and_then(|value| self.value(&value)),
                MemberValue::Template(template) => template
                    .evaluate(environment)
                    .and_then(|value| self.value(&value)),
                MemberValue::Each(each) => self.each(each, environment),
            };
            if written.map_err(|error| error.within(&member.name))? {
                any = true;
            } else {
                self.out.truncate(before);
            }
        }
        self.out.push(b'}');
        Ok(any)
    }

    fn value(&mut self, value: &Value) -> WriteResult {
        if *value == Value::Undefined {
            return Ok(false);
        }
        value.write_json(self.out);
        self.check_size()?;
        Ok(true)
    }

    fn each<'s>(&mut self, each: &'s Each, environment: &Environment<'s>) -> WriteResult {
        let value = each.list.evaluate(environment)?;
        let items = match &value {
            Value::List(items) => items,
            missing if missing.is_missing() => return Ok(false),
            other => {
                let error = EvaluationError::mapping(format!(
                    "expected a list, found {}",
                    other.type_name()
                ));
                return Err(each.list.shown(error, other, environment));
            }
        };
        self.out.push(b'[');
        let mut slots = Vec::new();
        let mut any = false;
        for (index, item) in environment.effort.items(items).enumerate() {
            let before = self.out.len();
            if any {
                self.out.push(b',');
            }
            each.map.item.find(item, &mut slots, environment.effort);
            let element = environment.element(index, item, &slots);
            let written = self
                .item(each, &environment.of_element(&element))
                .map_err(|error| error.within(&format!("[{index}]")))?;
            any |= written;
            if !written {
                self.out.truncate(before);
            }
            self.check_size()?;
        }
        environment.effort.check().map_err(|mut error| {
            error.expression.clone_from(&each.list.text);
            error
        })?;
        self.out.push(b']');
        Ok(true)
    }

    /// Writes an item of a list, unless the list leaves it out.
    fn item<'s>(&mut self, each: &'s Each, environment: &Environment<'s>) -> WriteResult {
        if let Some(filter) = &each.filter
            && !environment.holds(&filter.evaluate(environment)?)
        {
            return Ok(false);
        }
        self.object(&each.map.object, environment)?;
        Ok(true)
    }

    fn check_size(&self) -> Result<(), EvaluationError> {
        if self.out.len() > self.end {
            Err(too_large())
        } else {
            Ok(())
        }
    }
}
