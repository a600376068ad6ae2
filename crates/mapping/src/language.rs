//! The parts of expressions as tables, each with a text and an example: the compiler reads them,
//! and so do the documentation, editors and the JSON Schema.

mod functions;
mod operators;

use crate::references::Root;
use crate::{ParseError, transform};

pub use functions::FUNCTIONS;
pub(crate) use functions::{COALESCE, IF};
pub use operators::{OPERATORS, OperatorEntry};

/// A transform, or a function of expressions.
#[derive(Debug, Clone, Copy)]
pub struct Function {
    /// As it is written.
    pub name: &'static str,
    /// In their order.
    pub parameters: &'static [Parameter],
    /// Sentence on its behaviour.
    pub text: &'static str,
    /// An expression with it.
    pub example: Example,
}

/// Parameter of a function or a transform.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Name for people.
    pub name: &'static str,
    /// Kind of its argument.
    pub kind: ParameterKind,
    /// True if the argument may not be left out.
    pub required: bool,
    /// Greatest number of arguments for it: more than one for the last parameter alone.
    pub most: usize,
    /// Sentence on its meaning.
    pub text: &'static str,
}

/// Kind of a parameter, which decides how its argument is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterKind {
    /// Name or unit: a literal or a bare word.
    Word,
    /// Number as it is written.
    Number,
    /// Text, as a literal or a bare word.
    Text,
    /// Regular expression in quotes.
    Pattern,
    /// Literal, path or bare word; an expression where it is none of these.
    Operand,
    /// Expression.
    Expression,
    /// Expression whose values of the instance make a signature.
    SigningKey,
    /// Expression that is evaluated for each element of the list.
    Element,
}

/// An expression and its value.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// The expression.
    pub expression: &'static str,
    /// JSON of `source`; absent when the expression does not read it.
    pub source: Option<&'static str>,
    /// JSON of its value; absent where that changes, or depends on the environment.
    pub value: Option<&'static str>,
}

/// Root of paths, with its meaning.
#[derive(Debug, Clone, Copy)]
pub struct RootEntry {
    /// As it is written.
    pub name: &'static str,
    /// Sentence on what it leads to.
    pub text: &'static str,
    /// Part of a flow in which the root is known.
    pub known_in: &'static str,
}

/// Returns the transforms.
pub fn transforms() -> impl Iterator<Item = Function> {
    transform::functions()
}

/// Returns the roots.
pub fn roots() -> impl Iterator<Item = RootEntry> {
    Root::ALL.into_iter().map(Root::entry)
}

impl Parameter {
    pub(crate) const fn required(
        name: &'static str,
        kind: ParameterKind,
        text: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            required: true,
            most: 1,
            text,
        }
    }

    pub(crate) const fn optional(
        name: &'static str,
        kind: ParameterKind,
        text: &'static str,
    ) -> Self {
        Self {
            required: false,
            ..Self::required(name, kind, text)
        }
    }

    /// Lets it take several arguments.
    pub(crate) const fn up_to(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Returns the parameter as a usage shows it.
    fn usage(&self) -> String {
        let name = self.name;
        if self.kind == ParameterKind::Pattern {
            format!("'{name}'")
        } else if self.most > 1 {
            format!("{name}, ...")
        } else {
            name.to_owned()
        }
    }
}

impl ParameterKind {
    /// Returns the name of the kind, as editors show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Word => "word",
            Self::Number => "number",
            Self::Text => "text",
            Self::Pattern => "pattern",
            Self::Operand => "value",
            Self::Expression | Self::SigningKey | Self::Element => "expression",
        }
    }
}

impl Example {
    pub(crate) const fn of(expression: &'static str) -> Self {
        Self {
            expression,
            source: None,
            value: None,
        }
    }

    pub(crate) const fn on(self, source: &'static str) -> Self {
        Self {
            source: Some(source),
            ..self
        }
    }

    pub(crate) const fn gives(self, value: &'static str) -> Self {
        Self {
            value: Some(value),
            ..self
        }
    }
}

impl Function {
    /// Returns the ways to write it, as errors show them: `date(format) or date(format, zone)`.
    pub(crate) fn usage(&self) -> String {
        let fewest = self.fewest();
        let forms: Vec<_> = (fewest..=self.parameters.len())
            .map(|count| match &self.parameters[..count] {
                [] => self.name.to_owned(),
                parameters => {
                    let parameters: Vec<_> = parameters.iter().map(Parameter::usage).collect();
                    format!("{}({})", self.name, parameters.join(", "))
                }
            })
            .collect();
        match forms.as_slice() {
            [former @ .., last] if !former.is_empty() => {
                format!("{} or {last}", former.join(", "))
            }
            forms => forms.concat(),
        }
    }

    /// Checks the number of arguments where the name stands at `offset`.
    pub(crate) fn check_count(&self, found: usize, offset: usize) -> Result<(), ParseError> {
        let most = self.parameters.iter().map(|parameter| parameter.most).sum();
        if (self.fewest()..=most).contains(&found) {
            return Ok(());
        }
        let plural = if found == 1 { "" } else { "s" };
        let message = format!(
            "found {found} argument{plural}, expected `{}`",
            self.usage()
        );
        Err(ParseError::new(offset, message))
    }

    fn fewest(&self) -> usize {
        let required = |parameter: &&Parameter| parameter.required;
        self.parameters.iter().filter(required).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_shows_all_forms_of_a_function() {
        let usage = |name| {
            let function = transforms().find(|function| function.name == name);
            function
                .map(|function| function.usage())
                .unwrap_or_default()
        };
        assert_eq!(usage("trim"), "trim");
        assert_eq!(usage("decimal"), "decimal(n)");
        assert_eq!(usage("sum"), "sum or sum(expression)");
        assert_eq!(usage("concat"), "concat(value, ...)");
        assert_eq!(usage("matches"), "matches('pattern')");
        assert_eq!(
            usage("parse_csv"),
            "parse_csv, parse_csv(separator) or parse_csv(separator, header)"
        );
    }
}
