//! Arguments of transforms. Those of the first transforms were literals, paths and bare words
//! before there were expressions among them, and are read so where they can be.

use super::operators::is_date;
use super::{MAX_LENGTH, ParseResult, Parser};
use crate::language::{Parameter, ParameterKind};
use crate::node::{Literal, Node};
use crate::path::Path;
use crate::references::{Root, ValueForm};
use crate::{Lists, ParseError};

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
    Expression(Node),
}

impl Argument {
    /// Returns the text of an argument that is a name, a text or a format; of an expression none.
    pub fn text(&self) -> String {
        match &self.kind {
            ArgumentKind::Literal(literal) => literal.value().rendered().into_owned(),
            ArgumentKind::Word(word) => word.clone(),
            ArgumentKind::Expression(_) => String::new(),
        }
    }
}

impl Parser<'_> {
    /// Parses the arguments in parentheses, if there are any. The last parameter takes all others,
    /// too.
    pub(super) fn arguments(&mut self, parameters: &[Parameter]) -> ParseResult<Vec<Argument>> {
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
            let parameter = parameters.get(arguments.len()).or(parameters.last());
            let kind = parameter.map_or(ParameterKind::Operand, |parameter| parameter.kind);
            let argument = self.argument(kind)?;
            let rest = self.rest();
            if !rest.starts_with([',', ')']) {
                return Err(match argument.kind {
                    ArgumentKind::Expression(_) => self.after_expression("`,` or `)`"),
                    ArgumentKind::Literal(_) | ArgumentKind::Word(_) => {
                        self.unexpected("`,` or `)`")
                    }
                });
            }
            arguments.push(argument);
            self.position += 1;
            if rest.starts_with(')') {
                return Ok(arguments);
            }
        }
    }

    fn argument(&mut self, kind: ParameterKind) -> ParseResult<Argument> {
        self.skip_whitespace();
        let offset = self.position;
        let kind = match kind {
            ParameterKind::Word | ParameterKind::Number => self.word_or_literal()?,
            ParameterKind::Text => {
                let text = self.word_or_literal()?;
                if let ArgumentKind::Word(word) = &text {
                    self.warn_of_text(word, offset, "this argument is a text wherever it stands");
                }
                text
            }
            ParameterKind::Pattern => ArgumentKind::Literal(Literal::String(self.pattern()?)),
            ParameterKind::Operand => ArgumentKind::Expression(match self.former_operand() {
                Some(operand) => operand,
                None => self.nested()?,
            }),
            ParameterKind::Expression => ArgumentKind::Expression(self.nested()?),
            ParameterKind::SigningKey => ArgumentKind::Expression(self.signing_key()?),
            ParameterKind::Element => {
                self.lists += 1;
                self.elements.push(self.piped);
                let node = self.nested()?;
                self.elements.pop();
                self.lists -= 1;
                ArgumentKind::Expression(node)
            }
        };
        Ok(Argument { offset, kind })
    }

    fn signing_key(&mut self) -> ParseResult<Node> {
        let before = self.references.instance_values.len();
        let node = self.nested()?;
        for value in &mut self.references.instance_values[before..] {
            value.form = ValueForm::Signing;
        }
        Ok(node)
    }

    /// Parses an argument that is a literal, a path or a bare word, up to the `,` or `)` after it.
    /// Stays where it is when there is none.
    fn former_operand(&mut self) -> Option<Node> {
        let start = self.position;
        let references = std::mem::take(&mut self.references);
        let operand = self.literal_path_or_word();
        let new = std::mem::replace(&mut self.references, references);
        match &operand {
            Some(_) => self.references.extend(&new),
            None => self.position = start,
        }
        operand
    }

    fn literal_path_or_word(&mut self) -> Option<Node> {
        let offset = self.position;
        let found = self.word_or_literal().ok()?;
        if !self.rest().starts_with([',', ')']) {
            return None;
        }
        match found {
            ArgumentKind::Literal(literal) => Some(Node::Literal(literal)),
            ArgumentKind::Word(word) => match self.former_path(&word, offset) {
                FormerPath::Path(path) => Some(Node::Path(path)),
                FormerPath::Wrong => None,
                FormerPath::None => {
                    let value = format!("`({word})` is the value");
                    self.warn_of_text(&word, offset, &value);
                    Some(Node::Literal(Literal::String(word)))
                }
            },
            ArgumentKind::Expression(_) => None,
        }
    }

    /// Reads a bare word as a path, when it begins like one.
    fn former_path(&mut self, word: &str, offset: usize) -> FormerPath {
        let first = word.split(['.', '[']).next().unwrap_or_default();
        let begins_a_path = Root::parse(first).is_some_and(|root| root != Root::Index);
        if first.len() == word.len() || !begins_a_path {
            return FormerPath::None;
        }
        let after = std::mem::replace(&mut self.position, offset + first.len());
        let path = self.path(first, offset);
        let end = std::mem::replace(&mut self.position, after);
        match path {
            Ok(path) if end == offset + word.len() => FormerPath::Path(path),
            Ok(_) | Err(_) => FormerPath::Wrong,
        }
    }

    /// Warns when a text would be an expression elsewhere.
    fn warn_of_text(&mut self, word: &str, offset: usize, explanation: &str) {
        if !self.warns {
            return;
        }
        let mut parser = Parser {
            warns: false,
            lists: super::MAX_NESTING,
            ..Parser::new(word, &Lists::default())
        };
        let is_expression = parser.whole().is_ok() && parser.errors.is_empty();
        // A date is a text, although its digits could be subtracted.
        if is_expression && !is_date(word) {
            let message =
                format!("found the text `{word}`, which is no expression here; {explanation}");
            self.references
                .warnings
                .push(ParseError::new(offset, message));
        }
    }

    fn word_or_literal(&mut self) -> ParseResult<ArgumentKind> {
        match self.peek() {
            Some('"' | '\'') => Ok(ArgumentKind::Literal(Literal::String(self.string()?))),
            Some(_) | None => self.bare_word(),
        }
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
            if index > MAX_LENGTH {
                return Err(self.error("an argument that does not end"));
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

/// Result of reading a bare word as a path.
enum FormerPath {
    /// It begins with no root.
    None,
    Path(Path),
    /// It begins like a path and is none.
    Wrong,
}
