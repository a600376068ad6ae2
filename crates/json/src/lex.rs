//! The lexer: reads a JSON text (RFC 8259) strictly, in one pass and without recursion, and reports
//! its tokens with their byte ranges to a [`Visitor`]. It builds no values.

use std::ops::Range;

use crate::string::plain_end;
use crate::{Fault, Kind, MAX_DEPTH};

/// Receiver of the tokens of a text, in their order. Positions are byte offsets in the text.
///
/// All methods do nothing unless they are implemented.
pub trait Visitor {
    /// Called when a list or an object opens at `start`.
    fn open(&mut self, _kind: Kind, _start: usize) {}

    /// Called when the innermost open list or object has been closed; `end` follows its bracket.
    fn close(&mut self, _end: usize) {}

    /// Called for the key of a member; `range` includes the quotes.
    fn key(&mut self, _range: Range<usize>, _has_escapes: bool) {}

    /// Called for a value other than a list or an object.
    fn scalar(&mut self, _scalar: Scalar, _range: Range<usize>) {}

    /// Called for a comma between members or items.
    fn comma(&mut self) {}
}

/// A value other than a list or an object, with the details that the lexer saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    Null,
    Boolean(bool),
    Number {
        /// The number is written without a fraction and an exponent.
        is_integer: bool,
    },
    String {
        has_escapes: bool,
    },
}

impl Visitor for () {}

/// Reads a text whose lists and objects are nested at most `max_depth` deep, and never deeper than
/// [`MAX_DEPTH`]. Equal keys in an object are no fault.
///
/// # Errors
/// The first byte at which the text stops being JSON. The visitor has seen all tokens before it.
pub fn read<V: Visitor>(text: &str, max_depth: usize, visitor: &mut V) -> Result<(), Fault> {
    let mut lexer = Lexer::new(text, max_depth, visitor);
    lexer.document().map_err(|problem| lexer.fault(problem))
}

/// Returns whether the whole text is one number, without white space around it.
pub fn is_number(text: &str) -> bool {
    let mut visitor = ();
    let mut lexer = Lexer::new(text, 0, &mut visitor);
    lexer.number().is_ok() && lexer.position == text.len()
}

struct Lexer<'t, 'v, V> {
    text: &'t str,
    bytes: &'t [u8],
    position: usize,
    /// Number of open lists and objects.
    depth: usize,
    max_depth: usize,
    /// One bit for each open container, the innermost lowest; set for an object.
    objects: u128,
    visitor: &'v mut V,
}

/// A fault as a small value: its text is written only when reading has ended.
#[derive(Clone, Copy)]
enum Problem {
    Expectation(Expectation),
    Depth,
    LeadingZero,
    OpenString,
    HexDigits,
}

/// A token or character that could have stood where another one was found.
#[derive(Clone, Copy)]
enum Expectation {
    Value,
    Key,
    Colon,
    NextMember,
    NextItem,
    End,
    Digit,
    Escape,
    EscapedControl,
}

impl Expectation {
    fn describe(self) -> &'static str {
        match self {
            Self::Value => "a value",
            Self::Key => "a key in double quotes",
            Self::Colon => "`:`",
            Self::NextMember => "`,` or `}`",
            Self::NextItem => "`,` or `]`",
            Self::End => "the end",
            Self::Digit => "a digit",
            Self::Escape => "one of the escapes `\"` `\\` `/` `b` `f` `n` `r` `t` `u`",
            Self::EscapedControl => "a control character in its escaped form",
        }
    }
}

type Step = Result<(), Problem>;

fn expected<T>(expected: Expectation) -> Result<T, Problem> {
    Err(Problem::Expectation(expected))
}

