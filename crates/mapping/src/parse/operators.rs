//! Operators, from the loosest to the tightest: `or`, `and`, `not` and comparisons; after the pipe
//! `+` and `-`, then `*`, `/` and `%`, then the minus before a term.

use super::comparison::{self, Type, type_of};
use super::{ParseResult, Parser};
use crate::ParseError;
use crate::node::{Arithmetic, Node, Operator};

impl Parser<'_> {
    pub(super) fn disjunct(&mut self) -> ParseResult<Node> {
        let first = self.conjunction()?;
        let mut nodes = Vec::new();
        while self.keyword("or") {
            nodes.push(self.conjunction()?);
        }
        Ok(chain(first, nodes, Node::Or))
    }

    fn conjunction(&mut self) -> ParseResult<Node> {
        let first = self.conjunct()?;
        let mut nodes = Vec::new();
        while self.keyword("and") {
            nodes.push(self.conjunct()?);
        }
        Ok(chain(first, nodes, Node::And))
    }

    fn conjunct(&mut self) -> ParseResult<Node> {
        let negated = self.keyword("not");
        let left = self.pipeline()?;
        self.skip_whitespace();
        let offset = self.position;
        let node = match self.operator() {
            Some(operator) => {
                let right = self.pipeline()?;
                let constant =
                    comparison::constant_comparison(&left, operator, &right, &self.elements);
                self.references
                    .warnings
                    .extend(constant.map(|message| ParseError::new(offset, message)));
                Node::Comparison(Box::new(left), operator, Box::new(right))
            }
            None => left,
        };
        Ok(if negated {
            Node::Not(Box::new(node))
        } else {
            node
        })
    }

    fn operator(&mut self) -> Option<Operator> {
        const OPERATORS: [(&str, Operator); 6] = [
            ("==", Operator::Equal),
            ("!=", Operator::Unequal),
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        if self.keyword("in") {
            return Some(Operator::In);
        }
        let (sign, operator) = OPERATORS
            .into_iter()
            .find(|(sign, _)| self.rest().starts_with(sign))?;
        self.position += sign.len();
        Some(operator)
    }

    pub(super) fn sum(&mut self) -> ParseResult<Node> {
        const SIGNS: [Arithmetic; 2] = [Arithmetic::Add, Arithmetic::Subtract];
        self.arithmetic(&SIGNS, Self::product)
    }

    fn product(&mut self) -> ParseResult<Node> {
        const SIGNS: [Arithmetic; 3] = [
            Arithmetic::Multiply,
            Arithmetic::Divide,
            Arithmetic::Remainder,
        ];
        self.arithmetic(&SIGNS, Self::unary)
    }

    fn arithmetic(
        &mut self,
        signs: &[Arithmetic],
        operand: impl Fn(&mut Self) -> ParseResult<Node>,
    ) -> ParseResult<Node> {
        let offset = self.position;
        let first = operand(self)?;
        let mut others = Vec::new();
        while let Some(sign) = self.sign(signs) {
            others.push((sign, operand(self)?));
        }
        if others.is_empty() {
            return Ok(first);
        }
        self.warn_of_texts(offset, &first, &others);
        self.warn_of_date(offset);
        Ok(Node::Arithmetic(Box::new(first), others))
    }

    /// Warns of an operand that is a text for every message: the expression always fails.
    fn warn_of_texts(&mut self, offset: usize, first: &Node, others: &[(Arithmetic, Node)]) {
        let mut operands = others.iter().map(|(_, node)| node).chain([first]);
        let is_text = |node: &Node| type_of(node, &self.elements) == Some(Type::Text);
        if !operands.any(is_text) {
            return;
        }
        let hint = match others {
            [(Arithmetic::Add, _), ..] => "texts are joined with `concat`",
            _ => "`number` makes a number of a text",
        };
        let message = format!("found arithmetic with a text, which always fails; {hint}");
        self.references
            .warnings
            .push(ParseError::new(offset, message));
    }

    /// Warns of a date without quotes: `2026-10-15` is 2001.
    fn warn_of_date(&mut self, offset: usize) {
        let written = self.text[offset..self.position].trim_end();
        let offset = offset + written.len() - written.trim_start().len();
        let written = written.trim_start();
        if !is_date(written) {
            return;
        }
        let quoted = match self.text.trim() == written {
            true => format!("\"'{written}'\""),
            false => format!("`'{written}'`"),
        };
        let message = format!(
            "found `{written}`, which is computed; for the text itself write {quoted}, and put \
             blanks around the signs to compute it"
        );
        self.references
            .warnings
            .push(ParseError::new(offset, message));
    }

    fn sign(&mut self, signs: &[Arithmetic]) -> Option<Arithmetic> {
        let rest = self.rest();
        let sign = signs.iter().find(|sign| rest.starts_with(sign.sign()))?;
        self.position += sign.sign().len();
        Some(*sign)
    }

    /// Parses a term with an optional minus before it. A minus directly before digits belongs to
    /// the literal, which keeps its digits.
    fn unary(&mut self) -> ParseResult<Node> {
        let is_literal = |text: &str| {
            let after = text.strip_prefix('-');
            after.is_some_and(|after| after.starts_with(|letter: char| letter.is_ascii_digit()))
        };
        let rest = self.rest();
        if !rest.starts_with('-') || is_literal(rest) {
            return self.term();
        }
        self.position += 1;
        let rest = self.rest();
        if rest.starts_with('-') && !is_literal(rest) {
            return Err(self.unexpected("a term after the minus; a second one needs parentheses"));
        }
        self.term().map(|term| Node::Negative(Box::new(term)))
    }
}

/// Returns whether a text is a date of numbers: `2026-10-15`, `15/10/2026`.
pub(super) fn is_date(text: &str) -> bool {
    ['-', '/'].into_iter().any(|sign| {
        let lengths: Vec<usize> = text
            .split(sign)
            .map(
                |part| match part.bytes().all(|byte| byte.is_ascii_digit()) {
                    true => part.len(),
                    false => 0,
                },
            )
            .collect();
        matches!(lengths[..], [4, 1..=2, 1..=2] | [1..=2, 1..=2, 4])
    })
}

/// Returns the node of several operands, or the one that there is.
fn chain(first: Node, mut others: Vec<Node>, join: fn(Vec<Node>) -> Node) -> Node {
    if others.is_empty() {
        return first;
    }
    others.insert(0, first);
    join(others)
}
