//! Templates: texts with `{{ }}` in them.

mod endpoint;
mod missing;

use std::sync::Arc;

use percent_encoding::utf8_percent_encode;

use crate::environment::Environment;
use crate::evaluate::CompiledExpression;
use crate::parse::Parser;
use crate::transform::{BoundedText, RESERVED};
use crate::{Effort, EvaluationError, Lists, ParseError, References, Scope, Value};

/// Greatest length of a template, in bytes.
const MAX_LENGTH: usize = 1024 * 1024;

/// A parsed template. Clones share it.
#[derive(Debug, Clone)]
pub struct Template(Arc<Parts>);

/// Escaping of rendered values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Escape {
    None,
    /// Percent-encoded, so that a value stays one segment of a path.
    PathSegment,
    /// Percent-encoded, so that a value stays one value of a query.
    QueryValue,
}

#[derive(Debug, Clone)]
pub(crate) struct Parts {
    text: String,
    pub parts: Vec<Part>,
    references: References,
}

#[derive(Debug, Clone)]
pub(crate) enum Part {
    Literal(String),
    Expression(Box<CompiledExpression>),
}

impl Template {
    /// Parses a text of at most 1 MiB. Errors are all that could be found, at most 100.
    pub fn parse(text: &str) -> Result<Self, Vec<ParseError>> {
        Self::parse_within(text, &Lists::default())
    }

    /// Parses a text as [`Self::parse`] does. Warnings know what `item` is in these lists.
    pub fn parse_within(text: &str, lists: &Lists) -> Result<Self, Vec<ParseError>> {
        if text.len() > MAX_LENGTH {
            return Err(vec![ParseError::new(
                0,
                format!("{} bytes long, expected at most {MAX_LENGTH}", text.len()),
            )]);
        }
        let mut parser = Parser::new(text, lists);
        let mut parts = Vec::new();
        let mut references = References::default();
        let mut position = 0;
        while let Some(braces) = text[position..].find("{{").map(|found| position + found) {
            push_literal(&mut parts, &text[position..braces]);
            match parser.braced(braces + 2) {
                Ok((node, end)) => {
                    let own = std::mem::take(&mut parser.references);
                    references.extend(&own);
                    let text = text[braces + 2..end - 2].trim().to_owned();
                    parts.push(Part::Expression(Box::new(CompiledExpression {
                        text,
                        node,
                        references: own,
                    })));
                    position = end;
                }
                Err(error) => {
                    let after = error.offset.max(braces + 2);
                    position = text[after..]
                        .find("}}")
                        .map_or(text.len(), |found| after + found + 2);
                    parser.errors.push(error);
                }
            }
        }
        push_literal(&mut parts, &text[position..]);
        if parser.errors.is_empty() {
            Ok(Self(Arc::new(Parts {
                text: text.to_owned(),
                parts,
                references,
            })))
        } else {
            Err(parser.into_errors())
        }
    }

