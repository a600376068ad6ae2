//! The splitter: takes a document apart while its bytes arrive. It enters the containers that its
//! caller chooses and hands on every other value whole, so that it holds no more than one value,
//! however long the document is.

use bytes::{Buf, Bytes, BytesMut};

use crate::{JsonError, check, decode};

/// Splitter of one document.
///
/// Bytes go in with [`Splitter::push`]; [`Splitter::next`] returns the parts that are complete. The
/// values are delimited but not checked: that is up to the caller, who knows the depth that is
/// left.
#[derive(Debug)]
pub struct Splitter {
    /// Greatest length of one value, in bytes.
    limit: usize,
    /// Bytes that have arrived and are not consumed.
    buffer: BytesMut,
    scan: ValueScan,
    state: State,
    /// Keys of the members that lead to the current value, the outermost first.
    names: Vec<String>,
    /// Index of the current item of the list that was entered.
    index: Option<usize>,
    position: Position,
}

/// Line and column of a byte in the document. Both count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

/// Decision on a value by its first byte and the names that lead to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Enter the object or list. A list is entered only outside other lists.
    Enter,
    /// Return the value as one part.
    Whole,
    /// End with [`SplitError::Refused`].
    Refuse,
}

/// Part of a document. `at` is the position of its first byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A list was entered; its items follow.
    List,
    /// A value at [`Splitter::names`].
    Value { bytes: Bytes, at: Position },
    /// The item of the entered list at [`Splitter::index`].
    Item { bytes: Bytes, at: Position },
}

/// Reason why a document cannot be split further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SplitError {
    Refused,
    /// The next byte cannot stand where it does.
    Unexpected {
        found: u8,
        expected: &'static str,
    },
    /// The key of a member is no string of JSON. The error counts from the beginning of the key.
    Key(JsonError),
    /// A value is longer than the limit.
    TooLarge,
}

/// Token that is next, apart from white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Value,
    FirstKey,
    Key,
    Colon,
    /// A value was returned. Its name still stands among the names.
    Returned,
    AfterValue,
    FirstItem,
    Item,
    AfterItem,
    End,
}

impl Splitter {
    /// Creates a splitter for values of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            buffer: BytesMut::new(),
            scan: ValueScan::default(),
            state: State::Value,
            names: Vec::new(),
            index: None,
            position: Position { line: 1, column: 1 },
        }
    }

    /// Adds bytes that have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the number of bytes that are held.
    pub fn held(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the keys that lead to the current value, the outermost first.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the index of the current item, from the first item of the entered list to its end.
    pub fn index(&self) -> Option<usize> {
        self.index
    }

    /// Returns the position of the next byte.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Returns whether nothing but white space has arrived.
    pub fn is_empty(&self) -> bool {
        self.state == State::Value && self.names.is_empty() && self.buffer.is_empty()
    }

    /// Returns whether the document has ended.
    pub fn is_complete(&self) -> bool {
        self.state == State::End
    }

    /// Returns the next part; `None` when it takes more bytes to tell it, or the document has
    /// ended. `step` decides on each value.
    pub fn next(
        &mut self,
        mut step: impl FnMut(u8, &[String]) -> Step,
    ) -> Result<Option<Part>, SplitError> {
        loop {
            if self.state == State::Returned {
                self.leave_value();
            }
            if self.scan.is_new() {
                self.skip_whitespace();
            }
            let Some(&byte) = self.buffer.first() else {
                return Ok(None);
            };
            match (self.state, byte) {
                (State::Value, _) => {
                    let chosen = if self.scan.is_new() {
                        step(byte, &self.names)
                    } else {
                        Step::Whole
                    };
                    match (chosen, byte) {
                        (Step::Refuse, _) => return Err(SplitError::Refused),
                        (Step::Enter, b'{') => self.consume(State::FirstKey),
                        (Step::Enter, b'[') => {
                            self.consume(State::FirstItem);
                            return Ok(Some(Part::List));
                        }
                        (Step::Enter | Step::Whole, _) => {
                            let at = self.position;
                            let Some(bytes) = self.whole()? else {
                                return Ok(None);
                            };
                            self.state = State::Returned;
                            return Ok(Some(Part::Value { bytes, at }));
                        }
                    }
                }
                (State::FirstKey | State::Key, b'"') => {
                    let Some(key) = self.key()? else {
                        return Ok(None);
                    };
                    self.names.push(key);
                    self.state = State::Colon;
                }
                (State::Colon, b':') => self.consume(State::Value),
                (State::AfterValue, b',') => self.consume(State::Key),
                (State::FirstKey | State::AfterValue, b'}') => {
                    self.skip(1);
                    self.leave_value();
                }
                (State::FirstItem | State::AfterItem, b']') => {
                    self.skip(1);
                    self.index = None;
                    self.leave_value();
                }
                (State::FirstItem, _) => {
                    self.index = Some(0);
                    self.state = State::Item;
                }
                (State::Item, _) => {
                    let at = self.position;
                    let Some(bytes) = self.whole()? else {
                        return Ok(None);
                    };
                    self.state = State::AfterItem;
                    return Ok(Some(Part::Item { bytes, at }));
                }
                (State::AfterItem, b',') => {
                    self.index = self.index.map(|index| index + 1);
                    self.consume(State::Item);
                }
                (State::FirstKey | State::Key, found) => {
                    return Err(unexpected(found, "a key in double quotes"));
                }
                (State::Colon, found) => return Err(unexpected(found, "`:`")),
                (State::Returned | State::AfterValue, found) => {
                    return Err(unexpected(found, "`,` or `}`"));
                }
                (State::AfterItem, found) => return Err(unexpected(found, "`,` or `]`")),
                (State::End, found) => return Err(unexpected(found, "the end")),
            }
        }
    }

    /// Ends a document whose bytes have all arrived and whose parts were taken. Returns the last
    /// part when the whole document is a number, which ends where the bytes end.
    pub fn finish(&mut self) -> Option<Part> {
        let is_root = self.state == State::Value && self.names.is_empty();
        if !is_root || self.buffer.is_empty() {
            return None;
        }
        let at = self.position;
        let bytes = self.buffer.split().freeze();
        self.position.advance(&bytes);
        self.state = State::End;
        Some(Part::Value { bytes, at })
    }

    /// Goes on after the value at [`Splitter::names`].
    fn leave_value(&mut self) {
        self.state = match self.names.pop() {
            Some(_) => State::AfterValue,
            None => State::End,
        };
    }

    fn key(&mut self) -> Result<Option<String>, SplitError> {
        let at = self.position;
        let Some(raw) = self.whole()? else {
            return Ok(None);
        };
        if let Err(error) = check(&raw, 0) {
            self.position = at;
            return Err(SplitError::Key(error));
        }
        Ok(Some(decode(&String::from_utf8_lossy(&raw)).into_owned()))
    }

    /// Consumes the value at the beginning of the buffer, once it is complete.
    fn whole(&mut self) -> Result<Option<Bytes>, SplitError> {
        let length = self.scan.end(&self.buffer);
        if length.unwrap_or(self.buffer.len()) > self.limit {
            return Err(SplitError::TooLarge);
        }
        let Some(length) = length else {
            return Ok(None);
        };
        self.scan = ValueScan::default();
        let value = self.buffer.split_to(length).freeze();
        self.position.advance(&value);
        Ok(Some(value))
    }

    fn consume(&mut self, next: State) {
        self.skip(1);
        self.state = next;
    }

    fn skip_whitespace(&mut self) {
        let blank = crate::skip_whitespace(&self.buffer, 0);
        self.skip(blank);
    }

    fn skip(&mut self, length: usize) {
        self.position.advance(&self.buffer[..length]);
        self.buffer.advance(length);
    }
}

