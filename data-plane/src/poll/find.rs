//! Finds in an answer, while it comes, what a poll wants of it: its records one by one, and the
//! value that leads on. Holds no more than one record, or one of the values beside them, however
//! long the answer is.

use bytes::{Bytes, BytesMut};
use kanat_mapping::json::{self, PieceScan};

use super::page;

pub(super) struct Finder {
    /// Where the records are; empty when the answer is the list.
    records_path: String,
    /// Where the value is that leads on; empty when none does.
    value_path: String,
    /// What came and is not taken yet.
    buffer: BytesMut,
    scan: PieceScan,
    place: Place,
    /// The names on the way to where it stands, of the objects that it is in.
    path: Vec<String>,
    had_records: bool,
    value: Option<String>,
    /// From 1, of the first byte of the buffer.
    line: usize,
    column: usize,
}

/// What is next, apart from white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Value,
    FirstName,
    Name,
    Colon,
    AfterValue,
    FirstRecord,
    Record,
    AfterRecord,
    End,
}

impl Finder {
    pub fn new(records_path: &str, value_path: &str) -> Self {
        Self {
            records_path: records_path.to_owned(),
            value_path: value_path.to_owned(),
            buffer: BytesMut::new(),
            scan: PieceScan::default(),
            place: Place::Value,
            path: Vec::new(),
            had_records: false,
            value: None,
            line: 1,
            column: 1,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next record, as it stands; `None` when more bytes are needed to tell it, or all has
    /// come. Errors say where the answer is no JSON, or that there is no list where the records
    /// should be.
    pub fn next(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            if self.scan.is_new() {
                let blank = self
                    .buffer
                    .iter()
                    .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
                    .count();
                self.skip(blank);
            }
            let Some(&byte) = self.buffer.first() else {
                return Ok(None);
            };
            match (self.place, byte) {
                (Place::Value, b'[') if self.path.join(".") == self.records_path => {
                    self.begin_records()?;
                    self.go_on(Place::FirstRecord);
                }
                (Place::Value, b'{') if self.leads_on() => self.go_on(Place::FirstName),
                (Place::Value, _) => {
                    let Some(value) = self.whole()? else {
                        return Ok(None);
                    };
                    self.note(&value)?;
                    self.leave_value();
                }
                (Place::FirstName | Place::Name, b'"') => {
                    let Some(name) = self.whole()? else {
                        return Ok(None);
                    };
                    self.path
                        .push(json::decode(&String::from_utf8_lossy(&name)).into_owned());
                    self.place = Place::Colon;
                }
                (Place::Colon, b':') => self.go_on(Place::Value),
                (Place::AfterValue, b',') => self.go_on(Place::Name),
                (Place::FirstName | Place::AfterValue, b'}') => {
                    self.skip(1);
                    self.leave_value();
                }
                (Place::FirstRecord | Place::AfterRecord, b']') => {
                    self.skip(1);
                    self.leave_value();
                }
                (Place::FirstRecord | Place::Record, _) => {
                    let Some(record) = self.whole()? else {
                        return Ok(None);
                    };
                    self.place = Place::AfterRecord;
                    return Ok(Some(record));
                }
                (Place::AfterRecord, b',') => self.go_on(Place::Record),
                (
                    Place::Name
                    | Place::Colon
                    | Place::AfterValue
                    | Place::AfterRecord
                    | Place::End,
                    _,
                )
                | (Place::FirstName, _) => return Err(self.misses()),
            }
        }
    }

    /// All bytes have come and all records were taken: the value that leads on, where there is one.
    pub fn end(mut self) -> Result<Option<String>, String> {
        // A number that is the whole answer ends with it.
        if self.place == Place::Value && self.path.is_empty() && !self.buffer.is_empty() {
            let rest = self.buffer.split();
            self.check(&rest)?;
            self.note(&rest)?;
            self.place = Place::End;
        }
        if self.place == Place::Value && self.path.is_empty() {
            return Err("the answer is empty".to_owned());
        }
        if self.place != Place::End {
            return Err(self.no_json(0, 1, "found the end, and the answer goes on"));
        }
        if !self.had_records {
            return Err(match self.records_path.as_str() {
                "" => "the answer is no list of records".to_owned(),
                path => format!("records_path {path:?} is not in the answer"),
            });
        }
        Ok(self.value)
    }

    /// Whether the records or the value are below where it stands.
    fn leads_on(&self) -> bool {
        let below = |wanted: &str| {
            let mut names = wanted.split('.');
            !wanted.is_empty()
                && self.path.iter().all(|name| names.next() == Some(name))
                && names.next().is_some()
        };
        below(&self.records_path) || below(&self.value_path)
    }

    fn begin_records(&mut self) -> Result<(), String> {
        if std::mem::replace(&mut self.had_records, true) {
            return Err(format!(
                "records_path {:?} is in the answer twice",
                self.records_path
            ));
        }
        Ok(())
    }

    /// Takes a value note of that stands where something is wanted.
    fn note(&mut self, value: &[u8]) -> Result<(), String> {
        let path = self.path.join(".");
        let text = String::from_utf8_lossy(value);
        if path == self.records_path {
            match text.trim() {
                "null" => self.begin_records()?,
                _ if path.is_empty() => return Err("the answer is no list of records".to_owned()),
                _ => return Err(format!("records_path {path:?} is no list of records")),
            }
        }
        if !path.is_empty() && path == self.value_path {
            self.value = page::value(&text, "");
        }
        Ok(())
    }

    /// Past the value that it stood at.
    fn leave_value(&mut self) {
        self.place = if self.path.pop().is_some() {
            Place::AfterValue
        } else {
            Place::End
        };
    }

    /// Takes the value at the begin of the buffer, once it is there whole.
    fn whole(&mut self) -> Result<Option<Bytes>, String> {
        let Some(length) = self.scan.end(&self.buffer) else {
            return Ok(None);
        };
        self.scan = PieceScan::default();
        let value = self.buffer.split_to(length).freeze();
        self.check(&value)?;
        self.count(&value);
        Ok(Some(value))
    }

    fn check(&self, value: &[u8]) -> Result<(), String> {
        let depth = json::MAX_DEPTH.saturating_sub(self.path.len() + 1);
        json::check(value, depth)
            .map_err(|error| self.no_json(error.line - 1, error.column, &error.message))
    }

    fn go_on(&mut self, place: Place) {
        self.skip(1);
        self.place = place;
    }

    fn skip(&mut self, bytes: usize) {
        let skipped = self.buffer.split_to(bytes);
        self.count(&skipped);
    }

    /// Lines and columns, in characters.
    fn count(&mut self, bytes: &[u8]) {
        let last = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => {
                self.line += bytes[..=newline]
                    .iter()
                    .filter(|byte| **byte == b'\n')
                    .count();
                self.column = 1;
                &bytes[newline + 1..]
            }
            None => bytes,
        };
        self.column += last.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
    }