impl<'t, 'v, V: Visitor> Lexer<'t, 'v, V> {
    fn new(text: &'t str, max_depth: usize, visitor: &'v mut V) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            position: 0,
            depth: 0,
            max_depth: max_depth.min(MAX_DEPTH),
            objects: 0,
            visitor,
        }
    }

    fn document(&mut self) -> Step {
        loop {
            if self.value()? && self.after_value()? {
                return Ok(());
            }
        }
    }

    /// Reads a scalar or an empty container and returns `true`. Otherwise opens a container, whose
    /// first value is next, and returns `false`.
    fn value(&mut self) -> Result<bool, Problem> {
        self.skip_whitespace();
        let start = self.position;
        let scalar = match self.peek() {
            Some(b'"') => {
                let has_escapes = self.string()?;
                Scalar::String { has_escapes }
            }
            Some(b'{') => {
                self.enter(Kind::Object)?;
                if self.peek() != Some(b'}') {
                    self.key()?;
                    return Ok(false);
                }
                self.leave();
                return Ok(true);
            }
            Some(b'[') => {
                self.enter(Kind::List)?;
                if self.peek() != Some(b']') {
                    return Ok(false);
                }
                self.leave();
                return Ok(true);
            }
            Some(b'-' | b'0'..=b'9') => {
                let is_integer = self.number()?;
                Scalar::Number { is_integer }
            }
            Some(b't') => self.word("true", Scalar::Boolean(true))?,
            Some(b'f') => self.word("false", Scalar::Boolean(false))?,
            Some(b'n') => self.word("null", Scalar::Null)?,
            _ => return expected(Expectation::Value),
        };
        self.visitor.scalar(scalar, start..self.position);
        Ok(true)
    }

    /// Goes on to the next value. Returns `true` at the end of the document.
    fn after_value(&mut self) -> Result<bool, Problem> {
        loop {
            self.skip_whitespace();
            if self.depth == 0 {
                return match self.peek() {
                    None => Ok(true),
                    Some(_) => expected(Expectation::End),
                };
            }
            match (self.is_in_object(), self.peek()) {
                (true, Some(b',')) => {
                    self.comma();
                    self.skip_whitespace();
                    self.key()?;
                    return Ok(false);
                }
                (false, Some(b',')) => {
                    self.comma();
                    return Ok(false);
                }
                (true, Some(b'}')) | (false, Some(b']')) => self.leave(),
                (true, _) => return expected(Expectation::NextMember),
                (false, _) => return expected(Expectation::NextItem),
            }
        }
    }

    fn enter(&mut self, kind: Kind) -> Step {
        if self.depth >= self.max_depth {
            return Err(Problem::Depth);
        }
        self.depth += 1;
        self.objects = self.objects << 1 | u128::from(kind == Kind::Object);
        self.visitor.open(kind, self.position);
        self.position += 1;
        self.skip_whitespace();
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
        self.objects >>= 1;
        self.position += 1;
        self.visitor.close(self.position);
    }

    fn is_in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    fn comma(&mut self) {
        self.position += 1;
        self.visitor.comma();
    }

    fn key(&mut self) -> Step {
        if self.peek() != Some(b'"') {
            return expected(Expectation::Key);
        }
        let start = self.position;
        let has_escapes = self.string()?;
        self.visitor.key(start..self.position, has_escapes);
        self.skip_whitespace();
        if self.peek() != Some(b':') {
            return expected(Expectation::Colon);
        }
        self.position += 1;
        Ok(())
    }

    /// Reads a string. Returns whether it has escapes.
    fn string(&mut self) -> Result<bool, Problem> {
        let start = self.position;
        let mut has_escapes = false;
        self.position += 1;
        loop {
            self.position = plain_end(self.bytes, self.position);
            match self.peek() {
                Some(b'"') => {
                    self.position += 1;
                    return Ok(has_escapes);
                }
                Some(b'\\') => {
                    has_escapes = true;
                    self.escape()?;
                }
                Some(_) => return expected(Expectation::EscapedControl),
                None => {
                    self.position = start;
                    return Err(Problem::OpenString);
                }
            }
        }
    }

    fn escape(&mut self) -> Step {
        let start = self.position;
        self.position += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.position += 1,
            Some(b'u') => {
                let digits = self.bytes.get(self.position + 1..self.position + 5);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    self.position = start;
                    return Err(Problem::HexDigits);
                }
                self.position += 5;
            }
            _ => return expected(Expectation::Escape),
        }
        Ok(())
    }

    /// Reads a number. Returns whether it is written without a fraction and an exponent.
    fn number(&mut self) -> Result<bool, Problem> {
        let mut is_integer = true;
        if self.peek() == Some(b'-') {
            self.position += 1;
        }
        if self.peek() == Some(b'0') {
            self.position += 1;
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return Err(Problem::LeadingZero);
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            is_integer = false;
            self.position += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_integer = false;
            self.position += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.position += 1;
            }
            self.digits()?;
        }
        Ok(is_integer)
    }

    fn digits(&mut self) -> Step {
        let start = self.position;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.position += 1;
        }
        if start == self.position {
            expected(Expectation::Digit)
        } else {
            Ok(())
        }
    }

    fn word(&mut self, word: &str, scalar: Scalar) -> Result<Scalar, Problem> {
        if !self.bytes[self.position..].starts_with(word.as_bytes()) {
            return expected(Expectation::Value);
        }
        self.position += word.len();
        Ok(scalar)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    fn skip_whitespace(&mut self) {
        self.position = crate::skip_whitespace(self.bytes, self.position);
    }

    fn fault(&self, problem: Problem) -> Fault {
        let message = match problem {
            Problem::Expectation(expected) => {
                let rest = self.text.get(self.position..).unwrap_or_default();
                let found = rest.chars().next().map_or_else(
                    || "the end".to_owned(),
                    |found| match found {
                        '"' | '\'' | '\\' => format!("`{found}`"),
                        _ => format!("`{}`", found.escape_debug()),
                    },
                );
                format!("found {found}, expected {}", expected.describe())
            }
            Problem::Depth => format!("nested deeper than {} levels", self.max_depth),
            Problem::LeadingZero => "a number with a leading zero".to_owned(),
            Problem::OpenString => "a string that does not end".to_owned(),
            Problem::HexDigits => "`\\u` without four hexadecimal digits".to_owned(),
        };
        Fault {
            offset: self.position,
            message,
        }
    }
}
