//! Arguments of transforms: strings, numbers, true, false, null, and bare words such as table names
//! and date formats.

use super::{ParseResult, Parser};
use crate::node::{Literal, Operand};
use crate::references::Root;

#[derive(Debug, Clone)]
pub(crate) struct Argument {
    pub offset: usize,
    pub kind: ArgumentKind,
}

#[derive(Debug, Clone)]
pub(crate) enum ArgumentKind {
    Literal(Literal),
    /// A bare word, as it stands.
    Word(String),
}

impl Argument {
    /// Returns the text of an argument that is a name or a format.
    pub fn text(&self) -> String {
        match &self.kind {
            ArgumentKind::Literal(literal) => literal.value().rendered().into_owned(),
            ArgumentKind::Word(word) => word.clone(),
        }
    }
}

impl Parser<'_> {
    /// Parses the arguments in parentheses, if there are any.
    pub(super) fn arguments(&mut self) -> ParseResult<Vec<Argument>> {
        let mut arguments = Vec::new();
        if !self.rest().starts_with('(') {
            return Ok(arguments);
        }
        self.position += 1;
        if self.rest().starts_with(')') {
            self.position += 1;
            return Ok(arguments);
        }
        loop {
            arguments.push(self.argument()?);
            let rest = self.rest();
            if !rest.starts_with([',', ')']) {
                return Err(self.unexpected("`,` or `)`"));
            }
            self.position += 1;
            if rest.starts_with(')') {
                return Ok(arguments);
            }
        }
    }

    /// Returns an argument as a value. A bare word that begins like a path is one, every other is a
    /// string.
    pub(crate) fn operand(&mut self, argument: &Argument) -> ParseResult<Operand> {
        let word = match &argument.kind {
            ArgumentKind::Literal(literal) => return Ok(Operand::Literal(literal.clone())),
            ArgumentKind::Word(word) => word,
        };
        let first = word.split(['.', '[']).next().unwrap_or_default();
        if first.len() == word.len() || Root::parse(first).is_none() {
            return Ok(Operand::Literal(Literal::String(word.clone())));
        }
        let after = std::mem::replace(&mut self.position, argument.offset + first.len());
        let path = self.path(first, argument.offset).and_then(|path| {
            let ends = self.position == argument.offset + word.len();
            if ends {
                Ok(path)
            } else {
                Err(self.unexpected("`.`, `[` or the end of the path"))
            }
        });
        self.position = after;
        path.map(Operand::Path)
    }

    fn argument(&mut self) -> ParseResult<Argument> {
        self.skip_whitespace();
        let offset = self.position;
        let kind = match self.peek() {
            Some('"' | '\'') => ArgumentKind::Literal(Literal::String(self.string()?)),
            Some(_) | None => self.bare_word()?,
        };
        Ok(Argument { offset, kind })
    }

    /// Parses the text up to the next `,` or `)` outside of brackets.
    fn bare_word(&mut self) -> ParseResult<ArgumentKind> {
        let here = self.here();
        let mut in_brackets = false;
        let mut end = here.len();
        for (index, letter) in here.char_indices() {
            match letter {
                '[' => in_brackets = true,
                ']' => in_brackets = false,
                ',' | ')' | '(' | '|' | '{' | '}' | '"' | '\'' if !in_brackets => {
                    end = index;
                    break;
                }
                _ => {}
            }
        }
        let word = here[..end].trim_end();
        if word.is_empty() {
            return Err(self.unexpected("an argument"));
        }
        self.position += word.len();
        Ok(match word {
            "true" => ArgumentKind::Literal(Literal::Bool(true)),
            "false" => ArgumentKind::Literal(Literal::Bool(false)),
            "null" => ArgumentKind::Literal(Literal::Null),
            number if crate::json::is_number(number) => {
                ArgumentKind::Literal(Literal::Number(number.to_owned()))
            }
            word => ArgumentKind::Word(word.to_owned()),
        })
    }
}
