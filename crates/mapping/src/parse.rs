//! The parser: builds a syntax tree by recursive descent of bounded depth. An error has its place,
//! the text that was found, the one that was expected, and the nearest known name.

mod arguments;
mod comparison;
mod nearest;
mod operators;
mod path;
mod term;
mod token;

use std::ops::Range;

use crate::node::{Call, Node};
use crate::transform;
use crate::{ParseError, References};

pub(crate) use arguments::{Argument, ArgumentKind};
pub use comparison::Lists;
use comparison::Type;
pub(crate) use nearest::suggestion;
pub(crate) use token::is_word;

/// Greatest length of an expression, in bytes.
const MAX_LENGTH: usize = 64 * 1024;
/// Greatest depth to which parentheses, lists, calls and arguments may nest.
const MAX_NESTING: usize = 64;
/// Greatest number of characters of a pipe that an error shows.
const MAX_SHOWN: usize = 60;
/// Greatest number of errors that are reported for one text.
const MAX_ERRORS: usize = 100;

/// Parses a text that is one expression.
pub(crate) fn expression(text: &str, lists: &Lists) -> Result<(Node, References), Vec<ParseError>> {
    if text.len() > MAX_LENGTH {
        return Err(vec![ParseError::new(
            0,
            format!("{} bytes long, expected at most {MAX_LENGTH}", text.len()),
        )]);
    }
    let mut parser = Parser::new(text, lists);
    match parser.whole() {
        Ok(node) if parser.errors.is_empty() => {
            parser.references.note_form(node.value_form());
            Ok((node, parser.references))
        }
        Ok(_) => Err(parser.into_errors()),
        Err(error) => {
            parser.errors.push(error);
            Err(parser.into_errors())
        }
    }
}

pub(crate) struct Parser<'t> {
    text: &'t str,
    position: usize,
    nesting: usize,
    /// Lists around this place whose transforms evaluate it for each element.
    lists: usize,
    /// True if a text among the arguments that might be meant as an expression is reported.
    warns: bool,
    /// Types of the elements of the lists around this place, as far as they are known.
    elements: Vec<Option<Type>>,
    /// How many of them are lists of the mapping, outside of the text.
    outside: usize,
    /// Type of the elements of the list that the next transform gets.
    piped: Option<Type>,
    /// Place of the last pipe that ended, with its transforms.
    pipe: Range<usize>,
    /// Errors after which parsing could go on.
    pub errors: Vec<ParseError>,
    pub references: References,
}

/// Result of parsing; a syntax error ends it.
type ParseResult<T> = Result<T, ParseError>;

impl<'t> Parser<'t> {
    pub fn new(text: &'t str, lists: &Lists) -> Self {
        Self {
            text,
            position: 0,
            nesting: 0,
            lists: 0,
            warns: true,
            elements: lists.0.clone(),
            outside: lists.depth(),
            piped: None,
            pipe: 0..0,
            errors: Vec::new(),
            references: References::default(),
        }
    }

    /// Returns the errors that were noted, at most [`MAX_ERRORS`].
    pub fn into_errors(mut self) -> Vec<ParseError> {
        self.errors.truncate(MAX_ERRORS);
        self.errors
    }

    fn whole(&mut self) -> ParseResult<Node> {
        let node = self.disjunct()?;
        if !self.rest().is_empty() {
            return Err(self.after_expression("the end"));
        }
        Ok(node)
    }

    /// Parses the expression of a `{{ ... }}` whose braces open just before `position`. Returns it
    /// with the position after the closing braces.
    pub fn braced(&mut self, position: usize) -> ParseResult<(Node, usize)> {
        self.position = position;
        self.nesting = 0;
        self.lists = 0;
        self.elements.truncate(self.outside);
        let node = self.disjunct()?;
        if !self.rest().starts_with("}}") {
            return Err(self.after_expression("`}}`"));
        }
        self.references.note_form(node.value_form());
        Ok((node, self.position + 2))
    }

    /// Parses an expression inside of brackets or arguments, which may nest.
    fn nested(&mut self) -> ParseResult<Node> {
        if self.nesting == MAX_NESTING {
            return Err(self.error(format!("brackets nested deeper than {MAX_NESTING} levels")));
        }
        self.nesting += 1;
        let node = self.disjunct()?;
        self.nesting -= 1;
        Ok(node)
    }

    fn pipeline(&mut self) -> ParseResult<Node> {
        self.skip_whitespace();
        let start = self.position;
        let input = self.sum()?;
        let mut kind = comparison::type_of(&input, &self.elements);
        let mut calls = Vec::new();
        while self.rest().starts_with('|') && !self.rest().starts_with("||") {
            self.position += 1;
            self.piped = kind.and_then(Type::of_element);
            if let Some(call) = self.call()? {
                kind = comparison::type_after(&call, kind, &self.elements);
                calls.push(call);
            }
        }
        if calls.is_empty() {
            return Ok(input);
        }
        self.pipe = start..self.position;
        Ok(Node::Pipe(Box::new(input), calls))
    }

    /// Parses a transform. Returns `None`, and notes an error, when it can be read but does not
    /// exist.
    fn call(&mut self) -> ParseResult<Option<Call>> {
        self.skip_whitespace();
        let offset = self.position;
        let name = self.word();
        if name.is_empty() {
            return Err(self.unexpected("a transform"));
        }
        let shape = transform::Shape::of(name);
        if shape.is_none() {
            self.errors.push(transform::Shape::unknown(name, offset));
        }
        let arguments = self.arguments(shape.map_or(&[], |shape| shape.parameters))?;
        let Some(shape) = shape else {
            return Ok(None);
        };
        match shape.call(offset, arguments, &mut self.references) {
            Ok(call) => Ok(Some(call)),
            Err(error) => {
                self.errors.push(error);
                Ok(None)
            }
        }
    }

    fn after_expression(&mut self, end: &str) -> ParseError {
        if self.rest().starts_with(['+', '-', '*', '/', '%']) && !self.pipe.is_empty() {
            return self.operator_after_pipe(end);
        }
        let hint = match self.rest() {
            rest if rest.starts_with("||") => "; it is spelled `or`",
            rest if rest.starts_with("&&") => "; it is spelled `and`",
            rest if rest.starts_with(['<', '>'])
                || rest.starts_with("==")
                || rest.starts_with("!=") =>
            {
                "; a comparison within another stands in parentheses"
            }
            rest if rest.starts_with('=') => "; it is spelled `==`",
            rest if rest.starts_with("not ") => "; `not` stands before the whole comparison",
            _ => "",
        };
        let or = before(end);
        self.unexpected(&format!("an operator, `|`{or} {end}{hint}"))
    }

    fn operator_after_pipe(&mut self, end: &str) -> ParseError {
        let pipe = self.text.get(self.pipe.clone()).unwrap_or_default();
        let pipe = pipe.trim_end();
        let shown = match pipe.char_indices().nth(MAX_SHOWN) {
            Some((cut, _)) => format!("{}…", &pipe[..cut]),
            None => pipe.to_owned(),
        };
        let sign: String = self.rest().chars().take(1).collect();
        let or = before(end);
        self.unexpected(&format!(
            "`|`, a comparison, `and`, `or`{or} {end}; an operator takes a pipe in parentheses: \
             `({shown}) {sign}`"
        ))
    }
}

/// Returns the text between an enumeration and its last part. Several ends have their own `or`.
fn before(end: &str) -> &'static str {
    if end.contains(" or ") { "," } else { " or" }
}

#[cfg(test)]
mod tests;
