//! The parser: builds a syntax tree by recursive descent of bounded depth. An error has its place,
//! the text that was found, the one that was expected, and the nearest known name.

mod arguments;
mod comparison;
mod nearest;
mod path;
mod token;

use crate::node::{Call, Literal, Node, Operator};
use crate::transform;
use crate::{ParseError, References};

pub(crate) use arguments::{Argument, ArgumentKind};
pub(crate) use nearest::suggestion;

/// Greatest length of an expression, in bytes.
const MAX_LENGTH: usize = 64 * 1024;
/// Greatest depth to which parentheses may nest.
const MAX_NESTING: usize = 64;
/// Greatest number of errors that are reported for one text.
const MAX_ERRORS: usize = 100;

/// Parses a text that is one expression.
pub(crate) fn expression(text: &str) -> Result<(Node, References), Vec<ParseError>> {
    if text.len() > MAX_LENGTH {
        return Err(vec![ParseError::new(
            0,
            format!("{} bytes long, expected at most {MAX_LENGTH}", text.len()),
        )]);
    }
    let mut parser = Parser::new(text);
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
    /// Errors after which parsing could go on.
    pub errors: Vec<ParseError>,
    pub references: References,
}

/// Result of parsing; a syntax error ends it.
type ParseResult<T> = Result<T, ParseError>;