    /// Returns the text that it was parsed from.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the text itself when no expression is in it.
    pub fn is_literal(&self) -> Option<&str> {
        match self.0.parts.as_slice() {
            [] => Some(""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the parts of the text that stand outside of expressions.
    pub fn literals(&self) -> impl Iterator<Item = &str> {
        self.0.parts.iter().filter_map(|part| match part {
            Part::Literal(text) => Some(text.as_str()),
            Part::Expression(_) => None,
        })
    }

    /// Returns the text that it gives for every message.
    pub fn constant_text(&self) -> Option<String> {
        self.0
            .parts
            .iter()
            .map(|part| match part {
                Part::Literal(text) => Some(text.clone()),
                Part::Expression(expression) => expression.constant_text(),
            })
            .collect()
    }

    /// Returns whether it gives a string for every message: it is not one expression alone, whose
    /// value keeps its type.
    pub fn always_gives_string(&self) -> bool {
        match self.0.parts.as_slice() {
            [Part::Expression(whole)] => whole.constant_text().is_some(),
            _ => true,
        }
    }

    /// Returns the names that it uses from outside itself.
    pub fn references(&self) -> &References {
        &self.0.references
    }

    /// Evaluates it. A template of one expression alone keeps the type of its value; every other
    /// one gives a string.
    pub fn evaluate<'s>(&'s self, scope: &'s Scope<'s>) -> Result<Value<'s>, EvaluationError> {
        self.0.evaluate(&Environment::new(scope))
    }

    /// Renders it as text. Null and undefined render as nothing, lists and objects as JSON.
    pub fn render(&self, scope: &Scope, escape: Escape) -> Result<String, EvaluationError> {
        self.0.render(&Environment::new(scope), escape)
    }

    /// Renders it without escapes; `None` when one of its expressions renders to nothing. For a
    /// text that may not lack a part, such as a secret.
    pub fn render_complete(&self, scope: &Scope) -> Result<Option<String>, EvaluationError> {
        self.0.render_complete(&Environment::new(scope))
    }

    /// Renders an endpoint or URL: before `?` values are escaped as path segments, after it as
    /// query values. A segment that comes out empty, `.` or `..` because of its values would be
    /// another endpoint: that is an error.
    pub fn render_endpoint(&self, scope: &Scope) -> Result<String, EvaluationError> {
        endpoint::render(&self.0.parts, &Environment::new(scope))
    }

    /// Returns the texts that its expressions make of secret values of the instance. `is_secret`
    /// decides by the names that lead to a value. An expression that fails gives none.
    pub fn secret_texts(
        &self,
        scope: &Scope,
        is_secret: &dyn Fn(&[String]) -> bool,
    ) -> Vec<String> {
        let mut texts = Vec::new();
        // A secret that was used is masked, even when the evaluation used up the effort.
        let effort = Effort::default();
        let scope = Scope {
            effort: &effort,
            ..*scope
        };
        self.0
            .secret_texts(&Environment::new(&scope), is_secret, &mut texts);
        texts
    }

    pub(crate) fn into_parts(self) -> Parts {
        Arc::unwrap_or_clone(self.0)
    }
}

impl Parts {
    pub fn evaluate<'s>(
        &'s self,
        environment: &Environment<'s>,
    ) -> Result<Value<'s>, EvaluationError> {
        match self.parts.as_slice() {
            [Part::Expression(whole)] => whole.evaluate(environment),
            [Part::Literal(text)] => Ok(Value::plain(text.as_str())),
            _ => self.render(environment, Escape::None).map(Value::plain),
        }
    }

    pub fn secret_texts<'s>(
        &'s self,
        environment: &Environment<'s>,
        is_secret: &dyn Fn(&[String]) -> bool,
        texts: &mut Vec<String>,
    ) {
        for part in &self.parts {
            let Part::Expression(expression) = part else {
                continue;
            };
            if expression
                .references
                .instance_values
                .iter()
                .any(|value| is_secret(&value.names))
            {
                texts.extend(made_of_instance(expression, environment));
            }
        }
    }

    fn render<'s>(
        &'s self,
        environment: &Environment<'s>,
        escape: Escape,
    ) -> Result<String, EvaluationError> {
        let mut rendered = BoundedText::default();
        for part in &self.parts {
            match part {
                Part::Literal(text) => rendered.push(text)?,
                Part::Expression(expression) => {
                    let value = expression.evaluate(environment)?;
                    environment.effort.read(value.size());
                    rendered.push(&escaped(&value, escape))?;
                }
            }
        }
        Ok(rendered.into_text())
    }

    fn render_complete<'s>(
        &'s self,
        environment: &Environment<'s>,
    ) -> Result<Option<String>, EvaluationError> {
        let mut rendered = BoundedText::default();
        for part in &self.parts {
            match part {
                Part::Literal(text) => rendered.push(text)?,
                Part::Expression(expression) => {
                    let value = expression.evaluate(environment)?;
                    environment.effort.read(value.size());
                    let text = escaped(&value, Escape::None);
                    if text.is_empty() {
                        return Ok(None);
                    }
                    rendered.push(&text)?;
                }
            }
        }
        Ok(Some(rendered.into_text()))
    }
}

/// Returns the text that an expression gives, when a value of the instance is in it. In
/// `source.a | default(instance.token)` it is not when the payload has the value: otherwise the
/// sender of the payload would choose the text that is hidden, and could find out by it how a
/// secret begins.
fn made_of_instance<'s>(
    expression: &'s CompiledExpression,
    environment: &Environment<'s>,
) -> Option<String> {
    let text = |environment: &Environment<'s>| {
        let value = expression.evaluate(environment).ok()?;
        Some(value.rendered().into_owned())
    };
    let given = text(environment)?;
    (text(&environment.without_instance()).as_ref() != Some(&given)).then_some(given)
}

fn escaped(value: &Value, escape: Escape) -> String {
    let text = value.rendered();
    match escape {
        Escape::None => text.into_owned(),
        Escape::PathSegment | Escape::QueryValue => {
            utf8_percent_encode(&text, RESERVED).to_string()
        }
    }
}

fn push_literal(parts: &mut Vec<Part>, text: &str) {
    if !text.is_empty() {
        parts.push(Part::Literal(text.to_owned()));
    }
}
