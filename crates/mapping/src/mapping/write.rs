//! Runs a mapping: one pass over the payload finds its values, and the output is written in order.

use super::{Mapping, MemberValue, Object};
use crate::evaluate::{CompiledExpression, Environment};
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
                MemberValue::Each(list, map) => self.each(list, map, environment),
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

    fn each<'s>(
        &mut self,
        list: &'s CompiledExpression,
        map: &'s Mapping,
        environment: &Environment<'s>,
    ) -> WriteResult {
        let value = list.evaluate(environment)?;
        let items = match &value {
            Value::List(items) => items,
            missing if missing.is_missing() => return Ok(false),
            other => {
                let error = EvaluationError::mapping(format!(
                    "expected a list, found {}",
                    other.type_name()
                ));
                return Err(list.shown(error, other, environment));
            }
        };
        self.out.push(b'[');
        let mut slots = Vec::new();
        for (index, item) in environment.effort.items(items).enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            map.item.find(item, &mut slots, environment.effort);
            let inner = environment.of_item(item, &slots);
            self.object(&map.object, &inner)
                .map_err(|error| error.within(&format!("[{index}]")))?;
            self.check_size()?;
        }
        environment.effort.check().map_err(|mut error| {
            error.expression.clone_from(&list.text);
            error
        })?;
        self.out.push(b']');
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
