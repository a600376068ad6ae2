//! Terms: literals, paths, parentheses, lists, and the calls of `if`, `coalesce`, `now` and `uuid`.

use super::{ParseResult, Parser, token};
use crate::ParseError;
use crate::language::{COALESCE, Function, IF};
use crate::node::{Branches, Literal, Node};

/// Greatest number of elements that a list in an expression has as it is written.
const MAX_LIST: usize = 1_000;
impl Parser<'_> {
    pub(super) fn term(&mut self) -> ParseResult<Node> {
        self.skip_whitespace();
        match self.peek() {
            Some('(') => {
                let node = self.parenthesis()?;
                self.members(node)
            }
            Some('[') => {
                let node = self.list()?;
                self.members(node)
            }
            Some('"' | '\'') => Ok(Node::Literal(Literal::String(self.string()?))),
            Some('-' | '0'..='9') => Ok(Node::Literal(Literal::Number(self.number()?))),
            Some(letter) if token::is_word(letter) => self.named_term(),
            Some(_) | None => Err(self.unexpected("a path, a value or `(`")),
        }
    }

    fn parenthesis(&mut self) -> ParseResult<Node> {
        self.position += 1;
        let node = self.nested()?;
        if !self.rest().starts_with(')') {
            return Err(self.after_expression("`)`"));
        }
        self.position += 1;
        Ok(node)
    }

    fn list(&mut self) -> ParseResult<Node> {
        let offset = self.position;
        self.position += 1;
        if self.rest().starts_with(']') {
            self.position += 1;
            return Ok(Node::List(Vec::new()));
        }
        let nodes = self.separated(']')?;
        if nodes.len() > MAX_LIST {
            let message = format!("a list of more than {MAX_LIST} elements");
            return Err(ParseError::new(offset, message));
        }
        Ok(Node::List(nodes))
    }

    fn named_term(&mut self) -> ParseResult<Node> {
        let offset = self.position;
        let word = self.word();
        match word {
            "true" => Ok(Node::Literal(Literal::Bool(true))),
            "false" => Ok(Node::Literal(Literal::Bool(false))),
            "null" => Ok(Node::Literal(Literal::Null)),
            "now" => self.call_without_arguments("now", Node::Now),
            "uuid" => self.call_without_arguments("uuid", Node::Uuid),
            "if" => {
                let nodes = self.called_with(offset, &IF)?;
                let [condition, then, otherwise] = <[Node; 3]>::try_from(nodes)
                    .map_err(|_| ParseError::new(offset, IF.usage()))?;
                self.members(Node::If(Box::new(Branches {
                    condition,
                    then,
                    otherwise,
                })))
            }
            "coalesce" => {
                let nodes = self.called_with(offset, &COALESCE)?;
                self.members(Node::Coalesce(nodes))
            }
            _ => Ok(Node::Path(self.path(word, offset)?)),
        }
    }

    /// Parses the segments that may follow a node.
    fn members(&mut self, node: Node) -> ParseResult<Node> {
        let segments = self.segments()?;
        Ok(if segments.is_empty() {
            node
        } else {
            Node::Member(Box::new(node), segments)
        })
    }

    fn call_without_arguments(&mut self, name: &str, node: Node) -> ParseResult<Node> {
        for parenthesis in ['(', ')'] {
            if !self.rest().starts_with(parenthesis) {
                return Err(self.unexpected(&format!("`{parenthesis}`, as in `{name}()`")));
            }
            self.position += 1;
        }
        Ok(node)
    }

    /// Parses the arguments of a function whose name stands at `offset`.
    fn called_with(&mut self, offset: usize, function: &Function) -> ParseResult<Vec<Node>> {
        if !self.rest().starts_with('(') {
            return Err(self.unexpected(&format!("`(`, as in `{}`", function.usage())));
        }
        self.position += 1;
        let nodes = if self.rest().starts_with(')') {
            Vec::new()
        } else {
            self.separated(')')?
        };
        function.check_count(nodes.len(), offset)?;
        Ok(nodes)
    }

    /// Parses expressions with commas between them, and the sign at their end.
    fn separated(&mut self, end: char) -> ParseResult<Vec<Node>> {
        let mut nodes = Vec::new();
        loop {
            nodes.push(self.nested()?);
            let rest = self.rest();
            if !rest.starts_with([',', end]) {
                return Err(self.after_expression(&format!("`,` or `{end}`")));
            }
            self.position += 1;
            if rest.starts_with(end) {
                return Ok(nodes);
            }
        }
    }
}
