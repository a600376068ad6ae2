//! Quoting of CSV text (RFC 4180), held strictly: a lenient reader takes what is broken as data.

use std::fmt;

/// Check of the quotes of a text that may come in pieces.
///
/// A quoted field that never ends would take the rest of the text as its value, and what stands
/// behind one that has ended would become a part of it.
#[derive(Debug)]
pub struct QuoteCheck {
    state: State,
    line: u64,
    opened_at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    FieldStart,
    Unquoted,
    Quoted,
    /// Behind a quote within a quoted field: it ends the field, or is the first of two.
    Closing,
}

/// Returns the number of lines by which the `csv` crate is short in the positions of all records
/// but the first: they begin before the `\n` of a `\r\n`. `beginning` is that of the text.
pub fn lines_short(beginning: &[u8]) -> u64 {
    let end = beginning.iter().position(|byte| *byte == b'\n');
    let is_crlf = end.is_some_and(|end| beginning[..end].ends_with(b"\r"));
    u64::from(is_crlf)
}

/// Broken quoting, and the line where it begins, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokenQuote {
    pub line: u64,
    pub fault: Fault,
}

/// Kinds of broken quoting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    NeverEnds,
    TextBehind,
}

impl Default for QuoteCheck {
    fn default() -> Self {
        Self {
            state: State::FieldStart,
            line: 1,
            opened_at: 1,
        }
    }
}

impl QuoteCheck {
    /// Takes the next byte of the text.
    ///
    /// # Errors
    /// Text behind the end of a quoted field.
    pub fn take(&mut self, byte: u8) -> Result<(), BrokenQuote> {
        self.state = match (self.state, byte) {
            (State::Quoted, b'"') => State::Closing,
            (State::Quoted, _) | (State::Closing, b'"') => State::Quoted,
            (State::FieldStart | State::Unquoted | State::Closing, b',' | b'\n' | b'\r') => {
                State::FieldStart
            }
            (State::Closing, _) => {
                return Err(BrokenQuote {
                    line: self.line,
                    fault: Fault::TextBehind,
                });
            }
            (State::FieldStart, b'"') => {
                self.opened_at = self.line;
                State::Quoted
            }
            (State::FieldStart | State::Unquoted, _) => State::Unquoted,
        };
        self.line += u64::from(byte == b'\n');
        Ok(())
    }

    /// Ends the text.
    ///
    /// # Errors
    /// A quoted field that has not ended.
    pub fn finish(&self) -> Result<(), BrokenQuote> {
        match self.state {
            State::Quoted => Err(BrokenQuote {
                line: self.opened_at,
                fault: Fault::NeverEnds,
            }),
            State::FieldStart | State::Unquoted | State::Closing => Ok(()),
        }
    }

    /// Returns whether the next byte belongs to a quoted field.
    pub fn is_quoted(&self) -> bool {
        self.state == State::Quoted
    }

    /// Line of the next byte, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::NeverEnds => "a quoted field begins here and never ends",
            Self::TextBehind => {
                "a quoted field ends before its cell does: a quote within it is written twice"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), BrokenQuote> {
        let mut check = QuoteCheck::default();
        text.bytes().try_for_each(|byte| check.take(byte))?;
        check.finish()
    }

    #[test]
    fn quotes_end_with_their_field() {
        for sound in ["", "a,b\n", "x\"y,\"\"\n", "\"a \"\"b\"\"\",\"c\nd\"\r\n"] {
            assert_eq!(check(sound), Ok(()), "{sound:?}");
        }
        for (broken, line, fault) in [
            ("a,b\nc,\"d\ne", 2, Fault::NeverEnds),
            ("a\n\"b\"c", 2, Fault::TextBehind),
            ("\"a\nb\" ,c", 2, Fault::TextBehind),
        ] {
            assert_eq!(
                check(broken),
                Err(BrokenQuote { line, fault }),
                "{broken:?}"
            );
        }
    }
}