impl Position {
    fn advance(&mut self, bytes: &[u8]) {
        let last_line = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => {
                let newlines = bytes[..=newline].iter().filter(|byte| **byte == b'\n');
                self.line += newlines.count();
                self.column = 1;
                &bytes[newline + 1..]
            }
            None => bytes,
        };
        let is_first_byte = |byte: &&u8| **byte & 0xc0 != 0x80;
        self.column += last_line.iter().filter(is_first_byte).count();
    }
}

fn unexpected(found: u8, expected: &'static str) -> SplitError {
    SplitError::Unexpected { found, expected }
}

/// Search for the end of a value whose bytes arrive in pieces. It looks at no byte twice.
#[derive(Debug, Default)]
struct ValueScan {
    /// Bytes that were looked at, from the first of the value.
    position: usize,
    depth: usize,
    in_string: bool,
}

impl ValueScan {
    /// Returns the length of the value that `bytes` begin with, or `None` while it has not ended.
    /// `bytes` are those of the call before and all that have arrived since.
    ///
    /// It delimits without checking: bytes that no value can begin with have the length 0, and a
    /// number at the end of `bytes` may go on.
    fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        while let Some(&byte) = bytes.get(self.position) {
            match byte {
                b'\\' if self.in_string => self.position += 1,
                b'"' => {
                    self.in_string = !self.in_string;
                    if !self.in_string && self.depth == 0 {
                        return Some(self.position + 1);
                    }
                }
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                b'}' | b']' if self.depth == 1 => return Some(self.position + 1),
                b'}' | b']' | b',' | b' ' | b'\t' | b'\n' | b'\r' if self.depth == 0 => {
                    return Some(self.position);
                }
                _ => {}
            }
            self.position += 1;
        }
        None
    }

    fn is_new(&self) -> bool {
        self.position == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_end_wherever_the_value_is_divided() {
        for (text, length) in [
            (r#"{"a": "}\"", "b": [1]},"#, 22),
            ("12 ", 2),
            (r#""\\" "#, 4),
            ("[[],{}]]", 7),
            ("tru", 0),
            ("]", 0),
        ] {
            for size in 1..=text.len() {
                let mut scan = ValueScan::default();
                let ends = (0..=text.len()).step_by(size).chain([text.len()]);
                let found = ends
                    .into_iter()
                    .find_map(|end| scan.end(&text.as_bytes()[..end]));
                assert_eq!(found.unwrap_or_default(), length, "{text} by {size}");
            }
        }
    }
}
