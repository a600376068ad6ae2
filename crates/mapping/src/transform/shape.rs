//! The shape of a transform: its name, its parameters, and how it is built from arguments.

use super::{Transform, table};
use crate::ParseError;
use crate::language::{Example, Function, Parameter};
use crate::node::{Call, Literal, Node};
use crate::parse::{Argument, ArgumentKind, suggestion};
use crate::references::{Reference, References};

/// Transform in the table, with the function that builds it.
pub(crate) struct Shape {
    pub name: &'static str,
    pub parameters: &'static [Parameter],
    pub text: &'static str,
    pub example: Example,
    pub(super) make: Make,
}

/// Function that builds a transform of arguments whose number is right.
pub(super) type Make = fn(&mut Arguments) -> Result<Transform, ParseError>;

/// Arguments that a transform is built of, and where it notes the names among them.
pub(super) struct Arguments<'a> {
    list: &'a [Argument],
    references: &'a mut References,
}

impl Shape {
    /// Returns its entry in the table of the language.
    pub fn function(&self) -> Function {
        Function {
            name: self.name,
            parameters: self.parameters,
            text: self.text,
            example: self.example,
        }
    }

    /// Returns the shape of the transform of that name.
    pub fn of(name: &str) -> Option<&'static Self> {
        table::shapes().find(|shape| shape.name == name)
    }

    /// Returns the error of a name at `offset` that no transform has.
    pub fn unknown(name: &str, offset: usize) -> ParseError {
        let names: Vec<_> = table::shapes().map(|shape| shape.name).collect();
        let suggestion = suggestion(name, &names);
        let name: String = name.chars().take(40).collect();
        ParseError::new(
            offset,
            format!("there is no transform `{name}`{suggestion}"),
        )
    }

    /// Builds the transform whose name stands at `offset`.
    pub fn call(
        &self,
        offset: usize,
        arguments: Vec<Argument>,
        references: &mut References,
    ) -> Result<Call, ParseError> {
        self.function().check_count(arguments.len(), offset)?;
        let transform = (self.make)(&mut Arguments {
            list: &arguments,
            references,
        })?;
        Ok(Call {
            name: self.name,
            transform,
            arguments: arguments.into_iter().filter_map(expression).collect(),
        })
    }
}

fn expression(argument: Argument) -> Option<Node> {
    match argument.kind {
        ArgumentKind::Expression(node) => Some(node),
        ArgumentKind::Literal(_) | ArgumentKind::Word(_) => None,
    }
}

