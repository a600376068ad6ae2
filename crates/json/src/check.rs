//! Strict checking of a JSON text, without recursion, in one pass.

use super::string::plain_end;

/// Why a text is not JSON. Lines and columns count from 1, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct JsonError {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

/// Checks that `bytes` are one JSON text (RFC 8259) in UTF-8, nested at most `max_depth` deep.
/// Duplicate keys pass.
pub fn check(bytes: &[u8], max_depth: usize) -> Result<(), JsonError> {
    check_text(text(bytes)?, max_depth).map_err(|fault| fault.at(bytes))
}

/// The text that `bytes` are in UTF-8.
pub fn text(bytes: &[u8]) -> Result<&str, JsonError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let message = "found a byte that is not UTF-8".to_owned();
        Fault {
            offset: error.valid_up_to(),
            message,
        }
        .at(bytes)
    })
}

/// What is wrong, and how many bytes from the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub offset: usize,
    pub message: String,
}

impl Fault {
    fn at(self, bytes: &[u8]) -> JsonError {
        let before = String::from_utf8_lossy(&bytes[..self.offset.min(bytes.len())]);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        JsonError {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: self.message,
        }
    }
}

/// [`check`] on text, with the offset of what is wrong.
pub fn check_text(text: &str, max_depth: usize) -> Result<(), Fault> {
    Checker {
        text,
        bytes: text.as_bytes(),
        position: 0,
        open: Vec::new(),
        max_depth,
    }
    .document()
}

#[derive(Clone, Copy)]
enum Container {
    Object,
    List,
}

struct Checker<'t> {
    text: &'t str,
    bytes: &'t [u8],
    position: usize,
    open: Vec<Container>,
    max_depth: usize,
}