    fn misses(&self) -> String {
        let expected = match self.place {
            Place::FirstName | Place::Name => "a key in double quotes",
            Place::Colon => "`:`",
            Place::Value | Place::FirstRecord | Place::Record => "a value",
            Place::AfterValue => "`,` or `}`",
            Place::AfterRecord => "`,` or `]`",
            Place::End => "the end",
        };
        // The rest of a longer character may not have come yet.
        let found = self
            .buffer
            .first()
            .copied()
            .unwrap_or_default()
            .escape_ascii();
        self.no_json(0, 1, &format!("found `{found}`, expected {expected}"))
    }

    /// `line` and `column` from where it stands.
    fn no_json(&self, lines: usize, column: usize, message: &str) -> String {
        let column = if lines == 0 {
            self.column + column - 1
        } else {
            column
        };
        format!(
            "the answer is no JSON: line {}, column {column}: {message}",
            self.line + lines
        )
    }
}

/// Returns the records of an answer that comes in pieces of `size` bytes, and the value that leads
/// on.
///
/// # Errors
/// The answer is no JSON, or has no list of records.
#[cfg(any(test, feature = "fuzz"))]
pub(crate) fn found(
    body: &[u8],
    records: &str,
    value: &str,
    size: usize,
) -> Result<(Vec<Bytes>, Option<String>), String> {
    let mut finder = Finder::new(records, value);
    let mut taken = Vec::new();
    for piece in body.chunks(size) {
        finder.push(piece);
        while let Some(record) = finder.next()? {
            taken.push(record);
        }
    }
    Ok((taken, finder.end()?))
}

#[cfg(test)]
mod tests;
