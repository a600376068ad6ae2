//! Renders endpoints, so that no value can turn one into another.

use super::{Escape, Part, escaped};
use crate::EvaluationError;
use crate::environment::Environment;
use crate::evaluate::CompiledExpression;

pub(super) fn render<'s>(
    parts: &'s [Part],
    environment: &Environment<'s>,
) -> Result<String, EvaluationError> {
    let mut endpoint = Endpoint {
        text: String::new(),
        segment: 0,
        value: None,
        in_path: true,
    };
    for part in parts {
        match part {
            Part::Literal(text) => endpoint.literal(text)?,
            Part::Expression(expression) => endpoint.value(expression, environment)?,
        }
    }
    endpoint.end_segment()?;
    Ok(endpoint.text)
}

struct Endpoint<'s> {
    text: String,
    /// Position of the last segment of the path.
    segment: usize,
    /// The last expression in the last segment.
    value: Option<&'s CompiledExpression>,
    in_path: bool,
}

impl<'s> Endpoint<'s> {
    fn literal(&mut self, text: &str) -> Result<(), EvaluationError> {
        for letter in text.chars() {
            let ends_segment = matches!(letter, '/' | '\\' | '?' | '#');
            if self.in_path && ends_segment {
                self.end_segment()?;
                self.in_path = matches!(letter, '/' | '\\');
            }
            self.text.push(letter);
            if ends_segment {
                self.segment = self.text.len();
            }
        }
        Ok(())
    }

    fn value(
        &mut self,
        expression: &'s CompiledExpression,
        environment: &Environment<'s>,
    ) -> Result<(), EvaluationError> {
        let escape = if self.in_path {
            Escape::PathSegment
        } else {
            Escape::QueryValue
        };
        let value = expression.evaluate(environment)?;
        environment.effort.read(value.size());
        self.text.push_str(&escaped(&value, escape));
        self.value = Some(expression);
        Ok(())
    }

    fn end_segment(&mut self) -> Result<(), EvaluationError> {
        let Some(expression) = self.value.take().filter(|_| self.in_path) else {
            return Ok(());
        };
        let what = match &self.text[self.segment..] {
            "" => "empty",
            "." | ".." => "a step to another endpoint",
            _ => return Ok(()),
        };
        let mut error = EvaluationError::mapping(format!("a segment of the path is {what}"));
        error.expression.clone_from(&expression.text);
        Err(error)
    }
}