impl Checker<'_> {
    fn document(mut self) -> Result<(), Fault> {
        loop {
            if !self.value()? {
                continue;
            }
            if self.after_value()? {
                return Ok(());
            }
        }
    }

    /// Reads a scalar or an empty container, or opens a container: then `false`, and its first
    /// value is next.
    fn value(&mut self) -> Result<bool, Fault> {
        self.skip_whitespace();
        match self.peek() {
            Some(b'"') => self.string()?,
            Some(b'{') => {
                self.enter(Container::Object)?;
                if self.peek() != Some(b'}') {
                    self.key()?;
                    return Ok(false);
                }
                self.leave();
            }
            Some(b'[') => {
                self.enter(Container::List)?;
                if self.peek() != Some(b']') {
                    return Ok(false);
                }
                self.leave();
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true")?,
            Some(b'f') => self.word("false")?,
            Some(b'n') => self.word("null")?,
            _ => return Err(self.unexpected("a value")),
        }
        Ok(true)
    }

    /// Goes on to where the next value begins; `true` at the end of the document.
    fn after_value(&mut self) -> Result<bool, Fault> {
        loop {
            self.skip_whitespace();
            match (self.open.last(), self.peek()) {
                (None, None) => return Ok(true),
                (None, Some(_)) => return Err(self.unexpected("the end")),
                (Some(Container::Object), Some(b',')) => {
                    self.position += 1;
                    self.skip_whitespace();
                    self.key()?;
                    return Ok(false);
                }
                (Some(Container::List), Some(b',')) => {
                    self.position += 1;
                    return Ok(false);
                }
                (Some(Container::Object), Some(b'}')) | (Some(Container::List), Some(b']')) => {
                    self.leave()
                }
                (Some(Container::Object), _) => return Err(self.unexpected("`,` or `}`")),
                (Some(Container::List), _) => return Err(self.unexpected("`,` or `]`")),
            }
        }
    }

    fn enter(&mut self, container: Container) -> Result<(), Fault> {
        if self.open.len() >= self.max_depth {
            return Err(self.fault(format!("nested deeper than {} levels", self.max_depth)));
        }
        self.open.push(container);
        self.position += 1;
        self.skip_whitespace();
        Ok(())
    }

    fn leave(&mut self) {
        self.open.pop();
        self.position += 1;
    }

    fn key(&mut self) -> Result<(), Fault> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a key in double quotes"));
        }
        self.string()?;
        self.skip_whitespace();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("`:`"));
        }
        self.position += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), Fault> {
        let start = self.position;
        self.position += 1;
        loop {
            self.position = plain_end(self.bytes, self.position);
            match self.peek() {
                Some(b'"') => {
                    self.position += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(_) => return Err(self.unexpected("a control character in its escaped form")),
                None => {
                    self.position = start;
                    return Err(self.fault("a string that does not end"));
                }
            }
        }
    }

    fn escape(&mut self) -> Result<(), Fault> {
        let start = self.position;
        self.position += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.position += 1,
            Some(b'u') => {
                let digits = self.bytes.get(self.position + 1..self.position + 5);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    self.position = start;
                    return Err(self.fault("`\\u` without four hexadecimal digits"));
                }
                self.position += 5;
            }
            _ => {
                return Err(
                    self.unexpected("one of the escapes `\"` `\\` `/` `b` `f` `n` `r` `t` `u`")
                );
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Fault> {
        if self.peek() == Some(b'-') {
            self.position += 1;
        }
        if self.peek() == Some(b'0') {
            self.position += 1;
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return Err(self.fault("a number with a leading zero"));
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.position += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.position += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.position += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.position;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.position += 1;
        }
        if start == self.position {
            Err(self.unexpected("a digit"))
        } else {
            Ok(())
        }
    }

    fn word(&mut self, word: &str) -> Result<(), Fault> {
        if !self.bytes[self.position..].starts_with(word.as_bytes()) {
            return Err(self.unexpected("a value"));
        }
        self.position += word.len();
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    fn skip_whitespace(&mut self) {
        self.position = super::skip_whitespace(self.bytes, self.position);
    }

    fn unexpected(&self, expected: &str) -> Fault {
        let found = match self
            .text
            .get(self.position..)
            .and_then(|rest| rest.chars().next())
        {
            Some(found) => format!("`{}`", found.escape_debug()),
            None => "the end".to_owned(),
        };
        self.fault(format!("found {found}, expected {expected}"))
    }

    fn fault(&self, message: impl Into<String>) -> Fault {
        Fault {
            offset: self.position,
            message: message.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refuses(text: &str, line: usize, column: usize, message: &str) {
        assert_eq!(
            check(text.as_bytes(), 4),
            Err(JsonError {
                line,
                column,
                message: message.to_owned()
            }),
            "{text}"
        );
    }

    #[test]
    fn takes_json() {
        for text in [
            "0",
            " -1.5e+3 ",
            r#""a\u00e9\n""#,
            "[]",
            "{}",
            r#"{"a":[1,{"b":null}],"a":true}"#,
            "1e400",
        ] {
            assert_eq!(check(text.as_bytes(), 4), Ok(()), "{text}");
        }
    }

    #[test]
    fn says_where_it_stops_being_json() {
        refuses("", 1, 1, "found the end, expected a value");
        refuses(
            "{\n  \"a\": 1,\n}",
            3,
            1,
            "found `}`, expected a key in double quotes",
        );
        refuses("{\"é\" 1}", 1, 6, "found `1`, expected `:`");
        refuses("[1 2]", 1, 4, "found `2`, expected `,` or `]`");
        refuses("[1,]", 1, 4, "found `]`, expected a value");
        refuses("01", 1, 2, "a number with a leading zero");
        refuses("1.", 1, 3, "found the end, expected a digit");
        refuses("nul", 1, 1, "found `n`, expected a value");
        refuses("\"a", 1, 1, "a string that does not end");
        refuses(
            "\"\\x\"",
            1,
            3,
            "found `x`, expected one of the escapes `\"` `\\` `/` `b` `f` `n` `r` `t` `u`",
        );
        refuses("\"\\u12g4\"", 1, 2, "`\\u` without four hexadecimal digits");
        refuses("1 1", 1, 3, "found `1`, expected the end");
        refuses("NaN", 1, 1, "found `N`, expected a value");
        assert_eq!(
            check(b"[\"\xff\"]", 4).map_err(|error| error.column),
            Err(3)
        );
    }

    #[test]
    fn bounds_the_depth() {
        assert_eq!(check(b"[[[[1]]]]", 4), Ok(()));
        refuses("[[[[[1]]]]]", 1, 5, "nested deeper than 4 levels");
        let deep = "[".repeat(1_000_000);
        assert!(check(deep.as_bytes(), super::super::MAX_DEPTH).is_err());
    }
}
