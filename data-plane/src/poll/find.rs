//! Finds the records of a poll's answer, and the value that leads to the next page, while the
//! answer arrives. Holds no more than one record, or one of the values beside them, however long
//! the answer is.

use bytes::Bytes;
use kanat_mapping::json::{self, JsonError, Part, Position, SplitError, Splitter, Step};

use super::page;

pub(super) struct Finder {
    splitter: Splitter,
    /// Path of the list of records; empty when the answer is the list.
    records_path: String,
    /// Path of the value that leads to the next page; empty when none does.
    value_path: String,
    had_records: bool,
    value: Option<String>,
}

/// Fault of an answer that has come whole.
#[derive(Debug)]
pub(super) enum EndError {
    /// Nothing stands at this `records_path`.
    NoRecords(String),
    Content(String),
}

impl From<String> for EndError {
    fn from(message: String) -> Self {
        Self::Content(message)
    }
}

impl Finder {
    pub fn new(records_path: &str, value_path: &str) -> Self {
        Self {
            splitter: Splitter::new(usize::MAX),
            records_path: records_path.to_owned(),
            value_path: value_path.to_owned(),
            had_records: false,
            value: None,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.splitter.push(bytes);
    }

    /// Returns the next record, as it stands; `None` when it takes more bytes to tell it, or the
    /// answer has ended.
    ///
    /// # Errors
    /// The answer is no JSON, or there is no list where the records should be.
    pub fn next(&mut self) -> Result<Option<Bytes>, String> {
        loop {
            let rule = |first: u8, names: &[String]| {
                let enters = match first {
                    b'[' => names.join(".") == self.records_path,
                    b'{' => {
                        is_above(names, &self.records_path) || is_above(names, &self.value_path)
                    }
                    _ => false,
                };
                if enters { Step::Enter } else { Step::Whole }
            };
            let part = self.splitter.next(rule);
            match part.map_err(|error| self.split_error(error))? {
                None => return Ok(None),
                Some(Part::List) => self.begin_records()?,
                Some(Part::Value { bytes, at }) => {
                    self.check(&bytes, at)?;
                    self.note(&bytes)?;
                }
                Some(Part::Item { bytes, at }) => {
                    self.check(&bytes, at)?;
                    return Ok(Some(bytes));
                }
            }
        }
    }

    /// Ends an answer whose bytes have all arrived and whose records were taken. Returns the value
    /// that leads to the next page, where there is one.
    ///
    /// # Errors
    /// The answer is no JSON, or has no list of records.
    pub fn end(mut self) -> Result<Option<String>, EndError> {
        if let Some(Part::Value { bytes, at }) = self.splitter.finish() {
            self.check(&bytes, at)?;
            self.note(&bytes)?;
        }
        if self.splitter.is_empty() {
            return Err("the answer is empty".to_owned().into());
        }
        if !self.splitter.is_complete() {
            let message = "found the end, and the answer goes on";
            return Err(no_json(self.splitter.position(), message).into());
        }
        if !self.had_records {
            return Err(EndError::NoRecords(self.records_path));
        }
        Ok(self.value)
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

    /// Notes a value that stands where records or the value are expected.
    fn note(&mut self, value: &[u8]) -> Result<(), String> {
        let path = self.splitter.names().join(".");
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

    fn check(&self, value: &[u8], at: Position) -> Result<(), String> {
        let depth = json::MAX_DEPTH.saturating_sub(self.splitter.names().len() + 1);
        json::check(value, depth).map_err(|error| no_json_within(at, &error))
    }

    fn split_error(&self, error: SplitError) -> String {
        let at = self.splitter.position();
        match error {
            SplitError::Unexpected { found, expected } => {
                // The rest of a longer character may not have arrived yet.
                let found = found.escape_ascii();
                no_json(at, &format!("found `{found}`, expected {expected}"))
            }
            SplitError::Key(error) => no_json_within(at, &error),
            SplitError::Refused | SplitError::TooLarge => no_json(at, "the answer was refused"),
        }
    }
}

/// Returns whether the value at `names` contains that at the dotted path.
fn is_above(names: &[String], path: &str) -> bool {
    let mut below = path.split('.');
    !path.is_empty()
        && names.iter().all(|name| below.next() == Some(name))
        && below.next().is_some()
}

/// Writes an error that counts from `at`, where its value begins.
fn no_json_within(at: Position, error: &JsonError) -> String {
    let column = if error.line == 1 {
        at.column + error.column - 1
    } else {
        error.column
    };
    let line = at.line + error.line - 1;
    no_json(Position { line, column }, &error.message)
}

fn no_json(at: Position, message: &str) -> String {
    let Position { line, column } = at;
    format!("the answer is no JSON: line {line}, column {column}: {message}")
}

/// Returns the records of an answer that arrives in pieces of `size` bytes, and the value that
/// leads to the next page.
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
    let value = finder.end().map_err(|error| match error {
        EndError::Content(message) => message,
        EndError::NoRecords(path) if path.is_empty() => {
            "the answer is no list of records".to_owned()
        }
        EndError::NoRecords(path) => format!("records_path {path:?} is not in the answer"),
    })?;
    Ok((taken, value))
}

#[cfg(test)]
mod tests;