impl Arguments<'_> {
    /// Returns whether there is an argument at `index`.
    pub fn has(&self, index: usize) -> bool {
        index < self.list.len()
    }

    pub fn text(&self, index: usize) -> String {
        self.list.get(index).map(Argument::text).unwrap_or_default()
    }

    /// Returns an error at the place of an argument.
    pub fn error(&self, index: usize, message: impl Into<String>) -> ParseError {
        let offset = self.list.get(index).map_or(0, |argument| argument.offset);
        ParseError::new(offset, message)
    }

    /// Returns the error of an argument that is something else than expected.
    pub fn unexpected(&self, index: usize, expected: &str) -> ParseError {
        let found: String = self.text(index).chars().take(40).collect();
        self.error(index, format!("found `{found}`, expected {expected}"))
    }

    pub fn whole<N>(&self, index: usize, least: N, most: N) -> Result<N, ParseError>
    where
        N: std::str::FromStr + PartialOrd + std::fmt::Display,
    {
        let number = match self.list.get(index).map(|argument| &argument.kind) {
            Some(ArgumentKind::Literal(Literal::Number(digits))) => digits.parse().ok(),
            Some(
                ArgumentKind::Literal(_) | ArgumentKind::Word(_) | ArgumentKind::Expression(_),
            )
            | None => None,
        };
        number
            .filter(|number| (&least..=&most).contains(&number))
            .ok_or_else(|| {
                self.unexpected(index, &format!("a whole number from {least} to {most}"))
            })
    }

    pub fn not_empty(&self, index: usize, expected: &str) -> Result<String, ParseError> {
        let text = self.text(index);
        if text.is_empty() {
            let message = format!("found an empty text, expected {expected}");
            return Err(self.error(index, message));
        }
        Ok(text)
    }

    /// Returns the word among `known` that an argument is.
    pub fn one_of<T: Copy>(
        &self,
        index: usize,
        known: &[(&str, T)],
        expected: &str,
    ) -> Result<T, ParseError> {
        let text = self.text(index);
        if let Some((_, value)) = known.iter().find(|(name, _)| *name == text) {
            return Ok(*value);
        }
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        let suggestion = suggestion(&text, &names);
        let expected = format!("{expected}: {}{suggestion}", names.join(", "));
        Err(self.unexpected(index, &expected))
    }

    /// Returns the name of a table, and notes that it is used.
    pub fn table(&mut self, index: usize) -> Result<String, ParseError> {
        let reference = self.reference(index, "the name of a table")?;
        self.references.tables.push(reference.clone());
        Ok(reference.name)
    }

    /// Returns the name of an adapter, and notes that it is used.
    pub fn adapter(&mut self, index: usize) -> Result<String, ParseError> {
        let reference = self.reference(index, "the name of an adapter")?;
        self.references.adapters.push(reference.clone());
        Ok(reference.name)
    }

    /// Notes a fault that a run takes and a check of a definition refuses.
    pub fn definition_fault(&mut self, index: usize, message: String) {
        let fault = self.error(index, message);
        self.references.definition_faults.push(fault);
    }

    fn reference(&self, index: usize, expected: &str) -> Result<Reference, ParseError> {
        Ok(Reference {
            name: self.not_empty(index, expected)?,
            offset: self.list.get(index).map_or(0, |argument| argument.offset),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::Lists;
    use crate::parse::expression;

    #[track_caller]
    fn refuses(text: &str, offset: usize, message: &str) {
        let errors = expression(&format!("1 | {text}"), &Lists::default())
            .map(|_| ())
            .unwrap_err();
        assert_eq!(errors[0].offset - 4, offset, "{text}");
        assert_eq!(errors[0].message.as_str(), message, "{text}");
    }

    #[test]
    fn checks_arguments() {
        refuses("decimal", 0, "found 0 arguments, expected `decimal(n)`");
        refuses("trim(1)", 0, "found 1 argument, expected `trim`");
        refuses(
            "decimal(31)",
            8,
            "found `31`, expected a whole number from 0 to 30",
        );
        refuses(
            "decimal(-1)",
            8,
            "found `-1`, expected a whole number from 0 to 30",
        );
        refuses(
            "decimal(1.0)",
            8,
            "found `1.0`, expected a whole number from 0 to 30",
        );
        refuses(
            "decimal('2')",
            8,
            "found `2`, expected a whole number from 0 to 30",
        );
        refuses(
            "mask(x)",
            5,
            "found `x`, expected a whole number from 0 to 2147483647",
        );
        refuses(
            "lookup('')",
            7,
            "found an empty text, expected the name of a table",
        );
        refuses(
            "replace('', x)",
            8,
            "found an empty text, expected a text to look for",
        );
        refuses("concat(source.)", 14, "found `)`, expected a name");
        refuses(
            "concat(source.a b)",
            16,
            "found `b`, expected an operator, `|`, `,` or `)`",
        );
        refuses("split(", 6, "found the end, expected an argument");
        refuses("split(,)", 6, "found `,`, expected an argument");
        refuses("split('a' b)", 10, "found `b`, expected `,` or `)`");
        refuses(
            "date(YYYY, Mars/Olympus)",
            11,
            "there is no time zone `Mars/Olympus`",
        );
        refuses(
            "date(YYYY, Europe/Berln)",
            11,
            "there is no time zone `Europe/Berln`; did you mean `Europe/Berlin`?",
        );
    }
}