impl<'t> Parser<'t> {
    pub fn new(text: &'t str) -> Self {
        Self {
            text,
            position: 0,
            nesting: 0,
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
        let node = self.disjunct()?;
        if !self.rest().starts_with("}}") {
            return Err(self.after_expression("`}}`"));
        }
        self.references.note_form(node.value_form());
        Ok((node, self.position + 2))
    }

    fn disjunct(&mut self) -> ParseResult<Node> {
        let mut nodes = vec![self.conjunction()?];
        while self.keyword("or") {
            nodes.push(self.conjunction()?);
        }
        Ok(if nodes.len() == 1 {
            nodes.remove(0)
        } else {
            Node::Or(nodes)
        })
    }

    fn conjunction(&mut self) -> ParseResult<Node> {
        let mut nodes = vec![self.conjunct()?];
        while self.keyword("and") {
            nodes.push(self.conjunct()?);
        }
        Ok(if nodes.len() == 1 {
            nodes.remove(0)
        } else {
            Node::And(nodes)
        })
    }

    fn conjunct(&mut self) -> ParseResult<Node> {
        let negated = self.keyword("not");
        let left = self.pipeline()?;
        self.skip_whitespace();
        let offset = self.position;
        let node = match self.operator() {
            Some(operator) => {
                let right = self.pipeline()?;
                let constant = comparison::constant_comparison(&left, operator, &right);
                self.references
                    .constant_comparisons
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

    fn pipeline(&mut self) -> ParseResult<Node> {
        let term = self.term()?;
        let mut calls = Vec::new();
        while self.rest().starts_with('|') && !self.rest().starts_with("||") {
            self.position += 1;
            calls.extend(self.call()?);
        }
        Ok(if calls.is_empty() {
            term
        } else {
            Node::Pipe(Box::new(term), calls)
        })
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
        let arguments = self.arguments()?;
        match transform::build(name, offset, &arguments, self) {
            Ok(call) => Ok(Some(call)),
            Err(error) => {
                self.errors.push(error);
                Ok(None)
            }
        }
    }

    fn term(&mut self) -> ParseResult<Node> {
        self.skip_whitespace();
        match self.peek() {
            Some('(') => self.parenthesis(),
            Some('"' | '\'') => Ok(Node::Literal(Literal::String(self.string()?))),
            Some('-' | '0'..='9') => Ok(Node::Literal(Literal::Number(self.number()?))),
            Some(letter) if token::is_word(letter) => self.named_term(),
            Some(_) | None => Err(self.unexpected("a path, a value or `(`")),
        }
    }

    fn parenthesis(&mut self) -> ParseResult<Node> {
        if self.nesting == MAX_NESTING {
            return Err(self.error(format!(
                "parentheses nested deeper than {MAX_NESTING} levels"
            )));
        }
        self.nesting += 1;
        self.position += 1;
        let node = self.disjunct()?;
        self.nesting -= 1;
        if !self.rest().starts_with(')') {
            return Err(self.after_expression("`)`"));
        }
        self.position += 1;
        Ok(node)
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
            _ => Ok(Node::Path(self.path(word, offset)?)),
        }
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

    fn after_expression(&mut self, end: &str) -> ParseError {
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
        self.unexpected(&format!("`|`, a comparison, `and`, `or` or {end}{hint}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ValueForm;

    #[track_caller]
    fn refuses(text: &str, offset: usize, message: &str) {
        let errors = expression(text).map(|_| ()).unwrap_err();
        assert_eq!(errors, [ParseError::new(offset, message)], "{text}");
    }

    #[test]
    fn says_what_was_found_and_expected() {
        let continues = "expected `|`, a comparison, `and`, `or` or the end";
        refuses("", 0, "found the end, expected a path, a value or `(`");
        refuses("source.a |", 10, "found the end, expected a transform");
        refuses("source.a | | trim", 11, "found `|`, expected a transform");
        refuses(
            "source.a source.b",
            9,
            &format!("found `source`, {continues}"),
        );
        refuses(
            "source.a = 1",
            9,
            &format!("found `=`, {continues}; it is spelled `==`"),
        );
        refuses(
            "1 < source.a < 5",
            13,
            &format!("found `<`, {continues}; a comparison within another stands in parentheses"),
        );
        refuses(
            "source.a || 1",
            9,
            &format!("found `|`, {continues}; it is spelled `or`"),
        );
        refuses(
            "source.a && 1",
            9,
            &format!("found `&`, {continues}; it is spelled `and`"),
        );
        refuses(
            "(source.a",
            9,
            "found the end, expected `|`, a comparison, `and`, `or` or `)`",
        );
        refuses("source.", 7, "found the end, expected a name");
        refuses("source.a.[0]", 9, "found `[`, expected a name");
        refuses(
            "source[x]",
            7,
            "found `x`, expected a number, `*` or a name in quotes",
        );
        refuses(
            "source[-1]",
            7,
            "found `-`, expected a number, `*` or a name in quotes",
        );
        refuses("source[1", 8, "found the end, expected `]`");
        refuses("'abc", 0, "a string that does not end");
        refuses(
            "'a\\qb'",
            2,
            "found `\\q`, expected an escape: `\\\\` `\\'` `\\\"` `\\/` `\\b` `\\f` `\\n` `\\r` \
             `\\t` `\\uXXXX`",
        );
        refuses("12abc", 2, "found `abc`, expected a number");
        refuses("01", 0, "found `01`, expected a number");
        refuses("now", 3, "found the end, expected `(`, as in `now()`");
    }

    #[test]
    fn names_the_nearest_root_and_transform() {
        let roots =
            "expected one of the roots source, trigger, steps, target, instance, item, state";
        refuses(
            "sorce.id",
            0,
            &format!("found `sorce`, {roots}; did you mean `source`?"),
        );
        refuses("customer.id", 0, &format!("found `customer`, {roots}"));
        refuses(
            "source.a | upcase",
            11,
            "there is no transform `upcase`; did you mean `uppercase`?",
        );
        refuses(
            "source.a | Trim",
            11,
            "there is no transform `Trim`; did you mean `trim`?",
        );
        refuses("source.a | xyzzy", 11, "there is no transform `xyzzy`");
    }

    #[test]
    fn reports_what_it_can_go_on_after() {
        let errors = expression("source.a | upcase | decimal(31) | decimal | trim(")
            .map(|_| ())
            .unwrap_err();
        assert_eq!(
            errors.iter().map(|error| error.offset).collect::<Vec<_>>(),
            [11, 28, 34, 49]
        );
    }

    #[test]
    fn bounds_nesting_and_length() {
        let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
        assert!(expression(&nested(64)).is_ok());
        refuses(&nested(65), 64, "parentheses nested deeper than 64 levels");
        assert!(expression(&"(".repeat(60_000)).is_err());
        refuses(
            &"a".repeat(70_000),
            0,
            "70000 bytes long, expected at most 65536",
        );
        refuses(
            &format!("source{}", ".a".repeat(65)),
            136,
            "a path of more than 64 steps",
        );
    }

    #[test]
    fn notes_what_becomes_of_values_of_the_instance() {
        let noted = |text: &str| {
            let values = expression(text).unwrap().1.instance_values;
            values
                .into_iter()
                .map(|value| (value.names.join("."), value.offset, value.form))
                .collect::<Vec<_>>()
        };
        for whole in [
            "instance.token",
            "(instance.token)",
            "instance.token | required | base64",
            "'Basic ' | concat(instance.token) | url_encode",
            "source.a | default(instance.token) | sha256",
        ] {
            let at = whole.find("token").unwrap();
            assert_eq!(
                noted(whole),
                [("token".to_owned(), at, ValueForm::Whole)],
                "{whole}"
            );
        }
        for computed in [
            "instance.token | substring(0, 1)",
            "instance.token == 'x'",
            "instance.token and source.a",
            "not instance.token",
            "instance.token | base64 | length",
            "source.a | lookup(eu, instance.token)",
            "instance.token | adapter(tidy)",
            "uuid() | concat(instance.token) | base64",
            "(uuid() | default('a')) | concat(instance.token) | base64",
        ] {
            assert_eq!(noted(computed)[0].2, ValueForm::Computed, "{computed}");
        }
        assert_eq!(noted("instance"), [(String::new(), 0, ValueForm::Whole)]);
        assert_eq!(
            noted("instance.headers['X-Key'][0].a")[0].0,
            "headers.X-Key"
        );
    }

    #[test]
    fn notes_members_that_closed_lists_do_not_have() {
        for (text, expect) in [
            (
                "trigger.headrs.x",
                Some((8, "`headrs`, expected a member of trigger: body")),
            ),
            ("trigger.bdy", Some((8, "did you mean `body`"))),
            (
                "trigger.paht_params.id | default(1)",
                Some((8, "did you mean `path_params`")),
            ),
            (
                "steps.calc.outptu.x",
                Some((
                    11,
                    "expected a member of the step calc: output, status; did you mean `output`",
                )),
            ),
            (
                "source.a | default(steps.calc.statuss)",
                Some((30, "did you mean `status`")),
            ),
            ("state.cursr", Some((6, "did you mean `cursor`"))),
            ("target.respnse.body", Some((7, "did you mean `response`"))),
            (
                "target.response.bdy",
                Some((16, "expected a member of target.response: body, status")),
            ),
            ("trigger.body.headrs", None),
            ("trigger.payload[0].x", None),
            ("trigger.headers.x-headrs", None),
            ("trigger[\"query\"].a", None),
            ("trigger.method", None),
            ("trigger.path_params.id", None),
            ("trigger.received_at", None),
            ("trigger.api.consumer", None),
            ("trigger.validation[*].field", None),
            ("trigger", None),
            ("steps.outptu.output.x", None),
            ("steps.calc", None),
            ("steps.calc.status", None),
            ("target.response", None),
            ("target.response.body.bdy", None),
            ("state.last_success_at", None),
            ("item.headrs", None),
            ("instance.cursr", None),
        ] {
            let unknown = expression(text).unwrap().1.definition_faults;
            match expect {
                Some((offset, message)) => {
                    assert!(
                        unknown.len() == 1 && unknown[0].message.contains(message),
                        "{text}: {unknown:?}"
                    );
                    assert_eq!(unknown[0].offset, offset, "{text}");
                }
                None => assert_eq!(unknown, [], "{text}"),
            }
        }
    }

    #[test]
    fn notes_what_is_named_outside() {
        let text = "steps.contact.output.id | lookup(eu, source.x) | adapter(tidy) | \
                    default(trigger.body.y)";
        let references = expression(text).unwrap().1;
        assert_eq!(references.roots, [crate::Root::Steps, crate::Root::Source]);
        assert_eq!(references.steps[0].name.as_str(), "contact");
        assert_eq!(references.steps[0].offset, 6);
        assert_eq!(references.tables[0].name.as_str(), "eu");
        assert_eq!(references.tables[0].offset, 33);
        assert_eq!(references.adapters[0].name.as_str(), "tidy");
        assert_eq!(references.adapters[0].offset, 57);
    }
}
